"""``gatefit warm-up``: compile every kernel now, for whoever does not want to wait at the first use."""

from typing import Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import check_choice
from gatefit.cli.options import AsJson

EXAMPLE = ("gatefit warm-up", "gatefit warm-up --part run --part prove", "NUMBA_CACHE_DIR=/opt/kernels gatefit warm-up")


def warm_up(
    part: Annotated[
        list[str] | None, typer.Option(help="only this: run, prove, verify or train; may be repeated")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile all kernels into the cache, and say which: for an image, an installation, or the first run of the day.

    They are kept in NUMBA_CACHE_DIR, else beside the package, else in the user's cache folder.
    """
    from gatefit.warm_up import PARTS, as_content
    from gatefit.warm_up import warm_up as compile_parts

    for name in part or ():
        check_choice("part", name, PARTS)
    rows: list[dict[str, Any]] = []
    for done in compile_parts(tuple(part) if part else tuple(PARTS)):
        rows.append(as_content(done))
        if not as_json:
            typer.echo(_line(rows[-1]))
    if as_json:
        output.print_json({"parts": rows})
        return
    folders = sorted({folder for row in rows for folder in row["folders"]})
    if folders:
        typer.echo(f"kept in {folders[0]}" + (f" and {len(folders) - 1} folders like it" if folders[1:] else ""))
    elif any(row["compiled"] for row in rows):
        typer.echo("kept nowhere: no folder can be written; name one with NUMBA_CACHE_DIR")


def _line(row: dict[str, Any]) -> str:
    if row["skipped"]:
        return f"{row['part']}: {row['skipped']}"
    if not row["compiled"]:
        return f"{row['part']}: compiled already"
    modules = {name.partition(".<locals>")[0].rpartition(".")[0] for name in row["functions"]}
    rooms = sorted(module.removeprefix("gatefit.") for module in modules)
    seconds = output.duration(row["processor_seconds"])
    return f"{row['part']}: {len(row['functions'])} functions in {seconds} of processor time: {', '.join(rooms)}"
