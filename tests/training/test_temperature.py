"""The search for a temperature: deterministic, on training data alone, kept with the run; it finds valleys."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gatefit.datasets import load_dataset
from gatefit.network import LogicNetwork
from gatefit.training import temperature
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, Subset, TrainingData
from gatefit.training.folder import RunFolderError
from gatefit.training.loop import Observer, Strategy
from gatefit.training.runs import build_network, execute, execute_together, load_network, training_data
from gatefit.training.side_by_side import NotSideBySideError
from gatefit.training.temperature import (
    FACTORS,
    TemperatureSearch,
    TemperatureTrial,
    find_temperature,
    least_cross_entropy,
    read_search,
    search_temperature,
)

CONFIG = RunConfig(
    dataset="digits", thresholds=1, width=100, depth=2, wiring="learned", votes="all", steps=12, evaluate_every=6,
    batch_size=64, learning_rate=0.03, schedule="cosine", readout_temperature="search",
)  # fmt: skip
UNIT = (200 / 10) ** 0.5


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("digits", thresholds=1)


def searched(dataset, config=CONFIG, **options):
    data = training_data(config, dataset)
    return find_temperature(config, lambda own: build_network(own, dataset), data, **options)


def test_the_same_whatever_the_threads_and_the_test_set(dataset):
    one = searched(dataset, threads=1)
    assert searched(dataset, threads=2) == one
    other = replace(dataset, y_test=np.zeros_like(dataset.y_test), x_test=dataset.x_test[::-1].copy())
    assert searched(other) == one
    data = training_data(CONFIG, dataset)
    assert search_temperature(CONFIG, lambda own: build_network(own, dataset), data) == one.temperature
    assert 0.9 * FACTORS[0] * UNIT < one.temperature < 1.1 * FACTORS[-1] * UNIT
    assert one.apart == 2 * 287  # a fifth of 1,438 samples, class by class, is not enough: twice
    assert [trial.temperature / UNIT for trial in one.trials] == pytest.approx([trial.factor for trial in one.trials])
    assert json.loads(one.to_json())["steps"] == one.steps == 12
    assert TemperatureSearch.from_json(one.to_json()) == one


@pytest.mark.parametrize("valley", [0.1, 0.25, 0.4, 0.5, 0.9, 1.3, 5.0])
def test_a_valley_is_found_from_either_side(monkeypatch, dataset, valley):
    def trial(config, build, parts, unit, threads, should_stop):
        factor = config.readout_temperature / unit
        return TemperatureTrial(config.readout_temperature, factor, 1 + np.log2(factor / valley) ** 2, 0.5)

    monkeypatch.setattr(temperature, "_trial", trial)
    told = []
    found = searched(dataset, tried=told.append)
    bounded = min(max(valley, FACTORS[0]), FACTORS[-1])
    assert found.temperature / UNIT == pytest.approx(bounded, rel=1e-3)
    assert sorted(told, key=lambda each: each.factor) == list(found.trials)
    assert len(told) <= 5


def test_the_length_of_trials_follows_that_of_the_training(monkeypatch, dataset):
    seen = []

    def trial(config, *others):
        seen.append((config.steps, config.warmup))
        return TemperatureTrial(config.readout_temperature, 1.0, 1.0, 0.5)

    monkeypatch.setattr(temperature, "_trial", trial)
    lengths = [searched(dataset, replace(CONFIG, steps=n, warmup=100)).steps for n in (150, 1000, 20_000, 10**6)]
    assert lengths == [150, 200, 600, 1000]
    assert set(seen) == {(150, 100), (200, 20), (600, 3), (1000, 0)}


def test_the_figure_is_the_least_cross_entropy_over_all_scales():
    generator = np.random.default_rng(0)
    targets = generator.integers(0, 4, 300)
    scores = generator.normal(size=(300, 4)) + 2.0 * np.eye(4)[targets]
    expected = min(
        torch.nn.functional.cross_entropy(torch.tensor(scale * scores), torch.tensor(targets)).item()
        for scale in np.exp2(np.linspace(-3, 3, 2001))
    )
    assert least_cross_entropy(scores, targets) == pytest.approx(expected, abs=1e-5)
    assert least_cross_entropy(40 * scores, targets) == pytest.approx(expected, abs=1e-5)
    repeated = generator.integers(1, 4, 300)
    assert least_cross_entropy(scores, targets, repeated.astype(float)) == pytest.approx(
        least_cross_entropy(scores.repeat(repeated, axis=0), targets.repeat(repeated)), rel=1e-9
    )
    assert least_cross_entropy(-scores, targets) == pytest.approx(np.log(4), abs=0.05)  # better silent than wrong


def test_parts_of_a_source_are_its_samples():
    bits = np.random.default_rng(0).random((90, 20)) < 0.5
    rows = np.array([3, 80, 7, 7])
    part = Subset(PackedRows(bits), rows)
    assert (part.samples, part.bits) == (4, 20)
    found = part.batch(np.array([1, 2])).words
    np.testing.assert_array_equal(found, PackedRows(bits).batch(rows[[1, 2]]).words)
    np.testing.assert_array_equal(found, part.training_batch(np.array([1, 2]), seed=0, step=0).words)


class StopAt(Observer):
    def __init__(self, step):
        self.at, self.now, self.told = step, False, []

    def tried(self, config, temperature, accuracy):
        self.told.append(temperature)

    def stepped(self, state, network, loss):
        self.now = state.step >= self.at

    def __call__(self):
        return self.now


def test_a_run_keeps_its_search_and_goes_on_with_it(tmp_path, dataset):
    watcher = StopAt(99)
    whole = execute(CONFIG, folder=tmp_path / "whole", dataset=dataset, observers=[watcher], threads=1)
    search = read_search(tmp_path / "whole")
    assert search == searched(dataset)
    assert len(watcher.told) == len(search.trials) >= 3
    assert whole.network.readout.temperature == search.temperature
    assert load_network(tmp_path / "whole" / "model.safetensors").readout.temperature == search.temperature
    # The run is that of its number.
    number = execute(
        replace(CONFIG, readout_temperature=search.temperature), folder=tmp_path / "number", dataset=dataset
    )
    assert number.result.state.metrics == whole.result.state.metrics
    # Stopped and resumed: the same bytes, without another search.
    stopper = StopAt(8)
    execute(CONFIG, folder=tmp_path / "parts", dataset=dataset, observers=[stopper], should_stop=stopper, threads=2)
    watcher = StopAt(99)
    execute(CONFIG, folder=tmp_path / "parts", dataset=dataset, observers=[watcher])
    assert watcher.told == []
    for name in ("temperature.json", "model.safetensors", "metrics.jsonl", "result.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    # A finished run is read back with it.
    again = execute(CONFIG, folder=tmp_path / "whole", dataset=dataset, observers=[watcher])
    assert watcher.told == []
    assert again.network.readout.temperature == search.temperature


def test_a_damaged_record_is_made_again(tmp_path, dataset):
    stopper = StopAt(1)
    execute(CONFIG, folder=tmp_path, dataset=dataset, observers=[stopper], should_stop=stopper)
    path = tmp_path / "temperature.json"
    before = path.read_bytes()
    for damaged in (b"", b"{}", before[:40], before.replace(b'"temperature": ', b'"temperature": -', 1)):
        path.write_bytes(damaged)
        assert read_search(tmp_path) is None
    assert execute(CONFIG, folder=tmp_path, dataset=dataset).result.finished
    assert path.read_bytes() == before


def test_a_search_that_is_stopped_leaves_a_run_to_begin(tmp_path, dataset):
    run = execute(CONFIG, folder=tmp_path, dataset=dataset, should_stop=lambda: True)
    assert not run.result.finished
    assert run.result.state.step == 0
    assert not (tmp_path / "temperature.json").exists()
    assert execute(CONFIG, folder=tmp_path, dataset=dataset).result.finished


def test_what_cannot_be_searched_is_refused(tmp_path, dataset):
    seeds = [replace(CONFIG, seed=seed) for seed in range(2)]
    with pytest.raises(NotSideBySideError, match="train runs that search it one by one"):
        execute_together(seeds, folders=[tmp_path / str(seed) for seed in range(2)], dataset=dataset)
    shared = Strategy()
    shared.alone = False
    with pytest.raises(ValueError, match="is done by one process; search it without torchrun"):
        execute_together([CONFIG], folders=[tmp_path / "run"], dataset=dataset, strategy=shared)
    assert not any(tmp_path.iterdir())
    few = TrainingData(
        PackedRows(np.eye(4, dtype=bool)), torch.arange(4), PackedRows(np.eye(4, dtype=bool)), torch.arange(4)
    )
    with pytest.raises(ValueError, match="of 4 samples in 4 classes that is none; give a number"):
        find_temperature(CONFIG, lambda own: LogicNetwork(4, 4, 4, 1), few)
    values = replace(few, train_targets=torch.rand(4))
    with pytest.raises(ValueError, match="is for class scores, and the targets are real numbers"):
        find_temperature(CONFIG, lambda own: LogicNetwork(4, 4, 4, 1), values)
    with pytest.raises(ValueError, match="needs class scores with a temperature; RegressionReadout has none"):
        find_temperature(CONFIG, lambda own: LogicNetwork(4, 1, 4, 1, readout="regression"), values)
    with pytest.raises(ValueError, match="readout_temperature must be 'search', a number or None, got 'serch'"):
        RunConfig(readout_temperature="serch")


def test_a_run_with_a_search_does_not_go_on_to_more_steps(tmp_path, dataset):
    config = replace(CONFIG, schedule="constant")
    execute(config, folder=tmp_path, dataset=dataset)
    with pytest.raises(RunFolderError, match="whose temperature was searched for by trainings as long as"):
        execute(replace(config, steps=24), folder=tmp_path, dataset=dataset)


def test_weights_count_in_training_and_in_judgement(dataset):
    data = training_data(CONFIG, dataset)
    weights = torch.rand(data.train.samples, generator=torch.Generator().manual_seed(0))
    found = [
        find_temperature(CONFIG, lambda own: build_network(own, dataset), replace(data, train_weights=each))
        for each in (None, weights)
    ]
    assert found[0].trials[0].cross_entropy != pytest.approx(found[1].trials[0].cross_entropy, rel=1e-3)


def test_a_network_that_is_not_boolean_is_judged_as_it_is_trained(dataset):
    config = replace(CONFIG, method="multilinear-free", wiring="random", votes=None, steps=5, width=230)
    assert searched(dataset, config).temperature > 0


def test_a_network_needs_a_number(dataset):
    with pytest.raises(ValueError, match="a network takes the number that they find"):
        build_network(CONFIG, dataset)
