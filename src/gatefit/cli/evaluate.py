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
from gatefit.cli.circuits import load_circuit
from gatefit.cli.datasets import load
from gatefit.cli.errors import UserError, user_input
from gatefit.cli.options import AsJson, DataDir, NoHeader, OwnFile, OwnTarget
from gatefit.cli.own_data import labelled_rows, measure, measured_words, read_labelled

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit
    from gatefit.datasets import Dataset
    from gatefit.training.own_run import OwnRun

EXAMPLE = (
    "gatefit evaluate runs/monks --split test",
    "gatefit evaluate monks.gate --dataset monks-2",
    "gatefit evaluate income --data people-of-2025.csv",
)


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
    data: OwnFile = None,
    target: OwnTarget = None,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Measure accuracy: of a run's deployed and soft network, or of a circuit; a regression's R²."""
    splits = [split.value] if split else ["train", "test"]
    own = None
    if model.is_dir():
        from gatefit.training.own_run import read_own_run

        own = read_own_run(model)
    if data is None and (target is not None or no_header):
        raise UserError("--target and --no-header are about --data; give the file too, or leave them out")
    if data is not None or own is not None:
        if dataset is not None:
            raise UserError(
                f"--dataset names one of gatefit's data sets, {data or model} is about own data; choose one"
            )
        if data is not None and split is not None:
            raise UserError("--split is of the data that were trained on, --data of any other file; leave one out")
        if data is not None:
            content = _evaluate_file(model, data, target, not no_header)
        else:
            assert own is not None, "one of the two"
            content = _evaluate_own(model, own, splits)
        if as_json:
            output.print_json(content)
        else:
            _show_own(content)
        return
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


def _evaluate_file(model: Path, data: Path, target: str | None, header: bool) -> dict[str, Any]:
    """A circuit on all rows of a file."""
    circuit = load_circuit(model)
    x, y = file_rows(circuit, model, data, target, header=header)
    return {"model": str(model), "dataset": str(data), "rows": measure(circuit, x, y)}


def _evaluate_own(folder: Path, own: "OwnRun", splits: list[str]) -> dict[str, Any]:
    """A run's circuit on the rows that it was trained on and tested with, found again in the file."""
    import numpy as np

    from gatefit.datasets.own_data import prepare
    from gatefit.datasets.own_files import content_digest, read_table
    from gatefit.datasets.splits import stratified_split

    circuit = load_circuit(folder)
    data = Path(own.data)
    if not data.exists() or content_digest(data) != own.digest:
        state = "is not there any more" if not data.exists() else "has changed since"
        raise UserError(f"{data}, which {folder} was trained on, {state}; name a file with --data")
    table = read_table(data, header=own.header, target=own.target)
    prepared = prepare(table, own.target, task=own.task, choices=own.columns)
    classes = own.classes
    numbers = prepared.y.astype(np.float64) if classes is None else np.searchsorted(classes, prepared.y)
    strata = np.zeros(len(numbers), dtype=np.int64) if classes is None else numbers
    parts = dict(
        zip(
            ("train", "test"),
            stratified_split(strata, test_fraction=own.test_fraction, seed=int(own.parameters["random_state"])),
            strict=True,
        )
    )
    content: dict[str, Any] = {"model": str(folder), "dataset": own.data}
    for name in splits:
        if name == "test" and own.test is not None:
            assert circuit.encoder is not None
            content[name] = measure(circuit, *labelled_rows(Path(own.test), own, circuit.encoder))
        elif len(parts[name]):
            content[name] = measure(circuit, prepared.part(parts[name])[0], numbers[parts[name]])
        elif splits == ["test"]:
            raise UserError(f"{folder} was trained on every row of {data}: there are none to test on; see --data")
    return content


def file_rows(
    circuit: "Circuit", model: Path, data: Path, target: str | None, *, header: bool = True
) -> tuple[Any, Any]:
    """Features and targets of a file: class numbers, -1 for a class that the circuit does not know; or values."""
    import numpy as np

    if circuit.encoder is None:
        raise UserError(f"{model} reads bits and has no encoder: it cannot read {data}")
    wanted = target if target is not None else circuit.metadata.get("target")
    labels: Any = None
    if not circuit.readout.gives_value:
        labels = circuit.labels
        if labels is None:
            labels = np.array(circuit.class_names or [str(k) for k in range(circuit.readout.classes)], dtype=object)
    return read_labelled(data, wanted, labels, circuit.encoder, header=header)


def _show_own(content: dict[str, Any]) -> None:
    typer.echo(f"{content['model']} on {content['dataset']}")
    named = [(name, content[name]) for name in ("train", "test", "rows") if name in content]
    output.print_pairs((name, measured_words(part)) for name, part in named)


def samples(dataset: "Dataset", split: str) -> tuple[Any, Any]:
    """Features and class numbers of one part of a data set."""
    return (dataset.x_train, dataset.y_train) if split == "train" else (dataset.x_test, dataset.y_test)


def dataset_of(
    circuit: "Circuit",
    path: Path,
    given: str | None,
    way_out: str = "name a data set with --dataset",
    own_way_out: str = "give it, or another, with --data FILE",
) -> tuple[str, dict[str, Any]]:
    """The data set that was named, or that the circuit was trained on with the options it had there."""
    import json

    trained_on = circuit.metadata.get("dataset")
    if given is None and trained_on is not None and "target" in circuit.metadata:
        name = trained_on.rpartition("@")[0] or trained_on
        raise UserError(f"{path} was trained on a file of yours, {name}; {own_way_out}")
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
