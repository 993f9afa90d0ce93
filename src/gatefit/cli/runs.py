"""``gatefit runs``: what is in a store, side by side, as text files, and from elsewhere."""

from dataclasses import asdict, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import FAILED, UserError, check_choice, one_line
from gatefit.cli.options import AsJson, DataDir
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    from gatefit.experiments.export import ResultSource
    from gatefit.experiments.record import RunRecord

EXAMPLE = (
    "gatefit runs list --dataset monks-2 --status finished",
    "gatefit runs compare 5d996adac775 bb2f5f5be131",
    "gatefit runs import runs/monks; gatefit runs export --out results",
)

app = typer.Typer(
    name="runs",
    help="List, show, compare, export and import the runs of a store, and list those that are missing.",
    epilog="\n\n".join(("Example:", *EXAMPLE)),
    invoke_without_command=True,
)

StoreFolder = Annotated[
    Path | None,
    typer.Option("--store", help="folder of the store (default: $GATEFIT_STORE or gatefit-store)", show_default=False),
]
DatasetFilter = Annotated[str | None, typer.Option("--dataset", help="only runs of this data set")]
MethodFilter = Annotated[str | None, typer.Option("--method", help="only runs of this method")]
StatusFilter = Annotated[str | None, typer.Option("--status", help="planned, running, finished or failed")]

_FIGURES = (
    ("last_10_accuracy", "last 10 evaluations", output.percent),
    ("best_accuracy", "best evaluation", output.percent),
    ("test_accuracy", "test accuracy", output.percent),
    ("validation_accuracy", "validation accuracy", output.percent),
    ("train_accuracy", "train accuracy", output.percent),
    ("discretisation_gap_test", "discretisation gap, test", output.points),
    ("discretisation_gap_validation", "discretisation gap, validation", output.points),
    ("discretisation_gap_train", "discretisation gap, train", output.points),
    ("generalisation_gap", "generalisation gap", output.points),
)
_COLUMNS = ("dataset", "method", "width", "depth", "seed", "steps")


class Diagnostics(str, Enum):
    """Which diagnostics are exported."""

    all = "all"
    curves = "curves"
    ends = "ends"
    none = "none"


@app.callback()
def _alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", epilog="Example:\n\ngatefit runs list --dataset monks-2 --status finished")
def list_runs(
    store: StoreFolder = None,
    dataset: DatasetFilter = None,
    method: MethodFilter = None,
    status: StatusFilter = None,
    as_json: AsJson = False,
) -> None:
    """List runs with their figures, by data set, method, depth, width and seed."""
    with _open(store) as source:
        records = _chosen(source, dataset, method, status)
    if as_json:
        output.print_json({"runs": [_content(record) for record in records]})
        return
    if not records:
        typer.echo("no runs")
        return
    titles = ("run", "data set", "method", "width", "depth", "seed", "steps", "status", "last 10", "best", "time")
    output.print_table((*titles, "options"), [_row(record) for record in records])


@app.command(epilog="Example:\n\ngatefit runs show 5d996adac775 --metrics")
def show(
    run: Annotated[str, typer.Argument(help="a run's identity, or the beginning of it")],
    store: StoreFolder = None,
    metrics: Annotated[bool, typer.Option("--metrics", help="every evaluation too")] = False,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of one run; as JSON, with every evaluation and diagnostic."""
    with _open(store) as source:
        record = _find(source, run)
    if as_json:
        rows = {"metrics": list(record.metrics), "diagnostics": record.diagnostics}
        output.print_json(_content(record) | rows)
        return
    output.print_pairs(_pairs(record))
    if metrics and record.metrics:
        names = list(record.metrics[0])
        output.print_table(names, [[_text(row.get(name)) for name in names] for row in record.metrics])


@app.command(epilog="Example:\n\ngatefit runs compare 5d996adac775 bb2f5f5be131")
def compare(
    runs: Annotated[list[str], typer.Argument(help="two or more identities, or beginnings of them")],
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show in which options runs differ, and their figures side by side."""
    if len(runs) < 2:
        raise UserError(f"comparing needs at least two runs, got {len(runs)}; see `gatefit runs list`")
    with _open(store) as source:
        records = [_find(source, run) for run in runs]
    configs = [asdict(record.config) for record in records]
    differences = {
        name: [config[name] for config in configs]
        for name in configs[0]
        if any(config[name] != configs[0][name] for config in configs)
    }
    known = [figure for figure in _FIGURES if any(figure[0] in record.summary for record in records)]
    figures = {name: [record.summary.get(name) for record in records] for name, _, _ in known}
    if as_json:
        identities = [record.identity for record in records]
        states = [record.status for record in records]
        content = {"runs": identities, "status": states, "differences": differences, "figures": figures}
        output.print_json(content | {"seconds": [record.seconds for record in records]})
        return
    rows = [[name, *map(_text, values)] for name, values in differences.items()]
    rows.append(["status", *(record.status for record in records)])
    rows += [[title, *map(shown, figures[name])] for name, title, shown in known]
    rows.append(["time", *map(_time, records)])
    output.print_table(["", *(record.identity for record in records)], rows)


@app.command(epilog="Example:\n\ngatefit runs export --out results")
def export(
    out: Annotated[Path, typer.Option(help="folder for runs.csv, metrics.csv and diagnostics.jsonl")],
    store: StoreFolder = None,
    csv: Annotated[bool, typer.Option("--csv", help="the CSV files alone, as --diagnostics none")] = False,
    diagnostics: Annotated[
        Diagnostics,
        typer.Option(help="of every evaluation, what figures draw over time, of the first and last, or none"),
    ] = Diagnostics.all,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="planned and running runs too")] = False,
    dataset: DatasetFilter = None,
    method: MethodFilter = None,
    status: StatusFilter = None,
    as_json: AsJson = False,
) -> None:
    """Write finished and failed runs as text: the same runs give the same bytes, and import takes them back."""
    from gatefit.experiments.export import write_export

    with _open(store) as source:
        kept = [
            source.find(record.identity)
            for record in _chosen(source, dataset, method, status)
            if unfinished or status is not None or record.status in ("finished", "failed")
        ]
        records = [record for record in kept if record is not None]
        lines = write_export(records, out, diagnostics="none" if csv else diagnostics.value)
    if as_json:
        output.print_json({"folder": str(out), "lines": lines})
    else:
        typer.echo(f"{len(records)} runs, {lines['metrics.csv']} evaluations written to {out}")


