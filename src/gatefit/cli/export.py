"""``gatefit export``: a circuit as text for a compiler, a microcontroller, a synthesis tool, a browser, or a reader."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatefit.cli import output
from gatefit.cli.circuits import load_circuit, refuse_existing
from gatefit.cli.errors import UserError, user_input
from gatefit.cli.options import DataDir, Overwrite, OwnFile, OwnTarget

if TYPE_CHECKING:
    from gatefit.backends.html import Samples
    from gatefit.circuit.ir import Circuit

EXAMPLE = (
    "gatefit export monks.gate --to c --out monks.h",
    "gatefit export monks.gate --to verilog --pipeline 2 --out monks.v",
    "gatefit export digits.gate --to html --samples 2 --out digits.html",
    "gatefit export digits.gate --to arduino --out digits",
    "gatefit export monks.gate --to aiger --readout gates --out monks.aig",
)


class Format(str, Enum):
    """What a circuit can be written as."""

    c = "c"
    verilog = "verilog"
    blif = "blif"
    aiger = "aiger"
    dot = "dot"
    json = "json"
    html = "html"
    arduino = "arduino"


class FeatureType(str, Enum):
    """What raw features are in C."""

    float = "float"
    double = "double"


class ReadoutForm(str, Enum):
    """What a netlist holds of the readout."""

    none = "none"
    gates = "gates"
    one_hot = "one-hot"


class View(str, Enum):
    """How a page sets the inputs."""

    auto = "auto"
    image = "image"
    table = "table"
    bits = "bits"


def export(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.gate|RUN|NAME", help="circuit file, folder of a compiled run, or name of a model"
        ),
    ],
    to: Annotated[Format, typer.Option(help="the format")],
    out: Annotated[
        Path | None,
        typer.Option(help="file, or for Arduino folder, to write (default: the terminal)", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="C: what every name starts with; Verilog, BLIF: the module", show_default=False),
    ] = None,
    pipeline: Annotated[
        int | None, typer.Option(min=1, help="Verilog: stages of registers", show_default=False)
    ] = None,
    feature_bits: Annotated[
        int | None,
        typer.Option(min=1, help="Verilog: compare features of so many bits inside (images: 8)", show_default=False),
    ] = None,
    feature_type: Annotated[
        FeatureType | None,
        typer.Option(help="C: the type of raw features; double compares as Python does", show_default="float"),
    ] = None,
    no_readout: Annotated[bool, typer.Option("--no-readout", help="Verilog: end at the gates' outputs")] = False,
    readout: Annotated[
        ReadoutForm | None,
        typer.Option(
            help="AIGER, BLIF: the readout as gates too: class number or sum in binary, or an output a class",
            show_default=False,
        ),
    ] = None,
    max_gates: Annotated[
        int | None,
        typer.Option(min=1, help="DOT: draw a circuit of up to so many gates (default: 500)", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option(help="HTML: the page's heading", show_default=False)] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="HTML: put in so many test samples of each class", show_default=False),
    ] = None,
    view: Annotated[
        View | None,
        typer.Option(
            help="HTML: inputs as an image to draw, a table's form, or bits (default: auto)", show_default=False
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="HTML: data set of the samples (default: the one it was trained on)", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    data: OwnFile = None,
    target: OwnTarget = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a circuit as C, Verilog, BLIF, AIGER (binary, if called .aig), DOT, JSON, web page or Arduino sketch."""
    from gatefit.circuit.file import write_atomically

    for option, value, formats in (
        ("--pipeline", pipeline, ["verilog"]),
        ("--feature-bits", feature_bits, ["verilog"]),
        ("--feature-type", feature_type, ["c"]),
        ("--no-readout", no_readout or None, ["verilog"]),
        ("--readout", readout, ["aiger", "blif"]),
        ("--max-gates", max_gates, ["dot"]),
        ("--name", name, ["c", "verilog", "blif"]),
        ("--title", title, ["html"]),
        ("--samples", samples, ["html"]),
        ("--view", view, ["html"]),
        ("--dataset", dataset, ["html"]),
        ("--data-dir", data_dir, ["html"]),
        ("--data", data, ["html"]),
        ("--target", target, ["html"]),
    ):
        if value is not None and to.value not in formats:
            raise UserError(f"{option} is for --to {' or '.join(formats)}, got --to {to.value}; leave it out")
    if samples is None and (dataset is not None or data_dir is not None):
        raise UserError("--dataset and --data-dir are for --samples; give it too, or leave them out")
    if samples is None and (data is not None or target is not None):
        raise UserError("--data and --target are for --samples; give it too, or leave them out")
    if dataset is not None and data is not None:
        raise UserError("--dataset names one of gatefit's data sets, --data your own file; leave one of them out")
    if to is Format.arduino:
        _arduino(model, out, overwrite)
        return
    if out is not None:
        refuse_existing(out, overwrite)
    circuit = load_circuit(model)
    rows = None
    if samples is not None:
        own = data or _own_file(circuit, model)
        rows = (
            _own_samples(circuit, model, samples, own, target)
            if own is not None and dataset is None
            else _test_samples(circuit, model, samples, dataset, data_dir)
        )
    writers: dict[Format, Callable[[], bytes]] = {
        Format.c: lambda: _c(circuit, name, feature_type or FeatureType.float),
        Format.verilog: lambda: _verilog(circuit, name, pipeline or 0, feature_bits or 0, not no_readout),
        Format.blif: lambda: _blif(circuit, name, readout or ReadoutForm.none),
        Format.aiger: lambda: _aiger(circuit, out is not None and out.suffix == ".aig", readout or ReadoutForm.none),
        Format.dot: lambda: _dot(circuit, max_gates),
        Format.json: lambda: _json(circuit),
        Format.html: lambda: _html(circuit, title, rows, view or View.auto),
    }
    with user_input():
        content = writers[to]()
    if out is not None:
        write_atomically(out, content)
        typer.echo(f"{out} ({len(content):,} bytes)")
    else:
        output.write_data(content.decode("utf-8"))


