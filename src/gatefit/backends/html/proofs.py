"""What a page can say was proved about its samples, in a form that its script needs no solver to use.

    robust    how many features may become anything while the answer stays, and what shows it
    reason    features that force the answer whatever the others are: input bits, and what they may be
    nearest   the input bits that differ in the nearest input with another answer

Everything is proved by ``gatefit.circuit.verify`` when the page is written. A reason holds wherever its bits are as it
says, so the page can tell whether another input is inside it; what was not decided is written as not decided.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from jaxtyping import Bool

from gatefit.backends.html.inputs import Control, ImageShape, Samples
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.verify import Counterexample, Domain, Explanation, Proved, closest, explain, robust
from gatefit.circuit.verify.domain import Feature
from gatefit.circuit.verify.rows import condition, read_rows

Progress = Callable[[int, int], None]
"""Told how many samples are done, of how many."""

REASON_SHARE: Final = 0.5
"""Of the time of a sample, for its reason; the rest is for how much may change, and for the nearest other answer."""
LEAST_SECONDS: Final = 0.05
COLOURS: Final = ("red ", "green ", "blue ")


class Places:
    """Where the page shows the features that proofs speak of, and what it calls them."""

    def __init__(self, circuit: Circuit, shape: ImageShape | None, controls: Sequence[Control] | None) -> None:
        self.domain = Domain.of(circuit)
        self.shape = shape
        self._control = {bit: number for number, control in enumerate(controls or ()) for bit in control.bits}
        self._control |= {control.missing: number for number, control in enumerate(controls or ())}
        self._table = controls is not None
        free = circuit.encoder is None or circuit.encoder.kind == "identity"
        self.unit = "pixel" if shape is not None else "bit" if free else "feature"
        if shape is not None and shape[2] == 3:
            self.unit = "colour value"

    def of(self, feature: Feature) -> list[int]:
        """The page's own features that one of the domain is shown by."""
        if self.shape is not None:
            return [self.domain.names[feature.name]]
        bits = [int(bit) for bit in feature.inputs]
        return sorted({self._control[bit] for bit in bits}) if self._table else bits

    def name(self, feature: Feature) -> str:
        """What the page calls a feature: a pixel by its row and column."""
        if self.shape is None:
            return feature.name
        rows, columns, channels = self.shape
        colour, place = divmod(self.domain.names[feature.name], rows * columns)
        text = f"pixel ({place // columns + 1}, {place % columns + 1})"
        return COLOURS[colour] + text if channels == 3 else text

    def said(self, feature: Feature, raw: Any) -> str:
        """One raw value in words: a pixel with one threshold is blank or ink."""
        if raw is None:
            return "missing"
        if self._two_shades(feature):
            return "ink" if raw > feature.thresholds[0] else "blank"
        return f"{raw:.6g}" if isinstance(raw, float) else str(raw)

    def condition(self, feature: Feature, allowed: Sequence[int]) -> str:
        """What a reason says of a feature, in words."""
        if self._two_shades(feature) and len(allowed) == 1:
            ink = feature.values[allowed[0]].low >= feature.thresholds[0]
            return f"{self.name(feature)} is {'ink' if ink else 'blank'}"
        return condition(replace(feature, name=self.name(feature)), np.array(allowed, np.int64))

    def _two_shades(self, feature: Feature) -> bool:
        return self.shape is not None and len(feature.thresholds) == 1


