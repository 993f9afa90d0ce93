"""``gatefit report``: every table and figure of the paper that finished runs allow, as Markdown and HTML."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatefit._requires import require
from gatefit.cli.errors import UserError, check_choice, user_input

if TYPE_CHECKING:
    from gatefit.experiments.export import ResultSource

EXAMPLE = (
    "gatefit report --out report",
    "gatefit report --from results --docs docs/reproduction.md --overwrite",
)


PAGES = ("report.md", "report.html")


def report(
    store: Annotated[
        Path | None,
        typer.Option(help="store with the runs (default: $GATEFIT_STORE, or gatefit-store)", show_default=False),
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--from", help="folder that `gatefit runs export` wrote, instead of a store")
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for report.md, report.html and figures")] = Path("report"),
    docs: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE.md", help="write a Markdown page and those behind it there instead", show_default=False
        ),
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(help="paper, small or tiny; may be given again (default: paper and small)", show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="only this label; may be given again", show_default=False)
    ] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="tables and claims alone")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the page or report that is there")] = False,
) -> None:
    """Write our tables and figures beside the paper's, and which of its claims hold."""
    from gatefit.paper.claims import CLAIMS
    from gatefit.paper.outcome import SCALES
    from gatefit.paper.registry import experiment, labels
    from gatefit.paper.report.contents import DEFAULT_SCALES, build_report
    from gatefit.paper.report.files import write_docs, write_report

    for given in scale or ():
        check_choice("scale", given, SCALES)
    with user_input():
        experiments = [experiment(name) for name in dict.fromkeys(label or labels())]
    _check_target(docs, out, overwrite)
    if not no_figures:
        require("matplotlib", "plots", "drawing figures (leave them out with --no-figures)")
    scales = tuple(each for each in SCALES if each in scale) if scale else DEFAULT_SCALES
    with _results(store, export) as source:
        claims = () if label else CLAIMS
        content = build_report(source, experiments, claims, scales)
        if not content.runs and not scale:
            tiny = build_report(source, experiments, claims, ("tiny",))
            if tiny.runs:
                typer.echo("no finished run is of paper or small scale: --scale tiny")
                content, scale = tiny, ["tiny"]
        if not content.runs:
            count = len(source.records(status="finished"))
            typer.echo(f"none of {count:,} finished runs belongs to these labels and scales; see `gatefit runs list`")
    target = ["--docs", str(docs)] if docs is not None else ["--out", str(out)]
    regenerate = shlex.join(
        ["gatefit", "report", *_source_words(store, export), *target, *_rest(scale, label, no_figures), "--overwrite"]
    )
    if docs is not None:
        written = write_docs(content, docs, regenerate, figures=not no_figures)
    else:
        written = write_report(content, out, regenerate, figures=not no_figures)
    shown = sum(bool(section.outcomes) for section in content.sections)
    typer.echo(f"{shown} of {len(content.sections)} labels from {len(content.runs):,} runs")
    for path in written if len(written) <= 3 else written[: 1 if docs is not None else 2]:
        typer.echo(str(path))
    pictures = sum(path.suffix == ".svg" for path in written)
    if pictures > 1:
        typer.echo(f"{written[-1].parent} ({pictures} figures)")


def _check_target(docs: Path | None, out: Path, overwrite: bool) -> None:
    if docs is not None and docs.suffix != ".md":
        raise UserError(f"--docs names a Markdown page, got {docs}; use for example --docs docs/reproduction.md")
    if docs is None and out.exists() and not out.is_dir():
        raise UserError(f"--out names a folder, got the file {out}; name another")
    option, pages = ("--out", [out / page for page in PAGES]) if docs is None else ("--docs", [docs])
    for page in pages:
        if page.exists() and not overwrite:
            raise UserError(f"{page} exists; choose another {option}, or replace it with --overwrite")


def _results(store: Path | None, export: Path | None) -> "ResultSource":
    """Open the results, and refuse those that hold no finished run."""
    from gatefit.experiments.export import open_results
    from gatefit.experiments.store import default_store

    if store is not None and export is not None:
        raise UserError("--store and --from both say where the runs are; give one of them")
    path = export or store or default_store()
    make = "make runs with: gatefit reproduce tab:h7-cross-dataset --scale small"
    if not path.is_dir():
        raise UserError(
            f"there are no results at {path}; {make}, or name a store with --store or an export with --from"
        )
    source = open_results(path)
    if not source.records(status="finished"):
        waiting = len(source.records())
        so_far = f"{waiting} planned, running or failed, none finished" if waiting else "it is empty"
        raise UserError(f"{path} holds no finished run ({so_far}); {make} --store {shlex.quote(str(path))}")
    return source


def _source_words(store: Path | None, export: Path | None) -> list[str]:
    for option, path in (("--from", export), ("--store", store)):
        if path is not None:
            # A page is for everybody; where a folder is on one machine is not.
            return [option, path.name if path.is_absolute() else str(path)]
    return []


def _rest(scale: list[str] | None, label: list[str] | None, no_figures: bool) -> list[str]:
    words = [word for each in scale or () for word in ("--scale", each)]
    words += [word for each in label or () for word in ("--label", each)]
    return [*words, *(["--no-figures"] if no_figures else [])]
