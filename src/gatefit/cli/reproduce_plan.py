"""Which runs ``gatefit reproduce`` is about: labels, seeds, the plan, and what a dry run says of it."""

import difflib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import UserError, one_line, user_input
from gatefit.experiments.outcome import SCALES

if TYPE_CHECKING:
    from gatefit.experiments.outcome import Experiment, RunRecord, Scale
    from gatefit.training.config import RunConfig


def chosen_experiments(labels: Sequence[str], every: bool) -> "list[Experiment]":
    """The experiments of these labels, each once; an unknown label is refused with the nearest."""
    from gatefit.experiments.registry import EXPERIMENTS, experiment

    if every and labels:
        raise UserError(f"--all is every label, got {' '.join(labels)} too; leave one of them out")
    if not every and not labels:
        raise UserError("name a label, as in `gatefit reproduce tab:depth`, or --all; --list shows them")
    with user_input():
        return list(EXPERIMENTS.values()) if every else [experiment(label) for label in dict.fromkeys(labels)]


MOST_SEEDS = 1000
"""Beyond it somebody has named a seed, not said how many."""


def parse_seeds(given: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    """ "3" is the first three, "0,2" and "7," are lists."""
    if given is None:
        return default
    try:
        numbers = [int(word) for word in given.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (numbers == [0] and "," not in given):
        raise UserError(f"--seeds is a number of seeds or a list of them, as in 3 or 0,1,2; got {given!r}")
    if "," not in given and numbers[0] > MOST_SEEDS:
        raise UserError(
            f"--seeds {given} asks for {numbers[0]:,} seeds, at most {MOST_SEEDS:,}; for one seed: {given},"
        )
    return tuple(dict.fromkeys(numbers)) if "," in given else tuple(range(numbers[0]))


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
    from gatefit.training.config import RunConfig

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
    from gatefit.experiments.registry import EXPERIMENTS

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
    from gatefit.cli.reproduce_data import availability
    from gatefit.cli.reproduce_progress import run_words
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
