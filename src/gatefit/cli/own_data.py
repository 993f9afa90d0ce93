"""``gatefit train --data``: a user's own file in, a run folder with a proven circuit out.

    read -> first look -> split -> LogicGateClassifier or LogicGateRegressor -> circuit, proven -> held-out score

The estimators train, with their own defaults: the same data and seed give the same circuit as in Python.
"""

import json
import shlex
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.circuits import working
from gatefit.cli.errors import UserError, user_input
from gatefit.cli.options import command_line, given_options

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.datasets.own_data import OwnData
    from gatefit.encoders import Encoder
    from gatefit.estimators import LogicGateClassifier, LogicGateRegressor
    from gatefit.training.own_run import OwnRun

PARAMETERS: Final = (
    "method", "width", "depth", "steps", "batch_size", "learning_rate", "schedule", "weight_decay", "initialisation",
    "temperature", "wiring", "candidates", "votes", "score_learning_rate", "thresholds", "evaluate_every", "readout",
    "readout_temperature", "max_gates", "max_luts",
)  # fmt: skip
"""Options that are parameters of the estimators, by the same name."""
OWN: Final = ("data", "target", "test", "test_fraction", "task", "column", "look", "no_header")
"""Options that are about own data alone."""
_ANYWAY: Final = ("out", "threads", "as_json", "quiet", "tensorboard", "seed", "validation_fraction", "patience")
_SHOWN_CLASSES: Final = 8


@dataclass(frozen=True)
class Request:
    """What the command line says about own data."""

    data: Path
    target: str | None = None
    test: Path | None = None
    test_fraction: float | None = None
    task: str | None = None
    columns: Mapping[str, str] | None = None
    header: bool = True
    parameters: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Session:
    """How a run is shown and where it goes."""

    out: Path | None
    threads: int | None
    as_json: bool
    quiet: bool
    tensorboard: bool
    look: bool


def request_of(context: typer.Context) -> Request:
    """The request that was typed; an option that only the package's data sets have is refused."""
    given = given_options(context)
    known = {*PARAMETERS, *OWN, *_ANYWAY}
    foreign = [f"--{name.replace('_', '-')}" for name in given if name not in known]
    if foreign:
        raise UserError(
            f"--data trains an estimator on your own file, and {', '.join(foreign)} is for --dataset; leave it out"
        )
    parameters: dict[str, Any] = {name: given[name] for name in PARAMETERS if name in given}
    parameters["random_state"] = given.get("seed", 0)
    fraction = given.get("validation_fraction")
    if fraction == 0 and "patience" in given:
        raise UserError("--patience needs a validation set, got --validation-fraction 0; leave one of them out")
    if fraction == 0:
        parameters["early_stopping"] = False
    elif fraction is not None or "patience" in given:
        parameters["early_stopping"] = True
    if fraction:
        parameters["validation_fraction"] = fraction
    if "patience" in given:
        parameters["n_iter_no_change"] = given["patience"]
    if "test" in given and "test_fraction" in given:
        raise UserError("--test names the rows to test on, got --test-fraction too; leave one of them out")
    return Request(
        data=given["data"],
        target=given.get("target"),
        test=given.get("test"),
        test_fraction=given.get("test_fraction"),
        task=None if given.get("task") is None else str(given["task"].value),
        columns=column_words(given.get("column") or []),
        header=not given.get("no_header", False),
        parameters=parameters,
    )


