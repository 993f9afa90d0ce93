"""The data order is a pure function of (seed, epoch)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatefit.training.data import DataOrder


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 3))
def test_every_epoch_reads_every_sample_once(samples, batch, seed):
    order = DataOrder(samples, batch, seed)
    steps = 3 * samples  # an exact number of epochs
    stream = np.concatenate([order.indices(step) for step in range(steps)])
    for epoch in stream.reshape(-1, samples):
        assert sorted(epoch.tolist()) == list(range(samples))
    assert all(len(order.indices(step)) == min(batch, samples) for step in range(5))


def test_order_does_not_depend_on_what_was_read_before():
    fresh, used = DataOrder(100, 7, 3), DataOrder(100, 7, 3)
    for step in range(200):
        used.indices(step)
    for step in (150, 3, 77):
        assert fresh.indices(step).tolist() == used.indices(step).tolist()


def test_epochs_and_seeds_differ():
    one, two = DataOrder(100, 100, 0), DataOrder(100, 100, 1)
    assert one.indices(0).tolist() != one.indices(1).tolist()
    assert one.indices(0).tolist() != two.indices(0).tolist()


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="no samples"):
        DataOrder(0, 5, 0)
