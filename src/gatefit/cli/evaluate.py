"""``gatefit evaluate``: accuracies of a trained run, or of a circuit, on a data set.

hard   the deployed gates            soft   the network as it was trained
discretisation gap = soft - hard     generalisation gap = hard on train - hard on test
"""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.datasets import load
from gatefit.cli.errors import UserError, user_input
from gatefit.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit
    from gatefit.datasets import Dataset

EXAMPLE = ("gatefit evaluate runs/monks --split test", "gatefit evaluate monks.gate --dataset monks-2")


class Split(str, Enum):
    """Which samples."""

    train = "train"
    test = "test"


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(help="folder of a finished run, .gate file, or name of a model", metavar="RUN|MODEL.gate|NAME"),
    ],
    split: Annotated[Split | None, typer.Option(help="train or test (default: both)", show_default=False)] = None,
    dataset: Annotated[
        str | None, typer.Option(help="data set for a .gate file (default: the one it was trained on)")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure accuracy: of a run's deployed and soft network, or of a circuit."""
    splits = [split.value] if split else ["train", "test"]
    if model.is_dir():
        if dataset is not None:
            raise UserError(f"{model} is a run and has its own data set; leave out --dataset, or name a .gate file")
        content = _evaluate_run(model, splits, data_dir)
    else:
        content = _evaluate_circuit(model, splits, dataset, data_dir)
    if len(splits) == 2 and content["train"]["hard"] is not None:
        content["generalisation_gap"] = content["train"]["hard"] - content["test"]["hard"]
    if as_json:
        output.print_json(content)
    else:
        _show(content, splits)


def _evaluate_run(folder: Path, splits: list[str], data_dir: Path | None) -> dict[str, Any]:
    require("torch", "train", "evaluating a run")
    import torch

    from gatefit.training.data import bit_source
    from gatefit.training.folder import read_config
    from gatefit.training.metrics import evaluate as measure
    from gatefit.training.runs import load_network

    config = read_config(folder)
    network = load_network(folder / "model.safetensors")
    loaded = load(config.dataset, data_dir, config.dataset_options())
    content: dict[str, Any] = {"model": str(folder), "dataset": config.dataset}
    for name in splits:
        x, y = samples(loaded, name)
        row = measure(network, bit_source(x, loaded.encoder), torch.as_tensor(y))
        content[name] = {**row, "samples": len(y)}
    return content


def _evaluate_circuit(path: Path, splits: list[str], dataset: str | None, data_dir: Path | None) -> dict[str, Any]:
    from gatefit.circuit.engine import Engine
    from gatefit.circuit.ir import Circuit

    circuit = Circuit.load(path)
    name, options = dataset_of(circuit, path, dataset)
    loaded = load(name, data_dir, options)
    engine = Engine(circuit)
    content: dict[str, Any] = {"model": str(path), "dataset": name}
    for part in splits:
        x, y = samples(loaded, part)
        with user_input():
            bits = (circuit.encoder or loaded.encoder).transform(x)
            right = engine.predict(bits) == y
        content[part] = {"hard": float(right.mean()), "samples": len(y)}
    return content


def samples(dataset: "Dataset", split: str) -> tuple[Any, Any]:
    """Features and class numbers of one part of a data set."""
    return (dataset.x_train, dataset.y_train) if split == "train" else (dataset.x_test, dataset.y_test)


def dataset_of(
    circuit: "Circuit", path: Path, given: str | None, way_out: str = "name a data set with --dataset"
) -> tuple[str, dict[str, Any]]:
    """The data set that was named, or that the circuit was trained on with the options it had there."""
    import json

    trained_on = circuit.metadata.get("dataset")
    if given is None and trained_on is None:
        raise UserError(f"{path} does not say what it was trained on; {way_out}")
    if given is not None and given != trained_on:
        return given, {}
    return str(trained_on), json.loads(circuit.metadata.get("dataset_options", "{}"))


def _show(content: dict[str, Any], splits: list[str]) -> None:
    titles = ["", "samples", "hard"]
    soft = "soft" in content[splits[0]]
    titles += ["soft", "discretisation gap"] if soft else []
    rows = []
    for name in splits:
        part = content[name]
        row = [name, f"{part['samples']:,}", output.percent(part["hard"])]
        row += [output.percent(part["soft"]), output.points(part["discretisation_gap"])] if soft else []
        rows.append(row)
    typer.echo(f"{content['model']} on {content['dataset']}")
    output.print_table(titles, rows)
    if "generalisation_gap" in content:
        typer.echo(f"generalisation gap {output.points(content['generalisation_gap'])}")