def column_words(words: list[str]) -> dict[str, str]:
    """``age=thresholds:16`` as {"age": "thresholds:16"}; the last "=" counts, so that names may have one."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, choice = word.rpartition("=")
        if not equals or not name or not choice:
            raise UserError(
                f"--column takes NAME=ENCODING, as age=thresholds:16, zip=category or id=drop; got {word!r}"
            )
        if name in found:
            raise UserError(f"--column is given twice for {name!r}; leave one of them out")
        found[name] = choice
    return found


def train_own(context: typer.Context, request: Request, session: Session, *, resumed: Path | None = None) -> None:
    """Train on a user's file, or go on with a run that was."""
    require("torch", "train", "training")
    require("sklearn", "train", "training on own data")
    from gatefit.cli.stop import StopSignals
    from gatefit.training.folder import locked

    start = time.monotonic()
    quiet = session.quiet or session.as_json
    with StopSignals() as stop:
        with working(f"reading {request.data}", quiet):
            plan = _plan(request, session.threads)
        if not quiet:
            _show_look(plan)
        if session.look:
            if session.as_json:
                output.print_json(plan.look)
            return
        folder = resumed or session.out or plan.default_folder()
        with locked(folder):
            _take_folder(folder, plan.own)
            if (folder / "result.json").exists() and (report := _read_report(folder)) is not None:
                if not quiet:
                    typer.echo(f"{folder} is finished already:")
                _end(report, session)
                return
            finished = _fit(plan, folder, session, stop)
    with locked(folder):
        report = _deploy(plan, folder, finished=finished, quiet=quiet)
    report["seconds"] = round(time.monotonic() - start, 3)
    if not finished:
        program = command_line(context).partition(" train ")[0]
        report["resume"] = f"{program} train --resume {shlex.quote(str(folder))}"
    _write_json(folder / "report.json", report)
    if finished:
        _write_json(folder / "result.json", _result(folder, plan.own.digest))
    _end(report, session)
    if not finished:
        raise typer.Exit(stop.exit_code)


