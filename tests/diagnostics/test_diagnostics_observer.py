"""Diagnostics of a run: the same rows whether it was watched, stopped, resumed or looked at afterwards."""

import dataclasses

import numpy as np
import pytest
import torch

from gatefit.bits import unpack
from gatefit.datasets import load_dataset
from gatefit.network import LogicNetwork
from gatefit.training import diagnostics_observer
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.diagnostics_observer import DiagnosticsObserver, diagnose, diagnose_folder, probe_batches
from gatefit.training.loop import Learner, Observer, loss_of, train, train_together
from gatefit.training.runs import build_network, execute, training_data
from gatefit.training.side_by_side import SideBySide

SAMPLES, INPUTS = 300, 10


def make_data(samples=SAMPLES, weights=None):
    x = np.random.default_rng(0).random((samples, INPUTS)) < 0.5
    y = torch.tensor(((x[:, 0] & x[:, 1]) | x[:, 2]).astype(np.int64))
    return TrainingData(PackedRows(x), y, PackedRows(x[:50]), y[:50], train_weights=weights)


def config(**options):
    return RunConfig(
        **{
            "dataset": "monks-1",
            "width": 40,
            "depth": 2,
            "steps": 60,
            "evaluate_every": 20,
            "batch_size": 64,
            **options,
        }
    )


def network(method="multilinear-covjac", seed=0):
    return LogicNetwork(INPUTS, 2, 40, 2, method=method, seed=seed)


def words(batches):
    return [(batch.x.samples, batch.x.words.tolist()) for batch in batches]


def test_the_batches_are_the_first_of_an_order_of_the_seed():
    data, settings = make_data(), config()
    batches = probe_batches(settings, data)
    assert [len(batch.x) for batch in batches] == [64] * 4
    assert words(batches) == words(probe_batches(config(steps=7, method="soft-mix", wiring_seed=4), data))
    assert words(batches) != words(probe_batches(config(seed=1), data))
    # Every sample is met once: 256 different ones of a set in which each is its own number.
    numbers = (np.arange(SAMPLES)[:, None] >> np.arange(INPUTS)) & 1 == 1
    numbered = dataclasses.replace(data, train=PackedRows(numbers), train_targets=torch.arange(SAMPLES))
    found = [batch.x for batch in probe_batches(settings, numbered)]
    met = np.concatenate([unpack(x) for x in found]) @ (1 << np.arange(INPUTS))
    assert len(set(met.tolist())) == 256


@pytest.mark.parametrize(
    ("samples", "batch_size", "sizes"),
    [(300, 64, [64] * 4), (300, 128, [128, 128]), (300, 300, [300]), (40, 64, [40]), (3000, 1000, [512] * 4)],
)
def test_small_sets_have_fewer_batches_and_none_is_larger_than_512(samples, batch_size, sizes):
    assert [len(batch.x) for batch in probe_batches(config(batch_size=batch_size), make_data(samples))] == sizes


def test_the_loss_is_that_of_training_with_its_weights():
    weights = torch.arange(SAMPLES) + 1.0
    numbers = (np.arange(SAMPLES)[:, None] >> np.arange(INPUTS)) & 1 == 1
    base = make_data(weights=weights)
    data = dataclasses.replace(base, train=PackedRows(numbers))
    for batch in probe_batches(config(), data):
        indices = unpack(batch.x) @ (1 << np.arange(INPUTS))
        scores = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
        assert batch.loss(scores) == loss_of(scores, data.train_targets[indices], weights[indices])
        assert batch.loss(scores) != loss_of(scores, data.train_targets[indices], None)


