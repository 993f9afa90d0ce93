"""``gatefit info``: what a run or a circuit file holds, and which circuit an export is of."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.circuits import load_circuit
from gatefit.cli.errors import UserError
from gatefit.cli.options import AsJson

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.provenance import Origin

EXAMPLE = (
    "gatefit info runs/monks",
    "gatefit info monks.gate --json",
    "gatefit info monks.h --circuit monks.gate",
)
_SHOWN_NAMES = 8
_SAID_APART = ("gatefit", "run", "dataset", "data", "test_accuracy", "validation_accuracy", "train_accuracy", "date")
_LARGEST = 1 << 30
"""Bytes of a file that is read to see whether it is an export."""


def info(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|MODEL.gate|NAME|EXPORT",
            help="folder of a run, circuit file, name of a model, or export of one",
        ),
    ],
    circuit: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL.gate", help="export: say whether it is of this circuit (exit code 1: no)", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a run's configuration and metrics; what a circuit is made of; or which circuit an export was made from."""
    exported = _exported(model)
    if circuit is not None and exported is None:
        raise UserError(f"--circuit is for exports, and {model} is none; `gatefit prove` compares two circuits")
    if exported is not None:
        _show_export(model, *exported, circuit, as_json)
        return
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


def _exported(path: Path) -> "tuple[Path, Origin] | None":
    """The file of an export, or of one in a sketch's folder, and what it says; None for anything else."""
    from gatefit.circuit.provenance import Origin, read_origin

    if path.is_dir() and not (path / "config.json").exists():
        return next((found for file in sorted(path.glob("*_model.h")) if (found := _exported(file))), None)
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    with path.open("rb") as file:
        content = file.read(9)
        if content[8:] == b"{":  # a circuit file, whose metadata may quote anything
            return None
        content += file.read()
    if content.lstrip()[:1] == b"{":
        from gatefit.backends.json_export import from_json
        from gatefit.circuit.container import CircuitFileError
        from gatefit.circuit.file import digest
        from gatefit.circuit.provenance import ENTRIES

        try:
            held = from_json(content.decode("utf-8"))
        except (CircuitFileError, UnicodeDecodeError):
            return None
        said = {name: held.metadata[name] for name in ENTRIES if name in held.metadata}
        return path, Origin("", digest(held), said)
    origin = read_origin(content)
    return None if origin is None else (path, origin)


def _show_export(model: Path, file: Path, origin: "Origin", circuit: Path | None, as_json: bool) -> None:
    content: dict[str, Any] = {
        "file": str(file),
        "bytes": file.stat().st_size,
        "exported_by": origin.version or None,
        "digest": origin.digest,
        "metadata": dict(origin.entries),
    }
    if circuit is not None:
        from gatefit.circuit.file import digest

        other = digest(load_circuit(circuit))
        content |= {"circuit": str(circuit), "circuit_digest": other, "same": other == origin.digest}
    if as_json:
        output.print_json(content)
    else:
        typer.echo(f"{output.printable(str(file))} ({content['bytes']:,} bytes)")
        output.print_pairs(
            [
                ("exported", f"by gatefit {origin.version}" if origin.version else "as JSON: the circuit itself"),
                ("of circuit", origin.digest),
                *_origin_pairs(content["metadata"]),
                *([] if circuit is None else [("that is", _verdict(content))]),
            ]
        )
    if circuit is not None and not content["same"]:
        raise typer.Exit(1)


def _verdict(content: dict[str, Any]) -> str:
    if content["same"]:
        return f"{content['circuit']}"
    return f"not {content['circuit']}, which is {content['circuit_digest']}"


def _origin_pairs(metadata: dict[str, str]) -> list[tuple[str, str]]:
    """What metadata say of where a circuit is from, in words."""
    from gatefit.circuit.provenance import ACCURACIES

    pairs = [
        ("trained", f"by gatefit {metadata['gatefit']}" if "gatefit" in metadata else ""),
        ("configuration", metadata.get("run", "")),
        ("data", " ".join(filter(None, (metadata.get("dataset"), metadata.get("data"))))),
        *((name.replace("_", " "), _share(metadata.get(name, ""))) for name in ACCURACIES),
        ("date", metadata.get("date", "")),
    ]
    return [(name, value) for name, value in pairs if value]


def _share(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return output.percent(value) if 0 <= value <= 1 else text


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
    from gatefit.circuit.file import digest
    from gatefit.circuit.statistics import statistics

    counts = statistics(circuit)
    encoder = circuit.encoder
    return {
        "digest": digest(circuit),
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
        ("digest", content["digest"]),
        *_origin_pairs(content["metadata"]),
        *(("metadata", f"{name} = {value}") for name, value in content["metadata"].items() if name not in _SAID_APART),
    ]
    output.print_pairs(pairs)


def _some(names: list[str]) -> str:
    more = f", and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
    return (", ".join(names[:_SHOWN_NAMES]) + more) or "none"