def resume_own(context: typer.Context, folder: Path, run: "OwnRun", session: Session) -> None:
    """Go on with a run by its own data.json."""
    given = given_options(context)
    refused = [name for name in given if name not in ("resume", "threads", "as_json", "quiet", "tensorboard")]
    if refused:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in refused)
        raise UserError(f"--resume takes what {folder} was started with, got {names} too; leave it out")
    request = Request(
        data=Path(run.data),
        target=run.target,
        test=None if run.test is None else Path(run.test),
        test_fraction=None if run.test is not None else run.test_fraction,
        task=run.task,
        columns=run.columns,
        header=run.header,
        parameters=run.parameters,
    )
    train_own(context, request, session, resumed=folder)


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is known before the first step."""

    own: "OwnRun"
    prepared: "OwnData"
    model: "LogicGateClassifier | LogicGateRegressor"
    encoder: "Encoder"
    train: tuple[Any, "np.ndarray"]
    test: "tuple[Any, np.ndarray] | None"
    """Features, and class numbers or values."""
    look: dict[str, Any]

    @property
    def classes(self) -> "np.ndarray | None":
        """The labels; None for a regression."""
        return self.own.classes

    def default_folder(self) -> Path:
        """runs/NAME-IDENTITY."""
        import hashlib

        return Path("runs") / f"{Path(self.own.data).stem}-{hashlib.sha256(self.own.to_json()).hexdigest()[:12]}"


def _plan(request: Request, threads: int | None) -> Plan:
    import numpy as np

    from gatefit.circuit.labels import labels_to_spec
    from gatefit.datasets.own_data import prepare
    from gatefit.datasets.own_files import content_digest, read_table
    from gatefit.datasets.splits import stratified_split
    from gatefit.training.own_run import OwnRun

    table = read_table(request.data, header=request.header, target=request.target)
    prepared = prepare(table, request.target, task=request.task, choices=request.columns)
    parameters = dict(request.parameters or {})
    seed = int(parameters["random_state"])
    classified = prepared.task == "classification"
    labels = np.unique(prepared.y) if classified else None
    fraction = 0.0 if request.test is not None else 0.2 if request.test_fraction is None else request.test_fraction
    strata = np.searchsorted(labels, prepared.y) if labels is not None else np.zeros(len(prepared.y), dtype=np.int64)
    kept, apart = stratified_split(strata, test_fraction=fraction, seed=seed)
    if fraction and not len(apart):
        raise UserError(
            f"--test-fraction {fraction:g} of {len(strata):,} rows is none; give a larger one, or a --test file"
        )
    if labels is not None and (gone := np.setdiff1d(np.arange(len(labels)), strata[kept])).size:
        raise UserError(f"--test-fraction {fraction:g} leaves no row of class {labels[gone[0]]!r} to learn from")
    train = prepared.part(kept)
    model = _estimator(prepared, parameters, threads)
    with user_input():
        targets = strata[kept] if classified else prepared.y[kept].astype(np.float64)
        encoder = model.planned_encoder(train[0], targets, classes=1 if labels is None else len(labels))
    own = OwnRun(
        data=str(request.data.resolve()),
        digest=content_digest(request.data),
        target=prepared.target,
        task=prepared.task,
        parameters=parameters,
        test=None if request.test is None else str(request.test.resolve()),
        test_digest=None if request.test is None else content_digest(request.test),
        test_fraction=fraction,
        header=request.header,
        columns=dict(request.columns or {}),
        labels=None if labels is None else labels_to_spec(labels),
    )
    test: tuple[Any, np.ndarray] | None = None
    if request.test is not None:
        test = labelled_rows(request.test, own, encoder)
    elif len(apart):
        x, y = prepared.part(apart)
        test = x, np.searchsorted(labels, y) if labels is not None else y.astype(np.float64)
    look = _look(prepared, encoder, len(kept), None if test is None else len(test[1]), own)
    return Plan(own, prepared, model, encoder, train, test, look)


def _estimator(
    prepared: "OwnData", parameters: dict[str, Any], threads: int | None
) -> "LogicGateClassifier | LogicGateRegressor":
    from gatefit.encoders import Table
    from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

    kind = LogicGateClassifier if prepared.task == "classification" else LogicGateRegressor
    unknown = [name for name in parameters if name not in kind().get_params()]
    if unknown:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in unknown)
        raise UserError(f"{names} is for classes, and {prepared.target} is a value (a regression); leave it out")
    if prepared.choices:
        parameters = {**parameters, "encoder": Table("auto", columns=dict(prepared.choices))}
    return kind(**parameters, threads=threads)


def labelled_rows(path: Path, own: "OwnRun", encoder: "Encoder") -> tuple[Any, "np.ndarray"]:
    """Features as ``encoder`` reads them and targets (class numbers, -1 for others; or values) of a file."""
    dropped = [name for name, word in own.columns.items() if word == "drop"]
    return read_labelled(path, own.target, own.classes, encoder, header=own.header, dropped=dropped)


def read_labelled(
    path: Path,
    target: str | None,
    classes: "np.ndarray | None",
    encoder: "Encoder",
    *,
    header: bool = True,
    dropped: "list[str] | tuple[str, ...]" = (),
) -> tuple[Any, "np.ndarray"]:
    """The same where a circuit says what its classes are."""
    from gatefit.cli.tables import read_features
    from gatefit.datasets.own_data import target_values
    from gatefit.datasets.own_files import read_table
    from gatefit.encoders.frames import NamedColumns

    table = read_table(path, header=header, target=target)
    rest, rows, y = target_values(table, target, classes)
    if dropped and table.names is None:
        # By position, which the target's absence moves: count in the whole file.
        whole = table.without([*dropped, *([] if target in table.beside else [str(target)])])
        rest = whole
    x = NamedColumns(read_features(rest, encoder))
    return (x if len(rows) == table.samples else x.iloc[rows]), y


def _look(prepared: "OwnData", encoder: "Encoder", train: int, test: int | None, own: "OwnRun") -> dict[str, Any]:
    """The first look as data: every column, what is learned, what was left out."""
    bits, words = encoding_words(encoder)
    features = iter(zip(bits, words, strict=True))
    columns = []
    image = prepared.table.image_shape
    for column in prepared.columns if image is None else ():
        count, how = (0, "dropped") if column.choice == "drop" else next(features)
        if not count and column.choice != "drop":
            how = "left out: no value" if not column.distinct else "left out: one value only"
        columns.append(
            {
                "name": column.name,
                "holds": column.holds,
                "distinct": column.distinct,
                "missing": column.missing,
                "values": column.example,
                "encoding": how,
                "bits": count,
                **({"chosen": column.choice} if column.choice else {}),
            }
        )
    balance = prepared.class_counts() if prepared.task == "classification" else []
    table = prepared.table
    content: dict[str, Any] = {
        "data": str(table.path),
        "digest": own.digest,
        "rows": table.samples,
        "train_rows": train,
        "test_rows": test,
        "dropped": [{"rows": count, "why": why} for count, why in prepared.dropped],
        "remarks": list(table.remarks),
        "target": prepared.target,
        "task": prepared.task,
        "why": prepared.why,
        "classes": [{"class": value, "rows": count} for value, count in balance],
        "columns": columns,
        "bits": encoder.bits,
    }
    if getattr(table, "separator", None):
        content["separator"] = table.separator  # type: ignore[attr-defined]
    if image is not None:
        content["image"] = {"rows": image[0], "columns": image[1], "channels": image[2]}
    if prepared.task == "regression":
        content["range"] = [float(prepared.y.min()), float(prepared.y.max())]
    return content


def encoding_words(encoder: "Encoder") -> tuple[list[int], list[str]]:
    """For each feature its bits, and in words what they ask."""
    tests: list[dict[str, int]] = [{} for _ in range(encoder.features)]
    for rule in encoder.rules:
        tests[rule.feature][rule.test] = tests[rule.feature].get(rule.test, 0) + 1
    words = {">": "thresholds: {}", "=": "categories: {}", "bit": "as it is", "missing": "missing"}
    texts = [", ".join(words[test].format(count) for test, count in found.items()) for found in tests]
    return [sum(found.values()) for found in tests], texts


def _show_look(plan: Plan) -> None:
    look = plan.look
    separated = f", separated by {look['separator']}" if "separator" in look else ""
    tested = "no rows to test on" if look["test_rows"] is None else f"{look['test_rows']:,} to test on"
    where = f" ({Path(plan.own.test).name})" if plan.own.test else ""
    pairs = [
        ("data", f"{look['data']}: {look['rows']:,} rows{separated}"),
        ("rows", f"{look['train_rows']:,} to learn from, {tested}{where}"),
        *(("left out", f"{each['rows']:,} rows: {each['why']}") for each in look["dropped"]),
        *(("left out", remark) for remark in look["remarks"]),
        ("target", f"{look['target']}: {look['task']} ({look['why']})"),
    ]
    if look["classes"]:
        total = sum(each["rows"] for each in look["classes"])
        shown = [f"{each['class']} {100 * each['rows'] / total:.1f} %" for each in look["classes"][:_SHOWN_CLASSES]]
        more = f", and {len(look['classes']) - _SHOWN_CLASSES} more" if len(look["classes"]) > _SHOWN_CLASSES else ""
        pairs.append(("classes", f"{len(look['classes'])}: {', '.join(shown)}{more}"))
    else:
        pairs.append(("range", f"{look['range'][0]:g} to {look['range'][1]:g}"))
    if "image" in look:
        size = look["image"]
        pairs.append(("images", f"{size['columns']} x {size['rows']} pixels, {size['channels']} channels"))
    output.print_pairs([*pairs, ("encoded as", f"{look['bits']:,} bits")])
    if look["columns"]:
        typer.echo("")
        titles = ("column", "holds", "different", "missing", "values", "encoded as", "bits")
        keys = ("name", "holds", "distinct", "missing", "values", "encoding", "bits")
        rows = [[f"{row[key]:,}" if isinstance(row[key], int) else row[key] for key in keys] for row in look["columns"]]
        output.print_table(titles, rows[:40])
        if len(rows) > 40:
            typer.echo(f"and {len(rows) - 40:,} more columns (all: --look --json)")
    typer.echo("")


def _take_folder(folder: Path, own: "OwnRun") -> None:
    """Write what the run is about, or refuse a folder that is about something else."""
    import msgspec

    from gatefit.training.checkpoint import write_atomically
    from gatefit.training.folder import RunFolderError
    from gatefit.training.own_run import DATA, read_own_run

    there = read_own_run(folder)
    begun = (folder / "config.json").exists()
    if there is None and begun:
        raise RunFolderError(f"{folder} holds a run on another data set; use another --out folder")
    if there is None or not begun:  # what was refused before its first step may be asked for otherwise
        write_atomically(folder / DATA, own.to_json())
        return
    mine, theirs = (msgspec.to_builtins(each) for each in (own, there))
    for moved in ("data", "test"):  # a file may lie elsewhere by now; its content may not differ
        theirs[moved] = mine[moved]
    differing = [name for name in mine if mine[name] != theirs[name]]
    if differing:
        said = "; ".join(f"{name}: {theirs[name]!r:.60} there, {mine[name]!r:.60} here" for name in differing)
        changed = " (the file has changed since)" if "digest" in differing else ""
        raise RunFolderError(f"{folder} belongs to another training{changed} ({said}); use another --out folder")


def _fit(plan: Plan, folder: Path, session: Session, stop: Any) -> bool:
    """Train; whether it came to its end."""
    from gatefit.cli.own_folder import KeptRun
    from gatefit.cli.progress import TensorBoard, shown
    from gatefit.estimators.watch import Watch
    from gatefit.training.runs import ProvenanceFile, save_network

    quiet = session.quiet
    kept = KeptRun(folder, plan.own.dataset)
    curves = [TensorBoard(folder / "tensorboard")] if session.tensorboard else []
    model = plan.model
    # Without samples to test on, evaluations show the training set twice rather than a number of no meaning.
    x, y = plan.train
    classes = plan.classes
    numbers = y if classes is None else classes.searchsorted(y)
    held_out = plan.test or (x, numbers)
    console = output.console(stderr=session.as_json)
    with shown(console, quiet=quiet, score=score_words(plan.own.task)) as observers:
        watching = [stop, *observers, *curves, kept, ProvenanceFile(folder)]
        model.watch = Watch(watching, stop, folder / "checkpoints", held_out)
        try:
            model.fit(x, y)
        except (ValueError, TypeError) as error:
            # Until the first step, what fails is what was asked for; later, it is our bug.
            if stop.training:
                raise
            raise UserError(str(error)) from error
        finally:
            model.watch = None
    kept.keep(model.network_.width)
    save_network(model.network_, folder / "model.safetensors")
    return not stop()


def score_words(task: str) -> Callable[[float], str]:
    """How a score is written: an accuracy in percent, or R²."""
    return output.percent if task == "classification" else (lambda value: f"R² {value:.3f}")


def _deploy(plan: Plan, folder: Path, *, finished: bool, quiet: bool) -> dict[str, Any]:
    """Optimise, prove and save the circuit; measure it; what the report says."""
    from gatefit.circuit.file import digest
    from gatefit.circuit.statistics import statistics

    model = plan.model
    with working("optimising and proving the circuit", quiet), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            circuit = model.circuit_
        except KeyboardInterrupt:
            raise UserError(
                f"stopped while the circuit was being proven; the trained network is kept: gatefit compile {folder}",
                130,
            ) from None
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    proven = not any("could not be proven" in str(warning.message) for warning in caught)
    x, y = plan.train
    classes = plan.classes
    numbers = y if classes is None else classes.searchsorted(y)
    results: dict[str, Any] = {"steps": model.n_iter_, "train": measure(circuit, x, numbers)}
    said = plan.own.metadata()
    if plan.test is not None:
        results["test"] = measure(circuit, *plan.test)
        if "hard" in results["test"]:
            said["test_accuracy"] = repr(results["test"]["hard"])
    circuit = replace(circuit, metadata={**circuit.metadata, **said})
    circuit.save(folder / "model.gate", overwrite=True)
    counts = statistics(circuit)
    return {
        "folder": str(folder),
        "finished": finished,
        "task": plan.own.task,
        "target": plan.own.target,
        "look": plan.look,
        "parameters": plan.own.parameters,
        "results": results,
        "steps_planned": _planned_steps(folder),
        "circuit": {
            "file": str(folder / "model.gate"),
            "digest": digest(circuit),
            "content_digest": digest(replace(circuit, metadata={})),
            "gates": counts.live_gates,
            "depth": counts.depth,
            "inputs_read": counts.used_inputs,
            "proven": proven,
        },
    }


def _result(folder: Path, data: str) -> dict[str, Any]:
    """What every run's result.json says: the figures of its log."""
    from gatefit.training.folder import read_config, read_metrics
    from gatefit.training.metrics import summary

    config = read_config(folder)
    figures = summary(read_metrics(folder), validated=bool(config.validation_fraction))
    return {"config": config.identity, "data": data, **figures}


