"""The loop: it learns, resumes to the bit, stops when told, and says what went wrong."""

import math

import numpy as np
import pytest
import torch

from gatefit.network import LogicNetwork
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.data import EncodedRows, PackedRows, TrainingData, bit_source
from gatefit.training.loop import Observer, TrainingDivergedError, learning_rate, loss_of, train
from gatefit.training.metrics import evaluate, summary

INPUTS = 10


def config(**options):
    return RunConfig(**{"dataset": "custom", "width": 40, "depth": 2, "steps": 120, "evaluate_every": 40, **options})


def make_data(seed=0, samples=256, **options):
    x = np.random.default_rng(seed).random((samples, INPUTS)) < 0.5
    y = torch.tensor(((x[:, 0] & x[:, 1]) | x[:, 2]).astype(np.int64))
    half = samples // 2
    return TrainingData(PackedRows(x[:half]), y[:half], PackedRows(x[half:]), y[half:], **options)


def network(method="multilinear-covjac", seed=0, **options):
    return LogicNetwork(INPUTS, 2, 40, 2, method=method, seed=seed, **options)


def bits_of(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def identical(one, two):
    return all(torch.equal(value, two[name]) for name, value in one.items())


class StopAt(Observer):
    def __init__(self, step):
        self.at, self.now = step, False

    def stepped(self, state, network, loss):
        self.now = state.step >= self.at

    def __call__(self):
        return self.now


@pytest.mark.parametrize("method", ["soft-mix", "multilinear-ste", "multilinear-covjac", "iwp", "hard-st"])
def test_a_function_is_learned_and_deployed(method):
    result = train(config(steps=400, evaluate_every=100), network(method), make_data(samples=2000))
    assert result.finished
    assert result.summary["test_accuracy"] > 0.9
    assert [row["step"] for row in result.state.metrics] == [100, 200, 300, 400]


@pytest.mark.parametrize("method", ["multilinear-covjac", "gumbel-st", "multilinear-ste"])
@pytest.mark.parametrize("stop", [1, 57, 80])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, method, stop):
    settings, data = config(schedule="cosine", warmup=10, batch_size=48), make_data()
    whole = network(method)
    expected = train(settings, whole, data)
    stopper = StopAt(stop)
    first = train(settings, network(method), data, folder=tmp_path, observers=[stopper], should_stop=stopper)
    assert not first.finished
    assert first.state.step == stop
    resumed = network(method, seed=77)  # what it starts from does not matter: the checkpoint says everything
    second = train(settings, resumed, data, folder=tmp_path)
    assert second.finished
    assert second.state.metrics == expected.state.metrics
    assert identical(bits_of(whole), bits_of(resumed))


@pytest.mark.parametrize("method", ["soft-mix", "multilinear-covjac", "multilinear-ste"])
def test_one_and_two_threads_give_the_same_bits(method):
    # Large enough that the kernels do run in parallel.
    x = np.random.default_rng(0).random((600, 64)) < 0.5
    y = torch.tensor(x[:, :8].sum(1) % 4)
    data = TrainingData(PackedRows(x), y, PackedRows(x), y)
    ends = []
    for threads in (1, 2):
        net = LogicNetwork(64, 4, 800, 3, method=method)
        train(config(width=800, depth=3, steps=8, evaluate_every=8), net, data, threads=threads)
        ends.append(bits_of(net))
    assert identical(*ends)


def test_evaluation_does_not_change_the_run():
    # Soft evaluation of Gumbel-ST draws noise; the training's own noise must not notice.
    ends = []
    for every in (10, 120):
        net = network("gumbel-st")
        train(config(evaluate_every=every), net, make_data())
        ends.append(bits_of(net))
    assert identical(*ends)


def test_patience_stops_and_the_best_is_kept():
    data = make_data(keep_best=True)
    net = network()
    result = train(config(steps=2000, evaluate_every=20, patience=3, validation_fraction=0.5), net, data)
    scores = [row["test_hard"] for row in result.state.metrics]
    assert len(scores) - 1 - int(np.argmax(scores)) == 3 or result.state.step == 2000
    assert evaluate(net, data.test, data.test_targets)["hard"] == max(scores)
    figures, best = result.summary, result.state.metrics[int(np.argmax(scores))]
    assert figures["validation_accuracy"] == figures["best_accuracy"] == max(scores) != scores[-1]
    assert figures["train_accuracy"] == evaluate(net, data.train, data.train_targets)["hard"] == best["train_hard"]
    assert figures["generalisation_gap"] == best["generalisation_gap"]
    assert "test_accuracy" not in figures


