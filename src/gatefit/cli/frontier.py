"""``gatefit frontier``: accuracy against gates, one table that everybody can check.

names, --seeds       which rows and runs
--dry-run            lists them, and how long they take
else                 trains what is missing into a store, hardens, optimises, proves, evaluates, counts; row after row,
                     so that one that is done is kept; stop at any moment and go on later
--table-only         shows what the committed figures say: no training, no torch
--page, --adopt      writes the page, and the circuits that ship with the package
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.circuits import working
from gatefit.cli.datasets import load
from gatefit.cli.errors import FAILED, UserError, check_choice, one_line, user_input
from gatefit.cli.many_runs import again, availability, parse_seeds, run_progress
from gatefit.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    from gatefit.experiments.store import Store
    from gatefit.frontier.entries import Entry
    from gatefit.frontier.results import Row
    from gatefit.training.config import RunConfig

EXAMPLE = (
    "gatefit frontier mnist-1k --threads 1",
    "gatefit frontier --all --dry-run",
    "gatefit frontier --table-only --page docs/frontier.md",
)


def frontier(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="rows, as in mnist-1k")] = None,
    every: Annotated[bool, typer.Option("--all", help="every row")] = False,
    listed: Annotated[bool, typer.Option("--list", help="list the rows")] = False,
    seeds: Annotated[
        str | None,
        typer.Option(help="how many, or which: 2 means 0 and 1; 0,2 are two (default: by row)", show_default=False),
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="threads (default: all)", show_default=False)] = None,
    jobs: Annotated[int, typer.Option(min=1, help="seeds of a row trained at the same time")] = 1,
    store: Annotated[
        Path | None,
        typer.Option(help="folder of the runs (default: $GATEFIT_STORE or gatefit-store)", show_default=False),
    ] = None,
    entries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="rows of your own, a JSON list", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="folder of frontier.json (default: results/frontier)", show_default=False),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the Markdown page there too", show_default=False)
    ] = None,
    adopt: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="write the rows' circuits and cards there too", show_default=False),
    ] = None,
    steps_scale: Annotated[
        float, typer.Option(min=0.0, help="train so many times the steps, to see that it works; needs --out")
    ] = 1.0,
    no_synth: Annotated[bool, typer.Option("--no-synth", help="count no tables")] = False,
    measure_again: Annotated[
        bool, typer.Option("--measure-again", help="optimise, prove and count again what was trained before")
    ] = False,
    table_only: Annotated[
        bool, typer.Option("--table-only", help="show what the figures in --out say; train none")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="list the runs and their time; train none")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Train, prove and measure the rows of the frontier that are missing; show accuracy against gates and tables."""
    from gatefit.experiments.store import default_store
    from gatefit.frontier.entries import ENTRIES, read_entries
    from gatefit.frontier.page import render_page
    from gatefit.frontier.results import read_results

    with user_input():
        known = read_entries(entries or ENTRIES)
    if listed:
        _list(known, as_json)
        return
    if dry_run and table_only:
        raise UserError("--dry-run lists runs and --table-only shows results; give one of them")
    if steps_scale != 1 and (out is None or adopt is not None):
        raise UserError(
            f"--steps-scale {steps_scale:g} trains other networks than the rows say; name another folder with --out, "
            "and leave out --adopt"
        )
    folder, runs = out or Path("results/frontier"), store or default_store()
    with user_input():
        rows = read_results(folder)
    if table_only:
        chosen = [rows[name] for name in _names(rows, names or [], every or not names, folder)]
    else:
        picked = _names(known, names or [], every, None)
        plan = [(known[name].scaled(steps_scale), parse_seeds(seeds, known[name].seeds)) for name in picked]
        if dry_run:
            _show_plan(plan, runs, data_dir, jobs, as_json)
            return
        work = _Work(runs, folder, threads, jobs, data_dir, no_synth, measure_again, quiet or as_json)
        rows, stopped = work.do(plan)
        if stopped is not None:
            typer.echo("stopped; what was trained is saved. To go on:", err=True)
            typer.echo(f"  {again(context)}", err=True)
            raise typer.Exit(stopped)
        chosen = [rows[name] for name in picked if name in rows]
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(render_page(rows.values()), encoding="utf-8")
        typer.echo(f"written: {page}", err=True)
    if adopt is not None:
        _adopt(chosen, runs, adopt)
    _show(chosen, as_json)
    if not table_only and work.failed:
        for reason in work.failed:
            typer.echo(reason, err=True)
        raise typer.Exit(FAILED)


