"""Local wiring: near, balanced, never one node twice, along a curve through images."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatefit.datasets import load_dataset
from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.training.config import RunConfig
from gatefit.training.runs import build_network
from gatefit.wirings import WiringContext, WiringOptions, coverage, local_wiring
from gatefit.wirings.local import hilbert_index, image_order


def local_wirings(inputs, width, depth, classes, **options):
    """The wiring of every layer of a network."""
    place = {"depth": depth, "classes": classes, "options": WiringOptions(**options)}
    return [
        local_wiring(WiringContext(size, width, stream(0, f"wiring/{i}"), layer=i, **place))
        for i, size in enumerate([inputs, *[width] * (depth - 1)])
    ]


@given(st.integers(2, 60), st.integers(1, 15), st.integers(1, 4), st.integers(1, 4), st.integers(1, 40))
def test_gates_read_two_different_nodes_and_all_nodes_are_read(inputs, group, classes, depth, reach):
    width = max(2, group * classes)
    wirings = local_wirings(inputs, width, depth, classes, reach=reach)
    assert len(wirings) == depth
    for layer, wiring in enumerate(wirings):
        nodes = inputs if layer == 0 else width
        assert wiring.dtype == torch.int32
        assert wiring.shape == (2, width)
        assert (wiring[0] != wiring[1]).all()
        assert 0 <= int(wiring.min()) <= int(wiring.max()) < nodes
        if nodes >= 8 and 2 * width >= nodes:
            assert coverage(wiring, nodes) > 0.8


@pytest.mark.parametrize("reach", [1, 5, 30, 200])
def test_no_gate_reads_farther_than_its_reach(reach):
    inputs, width, classes = 300, 600, 10
    first, hidden, last = local_wirings(inputs, width, 3, classes, reach=reach)
    place = torch.arange(width)
    slack = 4  # half a node of rounding, and swaps with neighbours
    assert ((2 * first - place).abs() <= reach + 2 * slack).all()
    assert ((hidden - place).abs() <= reach + slack).all()
    assert ((last - place % 60 * 10).abs() <= reach + 10 + slack).all()
    assert (hidden - place).abs().max() > reach / 2, "the reach is used"
    assert (hidden.flatten().bincount(minlength=width) == 2).all(), "every gate below is read twice"
    assert coverage(first, inputs) == 1


def test_every_class_sees_the_whole_line():
    last = local_wirings(100, 400, 4, 4, reach=10)[-1]
    for group in last.T.reshape(4, 100, 2):
        assert (group.flatten().sort().values.diff() < 40).all()


def test_the_hilbert_curve_visits_neighbours_one_after_another():
    for side in (1, 2, 4, 16, 32):
        y, x = np.divmod(np.arange(side * side), side)
        index = hilbert_index(x, y)
        assert sorted(index.tolist()) == list(range(side * side))
        at = np.argsort(index)
        steps = np.abs(np.diff(x[at])) + np.abs(np.diff(y[at]))
        assert (steps == 1).all()


def test_an_image_keeps_the_bits_of_a_pixel_together_whatever_its_channels_and_thresholds():
    rows, columns, channels, thresholds = 6, 5, 3, 2
    features = np.tile(np.arange(rows * columns * channels), thresholds)
    order = image_order(features, (rows, columns, channels))
    pixels = features[order].reshape(-1, channels * thresholds) % (rows * columns)
    assert (pixels == pixels[:, :1]).all()
    assert sorted(order.tolist()) == list(range(features.size))


def test_a_configuration_makes_the_same_network_again_and_another_seed_another():
    data = load_dataset("digits")
    config = RunConfig(dataset="digits", width=300, depth=3, wiring="local", reach=8)
    first, again = build_network(config, data), build_network(config, data)
    other = build_network(RunConfig(dataset="digits", width=300, depth=3, wiring="local", reach=8, wiring_seed=1), data)
    for a, b, c in zip(first.gate_layers, again.gate_layers, other.gate_layers, strict=True):
        assert torch.equal(a.wiring.committed(), b.wiring.committed())
        assert not torch.equal(a.wiring.committed(), c.wiring.committed())
    pixel = torch.tensor([rule.feature for rule in data.encoder.rules])[first.gate_layers[0].wiring.committed().long()]
    far = (pixel[0] % 8 - pixel[1] % 8).abs() + (pixel[0] // 8 - pixel[1] // 8).abs()
    assert far.double().mean() < 3, "two random pixels of 8 x 8 are 5.3 apart"
    restored = LogicNetwork.from_state_dict(first.state_dict())
    assert restored.configuration["wiring"] == "local"
    assert torch.equal(restored.gate_layers[0].wiring.committed(), first.gate_layers[0].wiring.committed())


def test_bad_input_is_refused_in_words():
    with pytest.raises(ValueError, match="reach must be a whole number of gates >= 1, got 0"):
        local_wirings(10, 10, 1, 2, reach=0)
    with pytest.raises(ValueError, match="order must name each of the 3 inputs once"):
        local_wirings(3, 10, 1, 2, order=np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="reach is of the local wiring, got wiring='unique'"):
        RunConfig(reach=3)
    with pytest.raises(ValueError, match="a gate reads two different inputs, got 1"):
        local_wirings(1, 10, 1, 2)