@app.command("import", epilog="Example:\n\ngatefit runs import runs/monks results")
def import_runs(
    paths: Annotated[list[Path], typer.Argument(help="exports, stores, run folders, or folders of run folders")],
    store: StoreFolder = None,
    made_here: Annotated[
        bool,
        typer.Option("--made-here", help="run folders without made.json were made here, by this version: note both"),
    ] = False,
    diagnose: Annotated[
        bool, typer.Option(help="measure the saved networks of run folders, where torch and the data are at hand")
    ] = True,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Take in finished runs from elsewhere; none is doubled, and a different result for the same run is reported."""
    from gatefit.experiments.import_runs import FinalDiagnostics, check_sources
    from gatefit.experiments.import_runs import import_runs as take_in
    from gatefit.experiments.store import Store, default_store
    from gatefit.training.machine import code_version, machine

    check_sources(paths)  # Before a store is made.
    with Store.open(store or default_store()) as target:
        taken = []
        for intake in take_in(
            paths,
            target,
            machine=machine() if made_here else None,
            code_version=code_version() if made_here else "",
            diagnose=FinalDiagnostics(data_dir) if diagnose else None,
        ):
            taken.append(intake)
            if not as_json and (intake.outcome != "present" or len(paths) == 1):
                reason = f": {one_line(intake.reason)}" if intake.reason else ""
                typer.echo(f"{intake.outcome}  {intake.identity or intake.source}{reason}")
    counts = {name: sum(each.outcome == name for each in taken) for name in ("added", "present", "conflict", "skipped")}
    if as_json:
        output.print_json({"store": str(target.folder), **counts, "runs": [asdict(each) for each in taken]})
    else:
        typer.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
    if counts["conflict"]:
        raise typer.Exit(FAILED)


def _open(store: Path | None) -> "ResultSource":
    from gatefit.experiments.export import open_results
    from gatefit.experiments.store import default_store

    return open_results(store or default_store())


def _chosen(source: "ResultSource", dataset: str | None, method: str | None, status: str | None) -> "list[RunRecord]":
    from gatefit.experiments.store import STATUSES

    if status is not None:
        check_choice("status", status, STATUSES)
    records = source.records()
    if dataset is not None:
        check_choice("data set", dataset, dict.fromkeys(record.config.dataset for record in records))
    if method is not None:
        check_choice("method", method, dict.fromkeys(record.config.method for record in records))
    return source.records(dataset=dataset, method=method, status=status)


def _find(source: "ResultSource", name: str) -> "RunRecord":
    found = [record.identity for record in source.records() if record.identity.startswith(name)]
    if len(found) > 1 and name not in found:
        raise UserError(f"{name!r} is the beginning of {len(found)} runs: {', '.join(found)}; write more of it")
    record = source.find(name if name in found else found[0]) if found else None
    if record is None:
        raise UserError(f"there is no run {name!r}; `gatefit runs list` shows what there is")
    return record


def _content(record: "RunRecord") -> dict[str, Any]:
    content = asdict(record)
    return {name: value for name, value in content.items() if name not in ("metrics", "diagnostics")}


def _row(record: "RunRecord") -> list[str]:
    config, figures = record.config, record.summary
    done = f"{config.steps}" if record.status == "finished" else f"{record.step}/{config.steps}"
    sizes = [_text(config.width), str(config.depth), str(config.seed), done]
    accuracies = [output.percent(figures.get(name)) for name in ("last_10_accuracy", "best_accuracy")]
    return [
        record.identity, config.dataset, config.method, *sizes, record.status, *accuracies, _time(record),
        " ".join(_options(config)),
    ]  # fmt: skip


def _options(config: RunConfig) -> list[str]:
    """The options that are neither at their defaults nor in a column of their own."""
    given = [(f.name, getattr(config, f.name), f.default) for f in fields(config) if f.name not in _COLUMNS]
    return [f"{name}={_text(value)}" for name, value, default in given if value != default]


def _pairs(record: "RunRecord") -> list[tuple[str, str]]:
    config = record.config
    rows = [("run", record.identity), ("status", record.status), ("steps", f"{record.step} of {config.steps}")]
    rows += [(name.replace("_", " "), _text(getattr(config, name))) for name in _COLUMNS[:-1]]
    rows += [("options", " ".join(_options(config)) or "defaults")]
    rows += [(title, shown(record.summary[name])) for name, title, shown in _FIGURES if name in record.summary]
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items() if value is not None)
    facts = {
        "time": _time(record),
        "error": one_line(record.error),
        "machine": machine,
        "version": record.code_version,
        "data": record.data_digest,
        "created": record.created,
        "started": record.started,
        "finished": record.finished,
        "evaluations": str(len(record.metrics)),
        "diagnostics": ", ".join(sorted(record.diagnostics)),
    }
    return [*rows, *((name, text) for name, text in facts.items() if text not in ("", "-"))]


def _time(record: "RunRecord") -> str:
    return "-" if record.seconds is None else output.duration(record.seconds)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