def _names(known: dict[str, Any], given: Sequence[str], every: bool, folder: Path | None) -> list[str]:
    """The rows that were asked for, each once; an unknown one is refused with the nearest."""
    if folder is not None and not known:
        raise UserError(f"{folder} holds no frontier.json with rows; make them with: gatefit frontier --all")
    if every and not given:
        return list(known)
    if every:
        raise UserError(f"--all is every row, got {' '.join(given)} too; leave one of them out")
    if not given:
        raise UserError("name a row, as in `gatefit frontier mnist-1k`, or --all; --list shows them")
    for name in given:
        check_choice("row", name, known)
    return list(dict.fromkeys(given))


class _Work:
    """Trains and measures row after row; what went wrong is in ``failed``, in words."""

    def __init__(
        self,
        store: Path,
        out: Path,
        threads: int | None,
        jobs: int,
        data_dir: Path | None,
        no_synth: bool,
        again: bool,
        quiet: bool,
    ) -> None:
        self.folder, self.out, self.threads, self.jobs = store, out, threads, jobs
        self.data_dir, self.no_synth, self.again, self.quiet = data_dir, no_synth, again, quiet
        self.failed: list[str] = []

    def do(self, plan: "list[tuple[Entry, tuple[int, ...]]]") -> "tuple[dict[str, Row], int | None]":
        """All rows of the results file, and the exit code where it was asked to stop."""
        require("torch", "train", "training")
        from gatefit.experiments.store import Store
        from gatefit.frontier.results import read_results

        absent = availability(
            {entry.config.dataset for entry, _ in plan}, self.data_dir, download=True, quiet=self.quiet
        )
        rows = read_results(self.out)
        with Store.open(self.folder) as store:
            for entry, seeds in plan:
                if entry.config.dataset in absent:
                    self.failed.append(f"{entry.name} is left out: {one_line(absent[entry.config.dataset])}")
                    continue
                configs = entry.runs(seeds)
                stopped = self._train(entry, configs, store)
                if stopped is not None:
                    return rows, stopped
                rows = self._measure(entry, configs, store, rows)
        return rows, None

    def _train(self, entry: "Entry", configs: "list[RunConfig]", store: "Store") -> int | None:
        from gatefit.cli.stop import StopSignals
        from gatefit.experiments.estimate import run_seconds
        from gatefit.experiments.runner import run_all

        left = [config for config in configs if store.status(config.identity) != "finished"]
        if not left:
            return None
        seconds = run_seconds(left, store)
        console = output.console(stderr=True)
        with (
            StopSignals() as stop,
            run_progress(
                console, left, seconds, jobs=self.jobs, quiet=self.quiet, words=lambda c: f"{entry.name}, seed {c.seed}"
            ) as tell,
        ):

            def told(event: Any) -> None:
                stop.training = True
                tell(event)

            # One by one and without diagnostics: the seconds are those of one training.
            records = run_all(
                left,
                store,
                jobs=self.jobs,
                threads=self.threads,
                data_dir=self.data_dir,
                progress=told,
                should_stop=stop,
                diagnostics=False,
                side_by_side=False,
            )
        self.failed += [
            f"{entry.name}, seed {record.config.seed}, failed: {one_line(record.error)}"
            for record in records
            if record.status == "failed"
        ]
        return stop.exit_code if stop() else None

    def _measure(
        self, entry: "Entry", configs: "list[RunConfig]", store: "Store", rows: "dict[str, Row]"
    ) -> "dict[str, Row]":
        from gatefit.frontier.measure import FrontierError, count_tables, measure
        from gatefit.frontier.results import merged, write_results
        from gatefit.hardware.tools import MissingToolError

        finished = [config for config in configs if store.status(config.identity) == "finished"]
        if not finished:
            return rows
        data = load(entry.config.dataset, self.data_dir, entry.config.dataset_options(), quiet=self.quiet)
        for config in finished:
            try:
                with working(f"{entry.name}, seed {config.seed}: proving and counting", self.quiet):
                    row = measure(entry, config, store, data, again=self.again)
                    if not self.no_synth:
                        row = count_tables(entry, config, store.folder, data)
            except FrontierError as error:
                self.failed.append(f"{entry.name}, seed {config.seed}: {one_line(str(error))}")
                continue
            except MissingToolError as error:
                self.failed.append(
                    f"{entry.name}: tables are not counted: {one_line(str(error))}; or leave them out: --no-synth"
                )
            rows = merged(rows, entry, row)
            write_results(self.out, rows)
            if not self.quiet:
                tables = "".join(f", {each['tables']:,} tables of {target}" for target, each in row["luts"].items())
                figures = (
                    f"{output.percent(row['test_accuracy'])} with {row['live_gates']:,} live gates, proven{tables}"
                )
                typer.echo(f"{entry.name}, seed {config.seed}: {figures}", err=True)
        return rows


