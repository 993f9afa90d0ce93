"""``gatefit predict``: a circuit on the rows of a CSV file; no torch, no compiler."""

import csv
import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.circuits import refuse_existing
from gatefit.cli.errors import user_input
from gatefit.cli.options import AsJson, Overwrite, SampleFile

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit

EXAMPLE = ("gatefit predict monks.gate data.csv --scores --out predictions.csv",)


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.gate|RUN|NAME", help="circuit file, folder, or name of a model")
    ],
    data: SampleFile,
    out: Annotated[Path | None, typer.Option(help="file to write (default: the terminal)", show_default=False)] = None,
    scores: Annotated[bool, typer.Option("--scores", help="add every class's score, with a header")] = False,
    bits: Annotated[bool, typer.Option("--bits", help="the file holds the circuit's input bits, not features")] = False,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="the first line is a sample: columns by order")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Predict the class of every line of a CSV file."""
    from gatefit.circuit.file import write_atomically
    from gatefit.cli.circuits import load_circuit
    from gatefit.cli.tables import read_bits, read_features
    from gatefit.datasets.own_files import read_table

    if out is not None:
        refuse_existing(out, overwrite)
    circuit = load_circuit(model)
    table = read_table(data, header=not no_header)
    with user_input():
        if bits or circuit.encoder is None:
            x = read_bits(table, circuit)
        else:
            x = circuit.encoder.transform(read_features(table, circuit.encoder))
    answers, values = _run(circuit, x)
    if as_json:
        predictions = [] if circuit.labels is None else circuit.labels.tolist()
        predictions = [predictions[k] for k in answers] if predictions else _named(circuit, answers)
        content: dict[str, Any] = {"model": str(model), "samples": len(answers), "predictions": predictions}
        text = output.json_text(content | ({"scores": values.tolist()} if scores else {})) + "\n"
    else:
        if out is None and sys.stdout.isatty():  # a line break in a name would look like another sample
            circuit = replace(circuit, class_names=tuple(map(output.printable, circuit.class_names)))
        text = _csv(circuit, _named(circuit, answers), values, scores)
    if out is None:
        output.write_data(text)
    else:
        write_atomically(out, text.encode("utf-8"))


def _run(circuit: "Circuit", bits: "np.ndarray") -> tuple[list[Any], "np.ndarray"]:
    """Class numbers, or values of a regression; and the scores they were chosen by."""
    from gatefit.circuit.engine import Engine

    values = Engine(circuit).scores(bits)
    if circuit.readout.gives_value:
        return values[:, 0].tolist(), values
    return values.argmax(axis=1).tolist(), values


def _named(circuit: "Circuit", answers: list[Any]) -> list[Any]:
    """The names of class numbers, if the circuit has names; a regression has none."""
    named = circuit.class_names and not circuit.readout.gives_value
    return [circuit.class_names[k] for k in answers] if named else answers


def _csv(circuit: "Circuit", predictions: list[Any], values: "np.ndarray", scores: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not scores:
        writer.writerows([prediction] for prediction in predictions)
        return text.getvalue()
    names = circuit.class_names or tuple(str(k) for k in range(circuit.readout.classes))
    writer.writerow(["prediction", *(f"score of {name}" for name in names)])
    for prediction, row in zip(predictions, values.tolist(), strict=True):
        writer.writerow([prediction, *row])
    return text.getvalue()
