"""``gatefit models``: the circuits that ship with gatefit, and what each one is; no torch."""

from typing import Annotated, Any

import typer

from gatefit.cli import output
from gatefit.cli.errors import check_choice
from gatefit.cli.options import AsJson

EXAMPLE = ("gatefit models", "gatefit models mnist-1k", "gatefit export mnist-1k --to html --out digits.html")


def models(
    name: Annotated[str | None, typer.Argument(help="one model; without it, all are listed")] = None,
    as_json: AsJson = False,
) -> None:
    """List the circuits that ship with gatefit, which load by name wherever a file does; or show one's card."""
    from gatefit import models as shipped

    if name is not None:
        check_choice("model", name, shipped.names(), hint="; `gatefit models` lists them")
        card = shipped.card(name)
        if as_json:
            output.print_json(card | {"ships": shipped.is_shipped(name)})
        else:
            output.print_pairs(card_rows(card, shipped.is_shipped(name)))
        return
    cards = [shipped.card(each) for each in shipped.names()]
    if as_json:
        content = [card | {"ships": shipped.is_shipped(card["name"])} for card in cards]
        output.print_json({"models": content})
        return
    if not cards:
        typer.echo("no models ship with this gatefit; `gatefit frontier` makes some")
        return
    output.print_table(
        ("name", "data set", "test accuracy", "live gates", "LUT6", "bytes"),
        [
            (
                card["name"],
                card["dataset"],
                output.percent(card["test_accuracy"]),
                f"{card['live_gates']:,}",
                f"{card['luts']['lut6']:,}" if "lut6" in card["luts"] else "-",
                f"{shipped.size(card['name']):,}" if shipped.is_shipped(card["name"]) else "-",
            )
            for card in cards
        ],
    )
    large = [card["name"] for card in cards if not shipped.is_shipped(card["name"])]
    if large:
        typer.echo(f"too large to ship, `gatefit models NAME` shows the commands that make it: {', '.join(large)}")


def card_rows(card: dict[str, Any], ships: bool) -> list[tuple[str, str]]:
    """A card in words."""
    seeds = ", ".join(f"{output.percent(value)} (seed {seed})" for seed, value in card["seeds"].items())
    made = card["made"]
    threads = "" if made["threads"] is None else f" on {made['threads']} thread{'s' if made['threads'] > 1 else ''}"
    taken = made.get("processor_seconds")
    seconds = "" if taken is None else f", {output.duration(taken)} of processor time{threads}, {made['cpu']}"
    proofs = [
        (
            "proof" if place == 0 else "",
            f"{proof['of']} ({proof['gates']:,} gates) and its {proof['optimised_gates']:,} optimised gates have the "
            f"same scores on every input "
            f"({'by SAT, certificate checked' if proof['method'] == 'sat' else 'every input tried'}); "
            f"{proof['spec_digest'][:19]}… equals {proof['digest'][:19]}…",
        )
        for place, proof in enumerate(card["proofs"])
    ]
    luts = ", ".join(f"{count:,} {target}" for target, count in card["luts"].items())
    options = ", ".join(f"{name} {value}" for name, value in card["dataset_options"].items())
    return [
        ("model", f"{card['name']}: {card['title']}"),
        *([("note", card["note"])] if card["note"] else []),
        ("test accuracy", f"{output.percent(card['test_accuracy'])} of {card['test_samples']:,}, seed {card['seed']}"),
        ("all seeds", seeds),
        (
            "gates",
            f"{card['live_gates']:,} live of {card['trained_gates']:,} trained, {card['depth']} levels; apart: "
            f"{card['encoder_comparisons']:,} comparisons before, "
            f"about {card['readout_gates']:,} gates of readout after them",
        ),
        *([("tables", luts)] if luts else []),
        ("data", f"{card['dataset']}{f' ({options})' if options else ''}, {card['data_source']}"),
        ("terms of the data", card["data_terms"]),
        *(("made by" if place == 0 else "", command) for place, command in enumerate(card["commands"])),
        ("made", f"{made['finished'][:10]}, gatefit {made['code_version']}{seconds}"),
        *proofs,
        ("digest", card["digest"]),
        ("ships", "yes: its name loads it" if ships else "no: it is too large; the commands above make it"),
    ]
