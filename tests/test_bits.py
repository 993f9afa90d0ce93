"""Packing: every layout is the same bits, at every odd size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.bits import PackedBatch, gather, pack, pack_rows, unpack, unpack_features, unpack_rows


def random_bits(samples, bits, seed=0):
    return np.random.default_rng(seed).random((samples, bits)) < 0.5


sizes = st.integers(1, 200)


@given(sizes, sizes, st.integers(0, 9))
def test_rows_round_trip(samples, bits, seed):
    values = random_bits(samples, bits, seed)
    rows = pack_rows(values)
    assert rows.shape == (samples, -(-bits // 64))
    assert (unpack_rows(rows, bits) == values).all()
    assert rows[0, 0] & np.uint64(1) == values[0, 0]


@given(sizes, sizes, sizes, st.integers(0, 9))
def test_gather_picks_samples_and_transposes(samples, bits, batch, seed):
    values = random_bits(samples, bits, seed)
    indices = np.random.default_rng(seed).integers(0, samples, batch)
    found = gather(pack_rows(values), indices, bits)
    assert (found.bits, len(found)) == (bits, batch)
    for i in range(0, bits, 7):
        for s in range(batch):
            assert (int(found.words[s // 64, i]) >> (s % 64)) & 1 == values[indices[s], i]
    used = np.uint64((1 << (batch % 64)) - 1) if batch % 64 else ~np.uint64(0)
    assert (found.words[-1] & ~used == 0).all()  # no sample beyond the last


@given(sizes, sizes)
def test_words_round_trip(samples, bits):
    values = random_bits(samples, bits)
    packed = pack(values)
    assert (unpack(packed) == values).all()
    floats = unpack_features(packed)
    assert floats.dtype == np.float32
    assert (floats == values.T).all()


def test_a_zero_one_matrix_of_bytes_is_accepted():
    values = random_bits(70, 9)
    assert (pack(values.astype(np.uint8)).words == pack(values).words).all()


@pytest.mark.parametrize("values", [np.zeros((3, 4)), np.zeros(5, dtype=bool)])
def test_other_arrays_are_refused(values):
    with pytest.raises(TypeError, match=r"bits come as a Boolean matrix \(samples, bits\), got"):
        pack(values)
    assert isinstance(pack(np.zeros((1, 1), dtype=bool)), PackedBatch)


def test_no_samples():
    packed = pack(np.zeros((0, 5), dtype=bool))
    assert len(packed) == 0
    assert unpack(packed).shape == (0, 5)
    assert unpack_features(packed).shape == (5, 0)


def test_pieces_may_be_concatenated():
    values = random_bits(150, 70)
    pieces = [pack_rows(values[i : i + 40]) for i in range(0, 150, 40)]
    assert (np.concatenate(pieces) == pack_rows(values)).all()


def test_what_does_not_fit_together_is_refused():
    rows = pack_rows(random_bits(10, 70))
    with pytest.raises(IndexError, match=r"indices run from 3 to 10, there are 10 samples, numbered from 0"):
        gather(rows, np.array([3, 10]), 70)
    with pytest.raises(IndexError, match=r"indices run from -1 to 2"):
        gather(rows, np.array([-1, 2]), 70)
    with pytest.raises(
        TypeError, match=r"200 bits a sample are uint64 rows \(samples, 4\), got uint64 of shape \(10, 2\)"
    ):
        gather(rows, np.array([0]), 200)
    with pytest.raises(
        TypeError, match=r"64 bits a sample are uint64 rows \(samples, 1\), got uint64 of shape \(10, 2\)"
    ):
        unpack_rows(rows, 64)
    with pytest.raises(TypeError, match=r"contiguous uint64 words \(words, bits\), got int64 of shape \(2, 3\)"):
        PackedBatch(np.zeros((2, 3), dtype=np.int64), 100)
    with pytest.raises(ValueError, match=r"100 samples need 2 words, got 3"):
        PackedBatch(np.zeros((3, 3), dtype=np.uint64), 100)
