"""`make bench`: training speed of every method, beside plain torch and the machine's copy bandwidth, in one run.

    python -m benchmarks.training                 all shapes, methods and widths; writes benchmarks/results/training.*
    python -m benchmarks.training --quick         the two small shapes, fewer repeats
    python -m benchmarks.training --wide          8,000 to 256,000 gates a layer; writes benchmarks/results/wide.*
    python -m benchmarks.training --wide-avx2     the same with AVX-512 masked; writes benchmarks/results/wide-avx2.*

Every case runs in a process of its own, so that its peak memory is its own; a time is the least of its repeats. Ratios
compare cases of the same run on the same number of threads. Bytes moved are those that no order of computation
avoids if a layer does not fit the cache: forward reads its inputs and writes its outputs once, backward reads inputs
and output gradients and writes input gradients once, all in float32. Learned wiring is measured by
``benchmarks.wiring``, through the training loop.
"""

import argparse
import itertools
import json
import os
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import wiring
from benchmarks.machine import describe
from gatefit.bench.shapes import SHAPES
from gatefit.bench.step import measured_apart
from gatefit.methods import METHODS

RESULTS = Path(__file__).parent / "results"
RIVALS = ("torch-feature-major", "torch-naive-mixture")
TOO_WIDE = ("mnist-128k", "mnist-256k")
"""Shapes without rivals: plain torch keeps every activation, 16 and 31 GB of them, for a minute and more a step."""
WIDTHS = (1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000)


def run_case(shape: dict, method: str, threads: int, repeats: int, **fields: object) -> dict:
    """One case in a fresh process; ``fields`` are options of the network."""
    return measured_apart({"shape": shape, "method": method, "threads": threads, "repeats": repeats, "fields": fields})


def linear_fit(widths: list[int], times: list[float]) -> dict:
    """log t = slope log k + c over the widths from 8,000 on, where fixed costs no longer show."""
    k, t = np.log(np.array(widths, float)), np.log(np.array(times))
    slope, offset = np.polyfit(k, t, 1)
    residual = t - (slope * k + offset)
    return {"slope": float(slope), "r2": float(1 - residual.var() / t.var())}


def table(rows: list[dict], copy_bandwidth: dict) -> str:
    """The results as Markdown, with ratios to the rivals of the same shape and number of threads."""
    lines = [
        "| shape | threads | method | step ms | forward | backward | peak MB | GB/s | of copy | × torch | × naive |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peers = {
            r["method"]: r for r in rows if r["shape_name"] == row["shape_name"] and r["threads"] == row["threads"]
        }
        ratios = [
            f"{peers[rival]['step'] / row['step']:.1f}" if rival in peers and row["method"] != rival else ""
            for rival in RIVALS
        ]
        memory = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 1e6:.0f}"
        fraction = row["bandwidth"] / copy_bandwidth[str(row["threads"])]
        lines.append(
            f"| {row['shape_name']} | {row['threads']} | {row['method']} | {row['step'] * 1e3:.2f} "
            f"| {row['forward'] * 1e3:.2f} | {row['backward'] * 1e3:.2f} | {memory} "
            f"| {row['bandwidth'] / 1e9:.1f} | {fraction:.0%} | {' | '.join(ratios)} |"
        )
    return "\n".join(lines)


HASWELL: Final = {"NUMBA_CPU_NAME": "haswell", "ATEN_CPU_CAPABILITY": "avx2"}
"""What makes a processor with AVX-512 do without."""