@pytest.mark.parametrize("method", ["multilinear-covjac", "gumbel-st"])
def test_rows_are_written_at_step_0_and_at_evaluations_and_training_goes_on_as_without(method):
    rows, data = [], make_data()
    watched, alone = network(method), network(method)
    untrained = diagnose(config(), network(method), data)
    train(config(), watched, data, observers=[DiagnosticsObserver(lambda step, row: rows.append((step, row)), data)])
    train(config(), alone, data)
    assert [step for step, _ in rows] == [0, 20, 40, 60]
    assert rows[0][1] == untrained
    assert rows[-1][1] == diagnose(config(), alone, data) != untrained
    assert all(torch.equal(value, alone.state_dict()[name]) for name, value in watched.state_dict().items())


def test_only_what_is_named_is_written():
    rows, data = [], make_data()
    observer = DiagnosticsObserver(lambda step, row: rows.append(row), data, names=["census"])
    train(config(steps=20), network(), data, observers=[observer])
    assert [list(row) for row in rows] == [["census"], ["census"]]


@pytest.mark.parametrize("method", ["multilinear-ste", "gumbel-st"])
def test_a_stopped_run_writes_the_same_rows(tmp_path, method):
    data = make_data()
    whole, parts = {}, {}
    train(config(), network(method), data, observers=[DiagnosticsObserver(whole.__setitem__, data)])

    class StopAt(Observer):
        reached = 0

        def stepped(self, state, network, loss):
            self.reached = state.step

    stop, steps = StopAt(), []
    for limit in (13, 47, 60):

        def write(step, row):
            steps.append(step)
            assert parts.setdefault(step, row) == row

        train(
            config(),
            network(method),
            data,
            folder=tmp_path,
            observers=[stop, DiagnosticsObserver(write, data)],
            should_stop=lambda limit=limit: stop.reached >= limit,
        )
    assert parts == whole
    assert steps == [0, 20, 40, 60]


def test_without_the_observer_nothing_is_computed(monkeypatch):
    def forbidden(*arguments, **options):
        raise AssertionError("computed")

    monkeypatch.setattr(diagnostics_observer, "probe", forbidden)
    monkeypatch.setattr(diagnostics_observer, "probe_batches", forbidden)
    data = make_data()
    train(config(steps=20), network(), data)
    with pytest.raises(AssertionError, match="computed"):
        train(config(steps=20), network(), data, observers=[DiagnosticsObserver(lambda step, row: None, data)])


def test_networks_side_by_side_have_the_rows_of_networks_alone():
    data = make_data()
    configs = [config(method="gumbel-st", seed=seed) for seed in (0, 1)]
    networks = [network("gumbel-st", seed) for seed in (0, 1)]
    train_together(list(map(Learner, configs, networks)), data, strategy=SideBySide())
    for settings, trained in zip(configs, networks, strict=True):
        alone = network("gumbel-st", settings.seed)
        train(settings, alone, data)
        assert diagnose(settings, trained, data) == diagnose(settings, alone, data)


@pytest.mark.parametrize("fraction", [0.0, 0.25])
def test_a_data_set_gives_the_batches_of_its_bits(fraction):
    dataset, settings = load_dataset("monks-1"), config(validation_fraction=fraction, batch_size=32)
    data = training_data(settings, dataset)
    assert words(probe_batches(settings, dataset)) == words(probe_batches(settings, data))
    untrained = build_network(settings, dataset)
    assert diagnose(settings, untrained, dataset) == diagnose(settings, untrained, data)


@pytest.mark.parametrize("fraction", [0.0, 0.25])
def test_a_saved_network_has_the_row_of_its_evaluation(tmp_path, fraction):
    rows, dataset, settings = {}, load_dataset("monks-1"), config(validation_fraction=fraction, steps=100)
    observer = DiagnosticsObserver(rows.__setitem__, dataset)
    execute(settings, folder=tmp_path / "run", dataset=dataset, observers=[observer])
    step, found = diagnose_folder(tmp_path / "run", dataset=dataset)
    assert step == 100 or fraction
    assert rows[step] == found
    assert diagnose_folder(tmp_path / "run", names=["entropy"]) == (step, {"entropy": found["entropy"]})
