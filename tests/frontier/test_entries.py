"""Entries are read strictly, and say the commands that make their circuits."""

import json
import shlex

import pytest

from gatefit.cli import train as train_verb
from gatefit.frontier.entries import ENTRIES, Entry, Prune, read_entries, train_command
from gatefit.training.config import RunConfig


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "entries.json is not JSON"),
        ({}, "must hold a list of entries, got dict"),
        ([3], "entry 1 must be an object with name and config, got int"),
        ([{"name": "a"}], "entry 1 lacks config"),
        ([{"name": "A b", "config": {}}], "a name is lower case letters, digits and dashes, as in mnist-1k; got 'A b'"),
        ([{"name": "a", "config": {}, "seed": 1}], "has seed, an entry has name, config, seeds, prune, synth, note"),
        ([{"name": "a", "config": {"seed": 1}}], r"\(a\): config has a seed; name it in seeds instead"),
        ([{"name": "a", "config": {"widht": 1}}], r"\(a\): unknown configuration field 'widht'; did you mean width"),
        ([{"name": "a", "config": {"steps": 0}}], r"\(a\): steps must be a whole number >= 1, got 0"),
        ([{"name": "a", "config": {"validation_fraction": 0.1}}], "a row of the table is trained on all of them"),
        ([{"name": "a", "config": {}, "seeds": []}], "seeds is empty; leave it out for 0 and 1"),
        ([{"name": "a", "config": {}, "seeds": ["x"]}], "Expected `int`, got `str`"),
        ([{"name": "a", "config": {}, "prune": {"keep": 3}}], "prune|keep"),
        ([{"name": "a", "config": {}, "synth": ["ice40"]}], "synth counts tables of lut4, lut6, xilinx, got 'ice40'"),
        ([{"name": "a", "config": {}}, {"name": "a", "config": {}}], "has two entries a; rename one"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, message):
    path = tmp_path / "entries.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError, match=message):
        read_entries(path)


def test_a_run_of_each_seed_with_the_width_written_out():
    entry = Entry("a", RunConfig(dataset="monks-1"), seeds=(3, 5))
    assert [(run.seed, run.width) for run in entry.runs()] == [(3, 136), (5, 136)]
    assert [run.seed for run in entry.runs([7])] == [7]
    assert entry.scaled(0.001).config.steps == 50
    assert entry.scaled(0).config.steps == 1


def test_the_commands_of_a_pruned_circuit():
    entry = Entry("a", RunConfig(dataset="monks-1"), prune=Prune(40, 99), synth=("lut4", "lut6"))
    assert entry.commands(1) == [
        "gatefit train --dataset monks-1 --seed 1 --out runs/a-1",
        "gatefit compile runs/a-1 --out a-whole.gate",
        "gatefit prune a-whole.gate --outputs 40 --samples 99 --out a.gate",
        "gatefit synth a.gate --target lut4,lut6 --pipeline 0 --out a-hardware",
    ]


CONFIGS = [
    RunConfig(),
    RunConfig(learnable_temperature=True, whole_batches=True, learning_rate=1 / 3, regrow_until=0.5, wiring="learned"),
    *(entry.config for entry in read_entries().values()),
]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.dataset}-{config.identity}")
def test_a_command_trains_the_configuration_it_was_made_from(gatefit, monkeypatch, config):
    class Seen(Exception):
        pass

    def stop(folder, given):
        raise Seen(given)

    monkeypatch.setattr(train_verb, "_finished_run", stop)
    with pytest.raises(Seen) as seen:
        gatefit(*shlex.split(train_command(config))[1:])
    trained = seen.value.args[0]
    assert trained == config.resolved()
    assert trained.identity == config.resolved().identity


def test_the_committed_entries_are_read():
    assert all(name == entry.name for name, entry in read_entries(ENTRIES).items())
