"""``gatefit info``: what a run or a circuit file holds."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.options import AsJson

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit

EXAMPLE = ("gatefit info runs/monks", "gatefit info monks.gate --json")
_SHOWN_NAMES = 8


def info(
    model: Annotated[
        Path, typer.Argument(metavar="RUN|MODEL.gate|NAME", help="folder of a run, circuit file, or name of a model")
    ],
    as_json: AsJson = False,
) -> None:
    """Show a run's configuration, progress and metrics; or what a circuit is made of and costs."""
    if model.is_dir() and (model / "data.json").is_file():
        _own_info(model, as_json)
        return
    if model.is_dir():
        content = run_info(model)
        if as_json:
            output.print_json(content)
        else:
            _show_run(content)
        return
    from gatefit import models
    from gatefit.circuit.ir import Circuit

    content = circuit_info(Circuit.load(model))
    size = models.size(str(model)) if models.is_model(model) else model.stat().st_size
    if as_json:
        output.print_json({"file": str(model), "bytes": size, **content})
    else:
        shipped = ", ships with gatefit" if models.is_model(model) else ""
        typer.echo(f"{output.printable(str(model))} ({size:,} bytes{shipped})")
        _show_circuit(content)


def run_info(folder: Path) -> dict[str, Any]:
    """Configuration, progress and metrics of a run, finished or not."""
    require("torch", "train", "reading a run")
    from gatefit.training.folder import checkpoints, read_config, read_metrics
    from gatefit.training.metrics import summary

    config, metrics = read_config(folder), read_metrics(folder)
    saved = [int(path.stem.rpartition("-")[2]) for path in checkpoints(folder / "checkpoints")]
    finished = (folder / "result.json").exists()
    evaluated = metrics[-1]["step"] if metrics else 0
    return {
        "folder": str(folder),
        "config": asdict(config),
        "finished": finished,
        "step": evaluated if finished else max([evaluated, *saved]),
        "checkpoints": saved,
        "results": summary(metrics, validated=bool(config.validation_fraction)),
        "metrics": metrics,
    }


def _own_info(folder: Path, as_json: bool) -> None:
    """A run on own data: what it was asked for, and its report."""
    import msgspec

    from gatefit.cli.own_data import read_report, show_report
    from gatefit.training.own_run import read_own_run

    own, report = read_own_run(folder), read_report(folder)
    asked = msgspec.to_builtins(own)
    finished = (folder / "result.json").exists()
    if as_json:
        output.print_json({"folder": str(folder), "finished": finished, "data": asked, "report": report})
        return
    given = ", ".join(f"{name}={value}" for name, value in asked["parameters"].items())
    output.print_pairs(
        [
            ("state", "finished" if finished else "stopped or running"),
            ("data", asked["data"]),
            ("target", f"{asked['target']} ({asked['task']})"),
            ("parameters", given),
        ]
    )
    if report:
        show_report(report)


def circuit_info(circuit: "Circuit") -> dict[str, Any]:
    """A circuit's counts, with encoder and readout apart, and its names."""
    from gatefit.circuit.statistics import statistics

    counts = statistics(circuit)
    encoder = circuit.encoder
    return {
        "inputs": counts.inputs,
        "used_inputs": counts.used_inputs,
        "outputs": counts.outputs,
        "classes": counts.classes,
        "gates": counts.gates,
        "live_gates": counts.live_gates,
        "logic_gates": counts.logic_gates,
        "inverters": counts.inverters,
        "wires": counts.wires,
        "constants": counts.constants,
        "by_kind": {name: count for name, count in counts.census.items() if count},
        "aig_nodes": counts.aig_nodes,
        "depth": counts.depth,
        "mean_fan_out": counts.mean_fan_out,
        "max_fan_out": counts.max_fan_out,
        "encoder": None
        if encoder is None
        else {"kind": encoder.kind, "features": encoder.features, "comparisons": counts.encoder_comparisons},
        "readout": {"kind": type(circuit.readout).__name__, **asdict(counts.readout), "gates": counts.readout.gates},
        "input_names": list(circuit.input_names),
        "class_names": list(circuit.class_names),
        "metadata": circuit.metadata,
    }


def _show_run(content: dict[str, Any]) -> None:
    config, results = content["config"], content["results"]
    state = "finished" if content["finished"] else "stopped or running"
    output.print_pairs(
        [("folder", content["folder"]), ("state", f"{state}, step {content['step']:,} of {config['steps']:,}")]
    )
    typer.echo("\nconfiguration")
    output.print_pairs((f"  {name}", str(value)) for name, value in config.items() if value is not None)
    if not results:
        typer.echo("\nno evaluation yet")
        return
    typer.echo("\nevaluations (the last ten)")
    rows = [
        (
            f"{row['step']:,}",
            f"{row['loss']:.4f}",
            output.percent(row["train_hard"]),
            output.percent(row["test_hard"]),
            output.percent(row["test_soft"]),
        )
        for row in content["metrics"][-10:]
    ]
    held_out = "validation" if config["validation_fraction"] else "test"
    output.print_table(("step", "loss", "train", held_out, f"{held_out}, soft"), rows)
    typer.echo("")
    output.print_pairs(
        [
            ("last 10 evaluations", output.percent(results["last_10_accuracy"])),
            ("best evaluation", f"{output.percent(results['best_accuracy'])}  at step {results['best_step']:,}"),
            ("generalisation gap", output.points(results["generalisation_gap"])),
        ]
    )


def _show_circuit(content: dict[str, Any]) -> None:
    readout, encoder = content["readout"], content["encoder"]
    rest = f"{content['inverters']:,} inverters, {content['wires']:,} wires, {content['constants']:,} constants"
    kinds = sorted(content["by_kind"].items(), key=lambda item: -item[1])
    adders = f"{readout['full_adders']:,} full and {readout['half_adders']:,} half adders"
    pairs = [
        ("inputs", f"{content['inputs']:,} bits, {content['used_inputs']:,} of them read"),
        ("gates", f"{content['gates']:,}, {content['live_gates']:,} of them live"),
        ("of these", f"{content['logic_gates']:,} logic gates, {rest}"),
        ("by kind", ", ".join(f"{name} {count:,}" for name, count in kinds) or "none"),
        ("depth", f"{content['depth']} logic gates"),
        ("fan-out", f"{content['mean_fan_out']:.2f} on average, {content['max_fan_out']:,} at most"),
        ("AIG size", f"{content['aig_nodes']:,} and-nodes"),
        (
            "encoder, apart",
            "none: the circuit reads bits"
            if encoder is None
            else f"{encoder['kind']} over {encoder['features']:,} features, {encoder['comparisons']:,} comparisons",
        ),
        (
            "readout, apart",
            f"{readout['kind']} of {content['outputs']:,} bits to {content['classes']} scores: {adders}, "
            f"{readout['comparators']} comparators of {readout['score_bits']} bits, "
            f"{readout['multiplications']:,} multiplications; about {readout['gates']:,} gates",
        ),
        ("input names", _some(content["input_names"])),
        ("class names", _some(content["class_names"])),
        *(("metadata", f"{name} = {value}") for name, value in content["metadata"].items()),
    ]
    output.print_pairs(pairs)


def _some(names: list[str]) -> str:
    more = f", and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return (", ".join(names[:_SHOWN_NAMES]) + more) or "none"