def prove_samples(
    circuit: Circuit,
    samples: Samples,
    places: Places,
    *,
    seconds: float,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What was shown about each sample within so many seconds, for the page's JSON."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ValueError(f"why is the seconds that the proofs of one sample may take, > 0, got {seconds!r:.80}")
    # As mappings of columns, so that strings, missing values and numbers keep what they are.
    rows, bits = read_rows(circuit, _table(circuit, samples))
    shown = []
    for number, (row, own) in enumerate(zip(rows, bits, strict=True), start=1):
        shown.append(_prove(circuit, row, own, places, float(seconds), tolerance))
        if progress is not None:
            progress(number, len(rows))
    return {"unit": places.unit, "seconds": float(seconds), "tolerance": tolerance, "samples": shown}


def _table(circuit: Circuit, samples: Samples) -> Any:
    if circuit.encoder is None or samples.x.dtype != object:
        return samples.x
    return {name: list(samples.x[:, i]) for i, name in enumerate(circuit.encoder.feature_names)}


def _prove(
    circuit: Circuit,
    row: tuple[Any, ...],
    bits: Bool[np.ndarray, " inputs"],
    places: Places,
    seconds: float,
    tolerance: float | None,
) -> dict[str, Any]:
    start = time.monotonic()
    domain = places.domain
    scores = simulate.scores(circuit, bits[None])[0]
    content: dict[str, Any] = {"answer": float(scores[0]) if circuit.readout.gives_value else int(scores.argmax())}
    common: dict[str, Any] = {"tolerance": tolerance, "domain": domain}
    near = closest(circuit, row, timeout=(1 - REASON_SHARE) / 2 * seconds, **common)
    if isinstance(near, Proved):
        content["robust"] = {"changes": len(domain.features), "method": near.method, "next": None}
    else:
        known = near.changes - 1 if isinstance(near, Counterexample) and near.nearest else None
        # Time of its own, however long the search for the nearest took: a few changes are soon decided.
        end = time.monotonic() + (1 - REASON_SHARE) / 2 * seconds
        content["robust"], refuted = _robust(circuit, row, known, end, common)
        near = near if refuted is None else refuted
    content["nearest"] = _nearest(circuit, near, bits, places) if isinstance(near, Counterexample) else None
    left = max(REASON_SHARE * seconds, start + seconds - time.monotonic())
    content["reason"] = _reason(explain(circuit, row, why_not=False, timeout=left, **common), places)
    return content


def _robust(
    circuit: Circuit, row: tuple[Any, ...], known: int | None, end: float, common: dict[str, Any]
) -> tuple[dict[str, Any], Counterexample | None]:
    """The most changes that were proved not to matter; ``known`` is that number, where one more is known to matter.

    ``next`` says what one more does: it was refuted, it is undecided, or there is no more (None). Where it was refuted
    here, by what: that is then the nearest.
    """
    shown: dict[str, Any] = {"changes": known or 0, "method": None, "next": "undecided" if known is None else "refuted"}
    for changes in [known] if known is not None else range(1, 1 + len(common["domain"].features)):
        left = end - time.monotonic()
        if changes == 0 or (left <= LEAST_SECONDS and known is None):
            break
        answer = robust(circuit, row, changes=changes, timeout=max(left, 1.0), **common)
        if isinstance(answer, Counterexample):
            return {**shown, "next": "refuted"}, replace(answer, nearest=True)
        if not isinstance(answer, Proved):
            break
        shown |= {"changes": changes, "method": answer.method}
    return shown, None


def _nearest(
    circuit: Circuit, near: Counterexample, bits: Bool[np.ndarray, " inputs"], places: Places
) -> dict[str, Any]:
    domain, example = places.domain, near.example
    answer: Any = float(example.answer) if circuit.readout.gives_value else int(np.argmax(example.scores))
    changed = []
    for name, (old, new) in near.changed.items():
        feature = domain.features[domain.names[name]]
        text = f"{places.name(feature)}: {places.said(feature, old)} → {places.said(feature, new)}"
        changed.append({"f": places.of(feature), "text": text})
    flipped = np.flatnonzero(example.bits != bits).tolist()
    return {"answer": answer, "fewest": bool(near.nearest), "changed": changed, "flipped": flipped}


def _reason(why: Any, places: Places) -> dict[str, Any]:
    if not isinstance(why, Explanation):
        return {"undecided": str(why.reason)}
    conditions = []
    for each in why.because:
        feature = places.domain.features[places.domain.names[each.feature]]
        allowed = ["".join("01"[int(bit)] for bit in feature.patterns[value]) for value in each.values]
        conditions.append(
            {
                "f": places.of(feature),
                "text": places.condition(feature, each.values),
                "bits": feature.inputs.tolist(),
                "allowed": allowed,
            }
        )
    method = why.proof.method
    return {"conditions": conditions, "features": why.features, "minimal": why.minimal, "method": method}
