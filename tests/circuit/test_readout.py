"""Readouts: their arithmetic against plain loops, and what they refuse."""

import re

import numpy as np
import pytest

from gatefit.circuit.readout import Affine, GroupSum, Linear

RNG = np.random.default_rng(3)
BITS = RNG.random((20, 7)) < 0.5


def test_group_sums_count_ones_by_class():
    readout = GroupSum([2, 0, 0, 2, 2, 0, 2], [5, -1, 0])
    expected = [
        [
            offset + sum(int(bit) for bit, group in zip(row, readout.groups, strict=True) if group == k)
            for k, offset in enumerate([5, -1, 0])
        ]
        for row in BITS
    ]
    result = readout.scores(BITS)
    assert result.dtype == np.int64
    assert result.tolist() == expected
    assert (readout.outputs, readout.classes) == (7, 3)


def test_affine_is_intercept_plus_scale_times_count():
    readout = Affine(7, offset=2, scale=0.1, intercept=-3.0)
    assert readout.scores(BITS).tolist() == [[-3.0 + 0.1 * (2 + int(row.sum()))] for row in BITS]
    assert readout.classes == 1


def test_linear_adds_in_output_order_in_single_precision():
    weights, bias = RNG.normal(size=(3, 7)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
    result = Linear(weights, bias).scores(BITS)
    assert result.dtype == np.float32
    for row, scores in zip(BITS, result, strict=True):
        for k in range(3):
            total = bias[k]
            for i in range(7):
                total = np.float32(total + (weights[k, i] if row[i] else np.float32(0)))
            assert scores[k] == total


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: GroupSum([0, 2], [0, 0]), ValueError, "GroupSum has 2 classes, got groups from 0 to 2"),
        (lambda: GroupSum([0, -1], [0, 0]), ValueError, "got groups from -1 to 0"),
        (lambda: GroupSum([0.0, 1.0], [0, 0]), TypeError, "groups must hold integers, got float64"),
        (lambda: GroupSum([0, 0], []), ValueError, "one offset per class, got shapes (2,) and (0,)"),
        (lambda: GroupSum([[0]], [0]), ValueError, "got shapes (1, 1) and (1,)"),
        (lambda: GroupSum([0], [2**62]), ValueError, "offsets must be below 2**62"),
        (lambda: GroupSum([0], [0], 0.0), ValueError, "temperature must be a finite number > 0, got 0.0"),
        (lambda: GroupSum([0], [0], float("nan")), ValueError, "temperature must be a finite number > 0, got nan"),
        (lambda: Affine(-1), ValueError, "Affine needs outputs >= 0, got -1"),
        (lambda: Affine(1, 2**62), ValueError, "the offset must be below 2**62"),
        (lambda: Affine(1, 0, float("inf")), ValueError, "scale and intercept must be finite, got inf and 0.0"),
        (lambda: Linear([[1.0, np.nan]], [0.0]), ValueError, "Linear needs finite weights and bias"),
        (lambda: Linear([1.0], [0.0]), ValueError, "Linear needs weights (classes, outputs) and bias (classes,)"),
        (lambda: Linear([["a"]], [0.0]), TypeError, "weights must hold numbers, got <U1"),
    ],
)
def test_bad_readouts_are_refused(build, error, message):
    with pytest.raises(error, match=re.escape(message)):
        build()
