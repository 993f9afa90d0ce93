"""``gatefit runs missing``: the runs that tables and figures of the paper wait for, and the commands that make them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import check_choice, user_input
from gatefit.cli.options import AsJson

EXAMPLE = ("gatefit runs missing --store results --scale paper", "gatefit runs missing --label tab:depth")


def missing(
    store: Annotated[
        Path | None,
        typer.Option(
            help="folder of the store, or of an export (default: $GATEFIT_STORE or gatefit-store)", show_default=False
        ),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="only this label, every run of it; may be given again", show_default=False)
    ] = None,
    scale: Annotated[
        list[str] | None,
        typer.Option(help="paper, small or tiny; may be given again (default: paper and small)", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what tables and figures of the paper wait for, by label and scale, with the command that makes it."""
    from gatefit.experiments.export import Export, open_results
    from gatefit.experiments.store import default_store
    from gatefit.paper.outcome import SCALES, reproduce_command
    from gatefit.paper.registry import experiment, labels
    from gatefit.paper.report.contents import DEFAULT_SCALES
    from gatefit.paper.report.provenance import missing_runs

    for given in scale or ():
        check_choice("scale", given, SCALES)
    scales = tuple(each for each in SCALES if each in scale) if scale else DEFAULT_SCALES
    with user_input():
        experiments = [experiment(name) for name in dict.fromkeys(label or labels())]
    rows: list[dict[str, Any]] = []
    different: dict[str, None] = {}
    with open_results(store or default_store()) as source:
        exported = isinstance(source, Export)  # Runs are made in a store.
        over = {record.identity for record in source.records() if record.status == "finished" or record.diverged}
    for each in experiments:
        for chosen in scales:
            planned = each.plan(chosen, each.default_seeds[chosen])
            left = [config for config in planned if config.identity not in over]
            if not left:
                continue
            different |= dict.fromkeys(config.identity for config in left)
            made_by = reproduce_command(each.label, chosen, None if store is None or exported else str(store))
            row: dict[str, Any] = {"label": each.label, "scale": chosen, "missing": len(left), "of": len(planned)}
            row |= {"command": made_by, "runs": [config.identity for config in left]}
            rows.append(row | {"what": missing_runs(left, most=len(left))})
    if as_json:
        output.print_json({"labels": rows, "runs": len(different)})
        return
    if not rows:
        typer.echo("no run is missing")
        return
    titles = ("label", "scale", "missing", "of", "command")
    output.print_table(titles, [[str(row[title]) for title in titles] for row in rows])
    for row in rows if label else ():
        typer.echo(f"\n{row['label']}, {row['scale']} scale:")
        for line in row["what"]:
            typer.echo(f"  {line}")
    count = len(different)
    typer.echo(f"{count:,} different run{'' if count == 1 else 's'}; labels share them")
