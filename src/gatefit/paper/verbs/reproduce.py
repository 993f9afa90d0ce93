"""``gatefit reproduce``: a table or figure of the paper, computed, with the paper's values beside ours.

labels, --seeds, --only    which runs
--dry-run                  lists them, and how long they take
else                       trains what is missing, with bars on a terminal and a line for every run elsewhere,
                           into a store that labels share; stop at any moment and go on later
at the end                 text, a Markdown page with its figures, or JSON
"""

import difflib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.errors import FAILED, UserError, check_choice, one_line, user_input
from gatefit.cli.many_runs import again, availability, parse_seeds, run_progress
from gatefit.cli.options import AsJson, DataDir
from gatefit.paper.outcome import SCALES
from gatefit.paper.scales import width_name
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    from gatefit.experiments.record import RunRecord
    from gatefit.paper.outcome import Experiment, Outcome, Scale

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
        typer.echo(f"  {again(context)}", err=True)
        raise typer.Exit(stopped)
    _show(outcomes, out, as_json, table_only, None if store is None else str(store))
    for reason, count in _reasons(failed).items():
        typer.echo(f"{count} run{'s' if count > 1 else ''} failed: {reason}", err=True)
    if failed:
        raise typer.Exit(FAILED)


def _store_folder(given: Path | None) -> Path:
    from gatefit.experiments.store import default_store

    return given or default_store()


def chosen_experiments(labels: Sequence[str], every: bool) -> "list[Experiment]":
    """The experiments of these labels, each once; an unknown label is refused with the nearest."""
    from gatefit.paper.registry import EXPERIMENTS, experiment

    if every and labels:
        raise UserError(f"--all is every label, got {' '.join(labels)} too; leave one of them out")
    if not every and not labels:
        raise UserError("name a label, as in `gatefit reproduce tab:depth`, or --all; --list shows them")
    with user_input():
        return list(EXPERIMENTS.values()) if every else [experiment(label) for label in dict.fromkeys(labels)]


def whole_plan(
    experiments: "Sequence[Experiment]", scale: "Scale", seeds: dict[str, tuple[int, ...]]
) -> "list[RunConfig]":
    """Every run of these labels once."""
    wanted: dict[str, RunConfig] = {}
    for each in experiments:
        wanted |= {config.identity: config for config in each.plan(scale, seeds[each.label])}
    return list(wanted.values())


def only_runs(plan: "list[RunConfig]", given: Sequence[str]) -> "list[RunConfig]":
    """The runs of a plan with these values: every "field=value,value" must fit."""
    known = [field.name for field in fields(RunConfig)]
    chosen = plan
    for words in given:
        name, equals, values = words.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise UserError(f"--only is a field and its value, as in --only dataset=mnist; got {words!r}")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; choose one of {', '.join(known)}"
            raise UserError(f"--only {words}: runs have no field {name}{hint}")
        wanted = {_word(value) for value in values.split(",")}
        found = [config for config in chosen if _word(getattr(config, name)) in wanted]
        if chosen and not found:
            there = ", ".join(sorted({_word(getattr(config, name)) for config in chosen}))
            raise UserError(f"--only {words}: no run of these labels is left; {name} is {there}")
        chosen = found
    return chosen


def _word(value: object) -> str:
    """A configuration's value as it is written: 30 is 30.0, none is None, true is True."""
    text = str(value).strip().lower()
    try:
        return f"{float(text):g}" if text not in ("nan", "inf", "infinity") else text
    except ValueError:
        return text


def list_labels(as_json: bool) -> None:
    """Print every label with its title and its number of runs."""
    from gatefit.paper.registry import EXPERIMENTS

    rows: list[dict[str, Any]] = []
    for label, each in EXPERIMENTS.items():
        counts = {scale: len(each.plan(scale, each.default_seeds[scale])) for scale in SCALES}
        rows.append({"label": label, "title": each.title, "runs": counts})
    if as_json:
        output.print_json({"labels": rows})
        return
    output.print_table(
        ("label", "title", *(f"runs, {scale}" for scale in SCALES)),
        [(row["label"], row["title"], *(str(row["runs"][scale]) for scale in SCALES)) for row in rows],
    )


def finished_runs(folder: Path, stack: ExitStack) -> "tuple[Callable[[str], RunRecord | None], Any]":
    """How runs are looked up where none is trained; a store that does not exist holds none."""
    from gatefit.experiments.export import open_results

    if not folder.exists():
        return (lambda identity: None), None
    source = stack.enter_context(open_results(folder))
    return source.find, source


