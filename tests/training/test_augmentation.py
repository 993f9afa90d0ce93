"""Moved images: the bits of a plain reference, whatever the threads; the same after a stop; never when measured."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gatefit.bits import unpack
from gatefit.datasets import load_dataset
from gatefit.encoders import Identity, Thermometer, Threshold
from gatefit.network import LogicNetwork
from gatefit.ops.threads import training_threads
from gatefit.training.augmentation import Augmentation, AugmentedImages
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData, bit_source
from gatefit.training.loop import Observer, train
from gatefit.training.runs import execute, execute_together, training_data

ALL = Augmentation(shift=2, flip=True, rotate=20.0, zoom=0.2, elastic=0.7)
CASES = [
    Augmentation(shift=1),
    Augmentation(shift=3, flip=True),
    Augmentation(rotate=30.0),
    Augmentation(zoom=0.5),
    Augmentation(elastic=1.5),
    Augmentation(shift=2, flip=True, rotate=20.0, zoom=0.2),
    ALL,
]
CONFIG = RunConfig(
    dataset="digits", width=230, depth=2, steps=24, evaluate_every=8, batch_size=96, shift=1, rotate=10.0, zoom=0.1
)


def images(samples=200, shape=(9, 7, 3), seed=0):
    height, width, channels = shape
    return np.random.default_rng(seed).integers(0, 256, (samples, channels * height * width), dtype=np.uint8)


def between(positions):
    """The point of a bend before each position along an axis, and the way to the next in 1/256."""
    ways = [256 * 4 * p // max(len(positions) - 1, 1) for p in positions]
    return np.array([min(way // 256, 3) for way in ways]), np.array([way - 256 * min(way // 256, 3) for way in ways])


def bent(bend, height, width):
    """e(p) of one sample: the mean of four points, weighted by their distances."""
    (above, v), (left, h) = between(range(height)), between(range(width))
    v, grid = v[:, None], np.ix_
    upper = (256 - h) * bend[grid(above, left)] + h * bend[grid(above, left + 1)]
    lower = (256 - h) * bend[grid(above + 1, left)] + h * bend[grid(above + 1, left + 1)]
    return ((256 - v) * upper + v * lower) // 2**16


def moved(rows, shape, moves, bends=None):
    """The definition, pixel by pixel of every sample, in whole numbers."""
    height, width, channels = shape
    result = np.empty((len(rows), channels, height, width), dtype=np.int64)
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    for i, (dy, dx, flip, a, b, c, d) in enumerate(moves.tolist()):
        image = rows[i].astype(np.int64).reshape(channels, height, width)
        image = image[:, :, ::-1] if flip else image
        down, right = 2 * (y - dy) - (height - 1), 2 * (x - dx) - (width - 1)
        rise, run = a * down + b * right + (height - 1) * 2**16, c * down + d * right + (width - 1) * 2**16
        if bends is not None:
            # On the border at most, as a pixel beyond it is the border's: also where weights would reach back.
            rise = np.clip(rise + bent(bends[i, 0], height, width), 0, (height - 1) * 2**17)
            run = np.clip(run + bent(bends[i, 1], height, width), 0, (width - 1) * 2**17)
        top, left = rise // 2**17, run // 2**17
        v, h = rise % 2**17 // 2**9, run % 2**17 // 2**9

        def pixel(row, column, image=image):
            return image[:, np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]

        above = (256 - h) * pixel(top, left) + h * pixel(top, left + 1)
        below = (256 - h) * pixel(top + 1, left) + h * pixel(top + 1, left + 1)
        result[i] = ((256 - v) * above + v * below + 2**15) // 2**16
    return result.reshape(len(rows), -1).astype(np.uint8)


@pytest.mark.parametrize("augmentation", CASES, ids=lambda a: "-".join(a.names()))
@pytest.mark.parametrize(
    "encoder",
    [Threshold(127.5), Thermometer(3, order="threshold", low=0, high=255), Thermometer(5, "quantile")],
    ids=["one", "planes", "quantiles"],
)
def test_bits_are_those_of_the_moved_images(augmentation, encoder):
    shape, rows = (9, 7, 3), images()
    source = AugmentedImages(rows, shape, encoder.fit(rows), augmentation)
    indices = np.random.default_rng(1).integers(0, len(rows), 150)
    moves, bends = augmentation.moves(3, 17, 150), augmentation.bends(3, 17, 150) if augmentation.elastic else None
    found = unpack(source.training_batch(indices, seed=3, step=17))
    expected = encoder.transform(moved(rows[indices], shape, moves, bends))
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(expected, encoder.transform(rows[indices]))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_that_was_announced_is_the_same(threads, monkeypatch):
    rows, encoder = images(), Threshold(100.0)
    source = AugmentedImages(rows, (9, 7, 3), encoder.fit(rows), ALL, until=8)
    first, second = np.random.default_rng(1).integers(0, len(rows), (2, 150))
    plain = [source.training_batch(each, seed=3, step=step).words for step, each in ((5, first), (6, second))]
    made = []
    by_itself = source._moved
    monkeypatch.setattr(source, "_moved", lambda *arguments: made.append(arguments[1:]) or by_itself(*arguments))
    with training_threads(threads):
        # As the loop has it: a step is announced before the batch of the step before it is asked for.
        source.announce(first, seed=3, step=5)
        source.announce(second, seed=3, step=6)
        for step, each, expected in ((5, first, plain[0]), (6, second, plain[1])):
            np.testing.assert_array_equal(source.training_batch(each, seed=3, step=step).words, expected)
        assert sorted(made) == [(3, 5, 0), (3, 6, 0)]  # each once
        # Other samples, another place in the batch and another seed are not what was announced.
        source.announce(first, seed=3, step=6)
        np.testing.assert_array_equal(source.training_batch(second, seed=3, step=6).words, plain[1])
        for step in (5, 6, 7):
            source.announce(first, seed=4, step=step)
        np.testing.assert_array_equal(source.training_batch(first, seed=3, step=5).words, plain[0])
        assert len(source._announced) <= 2
        source.announce(first, seed=3, step=8)  # from here on images are read as they are
        np.testing.assert_array_equal(
            unpack(source.training_batch(first, seed=3, step=8)), encoder.transform(rows[first])
        )
        with pytest.raises(IndexError, match="there are 200 images"):
            source.announce(first + 200, seed=3, step=5)


def test_what_is_measured_is_not_moved():
    rows, encoder = images(), Threshold(100.0)
    source = AugmentedImages(rows, (9, 7, 3), encoder.fit(rows), ALL)
    np.testing.assert_array_equal(unpack(source.batch(np.arange(100))), encoder.transform(rows[:100]))


def test_a_rotation_by_half_a_turn_and_a_shift_are_what_they_are_called():
    picture = np.arange(12, dtype=np.uint8).reshape(1, 12)
    half_turn = Augmentation(rotate=180.0).moves_of(np.array([[0.5, 0.5, 0.9, 1.0, 0.5]]))
    np.testing.assert_array_equal(moved(picture, (3, 4, 1), half_turn), picture[:, ::-1])
    down_and_left = Augmentation(shift=1).moves_of(np.array([[0.99, 0.0, 0.9, 0.5, 0.5]]))
    expected = [[1, 2, 3, 3], [1, 2, 3, 3], [5, 6, 7, 7]]
    np.testing.assert_array_equal(moved(picture, (3, 4, 1), down_and_left).reshape(3, 4), expected)
    larger = Augmentation(zoom=0.5).moves_of(np.array([[0.5, 0.5, 0.9, 0.5, 1.0]]))
    spot = np.zeros((1, 25), dtype=np.uint8)
    spot[0, 12] = 255
    assert moved(spot, (5, 5, 1), larger).astype(int).sum() > 2 * 255


def test_a_bend_moves_its_points_and_what_is_between_them():
    still = Augmentation().moves_of(np.full((1, 5), 0.5))
    picture = np.arange(81, dtype=np.uint8).reshape(1, 81)
    bends = np.zeros((1, 2, 5, 5), dtype=np.int64)
    bends[0, 1, 2] = 2**17  # the middle row reads a pixel further right, rows beside it half as far
    middle = moved(picture, (9, 9, 1), still, bends).reshape(9, 9)
    np.testing.assert_array_equal(middle[4, :8], np.arange(37, 45))
    np.testing.assert_array_equal(middle[[0, 2, 6, 8]], picture.reshape(9, 9)[[0, 2, 6, 8]])
    spots = np.zeros((1, 81), dtype=np.uint8)
    spots[0, 36:45:2] = 200
    halves = moved(spots, (9, 9, 1), still, bends // 2).reshape(9, 9)
    assert halves[4].tolist() == [100] * 8 + [200]


def test_bends_reach_their_bound_and_are_a_function_of_seed_step_and_place():
    augmentation = Augmentation(elastic=1.5)
    bends = augmentation.bends(5, 9, 2000)
    assert [bends.min() / 2**17, bends.max() / 2**17] == pytest.approx([-1.5, 1.5], abs=0.001)
    assert abs(bends.mean()) / 2**17 < 0.02
    np.testing.assert_array_equal(augmentation.bends(5, 9, 37, first=20), bends[20:57])
    for other in (augmentation.bends(6, 9, 2000), augmentation.bends(5, 10, 2000)):
        assert (other != bends).any(axis=(1, 2, 3)).all()
    np.testing.assert_array_equal(augmentation.moves(5, 9, 8), replace(augmentation, elastic=0.0).moves(5, 9, 8))


def test_images_are_read_as_they_are_after_a_part_of_the_steps():
    dataset = load_dataset("digits")
    config = replace(CONFIG, augment_until=0.71)  # of 24 steps: 17.04
    source = training_data(config, dataset).train
    indices = np.arange(96)
    plain = unpack(source.batch(indices))
    for step in range(24):
        same = np.array_equal(unpack(source.training_batch(indices, seed=0, step=step)), plain)
        assert same == (step >= 18), step


def test_every_shift_is_as_likely_and_half_are_flipped():
    moves = Augmentation(shift=1, flip=True).moves(0, 0, 90_000)
    _, counts = np.unique(moves[:, :2], axis=0, return_counts=True)
    assert len(counts) == 9
    assert np.abs(counts - 10_000).max() < 500  # five standard deviations
    assert abs(moves[:, 2].sum() - 45_000) < 750


def test_angles_and_sizes_reach_their_bounds_and_not_beyond():
    moves = Augmentation(rotate=15.0, zoom=0.25).moves(0, 0, 20_000)
    angles = np.degrees(np.arctan2(moves[:, 5], moves[:, 3]))
    sizes = 2**16 / np.hypot(moves[:, 3], moves[:, 5])
    assert [angles.min(), angles.max()] == pytest.approx([-15, 15], abs=0.01)
    assert [sizes.min(), sizes.max()] == pytest.approx([0.75, 1.25], abs=0.001)


def test_moves_are_a_function_of_seed_step_and_place():
    whole = ALL.moves(5, 9, 100)
    np.testing.assert_array_equal(ALL.moves(5, 9, 37, first=20), whole[20:57])
    for other in (ALL.moves(6, 9, 100), ALL.moves(5, 10, 100), ALL.moves(5, 9, 100, first=1)):
        assert (other != whole).any(axis=1).mean() > 0.9


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(threads):
    rows, encoder = images(), Thermometer(3, low=0, high=255)
    source = AugmentedImages(rows, (9, 7, 3), encoder.fit(rows), ALL)
    words = []
    for count in (1, threads):
        with training_threads(count):
            words.append(source.training_batch(np.arange(200), seed=0, step=4).words)
    np.testing.assert_array_equal(*words)


class StopAt(Observer):
    def __init__(self, step):
        self.at, self.now = step, False

    def stepped(self, state, network, loss):
        self.now = state.step >= self.at

    def __call__(self):
        return self.now


def same_bits(one, two):
    return all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize("options", [{}, {"wiring": "learned"}, {"elastic": 0.5, "augment_until": 0.6}])
def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path, options):
    config = replace(CONFIG, **options)
    whole = execute(config, folder=tmp_path / "whole", threads=1)
    stopper = StopAt(11)
    part = execute(config, folder=tmp_path / "parts", observers=[stopper], should_stop=stopper, threads=2)
    assert not part.result.finished
    resumed = execute(config, folder=tmp_path / "parts", threads=2)
    assert same_bits(whole.network, resumed.network)
    assert whole.result.state.metrics == resumed.result.state.metrics
    still = execute(
        replace(config, shift=0, rotate=0.0, zoom=0.0, elastic=0.0, augment_until=1.0),
        folder=tmp_path / "still",
        threads=1,
    )
    assert not same_bits(whole.network, still.network)


def test_seeds_side_by_side_see_the_moves_that_each_sees_alone(tmp_path):
    configs = [replace(CONFIG, seed=seed) for seed in range(2)]
    together = execute_together(configs, folders=[tmp_path / f"together-{seed}" for seed in range(2)])
    for config, run in zip(configs, together, strict=True):
        alone = execute(config, folder=tmp_path / f"alone-{config.seed}")
        assert same_bits(alone.network, run.network)
        assert alone.result.state.metrics == run.result.state.metrics


def test_the_loop_takes_images_of_your_own():
    rows = images(300, (6, 6, 1))
    labels = torch.from_numpy((rows[:, :18].sum(1) > rows[:, 18:].sum(1)).astype(np.int64))
    encoder = Thermometer(3, low=0, high=255).fit(rows)
    source = AugmentedImages(rows[:200], (6, 6, 1), encoder, Augmentation(flip=True))
    data = TrainingData(source, labels[:200], bit_source(rows[200:], encoder), labels[200:])
    network = LogicNetwork(encoder.bits, 2, 60, 2, seed=0)
    config = RunConfig(dataset="own", width=60, depth=2, steps=60, evaluate_every=60, batch_size=100, learning_rate=0.1)
    assert train(config, network, data).state.metrics[-1]["train_hard"] > 0.7


def test_validation_images_are_not_moved():
    dataset = load_dataset("digits")
    data = training_data(replace(CONFIG, validation_fraction=0.2), dataset)
    assert isinstance(data.train, AugmentedImages)
    assert not isinstance(data.test, AugmentedImages)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": 1}, r"^monks-1 has no images to move by shift; leave shift out$"),
        ({"flip": True, "rotate": 5.0}, r"^monks-1 has no images to move by flip or rotate; leave flip, rotate out$"),
        (
            {"dataset": "digits", "width": 230, "shift": 8},
            r"^shift=8 moves images of 8 x 8 pixels out of sight; use at most 7$",
        ),
        ({"elastic": 0.5}, r"^monks-1 has no images to move by elastic; leave elastic out$"),
        (
            {"dataset": "digits", "width": 230, "elastic": 8.0},
            r"^elastic=8 bends images of 8 x 8 pixels out of sight; use less than 8, and about a twentieth of it ",
        ),
    ],
)
def test_what_cannot_be_moved_is_refused_before_anything_is_written(tmp_path, options, message):
    config = replace(RunConfig(dataset="monks-1", width=40, depth=2, steps=5), **options)
    with pytest.raises(ValueError, match=message):
        execute(config, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": -1}, "shift must be a whole number >= 0, got -1"),
        ({"shift": 1.5}, "shift must be a whole number, got 1.5"),
        ({"flip": 1}, "flip must be True or False, got 1"),
        ({"rotate": 181.0}, "rotate must be a finite number <= 180, got 181.0"),
        ({"zoom": 1.0}, "zoom must be a finite number < 1, got 1.0"),
        ({"elastic": -1.0}, "elastic must be a finite number >= 0, got -1.0"),
        ({"augment_until": 0.0}, "augment_until must be a finite number > 0, got 0.0"),
        ({"augment_until": 0.5}, r"augment_until=0.5 ends moves of images, and none is asked for; set shift, flip,"),
        ({"augment_until": 1.5}, "augment_until must be a finite number <= 1, got 1.5"),
    ],
)
def test_moves_out_of_bounds_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RunConfig(**options)


def test_samples_that_are_not_there_are_refused():
    source = AugmentedImages(images(), (9, 7, 3), Threshold(9.0).fit(images()), ALL)
    for wrong in (-1, 200):
        with pytest.raises(IndexError, match="there are 200 images, numbered from 0"):
            source.training_batch(np.array([0, wrong]), seed=0, step=0)


def test_only_thresholds_of_bytes_can_be_moved():
    with pytest.raises(ValueError, match=r"images to be moved are uint8 \(samples, 36\).*got float64"):
        AugmentedImages(np.zeros((2, 36)), (6, 6, 1), Threshold(0.5).fit(np.zeros((2, 36))), Augmentation(flip=True))
    bits = np.zeros((2, 36), dtype=np.uint8)
    with pytest.raises(ValueError, match="every bit compares a pixel with a threshold"):
        AugmentedImages(bits, (6, 6, 1), Identity().fit(bits.astype(bool)), Augmentation(flip=True))
