"""What a page shows for a circuit's input bits: pixels to draw, controls named after features, or toggles.

    image   bit j = pixel[feature_j] > levels[level_j]            pixels in (channel, row, column) order, to draw on
    table   number   x > t_1, x > t_2, …   [, missing]            a slider
            choice   x = c_1, x = c_2, …   [, missing]            a list to choose from
            bit      x                     [, missing]            a box to tick
    bits    bit j itself                                          a grid of toggles

Everything comes from the encoder's rules; a circuit without an encoder is read by its input names, if it has any.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Shaped

from gatefit.backends.names import given_names
from gatefit.circuit.ir import Circuit
from gatefit.encoders.base import Encoder, default_names

View = Literal["auto", "image", "table", "bits"]
ImageShape = tuple[int, int, int]

SMALLEST_IMAGE: Final = 8
"""Rows of the smallest square that is taken for an image without being told."""
MAX_CONTROLS: Final = 500
"""Features above which a form could not be used; they become a grid of toggles."""


class Samples(NamedTuple):
    """Some rows of a data set to start from, in the form that the encoder reads, and their class numbers or values."""

    x: Shaped[np.ndarray, "samples features"]
    y: Shaped[np.ndarray, " samples"]


@dataclass
class Control:
    """One feature of a table: the bits that speak of it, and how it is set."""

    kind: Literal["number", "choice", "bit"]
    name: str
    bits: list[int]
    values: list[Any] = field(default_factory=list)
    """Thresholds of a number, categories of a choice."""
    missing: int = -1
    features: list[int] = field(default_factory=list)
    """The encoder's features behind it: one, or one for each bit of a choice that was found by names."""
    labels: list[str] = field(default_factory=list)
    """What the options of a choice are called."""


