"""``gatefit prune``: fewer outputs a class, for a smaller popcount; what it costs in accuracy is said."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.circuits import load_circuit, refuse_existing, working
from gatefit.cli.datasets import load
from gatefit.cli.errors import UserError, user_input
from gatefit.cli.evaluate import dataset_of, file_rows
from gatefit.cli.options import AsJson, DataDir, NoHeader, Overwrite, OwnFile, OwnTarget

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit

EXAMPLE = (
    "gatefit prune mnist.gate --outputs 1000 --out small.gate",
    "gatefit prune income --data people.csv --outputs 200 --out small.gate",
)


def prune(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.gate|RUN|NAME", help="circuit file, folder, or name of a model")
    ],
    outputs: Annotated[int, typer.Option(min=1, help="output bits to keep, of all classes together")],
    out: Annotated[Path, typer.Option(help="circuit file to write")],
    samples: Annotated[int, typer.Option(min=1, help="training samples to choose by, at most")] = 20_000,
    dataset: Annotated[
        str | None, typer.Option(help="data set (default: the one that the circuit was trained on)")
    ] = None,
    data_dir: DataDir = None,
    data: OwnFile = None,
    target: OwnTarget = None,
    no_header: NoHeader = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Drop the outputs that the training set misses least, and the gates that only they needed.

    The classes of some inputs change: compare the accuracies. Of your own --data a fifth is kept apart for that.
    """
    from gatefit.circuit.engine import Engine
    from gatefit.circuit.optimise import optimise
    from gatefit.hardware.prune import prune_readout

    refuse_existing(out, overwrite)
    circuit = load_circuit(model)
    if data is None:
        if target is not None or no_header:
            raise UserError("--target and --no-header are about --data; give the file too, or leave them out")
        name, options = dataset_of(circuit, model, dataset)
        known = load(name, data_dir, options, quiet=as_json)
        encoder = circuit.encoder or known.encoder
        with user_input():
            train, test = encoder.transform(known.x_train[:samples]), encoder.transform(known.x_test)
        y_train, y_test = known.y_train[:samples], known.y_test
    else:
        if dataset is not None:
            raise UserError("--dataset names one of gatefit's data sets, --data your own file; leave one of them out")
        if circuit.readout.gives_value:
            raise UserError(f"{model} gives a value, and only outputs that vote for classes can be dropped")
        train, y_train, test, y_test = _own_rows(circuit, model, data, target, not no_header, samples)
    with user_input(), working("pruning", as_json):
        smaller = prune_readout(circuit, train, y_train, outputs)
        smaller, _ = optimise(smaller, 3)
    smaller.save(out, overwrite=overwrite)
    before, after = (float((Engine(c).predict(test) == y_test).mean()) for c in (circuit, smaller))
    content: dict[str, Any] = {
        "out": str(out),
        "outputs_before": int(circuit.outputs.size),
        "outputs_after": int(smaller.outputs.size),
        "gates_before": int(circuit.gates.size),
        "gates_after": int(smaller.gates.size),
        "accuracy_before": before,
        "accuracy_after": after,
    }
    if as_json:
        output.print_json(content)
        return
    output.print_pairs(
        [
            ("outputs", f"{content['outputs_before']:,} -> {content['outputs_after']:,}"),
            ("gates", f"{content['gates_before']:,} -> {content['gates_after']:,}"),
            ("test accuracy", f"{output.percent(before)} -> {output.percent(after)}"),
            ("written", str(out)),
        ]
    )


def _own_rows(
    circuit: "Circuit", model: Path, data: Path, target: str | None, header: bool, samples: int
) -> tuple["np.ndarray", "np.ndarray", "np.ndarray", "np.ndarray"]:
    """Bits and class numbers to choose by, and others to measure with: four fifths and one of every class."""
    import numpy as np

    from gatefit.datasets.splits import stratified_split
    from gatefit.encoders.frames import take

    x, y = file_rows(circuit, model, data, target, header=header)
    assert circuit.encoder is not None, "file_rows has refused it"
    known = np.flatnonzero(y >= 0)
    kept, apart = (known[part] for part in stratified_split(y[known], test_fraction=0.2, seed=0))
    if not len(apart):
        raise UserError(f"{data} has {len(known)} rows of the circuit's classes, too few to keep some apart")
    kept = kept[:samples]
    with user_input():
        bits = [circuit.encoder.transform(take(x, rows)) for rows in (kept, apart)]
    return bits[0], y[kept], bits[1], y[apart]