def _list(known: "dict[str, Entry]", as_json: bool) -> None:
    from gatefit.frontier.entries import given_fields, train_command

    content = [
        {
            "name": entry.name,
            "config": given_fields(entry.config),
            "seeds": list(entry.seeds),
            "note": entry.note,
            "command": train_command(entry.config),
        }
        for entry in known.values()
    ]
    if as_json:
        output.print_json({"rows": content})
        return
    output.print_table(
        ("row", "data set", "steps", "seeds", "what"),
        [
            (e.name, e.config.dataset, f"{e.config.steps:,}", ", ".join(map(str, e.seeds)), e.note)
            for e in known.values()
        ],
    )


def _show_plan(
    plan: "list[tuple[Entry, tuple[int, ...]]]", folder: Path, data_dir: Path | None, jobs: int, as_json: bool
) -> None:
    from gatefit.experiments.estimate import run_seconds
    from gatefit.experiments.export import open_results

    configs = [(entry, config) for entry, seeds in plan for config in entry.runs(seeds)]
    with ExitStack() as stack:
        source = stack.enter_context(open_results(folder)) if folder.exists() else None
        seconds = run_seconds([config for _, config in configs], source)
        found = {config.identity: source.find(config.identity) if source else None for _, config in configs}
    absent = availability({entry.config.dataset for entry, _ in plan}, data_dir, download=False)
    rows: list[dict[str, Any]] = []
    for entry, config in configs:
        record = found[config.identity]
        status = "to do" if record is None or record.status == "planned" else record.status
        if status != "finished" and config.dataset in absent:
            status = "needs data"
        rows.append({"row": entry.name, "seed": config.seed, "run": config.identity, "status": status,
                     "seconds": round(seconds[config.identity], 3)})  # fmt: skip
    left = sum(row["seconds"] for row in rows) / jobs
    if as_json:
        output.print_json({"runs": rows, "seconds_left": round(left, 3), "not_at_hand": absent})
        return
    shown = [(r["row"], str(r["seed"]), r["run"], r["status"], output.duration(r["seconds"])) for r in rows]
    output.print_table(("row", "seed", "run", "status", "time left"), shown)
    done = sum(row["status"] == "finished" for row in rows)
    typer.echo(f"{len(rows)} runs, {done} finished; about {output.duration(left)} left")
    for name, reason in absent.items():
        typer.echo(f"{name}: {one_line(reason)}")


def _adopt(rows: "list[Row]", store: Path, folder: Path) -> None:
    from gatefit.frontier.adopt import adopt
    from gatefit.frontier.measure import FrontierError

    for row in rows:
        try:
            written = adopt(row, store, folder)
        except FrontierError as error:
            raise UserError(str(error), FAILED) from error
        typer.echo(f"written: {', '.join(f'{path} ({path.stat().st_size:,} bytes)' for path in written)}", err=True)


def _show(rows: "list[Row]", as_json: bool) -> None:
    from gatefit.frontier.page import text_rows
    from gatefit.frontier.results import row_content

    if as_json:
        output.print_json({"rows": [row_content(row) | {"accuracy": row.accuracy} for row in rows]})
    elif rows:
        output.print_table(*text_rows(rows))
    else:
        typer.echo("no rows")