def test_the_test_set_does_not_end_a_recorded_run_that_goes_on():
    # Older versions allowed it, and their records are read.
    recorded = RunConfig.from_dict({"dataset": "custom", "width": 40, "depth": 2, "steps": 120, "patience": 3})
    with pytest.raises(ValueError, match=r"patience=3 needs a validation set"):
        train(recorded, network(), make_data())


def test_sample_weights_decide_between_contradicting_labels():
    x = np.random.default_rng(0).random((200, INPUTS)) < 0.5
    both = np.concatenate([x, x])
    y = torch.tensor([0] * 200 + [1] * 200)
    weights = torch.tensor([0.1] * 200 + [1.0] * 200)
    data = TrainingData(PackedRows(both), y, PackedRows(x), y[200:], train_weights=weights)
    assert train(config(steps=200), network(), data).summary["test_accuracy"] == 1.0


def test_regression_learns_the_number_of_ones():
    x = np.random.default_rng(0).random((400, INPUTS)) < 0.5
    y = torch.tensor(x[:, :4].sum(1), dtype=torch.float64)
    data = TrainingData(PackedRows(x[:300]), y[:300], PackedRows(x[300:]), y[300:])
    net = LogicNetwork(INPUTS, 1, 40, 2, readout="regression", target_range=(0.0, 4.0))
    assert train(config(steps=600, evaluate_every=600), net, data).summary["test_accuracy"] > 0.8


def test_a_linear_readout_learns_and_deploys():
    assert train(config(steps=300), network(readout="linear"), make_data()).summary["test_accuracy"] > 0.9


def test_a_diverging_loss_is_named():
    data = make_data()
    net = LogicNetwork(INPUTS, 1, 40, 2, readout="regression")
    broken = TrainingData(data.train, torch.full((128,), math.nan), data.test, torch.zeros(128))
    with pytest.raises(TrainingDivergedError, match=r"the loss is nan at step 1; lower learning_rate=0.01"):
        train(config(), net, broken)


def test_learning_rate_schedules():
    assert learning_rate(config(), 77) == 0.01
    cosine = config(schedule="cosine", steps=100, warmup=10)
    assert learning_rate(cosine, 0) == pytest.approx(0.01 / 11)
    assert learning_rate(cosine, 10) == 0.01
    assert learning_rate(cosine, 55) == pytest.approx(0.005)
    assert learning_rate(config(schedule="linear", steps=100), 25) == pytest.approx(0.0075)


def test_weighted_loss_is_a_weighted_mean():
    scores, targets = torch.tensor([[2.0, 0], [0, 1]]), torch.tensor([0, 0])
    each = [float(loss_of(scores[i : i + 1], targets[i : i + 1], None)) for i in range(2)]
    weighted = float(loss_of(scores, targets, torch.tensor([3.0, 1.0])))
    assert weighted == pytest.approx((3 * each[0] + each[1]) / 4)


def test_summary_averages_the_last_ten():
    rows = [
        {
            "step": i,
            "loss": 0.0,
            "train_hard": 1.0,
            "train_soft": 1.0,
            "test_hard": i / 20,
            "test_soft": 0.9,
            "train_discretisation_gap": 0.0,
            "test_discretisation_gap": 0.1,
        }
        for i in range(20)
    ]
    found = summary(rows)
    assert found["last_10_accuracy"] == pytest.approx(np.mean([i / 20 for i in range(10, 20)]))
    assert (found["best_accuracy"], found["best_step"]) == (0.95, 19)
    assert summary([]) == {}


def test_free_networks_report_soft_accuracy_marked_not_boolean():
    found = train(config(steps=40), network("iwp-free"), make_data()).summary
    assert found["boolean"] is False
    assert 0 <= found["test_accuracy"] <= 1


def test_large_sets_are_encoded_batch_by_batch():
    from gatefit.encoders import Threshold

    rows = np.random.default_rng(0).random((50, 6))
    encoder = Threshold(0.5).fit(rows)
    packed, lazy = bit_source(rows, encoder), bit_source(rows, encoder, limit=10)
    assert isinstance(packed, PackedRows)
    assert isinstance(lazy, EncodedRows)
    indices = np.array([3, 1, 40])
    net = LogicNetwork(6, 2, 10, 1)
    assert torch.equal(net.soft_scores(packed.batch(indices)), net.soft_scores(lazy.batch(indices)))


def test_observers_see_every_step():
    seen = []

    class Watch(Observer):
        def started(self, config, network, state):
            seen.append("started")

        def stepped(self, state, network, loss):
            seen.append(state.step)

        def evaluated(self, state, network, metrics):
            seen.append(metrics["step"] / 10)

        def finished(self, state, network):
            seen.append("finished")

    train(config(steps=2, evaluate_every=2), network(), make_data(), observers=[Watch()])
    assert seen == ["started", 1, 2, 0.2, "finished"]
    assert TrainingState().best is None