def _c(circuit: "Circuit", name: str | None, feature_type: FeatureType) -> bytes:
    from gatefit.backends.c import to_c

    return to_c(circuit, name or "gatefit_model", feature_type=feature_type.value).encode()


def _verilog(circuit: "Circuit", name: str | None, pipeline: int, feature_bits: int, readout: bool) -> bytes:
    from gatefit.backends.verilog import to_verilog

    if readout and circuit.readout.float_terms() is not None:
        raise UserError(
            "a learned linear readout needs floating-point arithmetic, which Verilog export does not write; "
            "train with --readout group-sum, or end the module at the gates' outputs with --no-readout"
        )
    module = "gatefit" if name is None else name
    text = to_verilog(circuit, module, pipeline_stages=pipeline, feature_bits=feature_bits, readout=readout)
    return text.encode()


def _blif(circuit: "Circuit", name: str | None, readout: ReadoutForm) -> bytes:
    from gatefit.backends.blif import to_blif

    return to_blif(circuit, "gatefit" if name is None else name, readout=readout.value).encode()


def _aiger(circuit: "Circuit", binary: bool, readout: ReadoutForm) -> bytes:
    from gatefit.backends.aiger import to_aiger

    return to_aiger(circuit, binary=binary, readout=readout.value)


def _dot(circuit: "Circuit", max_gates: int | None) -> bytes:
    from gatefit.backends.dot import to_dot

    if max_gates is None and circuit.gates.size > 500:
        raise UserError(
            f"a drawing of {circuit.gates.size} gates cannot be read; optimise the circuit first, "
            f"or draw it all the same with --max-gates {circuit.gates.size}"
        )
    return to_dot(circuit, max_gates or 500).encode()


def _json(circuit: "Circuit") -> bytes:
    from gatefit.backends.json_export import to_json

    return to_json(circuit).encode()