def image_shape_of(encoder: Encoder | None) -> ImageShape | None:
    """(rows, columns, channels) if unnamed numeric features fill a square, in one channel or three."""
    if encoder is None or encoder.feature_names != default_names(encoder.features):
        return None
    if any(rule.test not in (">", "bit") for rule in encoder.rules):
        return None
    for channels in (1, 3):
        side = math.isqrt(encoder.features // channels)
        if side >= SMALLEST_IMAGE and side * side * channels == encoder.features:
            return side, side, channels
    return None


def choose_view(circuit: Circuit, view: View, shape: ImageShape | None) -> tuple[str, ImageShape | None]:
    """The view that is shown, and the shape of an image."""
    if view not in ("auto", "image", "table", "bits"):
        raise ValueError(f"view must be 'auto', 'image', 'table' or 'bits', got {view!r}")
    encoder = circuit.encoder
    if shape is not None or view == "image":
        if view not in ("auto", "image"):
            raise ValueError(f"image_shape is for images, got view={view!r}; leave one of them out")
        return "image", _checked_shape(encoder, shape or image_shape_of(encoder))
    if view == "auto" and (found := image_shape_of(encoder)):
        return "image", found
    if view == "bits" or (view == "auto" and not given_names(circuit)):
        return "bits", None
    if view == "auto" and encoder is not None and encoder.kind == "identity":
        return ("bits" if encoder.feature_names == default_names(encoder.features) else "table"), None
    return "table", None


def _checked_shape(encoder: Encoder | None, shape: ImageShape | None) -> ImageShape:
    if encoder is None:
        raise ValueError(
            "an image needs the encoder that reads its pixels, and the circuit has none; use the view bits"
        )
    if shape is None:
        raise ValueError(
            f"the {encoder.features} features are not the unnamed pixels of a square of {SMALLEST_IMAGE} rows or more; "
            f"use the view table or bits, or call to_html with image_shape=(rows, columns, channels)"
        )
    if any(rule.test not in (">", "bit") for rule in encoder.rules):
        raise ValueError("pixels are numbers, and the encoder reads categories or missing values; use the view table")
    if len(shape) != 3 or min(shape) < 1 or shape[2] not in (1, 3) or math.prod(shape) != encoder.features:
        raise ValueError(
            f"image_shape must be (rows, columns, 1 or 3) with {encoder.features} pixel values in all, got {shape}"
        )
    return shape


def image_levels(encoder: Encoder) -> tuple[Int[np.ndarray, " bits"], Int[np.ndarray, " bits"], list[float]]:
    """For each bit its pixel and the number of its threshold; and the different thresholds, rising."""
    thresholds = [0.5 if rule.value is None else float(rule.value) for rule in encoder.rules]
    levels = sorted(set(thresholds))
    number = {level: k for k, level in enumerate(levels)}
    features = np.array([rule.feature for rule in encoder.rules], dtype=np.int64)
    return features, np.array([number[t] for t in thresholds], dtype=np.int64), levels


def image_range(encoder: Encoder, levels: Sequence[float], samples: Samples | None) -> tuple[float, float]:
    """The values of a blank and of a full pixel."""
    parameters = encoder.parameters()
    if parameters.get("low") is not None:
        return float(parameters["low"]), float(parameters["high"])
    largest = max((abs(level) for level in levels), default=0.5)
    if samples is not None and samples.x.size:
        return float(min(0, samples.x.min())), float(max(samples.x.max(), largest + 1e-9))
    if len(levels) == 1:  # the data sets' threshold is at half the range
        return 0.0, 2 * largest or 1.0
    return 0.0, next((float(full) for full in (1, 16, 255, 65535) if largest < full), 2 * largest)


def image_fit(shape: ImageShape, samples: Samples | None) -> float:
    """How much of the image a drawing fills: as samples do at the median, else 20 of 28 pixels as in MNIST.

    Small images have no margin to spare.
    """
    rows, columns, channels = shape
    default = 20 / 28 if max(rows, columns) > 16 else 1.0
    if samples is None or not len(samples.x):
        return default
    ink = samples.x.reshape(len(samples.x), channels, rows, columns).max(axis=1)
    ink = ink > ink.max(axis=(1, 2), keepdims=True) / 8  # faint edges do not count
    sizes = [max(_extent(image.any(axis=1)), _extent(image.any(axis=0))) for image in ink if image.any()]
    return round(float(np.median(sizes)), 4) if sizes else default


def _extent(line: Bool[np.ndarray, " _"]) -> float:
    """From the first to the last true entry, as a part of the whole."""
    return float(np.ptp(np.flatnonzero(line)) + 1) / line.size


def controls(circuit: Circuit, samples: Samples | None = None) -> list[Control]:
    """The table's features in the encoder's order; features without bits are left out."""
    encoder = circuit.encoder
    if encoder is None:
        return list(_by_names(circuit.input_names, None))
    if encoder.kind == "identity":
        return list(_by_names(given_names(circuit), samples))
    found: dict[int, Control] = {}
    for bit, rule in enumerate(encoder.rules):
        kind = {">": "number", "=": "choice", "bit": "bit", "missing": None}[rule.test]
        name = encoder.feature_names[rule.feature]
        control = found.setdefault(rule.feature, Control("number", name, [], features=[rule.feature]))
        if kind is None:
            control.missing = bit
        else:
            control.kind = kind  # type: ignore[assignment]
            control.bits.append(bit)
            control.values += [] if rule.value is None else [rule.value]
    for control in found.values():
        order = np.argsort(control.values, kind="stable") if control.kind == "number" else range(len(control.bits))
        control.bits = [control.bits[i] for i in order]
        control.values = [control.values[i] for i in order] if control.values else []
        control.labels = [str(value) for value in control.values]
    return [found[feature] for feature in sorted(found)]


_NUMBER: Final = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_TEST: Final = re.compile(rf"(?P<name>.+) > (?P<value>{_NUMBER})")
_BIN: Final = re.compile(rf"(?:(?P<low>{_NUMBER}) <=? )?(?P<name>[^<>=]+?)(?: (?:<=?|>=) (?P<high>{_NUMBER}))?")


def _by_names(names: Sequence[str], samples: Samples | None) -> Iterator[Control]:
    """Bits whose names are tests of one feature, side by side, as one control; all others as boxes."""
    keyed = [(bit, name, _subject(name)) for bit, name in enumerate(names)]
    for (test, subject), group in groupby(keyed, key=lambda each: each[2]):
        members = list(group)
        bits = [bit for bit, _, _ in members]
        if test == ">" and len(bits) > 1:
            values = [float(match["value"]) for _, name, _ in members if (match := _TEST.fullmatch(name))]
            if sorted(set(values)) == values:
                yield Control("number", subject, bits, values, features=bits)
                continue
        labels = [name.removeprefix(f"{subject} = ") for _, name, _ in members]
        exclusive = samples is None or bool((samples.x[:, bits].astype(np.int64).sum(axis=1) <= 1).all())
        if test == "=" and len(bits) > 1 and exclusive and len(set(labels)) == len(labels):
            yield Control("choice", subject, bits, labels, features=bits, labels=labels)
            continue
        for bit, name, _ in members:
            yield Control("bit", name, [bit], features=[bit])


def _subject(name: str) -> tuple[str, str]:
    """What a bit's name says of which feature: ("=", "age") for "age = 3" and "21 <= age < 30"."""
    if match := _TEST.fullmatch(name):
        return ">", match["name"]
    if " = " in name:
        return "=", name.partition(" = ")[0]
    match = _BIN.fullmatch(name)
    if match and (match["low"] or match["high"]):
        return "=", match["name"]
    return "bit", name


def control_values(control: Control, x: Shaped[np.ndarray, "samples features"]) -> list[Any]:
    """Each sample's value of a control: a number, an option (-1: none of them), 0 or 1; None if it is missing."""
    if len(control.features) > 1:
        bits = x[:, control.features].astype(bool)
        if control.kind == "choice":
            return [int(row.argmax()) if row.any() else -1 for row in bits]
        middles = control_levels(control)
        return [middles[int(row.sum())] for row in bits]
    return [_value(control, value) for value in x[:, control.features[0]].tolist()]


def control_levels(control: Control) -> list[float]:
    """A number in each interval between the thresholds of a control, from the lowest up."""
    levels = [float(value) for value in control.values]
    if not levels:
        return [0.0]
    step = (levels[-1] - levels[0]) / (len(levels) - 1) if len(levels) > 1 else max(1.0, abs(levels[0]))
    inner = [low + (high - low) / 2 for low, high in pairwise(levels)]
    return [levels[0] - step / 2, *inner, levels[-1] + step / 2]


def _value(control: Control, value: Any) -> Any:
    from gatefit.encoders.columns import canonical, is_missing

    if is_missing(value):
        return None
    if control.kind == "choice":
        value = canonical(value, control.name)
        return control.values.index(value) if value in control.values else -1
    return int(bool(value)) if control.kind == "bit" else float(value)


def slider(control: Control, column: Sequence[float | None]) -> dict[str, Any]:
    """Range and step of a slider: beyond the outer thresholds and all samples, fine enough to reach every interval."""
    middles = control_levels(control)
    present = [value for value in column if value is not None]
    low, high = min([*middles, *present]), max([*middles, *present])
    levels = [float(value) for value in control.values]
    if all(level % 1 == 0.5 for level in levels) and all(float(value).is_integer() for value in present):
        return {"low": math.floor(low), "high": math.ceil(high), "step": 1}
    gaps = [b - a for a, b in pairwise(levels)] or [high - low]
    smallest = max(min(gaps) / 2, (high - low) / 10_000)
    step = 10.0 ** math.floor(math.log10(smallest)) if smallest > 0 else 1.0
    return {"low": math.floor(low / step) * step, "high": math.ceil(high / step) * step, "step": step}
