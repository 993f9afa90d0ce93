"""``gatefit reproduce``: a table or figure of the paper, computed, with the paper's values beside ours.

Runs that are missing are trained first, into a store that other labels share; stop at any moment and go on later.
"""

import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.errors import FAILED, UserError, check_choice, one_line
from gatefit.cli.options import AsJson, DataDir, given_options
from gatefit.cli.reproduce_plan import (
    chosen_experiments,
    finished_runs,
    list_labels,
    only_runs,
    parse_seeds,
    show_plan,
    whole_plan,
)
from gatefit.experiments.outcome import SCALES

if TYPE_CHECKING:
    from gatefit.experiments.outcome import Experiment, Outcome, RunRecord, Scale
    from gatefit.training.config import RunConfig

EXAMPLE = (
    "gatefit reproduce tab:h7-cross-dataset --scale tiny",
    "gatefit reproduce tab:depth --scale small --jobs 2",
    "gatefit reproduce --all --scale small --dry-run",
    "gatefit reproduce tab:mnist-main --scale paper --only dataset=monks-2",
)


def reproduce(
    context: typer.Context,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="LABEL", help="labels of the paper, as in tab:depth")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="every label")] = False,
    listed: Annotated[bool, typer.Option("--list", help="list the labels")] = False,
    scale: Annotated[str, typer.Option(help="paper, small or tiny")] = "small",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="how many, or which: 3 means 0, 1 and 2; 0,2 are two (default: by label)", show_default=False
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="train only runs whose configuration has this value, or one of several between commas; repeat it for "
            "more fields",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="runs trained at the same time")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="threads (default: all)", show_default=False)] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="folder of the runs (default: $GATEFIT_STORE or gatefit-store)", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="list the runs and their time; train none")] = False,
    table_only: Annotated[bool, typer.Option("--table-only", help="show what finished runs give; train none")] = False,
    out: Annotated[Path | None, typer.Option(help="write a Markdown page there too", show_default=False)] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="train on a Ray cluster: HOST:PORT, auto or local", show_default=False),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Train the runs of a table or figure that are missing, and show it beside the paper's values."""
    check_choice("scale", scale, SCALES)
    chosen_scale: Scale = next(each for each in SCALES if each == scale)
    if listed:
        list_labels(as_json)
        return
    if dry_run and table_only:
        raise UserError("--dry-run lists runs and --table-only shows results; give one of them")
    if ray is not None and jobs > 1:
        raise UserError(f"with --ray the cluster decides how many runs go at a time, got --jobs {jobs}; leave it out")
    experiments = chosen_experiments(labels or [], every)
    picked = {each.label: parse_seeds(seeds, each.default_seeds[chosen_scale]) for each in experiments}
    folder = _store_folder(store)
    plan = only_runs(whole_plan(experiments, chosen_scale, picked), only or [])
    if dry_run:
        show_plan(plan, folder, data_dir, jobs, as_json)
        return
    failed: list[RunRecord] = []
    stopped: int | None = None
    with ExitStack() as stack:
        if table_only or not plan:
            find, _ = finished_runs(folder, stack)
        else:
            require("torch", "train", "training")
            from gatefit.experiments.store import Store

            target = stack.enter_context(Store.open(folder))
            failed, stopped = _train(plan, target, jobs, threads, data_dir, ray, quiet or as_json)
            find = target.find
        outcomes = _outcomes(experiments, chosen_scale, picked, find)
    if stopped is not None:
        typer.echo("stopped; what was trained is saved. To go on:", err=True)
        typer.echo(f"  {_again(context)}", err=True)
        raise typer.Exit(stopped)
    _show(outcomes, out, as_json, table_only, None if store is None else str(store))
    for reason, count in _reasons(failed).items():
        typer.echo(f"{count} run{'s' if count > 1 else ''} failed: {reason}", err=True)
    if failed:
        raise typer.Exit(FAILED)


def _store_folder(given: Path | None) -> Path:
    from gatefit.experiments.store import default_store

    return given or default_store()


