"""The order of computation visits every gate once and finds every input where it was put."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatefit.ops.stack_plan import FROM_BITS, FROM_CYCLES, FROM_ROWS, make_plan, stack_plan


def square(gates, seed):
    """A wiring that uses each input exactly twice, in any constellation, the same input twice by one gate included."""
    uses = np.random.default_rng(seed).permutation(np.repeat(np.arange(gates), 2))
    return uses.reshape(2, gates).astype(np.int32)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 1000))
def test_rows_and_slots_lead_every_value_to_its_reader(gates, depth, seed):
    wirings = [square(gates, seed + i) for i in range(depth)]
    plan = make_plan(wirings, gates)
    assert plan.layers[:, 0].tolist() == [FROM_BITS] + [FROM_CYCLES] * (depth - 1)
    # Follow the numbers of the nodes through the buffers, as the kernels move activations and gradients.
    below, slots = np.arange(gates), np.arange(gates)
    for layer, wiring in enumerate(wirings):
        place = slice(layer * gates, (layer + 1) * gates)
        order, swapped = plan.order[place], plan.swapped[place]
        assert sorted(order.tolist()) == list(range(gates))
        assert (below[plan.first[place]] == wiring[swapped, order]).all()
        assert (below[plan.second[place]] == wiring[1 - swapped, order]).all()
        above = np.full(gates, -1)
        above[plan.rows[place]] = order
        below = above
    for layer in reversed(range(depth)):
        place = slice(layer * gates, (layer + 1) * gates)
        order, swapped = plan.order[place], plan.swapped[place]
        assert (slots[plan.slots[place]] == order).all()
        slots[plan.slots[place]] = wirings[layer][swapped, order]  # the first input's gradient takes the gate's place


@given(st.integers(1, 60), st.integers(0, 1000))
def test_a_walk_goes_from_input_to_input_and_closes(gates, seed):
    wiring = square(gates, seed)
    plan = make_plan([wiring, wiring], gates)
    order, swapped = plan.order[gates:], plan.swapped[gates:]
    entered, left = wiring[swapped, order], wiring[1 - swapped, order]
    kind, count, _, first, end, inputs = plan.layers[1]
    assert (kind, count, inputs) == (FROM_CYCLES, gates, gates)
    starts = plan.cycles[first : end + 1]
    assert starts[0] == 0
    assert starts[-1] == gates
    for begin, stop in itertools.pairwise(starts):
        assert begin < stop
        assert (left[begin : stop - 1] == entered[begin + 1 : stop]).all()
        assert left[stop - 1] == entered[begin]


def test_layers_that_do_not_use_each_input_twice_are_read_row_by_row():
    once = np.array([[0, 1, 2], [1, 2, 1]], dtype=np.int32)
    plan = make_plan([square(3, 0), once, square(3, 1)], 3)
    assert plan.layers[:, 0].tolist() == [FROM_BITS, FROM_ROWS, FROM_CYCLES]
    assert plan.first[3:6].tolist() == [0, 1, 2]
    assert plan.second[3:6].tolist() == [1, 2, 1]


def test_a_plan_is_made_once_and_again_after_a_change():
    wirings = [torch.tensor([[0, 1], [1, 0]], dtype=torch.int32) for _ in range(2)]
    plan = stack_plan(wirings, 2)
    assert stack_plan(wirings, 2) is plan
    wirings[1].copy_(torch.tensor([[0, 0], [1, 1]]))
    assert stack_plan(wirings, 2) is not plan
    changed = stack_plan(wirings, 2)
    assert stack_plan(wirings[:1], 2).widths == (2,)  # another stack that begins with the same tensor
    assert stack_plan(wirings, 2) is changed
    for depth in range(3, 9):
        stack_plan(wirings[:1] * depth, 2)
    assert stack_plan(wirings, 2) is not changed
    with torch.inference_mode():
        assert stack_plan([wirings[0].clone()], 2).inputs == 2


def test_wiring_out_of_range_is_refused():
    with pytest.raises(
        ValueError, match=r"the wiring of layer 1 reads inputs 0 to 2, but there are 2, numbered from 0"
    ):
        make_plan([square(2, 0), np.array([[0, 1], [2, 0]], dtype=np.int32)], 2)