def _html(circuit: "Circuit", title: str | None, samples: "Samples | None", view: View) -> bytes:
    from gatefit.backends.html import to_html
    from gatefit.datasets import DATASETS

    trained_on = circuit.metadata.get("dataset")
    if title is None and trained_on in DATASETS:
        title = DATASETS[trained_on].title
    return to_html(circuit, title=title, samples=samples, view=view.value).encode()


def _test_samples(circuit: "Circuit", path: Path, count: int, dataset: str | None, data_dir: Path | None) -> "Samples":
    """The first ``count`` test samples of each class, as the circuit reads them."""
    import numpy as np

    from gatefit.backends.html import Samples
    from gatefit.cli.datasets import load
    from gatefit.cli.evaluate import dataset_of

    name, options = dataset_of(circuit, path, dataset)
    loaded = load(name, data_dir, options)
    if loaded.classes != circuit.readout.classes:
        raise UserError(
            f"{name} has {loaded.classes} classes, {path} has {circuit.readout.classes}; name another --dataset"
        )
    chosen = np.sort(np.concatenate([np.flatnonzero(loaded.y_test == k)[:count] for k in range(loaded.classes)]))
    x = loaded.x_test[chosen]
    return Samples(x if circuit.encoder is not None else loaded.encoder.transform(x), loaded.y_test[chosen])


def _own_file(circuit: "Circuit", model: Path) -> Path | None:
    """The file that a run in its folder was tested with or, where it lies there still, trained on."""
    if not model.is_dir():
        return None
    from gatefit.training.own_run import read_own_run

    run = read_own_run(model)
    found = None if run is None else Path(run.test or run.data)
    return found if found is not None and found.exists() else None


def _own_samples(circuit: "Circuit", model: Path, count: int, data: Path, target: str | None) -> "Samples":
    """The first ``count`` rows of each class of a user's file; of a value, rows spread over its range."""
    import numpy as np

    from gatefit.backends.html import Samples
    from gatefit.cli.evaluate import file_rows
    from gatefit.encoders.frames import read_columns

    x, y = file_rows(circuit, model, data, target)
    if circuit.readout.gives_value:
        order = np.argsort(y, kind="stable")
        chosen = np.unique(order[np.linspace(0, len(order) - 1, min(count, len(order))).astype(np.int64)])
    else:
        chosen = np.sort(np.concatenate([np.flatnonzero(y == k)[:count] for k in range(circuit.readout.classes)]))
    columns = read_columns(x.iloc[chosen])
    read = [columns.read(i, name) for i, name in enumerate(columns.names or ())]
    if all(column.kind == "number" for column in read):
        return Samples(np.stack([column.numbers() for column in read], axis=1), y[chosen])
    return Samples(np.array([column.objects() for column in read], dtype=object).T, y[chosen])


def _arduino(model: Path, out: Path | None, overwrite: bool) -> None:
    """Write a sketch's folder, and say what the model takes on every target whose compiler is here."""
    from gatefit.backends.c.arduino import measured_sizes, to_arduino
    from gatefit.circuit.file import write_atomically

    if out is None:
        raise UserError("a sketch is a folder of files; name it with --out")
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not overwrite):
        raise UserError(f"{out} exists; choose another --out, or replace the sketch in it with --overwrite")
    circuit = load_circuit(model)
    with user_input():
        files = to_arduino(circuit, out.resolve().name)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(out / name, content.encode())
    typer.echo(f"{out} ({', '.join(files)})")
    sizes = measured_sizes(files)
    if not sizes:
        typer.echo("no C compiler here: README.md says what the tables take, without the code")
        return
    rows = []
    for size in sizes:
        flash, ram = ("-" if count is None else f"{count:,}" for count in (size.flash, size.ram))
        rows.append((size.target, flash, ram, f"{size.compiler} -Os" + (f": {size.reason}" if size.reason else "")))
    output.print_table(("target", "flash bytes", "RAM bytes", "compiler"), rows)
