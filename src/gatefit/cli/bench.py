"""``gatefit bench``: how fast this machine trains and runs, beside other libraries in the same run."""

from typing import Annotated, Any, Final

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.errors import check_choice, user_input
from gatefit.cli.options import AsJson

EXAMPLE = (
    "gatefit bench",
    "gatefit bench --shape monks --json",
    "gatefit bench --shape mnist-64k --precision half",
    "gatefit bench --device cuda --shape mnist-64k",
)
METHODS: Final = ("soft-mix", "multilinear-covjac", "multilinear-ste")
"""Soft, soft with committed gates, and on bits."""
_PLAIN = "torch-feature-major"
_ENGINE_SAMPLES = 16_384
PRECISIONS: Final = ("single", "half")


def bench(
    shape: Annotated[
        list[str] | None, typer.Option(help="network: mnist-8k (default), mnist-64k, ..., monks; may be repeated")
    ] = None,
    device: Annotated[str, typer.Option(help="where to train: cpu, cuda (an NVIDIA GPU), or auto")] = "cpu",
    threads: Annotated[
        int | None, typer.Option(min=1, help="threads (default: one, then all)", show_default=False)
    ] = None,
    precision: Annotated[
        str, typer.Option(help="what layers hand one another: single, or half, which wide layers are faster with")
    ] = "single",
    repeats: Annotated[int, typer.Option(min=1, help="repeats of every measurement; the least counts")] = 5,
    engine: Annotated[bool, typer.Option("--engine/--no-engine", help="measure how fast a circuit runs, too")] = True,
    as_json: AsJson = False,
) -> None:
    """Measure a training step and a circuit that runs: every case in a process of its own, the least of its repeats.

    Libraries that are installed beside gatefit (torchlogix, difflogic) train the same network in the same run.
    """
    require("torch", "train", "the benchmark")
    from gatefit.bench.shapes import SHAPES
    from gatefit.training.device import choose_device
    from gatefit.training.machine import machine

    chosen = shape or ["mnist-8k"]
    for name in chosen:
        check_choice("shape", name, SHAPES)
    check_choice("precision", precision, PRECISIONS)
    with user_input():
        where = choose_device(device)
    import numba
    import torch

    counts = [threads] if threads is not None else _thread_counts(where.type)
    content: dict[str, Any] = {
        "machine": {**machine(), "torch": torch.__version__, "numba": numba.__version__},
        "device": str(where),
        "precision": precision,
        "training": [],
        "not_measured": {},
        "engine": [],
    }
    for name in chosen:
        for count in counts:
            _train(content, name, SHAPES[name], count, repeats)
    if engine:
        from gatefit.bench.engine import layered, measured

        circuit = layered(784, 8000, 6)
        engine_counts = counts if where.type == "cpu" else _thread_counts("cpu")
        content["engine"] = [measured(circuit, _ENGINE_SAMPLES, count, repeats) for count in engine_counts]
    if as_json:
        output.print_json(content)
    else:
        _print(content)


def _thread_counts(device: str) -> list[int]:
    """One and all; on a GPU, which does not ask for more, one."""
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return sorted({1, cores} if device == "cpu" else {1})


def _train(content: dict[str, Any], name: str, shape: dict[str, int], threads: int, repeats: int) -> None:
    from gatefit.bench.peers import PEERS, is_installed, version_of
    from gatefit.bench.step import StepError, measured_apart

    device = content["device"]
    peers = [peer for peer in PEERS if is_installed(peer)]
    content["not_measured"] |= {peer: "not installed" for peer in PEERS if peer not in peers}
    plain = [_PLAIN] if device == "cpu" else []
    for method in (*METHODS, *plain, *peers):
        if method in content["not_measured"]:
            continue
        request = {"shape": shape, "method": method, "threads": threads, "repeats": repeats, "device": device}
        if method in METHODS:
            request["fields"] = {"precision": content["precision"]}
        try:
            row = measured_apart(request)
        except StepError as error:
            if method not in peers:
                raise
            content["not_measured"][method] = str(error)
            continue
        version = {"version": version_of(method)} if method in peers else {}
        content["training"].append({"shape_name": name, **version, **row})
        typer.echo(f"{name}, {method}, {threads} threads: {row['step'] * 1e3:.1f} ms a step", err=True)


def _print(content: dict[str, Any]) -> None:
    rows = content["training"]
    output.print_pairs([(key, str(value)) for key, value in content["machine"].items()])
    typer.echo()
    output.print_table(
        ("shape", "threads", "training step", "ms", "processor ms", "forward", "backward", "peak MB", "to soft-mix"),
        [
            (
                row["shape_name"],
                str(row["threads"]),
                f"{row['method']} {row['version']}" if "version" in row else row["method"],
                *(f"{row[key] * 1e3:.2f}" for key in ("step", "processor", "forward", "backward")),
                "-" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 1e6:.0f}",
                f"{row['step'] / _soft(rows, row):.1f} x",
            )
            for row in rows
        ],
    )
    if content["engine"]:
        typer.echo()
        output.print_table(
            ("circuit", "threads", "samples a second", "gates a second", "one sample"),
            [
                (
                    f"{row['evaluated_gates']:,} gates",
                    str(row["threads"]),
                    f"{row['samples_per_second']:,.0f}",
                    f"{row['gate_evaluations_per_second']:.2e}",
                    f"{row['one_sample_seconds'] * 1e6:.0f} µs",
                )
                for row in content["engine"]
            ],
        )
    for peer, reason in content["not_measured"].items():
        typer.echo(f"{peer}: {reason}")


def _soft(rows: list[dict[str, Any]], row: dict[str, Any]) -> float:
    """The step of the same network as the field trains it, by gatefit."""
    same = ("shape_name", "threads")
    own = (each for each in rows if each["method"] == METHODS[0] and all(each[k] == row[k] for k in same))
    return float(next(own)["step"])
