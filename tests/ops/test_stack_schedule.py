"""The order of computation visits every gate once and finds every input where it was put."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatefit.network import LogicNetwork
from gatefit.ops import stack_schedule as schedules
from gatefit.ops.boolean_stack import boolean_stack
from gatefit.ops.implementations import NUMBA
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stack_schedule import FROM_BITS, FROM_CYCLES, FROM_ROWS, FROM_TRAILS, make_schedule, stack_schedule
from gatefit.ops.stacks import Stack
from stacks import bits_of, gradients


def square(gates, seed):
    """A wiring that uses each input exactly twice, in any constellation, the same input twice by one gate included."""
    uses = np.random.default_rng(seed).permutation(np.repeat(np.arange(gates), 2))
    return uses.reshape(2, gates).astype(np.int32)


@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 1000))
def test_rows_and_slots_lead_every_value_to_its_reader(gates, depth, seed):
    wirings = [square(gates, seed + i) for i in range(depth)]
    schedule = make_schedule(wirings, gates)
    assert schedule.fixed.layers[:, 0].tolist() == [FROM_BITS] + [FROM_CYCLES] * (depth - 1)
    # Follow the numbers of the nodes through the buffers, as the kernels move activations and gradients.
    below, slots = np.arange(gates), np.arange(gates)
    for layer, wiring in enumerate(wirings):
        place = slice(layer * gates, (layer + 1) * gates)
        order, swapped = schedule.fixed.order[place], schedule.fixed.swapped[place]
        assert sorted(order.tolist()) == list(range(gates))
        assert (below[schedule.first[place]] == wiring[swapped, order]).all()
        assert (below[schedule.second[place]] == wiring[1 - swapped, order]).all()
        above = np.full(gates, -1)
        above[schedule.fixed.rows[place]] = order
        below = above
    for layer in reversed(range(depth)):
        place = slice(layer * gates, (layer + 1) * gates)
        order, swapped = schedule.fixed.order[place], schedule.fixed.swapped[place]
        assert (slots[schedule.fixed.slots[place]] == order).all()
        # The first input's gradient takes the gate's place.
        slots[schedule.fixed.slots[place]] = wirings[layer][swapped, order]


@given(st.integers(1, 60), st.integers(0, 1000))
def test_a_walk_goes_from_input_to_input_and_closes(gates, seed):
    wiring = square(gates, seed)
    schedule = make_schedule([wiring, wiring], gates)
    order, swapped = schedule.fixed.order[gates:], schedule.fixed.swapped[gates:]
    entered, left = wiring[swapped, order], wiring[1 - swapped, order]
    kind, count, _, first, end, inputs, votes = schedule.fixed.layers[1, :7]
    assert (kind, count, inputs, votes) == (FROM_CYCLES, gates, gates, 1)
    starts = schedule.fixed.cycles[first : end + 1]
    assert starts[0] == 0
    assert starts[-1] == gates
    for begin, stop in itertools.pairwise(starts):
        assert begin < stop
        assert (left[begin : stop - 1] == entered[begin + 1 : stop]).all()
        assert left[stop - 1] == entered[begin]


def uneven(gates, inputs, seed, moved):
    """Each input about twice, some of the uses moved to other inputs; a gate may have the same input twice."""
    rng = np.random.default_rng(seed)
    uses = rng.permutation(np.resize(np.arange(inputs), 2 * gates))
    uses[rng.choice(2 * gates, moved, replace=False)] = rng.integers(inputs, size=moved)
    return uses.reshape(2, gates).astype(np.int32)


@given(st.integers(20, 60), st.integers(-1, 1), st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))
def test_trails_lead_every_value_to_its_reader(gates, fewer, depth, moved, seed):
    widths = [gates + fewer * (layer % 2) for layer in range(depth + 1)]
    wirings = [uneven(own, below, seed + i, moved) for i, (below, own) in enumerate(itertools.pairwise(widths))]
    schedule = make_schedule(wirings, gates)
    fixed = schedule.fixed
    below, slots = np.arange(gates), np.full(max(widths), -1)
    for layer, wiring in enumerate(wirings):
        place = fixed.ranges[layer]
        order, swapped = fixed.order[place], fixed.swapped[place]
        assert sorted(order.tolist()) == list(range(widths[layer + 1]))
        assert (below[schedule.first[place]] == wiring[swapped, order]).all()
        assert (below[schedule.second[place]] == wiring[1 - swapped, order]).all()
        below = np.full(widths[layer + 1], -1)
        below[fixed.rows[place]] = order
    slots[: widths[-1]] = np.arange(widths[-1])
    for layer in reversed(range(depth)):
        place, wiring = fixed.ranges[layer], wirings[layer]
        order, own, enters = fixed.order[place], fixed.slots[place], fixed.enters[place] | fixed.swapped[place]
        assert (slots[own] == order).all()
        kind, _, _, first, stop, inputs, _, *of_ends = fixed.layers[layer].tolist()
        if kind in (FROM_BITS, FROM_ROWS):
            slots = np.arange(max(widths))
            continue
        starts, entered, left = fixed.cycles[first : stop + 1], wiring[enters, order], wiring[1 - enters, order]
        met = np.ones(order.size, bool)
        for trail, (begin, end) in enumerate(itertools.pairwise(starts)):
            assert (left[begin : end - 1] == entered[begin + 1 : end]).all()
            met[begin] = fixed.closed[first + trail]
            assert not met[begin] or left[end - 1] == entered[begin]
        slots = np.full(max(widths), -1)
        slots[own[met]] = entered[met]
        # Whatever is not met twice is an end, with all its uses in the order of gates.
        ends, at = np.setdiff1d(np.arange(inputs), entered[met]), fixed.ends[slice(*of_ends[:2])]
        assert (slots[at] == -1).all()
        slots[at] = ends
        place_of, by, to = fixed.uses[slice(*of_ends[2:])].T
        assert (wiring[by, order[place_of]] == ends[to]).all()
        assert (np.diff(2 * order[place_of] + by) > 0).all()
        assert place_of.size == np.isin(wiring, ends).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", ["soft", "sigmoid", "Boolean"])
@pytest.mark.parametrize("seed", range(6))
def test_trails_give_the_bits_of_row_by_row(seed, kind, dtype, monkeypatch):
    widths = [(60, 60, 60), (60, 58, 60), (200, 200, 200)][seed % 3]
    sizes = [(60, 58, 200)[seed % 3], *widths]
    wirings = [
        torch.as_tensor(uneven(own, below, seed + i, 1 + seed // 3))
        for i, (below, own) in enumerate(itertools.pairwise(sizes))
    ]
    _, x = bits_of(130, sizes[0])
    generator = torch.Generator().manual_seed(seed)
    coefficients = [torch.randn(width, 4, generator=generator, dtype=dtype).requires_grad_() for width in widths]
    gates = [torch.randint(16, (width,), generator=generator, dtype=torch.uint8) for width in widths]

    def results():
        stack = Stack([wiring.clone() for wiring in wirings], 2)
        walked = stack_schedule(stack, sizes[0]).fixed.layers[1:, 0].tolist()
        if kind == "Boolean":
            scores = boolean_stack(x, stack, gates, coefficients, implementation=NUMBA)
        else:
            scores = soft_stack(x, stack, coefficients, sigmoid=kind == "sigmoid", implementation=NUMBA)
        delta = torch.randn(scores.shape, generator=torch.Generator().manual_seed(5), dtype=dtype)
        return walked, scores, gradients(scores, delta, coefficients)

    walked, scores, found = results()
    assert FROM_TRAILS in walked
    monkeypatch.setattr(schedules, "FEW", float("inf"))
    rows, expected_scores, expected = results()
    assert set(rows) == {FROM_ROWS}
    assert torch.equal(scores, expected_scores)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_the_default_wiring_is_walked():
    layers = LogicNetwork(64, 10, 200, 4).layers
    schedule = stack_schedule(Stack([layer.wiring.pairs for layer in layers]), 64)
    assert schedule.fixed.layers[1:, 0].tolist() == [FROM_TRAILS] * 3


def test_layers_that_do_not_use_each_input_twice_are_read_row_by_row():
    once = np.array([[0, 1, 2], [1, 2, 1]], dtype=np.int32)
    schedule = make_schedule([square(3, 0), once, square(3, 1)], 3)
    assert schedule.fixed.layers[:, 0].tolist() == [FROM_BITS, FROM_ROWS, FROM_CYCLES]
    assert schedule.first[3:6].tolist() == [0, 1, 2]
    assert schedule.second[3:6].tolist() == [1, 2, 1]


def test_a_schedule_is_made_once_and_again_after_a_change():
    wirings = [torch.tensor([[0, 1], [1, 0]], dtype=torch.int32) for _ in range(2)]
    schedule = stack_schedule(Stack(wirings), 2)
    assert stack_schedule(Stack(wirings), 2) is schedule
    wirings[1].copy_(torch.tensor([[0, 0], [1, 1]]))
    assert stack_schedule(Stack(wirings), 2) is not schedule
    changed = stack_schedule(Stack(wirings), 2)
    assert stack_schedule(Stack(wirings[:1]), 2).fixed.widths == (2,)  # another stack that begins with the same tensor
    assert stack_schedule(Stack(wirings), 2) is changed
    for depth in range(3, 9):
        stack_schedule(Stack(wirings[:1] * depth), 2)
    assert stack_schedule(Stack(wirings), 2) is not changed
    with torch.inference_mode():
        assert stack_schedule(Stack([wirings[0].clone()]), 2).fixed.inputs == 2


def test_wiring_out_of_range_is_refused():
    with pytest.raises(
        ValueError, match=r"the wiring of layer 1 reads inputs 0 to 2, but there are 2, numbered from 0"
    ):
        make_schedule([square(2, 0), np.array([[0, 1], [2, 0]], dtype=np.int32)], 2)


def test_layers_that_change_or_stand_above_voters_keep_their_own_order():
    wirings = [square(4, seed) for seed in range(4)]
    schedule = make_schedule(wirings, 4, votes=[1, 4], changing=[False, False, False, True])
    assert schedule.fixed.layers[:, 0].tolist() == [FROM_BITS, FROM_ROWS, FROM_CYCLES, FROM_ROWS]
    assert schedule.fixed.layers[:, 6].tolist() == [1, 0, 0, 1]
    assert schedule.first[4:8].tolist() == wirings[1][0].tolist()


def test_a_changed_wiring_leaves_what_is_fixed_and_the_schedule_of_an_earlier_pass():
    wirings = [torch.as_tensor(square(6, seed)) for seed in range(3)]
    before = stack_schedule(Stack(wirings, changing=[False, True, False]), 6)
    kept = before.first.copy()
    wirings[1] = torch.as_tensor(square(6, 9))
    after = stack_schedule(Stack(wirings, changing=[False, True, False]), 6)
    assert after.fixed is before.fixed
    assert (before.first == kept).all()
    assert (after.first[6:12] == wirings[1][0].numpy()).all()
    assert (after.second[6:12] == wirings[1][1].numpy()).all()
    wirings[1] = torch.full((2, 6), 6, dtype=torch.int32)
    with pytest.raises(ValueError, match="the wiring of layer 1 reads inputs 6 to 6, but there are 6"):
        stack_schedule(Stack(wirings, changing=[False, True, False]), 6)