def _planned_steps(folder: Path) -> int:
    from gatefit.training.folder import read_config

    return read_config(folder).steps


def measure(circuit: "Circuit", x: Any, y: "np.ndarray") -> dict[str, Any]:
    """Accuracy beside that of the most frequent class; or R² and mean absolute error."""
    import numpy as np

    from gatefit.circuit.engine import Engine

    assert circuit.encoder is not None
    with user_input():
        bits = circuit.encoder.transform(x)
    return measure_bits(Engine(circuit), bits, np.asarray(y))


def measure_bits(engine: Any, bits: "np.ndarray", y: "np.ndarray") -> dict[str, Any]:
    """The same of bits."""
    import numpy as np

    if engine.circuit.readout.gives_value:
        values = engine.scores(bits)[:, 0].astype(np.float64)
        spread = float(((y - y.mean()) ** 2).sum())
        r2 = 1 - float(((y - values) ** 2).sum()) / spread if spread > 0 else 0.0
        return {"r2": r2, "mean_absolute_error": float(np.abs(y - values).mean()), "samples": len(y)}
    right = engine.predict(bits) == y
    known = y[y >= 0]
    most = float(np.bincount(known).max() / len(y)) if len(known) else 0.0
    content = {"hard": float(right.mean()), "most_frequent_class": most, "samples": len(y)}
    return content | ({"unknown_classes": int((y < 0).sum())} if len(known) < len(y) else {})