def wide(repeats: int, *, avx2: bool = False) -> None:
    """Three methods from 8,000 to 256,000 gates a layer, one and two threads: time, its exponent and peak memory."""
    machine = describe()
    name, which, threads_tried = "wide", "", (1, 2)
    if avx2:
        os.environ.update(HASWELL, NUMBA_CACHE_DIR=tempfile.mkdtemp())
        name, which, threads_tried = "wide-avx2", ", kernels compiled for AVX2", (1,)
    widths = WIDTHS[3:]
    rows, fits = [], []
    methods = ("soft-mix", "multilinear-covjac", "multilinear-ste")
    for method, precision, threads in itertools.product(methods, ("single", "half"), threads_tried):
        shapes = [{**SHAPES["mnist-8k"], "width": width} for width in widths]
        found = [run_case(shape, method, threads, repeats, precision=precision) for shape in shapes]
        rows += [{"width": width, "precision": precision, **row} for width, row in zip(widths, found, strict=True)]
        fit = linear_fit(list(widths), [row["step"] for row in found])
        fits.append({"method": method, "precision": precision, "threads": threads, **fit})
        steps = [round(row["step"] * 1e3, 1) for row in found]
        print(f"{method}, {precision}, {threads} threads: {steps} ms, {fit}", flush=True)
    lines = [
        "# Wide layers\n",
        f"Six layers, batch 512{which} (`python -m benchmarks.training --{name}`): milliseconds of a step ~ "
        "width^exponent.\n",
        '*half*: layers hand one another numbers of 16 bits (`precision="half"`).\n',
        f"| method | precision | threads | {' | '.join(f'{width:,}' for width in widths)} | exponent | "
        f"peak MB at {widths[-1]:,} |",
        "|---|---|--:|" + "--:|" * (len(widths) + 2),
    ]
    for i, fit in enumerate(fits):
        own = rows[i * len(widths) : (i + 1) * len(widths)]
        steps = " | ".join(f"{row['step'] * 1e3:.4g}" for row in own)
        memory = "" if own[-1]["peak_bytes"] is None else f"{own[-1]['peak_bytes'] / 1e6:,.0f}"
        kind = f"{fit['method']} | {fit['precision']} | {fit['threads']}"
        lines.append(f"| {kind} | {steps} | {fit['slope']:.2f} | {memory} |")
    RESULTS.mkdir(exist_ok=True)
    content = json.dumps({"machine": machine, "rows": rows, "fits": fits}, indent=1)
    (RESULTS / f"{name}.json").write_text(content + "\n")
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")


def plot(curves: dict[str, list[float]], path: Path) -> None:
    """Step time against width."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    for (method, times), marker in zip(curves.items(), "os^D", strict=False):
        axes.loglog(WIDTHS[: len(times)], [t * 1e3 for t in times], marker=marker, label=method)
    axes.set(xlabel="gates a layer", ylabel="training step, ms", title="six layers, batch 512, one thread")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small shapes and few repeats, nothing written")
    parser.add_argument("--wide", action="store_true", help="from 8,000 to 256,000 gates a layer, nothing else")
    parser.add_argument("--wide-avx2", action="store_true", help="the same by kernels for processors without AVX-512")
    options = parser.parse_args()
    repeats = 5 if options.quick else 8
    if options.wide or options.wide_avx2:
        wide(repeats, avx2=options.wide_avx2)
        return
    shapes = {k: v for k, v in SHAPES.items() if not options.quick or k in ("mnist-8k", "monks")}
    machine = describe()
    print(json.dumps(machine), flush=True)
    rows = []
    for name, shape in shapes.items():
        for threads in (1, 2):
            for method in (*METHODS, *RIVALS):
                if method in RIVALS and ((threads == 2 and name != "mnist-8k") or name in TOO_WIDE):
                    continue
                row = run_case(shape, method, threads, 3 if method in RIVALS else repeats)
                rows.append({"shape_name": name, **row})
                print(f"{name} {threads} {method}: {row['step'] * 1e3:.2f} ms", flush=True)
    text = table(rows, machine["copy_bandwidth"])
    print(text)
    if options.quick:
        return
    curves: dict[str, list[float]] = {}
    for method in ("soft-mix", "multilinear-covjac", "multilinear-ste"):
        for width in WIDTHS:
            shape = {**SHAPES["mnist-8k"], "width": width}
            curves.setdefault(method, []).append(run_case(shape, method, 1, 8)["step"])
        print(f"{method}: {[round(t * 1e3, 2) for t in curves[method]]} ms at {WIDTHS}", flush=True)
    fits = {method: linear_fit(list(WIDTHS[3:]), times[3:]) for method, times in curves.items()}
    print(f"step time ~ width^slope: {json.dumps(fits)}")
    learned = wiring.rows()
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": machine, "rows": rows, "widths": WIDTHS, "curves": curves, "fits": fits, "wiring": learned}
    (RESULTS / "training.json").write_text(json.dumps(content, indent=1))
    (RESULTS / "training.md").write_text(
        f"# Training step\n\n{text}\n\nStep time ~ width^slope: {json.dumps(fits)}\n\n"
        f"## Learned wiring\n\n{wiring.table(learned)}\n"
    )
    plot(curves, RESULTS / "training.svg")


if __name__ == "__main__":
    main()