def _train(
    plan: "list[RunConfig]",
    store: Any,
    jobs: int,
    threads: int | None,
    data_dir: Path | None,
    ray: str | None,
    quiet: bool,
) -> "tuple[list[RunRecord], int | None]":
    """Train what is missing; returns the runs that failed, and the exit code where it was asked to stop."""
    from gatefit.cli.reproduce_data import availability
    from gatefit.cli.reproduce_progress import shown
    from gatefit.cli.stop import StopSignals
    from gatefit.experiments.estimate import run_seconds
    from gatefit.paper.baseline_cost import BUILD, step_seconds

    left = [config for config in plan if store.status(config.identity) != "finished"]
    absent = availability({config.dataset for config in left}, data_dir, download=True, quiet=quiet)
    for name, reason in absent.items():
        count = sum(config.dataset == name for config in left)
        typer.echo(f"skipping {count} runs of {name}: {one_line(reason)}", err=True)
    left = [config for config in left if config.dataset not in absent]
    if not left:
        return [], None
    run = _runner(ray)
    seconds = run_seconds(left, store, step_seconds=step_seconds)
    with StopSignals() as stop, shown(output.console(stderr=True), left, seconds, jobs=jobs, quiet=quiet) as tell:

        def told(event: Any) -> None:
            stop.training = True
            tell(event)

        options = {"data_dir": data_dir, "progress": told, "should_stop": stop, "threads": threads, "jobs": jobs}
        records = run(left, store, build=BUILD, step_seconds=step_seconds, **options)
    return [record for record in records if record.status == "failed"], stop.exit_code if stop() else None


def _runner(ray: str | None) -> Callable[..., Any]:
    if ray is None:
        from gatefit.experiments.runner import run_all

        return run_all
    from gatefit.experiments.ray_jobs import run_on_ray

    def on_ray(configs: Any, store: Any, *, jobs: int, threads: int | None, **options: Any) -> Any:
        return run_on_ray(configs, store, address=ray, threads=threads or 1, **options)

    return on_ray


def _outcomes(
    experiments: "Sequence[Experiment]",
    scale: "Scale",
    seeds: dict[str, tuple[int, ...]],
    find: "Callable[[str], RunRecord | None]",
) -> "list[Outcome]":
    from gatefit.experiments.outcome import Results

    known: dict[str, Any] = {}

    def once(identity: str) -> "RunRecord | None":
        # Labels share runs, and a run with its diagnostics is not small.
        if identity not in known:
            known[identity] = find(identity)
        found: RunRecord | None = known[identity]
        return found

    return [each.show(Results(once, scale=scale, seeds=seeds[each.label])) for each in experiments]


def _show(outcomes: "list[Outcome]", out: Path | None, as_json: bool, table_only: bool, store: str | None) -> None:
    from gatefit.cli.reproduce_page import outcome_content, write_page
    from gatefit.report.provenance import command
    from gatefit.report.text import render_text

    empty = [outcome for outcome in outcomes if outcome.missing and not outcome.used]
    ready = [outcome for outcome in outcomes if outcome not in empty]
    if table_only and not ready:
        first = empty[0]
        what = first.label if len(empty) == 1 else f"{first.label} and {len(empty) - 1} other labels"
        count = sum(len(outcome.missing) for outcome in empty) if len(empty) > 1 else len(first.missing)
        raise UserError(
            f"none of the {count} runs of {what} at {first.scale} scale is finished; "
            f"make them with: {command(first.label, first.scale, store)}"
        )
    if out is not None:
        written = write_page(outcomes, out)
        typer.echo(f"written: {written}", err=True)
    if as_json:
        output.print_json({"outcomes": [outcome_content(outcome) for outcome in outcomes]})
    else:
        typer.echo(
            "\n\n".join(
                render_text(outcome, store=store).rstrip("\n") for outcome in (ready if table_only else outcomes)
            )
        )
    if table_only and empty:
        for outcome in empty:
            typer.echo(
                f"{outcome.label}: no finished run yet; make them with: {command(outcome.label, outcome.scale, store)}",
                err=True,
            )


def _again(context: typer.Context) -> str:
    """The command that goes on, quoted for a shell."""
    given = given_options(context)
    words = ["gatefit", context.info_name or "", *(given.pop("labels", None) or ())]
    for parameter in context.command.params:
        value = given.get(parameter.name or "")
        if isinstance(value, bool):
            words += [parameter.opts[0]] if value else []
        elif isinstance(value, list | tuple):
            words += [word for each in value for word in (parameter.opts[0], str(each))]
        elif value is not None:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)


def _reasons(failed: "Sequence[RunRecord]") -> dict[str, int]:
    reasons: dict[str, int] = {}
    for record in failed:
        reason = one_line(record.error)
        reasons[reason] = reasons.get(reason, 0) + 1
    return reasons
