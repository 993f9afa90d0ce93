"""Thresholds of image sets by quantiles: shared by the pixels of a channel, distinct, and deployed like any others."""

import numpy as np
import pytest

from gatefit import Circuit
from gatefit.backends.c import to_c
from gatefit.backends.verilog import to_verilog
from gatefit.datasets import load_dataset
from gatefit.datasets.dataset import image_encoder
from gatefit.encoders import encoder_from_spec
from gatefit.harden import harden
from gatefit.training.config import RunConfig
from gatefit.training.runs import execute

PIXELS = 30


def images(seed=0):
    """Two channels that are distributed differently."""
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [generator.integers(0, 100, (400, PIXELS)), generator.integers(150, 256, (400, PIXELS))], axis=1
    ).astype(np.uint8)


@pytest.mark.parametrize(
    ("thresholds", "rule", "levels"),
    [
        (1, "even", [127.5]),
        (1, "wide", [127.5]),
        (2, "wide", [31.875, 223.125]),
        (3, "even", [63.75, 127.5, 191.25]),
        (3, "wide", [31.875, 127.5, 223.125]),
        (7, "wide", [255 * (1 + k) / 8 for k in range(7)]),
        (7, "even", [255 * (1 + k) / 8 for k in range(7)]),
    ],
)
def test_thresholds_over_the_range(thresholds, rule, levels):
    encoder = image_encoder(images(), thresholds, rule=rule)
    assert sorted({rule.value for rule in encoder.rules}) == pytest.approx(levels)
    assert encoder_from_spec(encoder.to_spec()) == encoder


@pytest.mark.parametrize("thresholds", [1, 3, 7])
def test_every_part_of_a_channel_is_as_heavy(thresholds):
    x = images()
    encoder = image_encoder(x, thresholds, rule="quantile", channels=2)
    bits = encoder.transform(x).reshape(len(x), thresholds, 2, PIXELS)  # planes of (channel, pixel)
    for k in range(thresholds):
        for channel in range(2):
            assert bits[:, k, channel].mean() == pytest.approx(1 - (k + 1) / (thresholds + 1), abs=0.02)
    levels = {(rule.feature // PIXELS, rule.value) for rule in encoder.rules}
    assert len(levels) == 2 * thresholds  # the pixels of a channel share theirs


def test_a_channel_that_is_mostly_zero_has_its_thresholds_among_the_rest():
    generator = np.random.default_rng(0)
    x = np.where(generator.random((500, 40)) < 0.9, 0, generator.integers(1, 256, (500, 40))).astype(np.uint8)
    encoder = image_encoder(x, 3, rule="quantile")
    levels = sorted({rule.value for rule in encoder.rules})
    assert levels[0] < 1
    shares = [(x[x > 0] > level).mean() for level in levels]
    assert shares == pytest.approx([1, 0.5, 0.25], abs=0.06) or shares == pytest.approx([1, 0.75, 0.5], abs=0.06)


def test_fewer_values_than_thresholds_give_every_cut_there_is():
    x = np.array([[0, 3], [7, 7], [3, 0]], dtype=np.uint8)
    encoder = image_encoder(x, 9, rule="quantile")
    assert sorted({rule.value for rule in encoder.rules}) == [1.5, 5.0]
    assert encoder.bits == 4


def test_a_file_gives_the_encoder_back():
    encoder = image_encoder(images(), 3, rule="quantile", channels=2)
    again = encoder_from_spec(encoder.to_spec())
    assert again == encoder
    assert again.whole_ranges == encoder.whole_ranges
    np.testing.assert_array_equal(again.transform(images(1)), encoder.transform(images(1)))


def test_a_run_with_quantiles_is_deployed(tmp_path):
    config = RunConfig(dataset="digits", thresholds=3, threshold_rule="quantile", width=100, depth=2, steps=10)
    run = execute(config, folder=tmp_path / "run")
    dataset = load_dataset("digits", thresholds=3, threshold_rule="quantile")
    assert dataset.encoder != load_dataset("digits", thresholds=3).encoder
    circuit = harden(run.network)
    circuit.save(tmp_path / "digits.gate")
    again = Circuit.load(tmp_path / "digits.gate")
    assert (again.predict(dataset.x_test) == circuit.predict(dataset.x_test)).all()
    accuracy = (np.asarray(circuit.predict(dataset.x_test)).astype(int) == dataset.y_test).mean()
    assert accuracy == run.result.summary["test_accuracy"]
    assert to_c(circuit)
    assert to_verilog(circuit)


def test_rules_that_are_not_known_are_refused():
    with pytest.raises(ValueError, match="threshold_rule must be 'even' or 'wide' or 'quantile', got 'odd'"):
        image_encoder(images(), 3, rule="odd")
    with pytest.raises(ValueError, match="unknown threshold_rule 'odd'; choose one of even, wide, quantile"):
        RunConfig(threshold_rule="odd")
    with pytest.raises(ValueError, match="iris has no option threshold_rule"):
        load_dataset("iris", threshold_rule="quantile")
