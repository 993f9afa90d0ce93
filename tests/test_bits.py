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
