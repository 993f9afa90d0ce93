"""Seeds side by side end with the same bits as seeds trained alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gatefit.datasets import load_dataset
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.folder import RunFolderError, locked, read_made
from gatefit.training.loop import Learner, Observer, train, train_together
from gatefit.training.runs import execute, execute_together
from gatefit.training.side_by_side import NotSideBySideError, SideBySide
from gatefit.wirings import WiringOptions
from kill_resume import fingerprint_of_checkpoint

INPUTS, WIDTH = 17, 50
BASE = RunConfig(dataset="custom", width=WIDTH, depth=3, steps=30, evaluate_every=10, batch_size=70, schedule="cosine")


LEARNED = {"wiring": "learned", "score_learning_rate": 0.03, "regrow_every": 4, "regrow_share": 0.4}


def data():
    x = np.random.default_rng(0).random((200, INPUTS)) < 0.5
    y = torch.tensor((x[:, 0] ^ x[:, 5]).astype(np.int64))
    return TrainingData(PackedRows(x[:120]), y[:120], PackedRows(x[120:]), y[120:])


def make(config):
    options = config.method_options()
    return LogicNetwork(
        INPUTS,
        2,
        WIDTH,
        3,
        method=config.method,
        wiring=config.wiring,
        wiring_options=WiringOptions(**config.wiring_options()),
        votes=config.votes or "last",
        seed=config.seed,
        wiring_seed=config.wiring_seed,
        **options,
    )


def train_side_by_side(configs, networks, *, folders=None, observers=None, **options):
    each = zip(configs, networks, folders or [None] * len(configs), observers or [()] * len(configs), strict=True)
    return train_together([Learner(*parts) for parts in each], data(), strategy=SideBySide(), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "soft-mix"},
        {"method": "multilinear-covjac"},
        {"method": "multilinear-ste"},
        {"method": "multilinear-ste", "backward_basis": "walsh"},
        {"method": "gumbel-st"},
        {"method": "hard-st"},
        {"method": "iwp"},
        {"method": "iwp", "corner_activation": "sin01"},
        {"method": "iwp-ste"},
        {"method": "iwp-ste", "corner_activation": "sigmoid"},
        {"votes": "all"},
        {**LEARNED},
        {**LEARNED, "votes": "all", "method": "multilinear-ste", "candidates": 4},
    ],
    ids=lambda o: "-".join(map(str, o.values())),
)
def test_same_bits_as_alone(tmp_path, options):
    configs = [replace(BASE, seed=s, wiring_seed=s % 2, **options) for s in range(3)]
    together = [make(config) for config in configs]
    folders = [tmp_path / f"together-{s}" for s in range(3)]
    results = train_side_by_side(configs, together, folders=folders)
    for s, config in enumerate(configs):
        alone = make(config)
        result = train(config, alone, data(), folder=tmp_path / f"alone-{s}")
        assert results[s].state.metrics == result.state.metrics
        for name, value in alone.state_dict().items():
            assert torch.equal(value, together[s].state_dict()[name]), name
        assert fingerprint_of_checkpoint(folders[s]) == fingerprint_of_checkpoint(tmp_path / f"alone-{s}")


def test_layers_of_several_widths_have_the_same_bits_as_alone():
    def pyramid(seed):
        return LogicNetwork(INPUTS, 2, [60, 40, 20], seed=seed)

    configs = [replace(BASE, seed=seed) for seed in range(2)]
    together = [pyramid(seed) for seed in range(2)]
    results = train_side_by_side(configs, together)
    for config, network, result in zip(configs, together, results, strict=True):
        alone = pyramid(config.seed)
        assert train(config, alone, data()).state.metrics == result.state.metrics
        assert all(torch.equal(v, network.state_dict()[k]) for k, v in alone.state_dict().items())


@pytest.mark.parametrize("options", [{"method": "gumbel-st"}, LEARNED], ids=["fixed", "learned"])
def test_stopped_and_resumed_together_or_apart(tmp_path, options):
    configs = [replace(BASE, seed=s, wiring_seed=s, **options) for s in range(2)]
    folders = [tmp_path / str(s) for s in range(2)]
    calls = iter([False] * 13 + [True])
    stopped = train_side_by_side(configs, [make(c) for c in configs], folders=folders, should_stop=lambda: next(calls))
    assert not stopped[0].finished
    apart = make(configs[1])
    train(configs[1], apart, data(), folder=folders[1])
    whole = make(configs[1])
    train(configs[1], whole, data())
    assert all(torch.equal(v, whole.state_dict()[k]) for k, v in apart.state_dict().items())


def test_learned_wirings_stopped_together_go_on_together(tmp_path):
    configs = [replace(BASE, seed=s, wiring_seed=s, **LEARNED) for s in range(2)]
    folders, calls = [tmp_path / str(s) for s in range(2)], iter([False] * 13 + [True])
    train_side_by_side(configs, [make(c) for c in configs], folders=folders, should_stop=lambda: next(calls))
    together = [make(config) for config in configs]
    train_side_by_side(configs, together, folders=folders)
    for config, network in zip(configs, together, strict=True):
        alone = make(config)
        train(config, alone, data())
        assert all(torch.equal(v, network.state_dict()[k]) for k, v in alone.state_dict().items())


def test_bad_input_is_refused():
    configs = [BASE, replace(BASE, depth=2, seed=1)]
    with pytest.raises(ValueError, match=r"may differ in seeds alone, got depth: 2 there, 3 here"):
        train_side_by_side(configs, [make(c) for c in configs])
    linear = LogicNetwork(INPUTS, 2, WIDTH, 3, readout="linear")
    with pytest.raises(NotSideBySideError, match=r"needs plain stacks of gates with readout='group-sum'"):
        train_side_by_side([replace(BASE, readout="linear")], [linear])
    for method, options in (("iwp-free", {}), ("multilinear-covjac", {"learnable_temperature": True})):
        network = LogicNetwork(INPUTS, 2, WIDTH, 3, method=method, **options)
        with pytest.raises(NotSideBySideError, match=r"a method that learns every gate by "):
            train_side_by_side([replace(BASE, method=method, **options)], [network])
    odd = replace(BASE, **LEARNED, candidates=5)
    with pytest.raises(NotSideBySideError, match=r"scores of a learned wiring that are a multiple of 16"):
        train_side_by_side([odd], [make(odd)])
    skipping = LogicNetwork(INPUTS, 2, WIDTH, 3, reads=[[0], [1], [0, 2]])
    with pytest.raises(NotSideBySideError, match=r"needs plain stacks of gates"):
        train_side_by_side([BASE], [skipping])
    patient = replace(BASE, patience=1, validation_fraction=0.1)
    with pytest.raises(NotSideBySideError, match=r"needs patience=None"):
        train_side_by_side([patient], [make(BASE)])


class Log(Observer):
    def __init__(self):
        self.said = []

    def started(self, config, network, state):
        self.said.append(("started", config.seed, state.step))

    def evaluated(self, state, network, metrics):
        assert metrics == state.metrics[-1]
        self.said.append(("evaluated", state.step, metrics["test_hard"]))

    def finished(self, state, network):
        self.said.append(("finished", state.step, network.training))


def test_each_seed_has_its_observers():
    configs = [replace(BASE, seed=s) for s in range(2)]
    together = [Log(), Log()]
    train_side_by_side(configs, [make(c) for c in configs], observers=[[log] for log in together])
    for config, log in zip(configs, together, strict=True):
        alone = Log()
        train(config, make(config), data(), observers=[alone])
        assert log.said == alone.said
        assert [said[0] for said in log.said] == ["started", *["evaluated"] * 3, "finished"]


def test_each_folder_notes_its_share_of_the_time(tmp_path, monkeypatch):
    now = 0.0

    def clock():
        return now

    def later(*args):
        nonlocal now
        now += 3.0
        return False

    monkeypatch.setattr("gatefit.training.runs.CLOCKS", {"seconds": clock, "processor_seconds": clock})
    configs = [replace(BASE, dataset="monks-1", width=40, steps=10, seed=s) for s in range(3)]
    folders = [tmp_path / str(s) for s in range(3)]
    execute_together(configs, dataset=load_dataset("monks-1"), folders=folders, should_stop=later)
    assert [read_made(folder)["seconds"] for folder in folders] == [10, 10, 10]


def test_folders_that_cannot_go_side_by_side_are_refused(tmp_path):
    dataset = load_dataset("monks-1")
    configs = [replace(BASE, dataset="monks-1", width=40, steps=10, seed=s) for s in range(2)]
    folders = [tmp_path / str(s) for s in range(2)]
    apart = [replace(config, validation_fraction=0.2) for config in configs]
    with pytest.raises(ValueError, match=r"side by side needs validation_fraction=0"):
        execute_together(apart, dataset=dataset, folders=folders)
    with locked(folders[1]), pytest.raises(RunFolderError, match=r"is in use by another process"):
        execute_together(configs, dataset=dataset, folders=folders)
    execute(configs[0], folder=folders[0], dataset=dataset)
    with pytest.raises(NotSideBySideError, match=r"is finished already; train the others one by one"):
        execute_together(configs, dataset=dataset, folders=folders)
    asked = iter([False] * 4 + [True])
    execute(configs[1], folder=tmp_path / "stopped", dataset=dataset, should_stop=lambda: next(asked))
    with pytest.raises(NotSideBySideError, match=r"must stand at the same step, got \[0, 5\]"):
        execute_together(configs, dataset=dataset, folders=[tmp_path / "new", tmp_path / "stopped"])
