"""Explanations as people read them: sentences for tables, pictures for images, and how often features are in reasons.

reason   forced pixels as they must stay, ``·`` if blank; nothing where any value will do
change   the pixels that turn the answer: ``+`` brighter, ``-`` darker
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from gatefit.cli import output
from gatefit.cli.errors import UserError

if TYPE_CHECKING:
    from gatefit.backends.html.proofs import Places
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.verify import Answer, Batch, Condition, Counterexample, Explanation

SHADES: Final = "·░▒▓█"
ASCII_SHADES: Final = ".:+*#"
"""From blank to full; the second where the terminal has only ASCII."""
FIGURES: Final = (".png", ".svg", ".pdf")
LISTED: Final = 10
"""Features that are listed below the rows; all of them where only the summary is wanted."""
NEVER: Final = 40
"""Features that are named among those in no reason."""


def said(value: Any) -> str:
    """A raw value as people write it."""
    return "missing" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def json_safe(content: Any) -> Any:
    """The same with infinite numbers, which JSON has no word for, as the text that they are read from: "inf"."""
    if isinstance(content, dict):
        return {name: json_safe(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [json_safe(value) for value in content]
    return str(content) if isinstance(content, float) and math.isinf(content) else content


def refuse_figure(path: Path) -> None:
    """Say before any work that a figure is there already, or can never be."""
    if path.suffix not in FIGURES:
        raise UserError(f"a figure is a file that ends in {', '.join(FIGURES)}, got {path}")
    if path.exists():
        raise UserError(f"{path} exists; choose another file for the figure")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent} to write {path.name} into; make it first")


class Reader:
    """What is printed of the explanations of one circuit."""

    def __init__(self, circuit: "Circuit", tolerance: float | None = None) -> None:
        self.circuit, self.tolerance = circuit, tolerance

    @cached_property
    def places(self) -> "Places":
        """Where features are in an image, and what they are called there."""
        from gatefit.backends.html.inputs import image_shape_of
        from gatefit.backends.html.proofs import Places

        return Places(self.circuit, image_shape_of(self.circuit.encoder), None)

    @property
    def is_image(self) -> bool:
        """Whether the features are the pixels of a square."""
        return self.places.shape is not None

    # ---- one explanation

    def print_explanation(self, answer: "Explanation") -> None:
        """The answer, what forces it and what would turn it; an image with a picture of both."""
        because = [condition.text for condition in answer.because] or ["whatever the features are"]
        if self.is_image and answer.because:
            because = [f"{len(because)} pixels are as in the picture"]
        needed = "each is needed" if answer.minimal else "not shown that each is needed: raise --timeout"
        if answer.because:
            how = f"{len(answer.because)} of {answer.features} features force it whatever the others are; {needed}"
        else:
            how = "no input is answered otherwise"
        pairs = [("answer", self.answer(answer.answer))]
        pairs += [("because" if not i else "and", text) for i, text in enumerate(because)]
        pairs.append(("proof", f"{how} ({answer.proof.method})"))
        if answer.why_not is not None:
            pairs.append(("why not", self.why_not(answer.why_not)))
        if answer.proof.certificate is not None:
            pairs.append(("certificate", str(answer.proof.certificate)))
        output.print_pairs([*pairs, ("time", output.duration(answer.seconds))])
        if self.is_image:
            self._print_pictures(answer)

    def answer(self, value: Any) -> str:
        """A class, or a value with how near to it values count as the same."""
        if not self.circuit.readout.gives_value:
            return str(value)
        return said(float(value)) + (f" (within {self.tolerance:g})" if self.tolerance else "")

    def why_not(self, other: "Answer") -> str:
        """The smallest change that turns an answer, in words."""
        from gatefit.circuit.verify import Counterexample, Proved

        if isinstance(other, Proved):
            return f"no change of any features turns it (proved: {other.method})"
        if not isinstance(other, Counterexample):
            return str(other)
        near = "no smaller change does" if other.nearest else "a smaller change is not excluded"
        return f"{self._changes(other)} gives {self._plain_answer(other.example.answer)} ({near})"

    def _plain_answer(self, value: Any) -> str:
        return said(float(value)) if self.circuit.readout.gives_value else str(value)

    def _changes(self, other: "Counterexample") -> str:
        domain = self.places.domain
        parts = []
        for name, (old, new) in other.changed.items():
            if not self.is_image:
                parts.append(f"{name} {said(old)} -> {said(new)}")
                continue
            feature = domain.features[domain.names[name]]
            before, after = self.places.said(feature, old), self.places.said(feature, new)
            parts.append(f"{self.places.name(feature)} {before} -> {after}")
        return ", ".join(parts)

    # ---- pictures

    def _print_pictures(self, answer: "Explanation") -> None:
        from gatefit.circuit.verify import Counterexample

        shades = _shades()
        domain = self.places.domain
        forced = {condition.feature: self._share(condition) for condition in answer.because}
        pictures = [self._picture(lambda name: _shade(forced.get(name), shades))]
        lines = [f"reason: {shades[0]} must stay blank, {shades[-1]} must stay inked, nothing: whatever"]
        if any(len(feature.thresholds) > 1 for feature in domain.features):
            lines = [
                f"reason: {shades[0]} not above some level, {shades[-1]} not below one, {shades[2]} between two, "
                f"nothing: whatever (--json has the levels)"
            ]
        other = answer.why_not
        if isinstance(other, Counterexample):
            signs = {}
            for name, (old, new) in other.changed.items():
                signs[name] = "+" if (new or 0) > (old or 0) else "-"
            row = {name: self._level(domain.names[name], value) for name, value in other.example.row.items()}
            pictures.append(self._picture(lambda name: signs.get(name) or _shade(row[name] or None, shades)))
            lines.append(f"change: + brighter, - darker, and it is answered {self._plain_answer(other.example.answer)}")
        typer.echo()
        for parts in zip(*pictures, strict=True):
            typer.echo(("   |   ".join(parts)).rstrip())
        typer.echo("\n".join(lines))

    def _picture(self, glyph: Callable[[str], str]) -> list[str]:
        """A glyph for every pixel, twice, because characters are high; of three colours, the first that has one."""
        assert self.places.shape is not None
        rows, columns, channels = self.places.shape
        names = [feature.name for feature in self.places.domain.features]
        lines = []
        for r in range(rows):
            line = ""
            for c in range(columns):
                glyphs = [glyph(names[k * rows * columns + r * columns + c]) for k in range(channels)]
                line += 2 * next((found for found in glyphs if found != " "), " ")
            lines.append(line)
        return lines

    def _share(self, condition: "Condition") -> float:
        """How bright a pixel must be, from 0 to 1: as an interval that is open to one side, or the middle of one."""
        domain = self.places.domain
        feature = domain.features[domain.names[condition.feature]]
        levels = [feature.values[v].levels or (0, 0) for v in condition.values]
        most = max(1, len(feature.thresholds))
        low, high = min(low for low, _ in levels), max(high for _, high in levels)
        return 0.0 if low == 0 else 1.0 if high == most else (low + high) / 2 / most

    def _level(self, number: int, raw: Any) -> float:
        thresholds = self.places.domain.features[number].thresholds
        if raw is None or not thresholds:
            return 0.0
        return sum(bool(threshold < raw) for threshold in thresholds) / len(thresholds)

    # ---- many

    def print_batch(self, batch: "Batch", as_json: bool, only_summary: bool = False) -> None:
        """The answers to many rows, how often features are in them, and a summary."""
        if as_json:
            content = {"summary": batch.summary(), **batch.to_json()}
            content["answers"] = [self.json(answer) for answer in batch]
            output.print_json(json_safe(content))
            return
        if not only_summary:
            for number, answer in enumerate(batch):
                typer.echo(f"row {number}: {output.printable(self.line(answer))}")
        if not batch.question.startswith("robust"):
            self._print_importance(batch, only_summary)
        typer.echo(output.printable(batch.summary()))

    def line(self, answer: "Answer") -> str:
        """One answer of many, in a line."""
        from gatefit.circuit.verify import Counterexample, Explanation

        if not isinstance(answer, Explanation):
            return str(answer)
        if self.is_image and answer.because:
            text = f"{len(answer.because)} of {answer.features} pixels force {self.answer(answer.answer)}"
        else:
            text = str(answer)
        if isinstance(answer.why_not, Counterexample):
            text += f"; {self.why_not(answer.why_not)}"
        return text

    def _print_importance(self, batch: "Batch", everything: bool) -> None:
        shares = batch.importance()
        if not shares:
            return
        if self.is_image and everything:
            shades = _shades()
            typer.echo(
                "\n".join(line.rstrip() for line in self._picture(lambda name: _shade(shares.get(name), shades)))
            )
            typer.echo(f"how often a pixel is in the reasons: {shades[0]} rarely, {shades[-1]} always, nothing: never")
            return
        what = "in the reasons of" if batch.question == "why" else "changed in"
        shown = list(shares.items()) if everything else list(shares.items())[:LISTED]
        output.print_table(("feature", what), [(name, output.percent(share)) for name, share in shown])
        never = [feature.name for feature in self.places.domain.features if feature.name not in shares]
        if everything and never:
            more = f" and {len(never) - NEVER} more" if len(never) > NEVER else ""
            typer.echo(output.printable(f"in no reason: {', '.join(never[:NEVER])}{more}"))

    def save_figure(self, batch: "Batch", path: Path) -> None:
        """Bars of how often features are in the reasons, as a file."""
        import io

        from gatefit._requires import require
        from gatefit.circuit.file import write_atomically

        axes = batch.figure()
        axes.set_title("what forces the answers")
        axes.set_xlabel(f"% of {len(batch)} rows whose reason names the feature")
        content = io.BytesIO()
        axes.figure.savefig(content, format=path.suffix[1:], bbox_inches="tight")
        require("matplotlib.pyplot", "plots", "a figure of answers").close(axes.figure)
        write_atomically(path, content.getvalue())

    # ---- for machines

    def json(self, answer: "Answer") -> dict[str, Any]:
        """An answer as a dictionary, with what each condition of a reason means in raw values."""
        from gatefit.circuit.verify import Explanation

        content = answer.to_json()
        if isinstance(answer, Explanation):
            for condition in content["because"]:
                condition |= self._meaning(condition["feature"], condition["values"])
        return content

    def _meaning(self, name: str, numbers: Sequence[int]) -> dict[str, Any]:
        """Numbers above one end and up to the other (None: no end), categories, and whether it may be missing."""
        domain = self.places.domain
        feature = domain.features[domain.names[name]]
        values = [feature.values[number] for number in numbers]
        ranges: list[dict[str, float | None]] = []
        for value in sorted((v for v in values if v.levels is not None), key=lambda v: v.low):
            low, high = (None if abs(end) == float("inf") else end for end in (value.low, value.high))
            if ranges and ranges[-1]["up_to"] == low:
                ranges[-1]["up_to"] = high
            else:
                ranges.append({"above": low, "up_to": high})
        categories = [category for value in values for category in value.categories]
        return {"ranges": ranges, "categories": categories, "missing": any(value.missing for value in values)}


def _shades() -> str:
    try:
        SHADES.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII_SHADES
    return SHADES


def _shade(share: float | None, shades: str) -> str:
    """The glyph of a share from 0 to 1; a blank for None."""
    return " " if share is None else shades[min(len(shades) - 1, round(share * (len(shades) - 1)))]
