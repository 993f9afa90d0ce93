"""Images that are moved anew for every step: shifts, flips, rotations, zooms, bends, and the bits of what that makes.

    moved[y, x] = image[c + A (p - c - d) + e(p)]        p = (y, x);  c: the centre;  d: a shift by whole pixels
    A           = 1 / z · [[cos φ, -sin φ], [sin φ, cos φ]]        z ~ 1 ± zoom, φ ~ ± rotate, both uniform
    e(p)        bilinear between 5 x 5 points spread over the image, each moved by ± elastic pixels, uniform, both ways
    flip        the image's columns in reverse, before it is moved, for half of the samples

Beyond its border an image goes on with the nearest pixel of the border. Where it is rotated, zoomed or bent, a pixel
lies between four and is their bilinear mean, rounded to a byte: what is encoded is an image like any other. Coordinates
are whole multiples of 2^-17 pixels and weights of 1/256, so that the bits are the same on every machine.

The moves of a sample are a pure function of (seed, step, place in the batch): a resumed run reads what it would have
read, and processes that share a batch read what one would.
"""
# mypy: disable-error-code="no-untyped-def"

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float64, Int64, UInt8

from gatefit.bits import PackedBatch
from gatefit.compiled import njit
from gatefit.encoders import Encoder
from gatefit.ops.threads import ahead, parallel_for
from gatefit.randomness import stream
from gatefit.training.data import BitSource, bit_source

DRAWS: Final = 5
"""Random numbers a sample: shift by rows, shift by columns, flip, angle, zoom; all drawn, whichever are used."""
POINTS: Final = 5
"""Points along each side of an image that a bend moves."""
_ONE: Final = 1 << 16
"""The number 1 in a matrix of moves; half a pixel."""

_kernel = njit(cache=True, nogil=True)


@dataclass(frozen=True)
class Augmentation:
    """How far images are moved at most."""

    shift: int = 0
    """Whole pixels up, down, left and right, each of the (2 shift + 1)² shifts as often."""
    flip: bool = False
    """Left and right exchanged in half of the samples."""
    rotate: float = 0.0
    """Degrees, either way."""
    zoom: float = 0.0
    """Share by which an image becomes larger or smaller."""
    elastic: float = 0.0
    """Pixels by which the points of a bend are moved at most, along each axis."""

    def __bool__(self) -> bool:
        return bool(self.names())

    def names(self) -> list[str]:
        """The moves that are asked for, by the names of their options."""
        return [each.name for each in fields(self) if getattr(self, each.name)]

    def check(self, shape: tuple[int, int, int]) -> None:
        """Refuse to move images of (rows, columns, channels) out of sight."""
        height, width, _ = shape
        if self.shift >= min(height, width):
            raise ValueError(
                f"shift={self.shift} moves images of {height} x {width} pixels out of sight; use at most "
                f"{min(height, width) - 1}"
            )
        if self.elastic >= min(height, width):
            raise ValueError(
                f"elastic={self.elastic:g} bends images of {height} x {width} pixels out of sight; use less than "
                f"{min(height, width)}, and about a twentieth of it to begin with"
            )

    def moves(self, seed: int, step: int, count: int, first: int = 0) -> Int64[np.ndarray, "count 7"]:
        """The moves of ``count`` samples from place ``first`` of the batch of a step.

        A row is dy, dx, flip, and A in units of 2^-16, row by row.
        """
        drawn = torch.rand(
            (first + count, DRAWS), generator=stream(seed, f"augmentation/{step}"), dtype=torch.float64
        ).numpy()[first:]
        return self.moves_of(drawn)

    def moves_of(self, drawn: Float64[np.ndarray, "count 5"]) -> Int64[np.ndarray, "count 7"]:
        """The moves that these numbers in [0, 1) stand for."""
        rows, columns, flipped, angle, size = drawn.T
        angles = np.radians(self.rotate) * (2 * angle - 1)
        scale = _ONE / (1 + self.zoom * (2 * size - 1))
        along, across = np.rint(scale * np.cos(angles)), np.rint(scale * np.sin(angles))
        shifts = [np.floor((2 * self.shift + 1) * each) - self.shift for each in (rows, columns)]
        return np.stack([*shifts, self.flip & (flipped < 0.5), along, -across, across, along], 1).astype(np.int64)

    def bends(self, seed: int, step: int, count: int, first: int = 0) -> Int64[np.ndarray, "count 2 5 5"]:
        """How far down and to the right the points of the same samples' bends are moved, in units of 2^-17 pixels.

        Numbers of a stream of their own: the other moves of a run are the same with bends and without.
        """
        drawn = torch.rand(
            (first + count, 2, POINTS, POINTS), generator=stream(seed, f"elastic/{step}"), dtype=torch.float64
        ).numpy()[first:]
        return np.rint(2 * _ONE * self.elastic * (2 * drawn - 1)).astype(np.int64)