def show_plan(plan: "list[RunConfig]", folder: Path, data_dir: Path | None, jobs: int, as_json: bool) -> None:
    """Print the runs, which are finished, and how long the others take."""
    from gatefit.experiments.estimate import run_seconds
    from gatefit.paper.baseline_cost import step_seconds

    with ExitStack() as stack:
        find, source = finished_runs(folder, stack)
        found = {config.identity: find(config.identity) for config in plan}
        seconds = run_seconds(plan, source, step_seconds=step_seconds)
    absent = availability({config.dataset for config in plan}, data_dir, download=False)
    rows: list[dict[str, Any]] = []
    for config in plan:
        record = found[config.identity]
        status = "to do" if record is None or record.status == "planned" else record.status
        if status != "finished" and config.dataset in absent:
            status = "needs data"
        rows.append({"run": config.identity, "what": run_words(config), "status": status,
                     "seconds": round(seconds[config.identity], 1)})  # fmt: skip
    left = sum(row["seconds"] for row in rows)
    if as_json:
        output.print_json({"runs": rows, "seconds_left": round(left / jobs, 1), "not_at_hand": absent})
        return
    if rows:
        time = [output.duration(row["seconds"]) if row["seconds"] else "-" for row in rows]
        titles = ("run", "what", "status", "time left")
        output.print_table(titles, [(r["run"], r["what"], r["status"], t) for r, t in zip(rows, time, strict=True)])
    done = sum(row["status"] == "finished" for row in rows)
    with_jobs = f" with {jobs} jobs" if jobs > 1 else ""
    typer.echo(f"{len(rows)} runs, {done} finished; about {output.duration(left / jobs)} left{with_jobs}")
    for name, reason in absent.items():
        typer.echo(f"{name}: {one_line(reason)}; where that fails, its runs are skipped")


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
    with (
        StopSignals() as stop,
        run_progress(output.console(stderr=True), left, seconds, jobs=jobs, quiet=quiet, words=run_words) as tell,
    ):

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
    from gatefit.paper.outcome import Results

    once = cache(find)  # Labels share runs, and a run with its diagnostics is not small.
    return [each.show(Results(once, scale=scale, seeds=seeds[each.label])) for each in experiments]


def _show(outcomes: "list[Outcome]", out: Path | None, as_json: bool, table_only: bool, store: str | None) -> None:
    from gatefit.paper.outcome import reproduce_command
    from gatefit.paper.report.text import render_text

    empty = [outcome for outcome in outcomes if outcome.missing and not outcome.used]
    ready = [outcome for outcome in outcomes if outcome not in empty]
    if table_only and not ready:
        first = empty[0]
        what = first.label if len(empty) == 1 else f"{first.label} and {len(empty) - 1} other labels"
        count = sum(len(outcome.missing) for outcome in empty) if len(empty) > 1 else len(first.missing)
        raise UserError(
            f"none of the {count} runs of {what} at {first.scale} scale is finished; "
            f"make them with: {reproduce_command(first.label, first.scale, store)}"
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
            made_by = reproduce_command(outcome.label, outcome.scale, store)
            typer.echo(f"{outcome.label}: no finished run yet; make them with: {made_by}", err=True)


def _reasons(failed: "Sequence[RunRecord]") -> dict[str, int]:
    reasons: dict[str, int] = {}
    for record in failed:
        reason = one_line(record.error)
        reasons[reason] = reasons.get(reason, 0) + 1
    return reasons


def run_words(config: RunConfig) -> str:
    """A run in a few words: data set, method, size, seed and the options that set it apart."""
    size = f"{config.depth} × {width_name(config.width)}" if config.width else f"{config.depth} layers"
    extra = [
        word
        for word in (
            f"{config.steps:,} steps",
            f"τ {config.temperature:g}" if config.temperature is not None else "",
            "learned τ" if config.learnable_temperature else "",
            f"T {config.readout_temperature:g}" if config.readout_temperature is not None else "",
            config.corner_activation or "",
            f"snap {config.snap}" if config.snap else "",
            f"{config.surrogate} surrogate" if config.surrogate else "",
            f"noise in {config.noise_in}" if config.noise_in else "",
            f"{config.backward_basis} basis" if config.backward_basis else "",
            f"wiring {config.wiring_seed}" if config.wiring_seed else "",
            f"split {config.split_seed}" if config.split_seed else "",
            f"{config.adult_encoding} encoding" if config.adult_encoding else "",
        )
        if word
    ]
    return f"{config.dataset} {config.method}, {size}, {', '.join(extra)}, seed {config.seed}"


def outcome_content(outcome: "Outcome") -> dict[str, Any]:
    """An outcome without the rows of its runs, which the store has; the same runs give the same content."""
    return {
        "label": outcome.label,
        "title": outcome.title,
        "scale": outcome.scale,
        "seeds": list(outcome.seeds),
        "tables": [asdict(table) for table in outcome.tables],
        "figures": [asdict(figure) for figure in outcome.figures],
        "checks": [asdict(check) | {"finding": check.finding} for check in outcome.checks],
        "notes": [*outcome.notes, *outcome.protocol],
        "used": sorted(record.identity for record in outcome.used),
        "missing": sorted(config.identity for config in outcome.missing),
    }


def write_page(outcomes: "Sequence[Outcome]", page: Path) -> Path:
    """Write the outcomes to one Markdown page, its figures to a folder beside it where matplotlib is installed."""
    from gatefit.paper.report.markdown import render_markdown

    folder = page.parent / f"{page.stem}-figures"
    drawn = find_spec("matplotlib") is not None
    parts = []
    for outcome in outcomes:
        paths = []
        for number, figure in enumerate(outcome.figures if drawn else ()):
            from gatefit.paper.report.figures import render_svg

            name = f"{outcome.label.replace(':', '-')}-{number + 1}.svg"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(render_svg(figure))
            paths.append(f"{folder.name}/{name}")
        parts.append(render_markdown(outcome, paths))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts), encoding="utf-8")
    return page