def measured_words(part: Mapping[str, Any]) -> str:
    """A score in words, beside what the simplest model has."""
    if "r2" in part:
        return f"R² {part['r2']:.3f}, mean absolute error {part['mean_absolute_error']:.4g}  ({part['samples']:,} rows)"
    unknown = f"; {part['unknown_classes']:,} of classes never seen" if part.get("unknown_classes") else ""
    return (
        f"{output.percent(part['hard'])}  ({part['samples']:,} rows{unknown}; always the most frequent class: "
        f"{output.percent(part['most_frequent_class'])})"
    )


def _end(report: dict[str, Any], session: Session) -> None:
    if session.as_json:
        output.print_json(report)
    elif not session.quiet or not report["finished"]:
        show_report(report)
    if not report["finished"]:
        steps = f"step {report['results']['steps']:,} of {report['steps_planned']:,}"
        typer.echo(f"stopped at {steps}; what was learned so far is saved, to go on:", err=session.as_json)
        typer.echo(f"  {report['resume']}", err=session.as_json)


def show_report(report: Mapping[str, Any]) -> None:
    """The end of a run in words, and what to do next."""
    circuit, results = report["circuit"], report["results"]
    name = "accuracy" if report["task"] == "classification" else "score"
    proof = "equal to the trained network on every input (proven)" if circuit["proven"] else "as trained, not optimised"
    pairs = [
        *([(f"test {name}", measured_words(results["test"]))] if "test" in results else []),
        (f"train {name}", measured_words(results["train"])),
        (
            "circuit",
            f"{circuit['gates']:,} gates, {circuit['depth']} deep, {circuit['inputs_read']:,} bits read; {proof}",
        ),
        *([("wall time", output.duration(report["seconds"]))] if "seconds" in report else []),
        ("folder", report["folder"]),
    ]
    output.print_pairs(pairs)
    if report["finished"]:
        folder = shlex.quote(report["folder"])
        typer.echo(f"\nnext: gatefit export {folder} --to c --out model.h\n      gatefit prove {folder}")


def _read_report(folder: Path) -> dict[str, Any] | None:
    try:
        content = json.loads((folder / "report.json").read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def read_report(folder: Path) -> dict[str, Any]:
    """The report of a run on own data, as far as there is one."""
    return _read_report(folder) or {}


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    from gatefit.training.checkpoint import write_atomically

    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False).encode())