class AugmentedImages(BitSource):
    """Images that a step of training reads moved, and everybody else as they are.

    ``rows`` are uint8 in (channel, row, column) order, ``shape`` is (rows, columns, channels), and the encoder compares
    pixels with thresholds. With ``until``, steps from that one on read images as they are too.
    """

    def __init__(
        self,
        rows: UInt8[np.ndarray, "samples features"],
        shape: tuple[int, int, int],
        encoder: Encoder,
        augmentation: Augmentation,
        until: int | None = None,
    ) -> None:
        height, width, channels = shape
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != height * width * channels:
            raise ValueError(
                f"images to be moved are uint8 (samples, {height * width * channels}) for the shape "
                f"{shape}, got {rows.dtype} of shape {rows.shape}"
            )
        augmentation.check(shape)
        self.samples, self.bits = len(rows), encoder.bits
        self.augmentation, self.until = augmentation, until
        self._plain = bit_source(rows, encoder)
        self._images = np.ascontiguousarray(rows).reshape(-1, channels, height, width)
        self._starts, self._places, self._lowest = _comparisons(encoder)
        # Whole pixels are not interpolated.
        self._whole = not (augmentation.rotate or augmentation.zoom or augmentation.elastic)
        self._no_bends = np.zeros((0, 2, POINTS, POINTS), dtype=np.int64)
        self._announced: dict[tuple[int, int], tuple[np.ndarray, Callable[[], PackedBatch]]] = {}

    def batch(self, indices: Int64[np.ndarray, "batch"]) -> PackedBatch:
        """The bits of these samples, unmoved."""
        return self._plain.batch(indices)

    def training_batch(
        self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int, first: int = 0
    ) -> PackedBatch:
        """The bits of these samples as a step reads them."""
        self._check(indices)
        if self.until is not None and step >= self.until:
            return self._plain.batch(indices)
        announced = self._announced.pop((seed, step), None) if first == 0 else None
        if announced is not None and np.array_equal(announced[0], indices):
            return announced[1]()
        return self._moved(indices, seed, step, first)

    def announce(self, indices: Int64[np.ndarray, "batch"], *, seed: int, step: int) -> None:
        """Images are moved while the step before is computed, by a thread that waits."""
        self._check(indices)
        if self.until is None or step < self.until:
            # The batch of this step may not have been asked for yet; what nobody asks for is forgotten.
            while len(self._announced) > 1:
                del self._announced[next(iter(self._announced))]
            self._announced[seed, step] = indices, ahead(partial(self._moved, indices, seed, step, 0))

    def _check(self, indices: Int64[np.ndarray, "batch"]) -> None:
        if indices.size and not 0 <= indices.min() <= indices.max() < self.samples:
            raise IndexError(
                f"indices run from {indices.min()} to {indices.max()}, there are {self.samples} images, numbered from 0"
            )

    def _moved(self, indices: Int64[np.ndarray, "batch"], seed: int, step: int, first: int) -> PackedBatch:
        count = len(indices)
        moves, bends = self.augmentation.moves(seed, step, count, first), self._no_bends
        if self.augmentation.elastic:
            bends = self.augmentation.bends(seed, step, count, first)
        words = np.empty((-(-len(indices) // 64), self.bits), dtype=np.uint64)

        def encode(word: int) -> None:
            own = slice(64 * word, 64 * word + 64)
            _encode_moved(
                self._images, indices[own], moves[own], bends[own], self._whole, self._starts, self._places,
                self._lowest, words[word],
            )  # fmt: skip

        parallel_for(encode, len(words))
        return PackedBatch(words, len(indices))


def _comparisons(
    encoder: Encoder,
) -> tuple[Int64[np.ndarray, " features_1"], Int64[np.ndarray, " bits"], Int64[np.ndarray, " bits"]]:
    """An encoder's bits by the pixel they look at: where each pixel's begin, which they are, and when they are 1.

    x > t of a byte is x >= ⌊t⌋ + 1, a number that need not be between 0 (always) and 256 (never).
    """
    if any(rule.test != ">" for rule in encoder.rules):
        raise ValueError(f"images are moved where every bit compares a pixel with a threshold, got {encoder!r}")
    features = np.array([rule.feature for rule in encoder.rules], dtype=np.int64)
    lowest = np.array([min(max(math.floor(float(rule.value)) + 1, 0), 256) for rule in encoder.rules])  # type: ignore[arg-type]
    places = np.argsort(features, kind="stable")
    starts = np.searchsorted(features[places], np.arange(encoder.features + 1))
    return starts, places, lowest[places]


@_kernel
def _encode_moved(images, chosen, moves, bends, whole, starts, places, lowest, words):
    """words[bit] = its value in each of the at most 64 chosen images, moved."""
    channels, height, width = images.shape[1:]
    samples = chosen.size
    flat = images.reshape(images.shape[0], channels, height * width)
    pixels = np.zeros((channels, width, 64), np.uint8)
    bent, lefts, ways = np.zeros((2, width), np.int64), np.zeros(POINTS, np.int64), np.zeros(width, np.int64)
    for x in range(width):
        before, ways[x] = _between(x, width - 1)
        lefts[before + 1 :] = x + 1
    for y in range(height):
        for s in range(samples):
            if whole:
                _shifted_row(images[chosen[s]], moves[s], y, pixels[:, :, s])
                continue
            if bends.shape[0]:
                _bend_row(bends[s], height, y, lefts, ways, bent)
            _moved_row(flat[chosen[s]], height, width, moves[s], bent, y, pixels[:, :, s])
        for channel in range(channels):
            row = (channel * height + y) * width
            for x in range(width):
                for i in range(starts[row + x], starts[row + x + 1]):
                    words[places[i]] = _at_least(pixels[channel, x], lowest[i], samples)


@_kernel
def _shifted_row(image, move, y, row):
    """Row y of an image that is flipped, or not, and then shifted by whole pixels."""
    channels, height, width = image.shape
    above, shift = min(max(y - move[0], 0), height - 1), move[1]
    for channel in range(channels):
        source = image[channel, above]
        if move[2]:
            for x in range(width):
                row[channel, x] = source[width - 1 - min(max(x - shift, 0), width - 1)]
        else:
            for x in range(width):
                row[channel, x] = source[min(max(x - shift, 0), width - 1)]


@_kernel
def _between(position, last):
    """Of a pixel of 0 to last: the point of a bend before it, and how far it is to the next, in 1/256."""
    spread = 256 * (POINTS - 1) * position // max(last, 1)
    before = min(spread >> 8, POINTS - 2)
    return before, spread - 256 * before


@_kernel
def _bend_row(bend, height, y, lefts, ways, bent):
    """bent[axis, x] = e(y, x): between two rows of points, then along them."""
    above, v = _between(y, height - 1)
    for axis in range(2):
        upper, lower, row = bend[axis, above], bend[axis, above + 1], bent[axis]
        for cell in range(POINTS - 1):
            left = (256 - v) * upper[cell] + v * lower[cell]
            right = (256 - v) * upper[cell + 1] + v * lower[cell + 1]
            for x in range(lefts[cell], lefts[cell + 1]):
                row[x] = ((256 - ways[x]) * left + ways[x] * right) >> 16


@_kernel
def _moved_row(image, height, width, move, bent, y, row):
    """The same with A and e: coordinates in units of 2^-17 pixels, so that half pixels, as of the centre, are whole."""
    down, right = 2 * (y - move[0]) - (height - 1), -2 * move[1] - (width - 1)
    at_y = move[3] * down + move[4] * right + ((height - 1) << 16)
    at_x = move[5] * down + move[6] * right + ((width - 1) << 16)
    bottom, end = (height - 1) << 17, (width - 1) << 17
    last_row, last_column = np.uint32((height - 1) * width), np.uint32(width - 1)
    for x in range(width):
        # On the border at most: there the pixel beyond it has no weight.
        in_y, in_x = (
            np.uint32(min(max(at_y + bent[0, x], 0), bottom)),
            np.uint32(min(max(at_x + bent[1, x], 0), end)),
        )
        upper, left = (in_y >> np.uint32(17)) * np.uint32(width), in_x >> np.uint32(17)
        lower, righter = min(upper + np.uint32(width), last_row), min(left + np.uint32(1), last_column)
        if move[2]:
            left, righter = last_column - left, last_column - righter
        v, h = np.int32((in_y >> np.uint32(9)) & np.uint32(255)), np.int32((in_x >> np.uint32(9)) & np.uint32(255))
        for channel in range(image.shape[0]):
            above = (256 - h) * image[channel, upper + left] + h * image[channel, upper + righter]
            below = (256 - h) * image[channel, lower + left] + h * image[channel, lower + righter]
            row[channel, x] = ((256 - v) * above + v * below + 32768) >> 16
        at_y += 2 * move[4]
        at_x += 2 * move[6]


@_kernel
def _at_least(values, lowest, samples):
    """Bit s: values[s] >= lowest, of the first samples."""
    word = np.uint64(0)
    for s in range(64):
        word |= np.uint64(values[s] >= lowest) << np.uint64(s)
    return word if samples == 64 else word & ((np.uint64(1) << np.uint64(samples)) - np.uint64(1))
