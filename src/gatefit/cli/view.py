"""``gatefit view``: one training run as a page to open in a browser."""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gatefit.cli.circuits import refuse_existing
from gatefit.cli.errors import UserError
from gatefit.cli.options import DataDir, Overwrite

if TYPE_CHECKING:
    from gatefit.experiments.record import RunRecord

EXAMPLE = ("gatefit view runs/monks", "gatefit view 5d996adac775 --out run.html --open")


def view(
    run: Annotated[str, typer.Argument(metavar="RUN", help="folder of a run, or the identity of a run in a store")],
    out: Annotated[
        Path | None,
        typer.Option(help="page to write (default: view.html in the folder, or IDENTITY.html)", show_default=False),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="store or export with the run (default: $GATEFIT_STORE, or gatefit-store)", show_default=False
        ),
    ] = None,
    data_dir: DataDir = None,
    open_page: Annotated[bool, typer.Option("--open", help="show it in the browser")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write curves, gate entropy, gates over time and the paper's diagnostics of one run as one HTML file."""
    from gatefit.circuit.file import write_atomically
    from gatefit.view.run_data import read_run, with_diagnostics
    from gatefit.view.run_page import run_page

    if out is not None:
        refuse_existing(out, overwrite)
    folder: Path | None = Path(run)
    if folder is not None and folder.is_dir():
        # A page that we put there ourselves may be made again while the run goes on.
        target = out or folder / "view.html"
        record = read_run(folder)
    else:
        record, folder = _in_store(run, store)
        target = out or Path(f"{record.identity}.html")
    record, remark = with_diagnostics(record, folder, data_dir)
    content = run_page(record, remark).encode()
    write_atomically(target, content)
    typer.echo(f"{target} ({len(content):,} bytes)")
    if open_page:
        webbrowser.open(target.resolve().as_uri())


def _in_store(identity: str, store: Path | None) -> "tuple[RunRecord, Path | None]":
    """The run of this identity, or of which this is the beginning."""
    from gatefit.experiments.export import open_results
    from gatefit.experiments.store import default_store

    path = store or default_store()
    if not path.is_dir():
        raise UserError(
            f"{identity} is no folder, and there is no store at {path}; name a folder made by `gatefit train`, "
            "or a store with --store"
        )
    with open_results(path) as source:
        found = [record.identity for record in source.records() if record.identity.startswith(identity)]
        if len(found) != 1:
            many = f"{len(found)} runs" if found else "no run"
            raise UserError(f"{many} in {path} with an identity like {identity!r}; see them with: gatefit runs list")
        record = source.find(found[0])
    assert record is not None
    folder = path / "runs" / record.identity
    return record, folder if folder.is_dir() else None
