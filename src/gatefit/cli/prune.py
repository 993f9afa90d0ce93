"""``gatefit prune``: fewer outputs a class, for a smaller popcount; what it costs in accuracy is said."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.circuits import refuse_existing, working
from gatefit.cli.datasets import load
from gatefit.cli.errors import user_input
from gatefit.cli.evaluate import dataset_of
from gatefit.cli.options import AsJson, DataDir, Overwrite

EXAMPLE = ("gatefit prune mnist.gate --outputs 1000 --out small.gate",)


def prune(
    model: Annotated[Path, typer.Argument(metavar="MODEL.gate|NAME", help="circuit file, or name of a model")],
    outputs: Annotated[int, typer.Option(min=1, help="output bits to keep, of all classes together")],
    out: Annotated[Path, typer.Option(help="circuit file to write")],
    samples: Annotated[int, typer.Option(min=1, help="training samples to choose by, at most")] = 20_000,
    dataset: Annotated[
        str | None, typer.Option(help="data set (default: the one that the circuit was trained on)")
    ] = None,
    data_dir: DataDir = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Drop the outputs that the training set misses least, and the gates that only they needed.

    The classes of some inputs change: compare the accuracies.
    """
    from gatefit.circuit.engine import Engine
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.optimise import optimise
    from gatefit.hardware.prune import prune_readout

    refuse_existing(out, overwrite)
    with user_input():
        circuit = Circuit.load(model)
    name, options = dataset_of(circuit, model, dataset)
    data = load(name, data_dir, options, quiet=as_json)
    encoder = circuit.encoder or data.encoder
    with user_input(), working("pruning", as_json):
        train = encoder.transform(data.x_train[:samples])
        smaller = prune_readout(circuit, train, data.y_train[:samples], outputs)
        smaller, _ = optimise(smaller, 3)
        test = encoder.transform(data.x_test)
    smaller.save(out, overwrite=overwrite)
    before, after = (float((Engine(c).predict(test) == data.y_test).mean()) for c in (circuit, smaller))
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
