"""Checkpoints: all or nothing, two kept, another configuration refused, a damaged file survived."""

import errno
import json
import resource
from pathlib import Path

import pytest
import torch

from gatefit.network import LogicNetwork
from gatefit.training.checkpoint import (
    CheckpointError,
    TrainingState,
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    serialise,
    write_atomically,
)
from gatefit.training.config import RunConfig
from gatefit.training.folder import checkpoints
from gatefit.training.loop import make_optimiser

CONFIG = RunConfig(dataset="custom", width=20, depth=2)


def trained(method="multilinear-covjac", seed=0):
    network = LogicNetwork(8, 2, 20, 2, method=method, seed=seed)
    optimiser = make_optimiser(CONFIG, network)
    for _ in range(3):
        optimiser.zero_grad()
        network(torch.ones(4, 8)).sum().backward()
        optimiser.step()
    return network, optimiser


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of mapped files")
def test_what_was_read_does_not_hold_its_file(tmp_path):
    """Windows refuses to replace or delete a file that somebody has mapped."""
    path = tmp_path / "network.safetensors"
    path.write_bytes(serialise({"latent": torch.arange(5000.0)}, {}))
    tensors, _ = read_tensors(path)
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert torch.equal(tensors["latent"], torch.arange(5000.0))


def same(one, two):
    return all(torch.equal(value, two[name]) for name, value in one.items())


def test_round_trip_restores_parameters_optimiser_and_state(tmp_path):
    network, optimiser = trained()
    state = TrainingState(step=7, metrics=[{"step": 5, "loss": 0.1 + 0.2}], loss_sum=1 / 3, loss_count=2)
    state.best, state.best_score = {k: v.clone() for k, v in network.state_dict().items()}, 0.875
    save_checkpoint(tmp_path, CONFIG, network, optimiser, state)
    fresh = LogicNetwork(8, 2, 20, 2, seed=9)
    other = make_optimiser(CONFIG, fresh)
    restored = load_checkpoint(tmp_path, CONFIG, fresh, other)
    assert same(network.state_dict(), fresh.state_dict())
    assert same(state.best, restored.best)
    assert (restored.step, restored.metrics, restored.loss_sum, restored.best_score) == (7, state.metrics, 1 / 3, 0.875)
    for one, two in zip(optimiser.state_dict()["state"].values(), other.state_dict()["state"].values(), strict=True):
        assert same({k: torch.as_tensor(v) for k, v in one.items()}, {k: torch.as_tensor(v) for k, v in two.items()})


def test_the_last_two_are_kept(tmp_path):
    network, optimiser = trained()
    for step in (10, 20, 30, 40):
        save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=step))
    assert [path.name for path in checkpoints(tmp_path)] == [
        "checkpoint-000000030.safetensors",
        "checkpoint-000000040.safetensors",
    ]


def test_no_checkpoint_is_none(tmp_path):
    assert load_checkpoint(tmp_path / "nowhere", CONFIG, *trained()) is None


def test_another_configuration_is_refused_with_the_fields_named(tmp_path):
    network, optimiser = trained()
    save_checkpoint(
        tmp_path, RunConfig(dataset="custom", width=20, depth=2, seed=3), network, optimiser, TrainingState()
    )
    with pytest.raises(CheckpointError, match=r"another configuration \(seed: 3 there, 0 here\)"):
        load_checkpoint(tmp_path, CONFIG, network, optimiser)


def test_a_damaged_newest_file_falls_back_to_the_one_before(tmp_path):
    network, optimiser = trained()
    save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=10))
    newest = save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=20))
    newest.write_bytes(newest.read_bytes()[:100])
    assert load_checkpoint(tmp_path, CONFIG, network, optimiser).step == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, metadata: metadata.pop("config"), "its configuration cannot be read"),
        (lambda tensors, metadata: metadata.update(config="{"), "its configuration cannot be read"),
        (lambda tensors, metadata: metadata.pop("state"), "does not fit its configuration"),
        (lambda tensors, metadata: tensors.pop(next(k for k in tensors if k.startswith("network/"))), "does not fit"),
    ],
)
def test_a_newest_file_without_its_parts_falls_back_to_the_one_before(tmp_path, change, message):
    network, optimiser = trained()
    older = save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=10))
    newest = save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=20))
    tensors, metadata = read_tensors(newest)
    change(tensors, metadata)
    newest.write_bytes(serialise(tensors, metadata))
    assert load_checkpoint(tmp_path, CONFIG, network, optimiser).step == 10
    older.unlink()
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(tmp_path, CONFIG, network, optimiser)


def test_only_damaged_files_are_an_error_that_names_them(tmp_path):
    network, optimiser = trained()
    path = save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=10))
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"checkpoint-000000010.safetensors is damaged or not a safetensors file"):
        load_checkpoint(tmp_path, CONFIG, network, optimiser)


def test_a_full_disk_leaves_the_previous_checkpoint_and_no_rubbish(tmp_path, monkeypatch):
    network, optimiser = trained()
    save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=10))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=20))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000010.safetensors"]
    assert load_checkpoint(tmp_path, CONFIG, network, optimiser).step == 10


def test_a_write_that_fails_half_way_leaves_the_previous_checkpoint(tmp_path):
    network, optimiser = trained()
    save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=10))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the system cuts the file off after 1,000 bytes
    try:
        with pytest.raises(OSError, match="File too large"):
            save_checkpoint(tmp_path, CONFIG, network, optimiser, TrainingState(step=20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000010.safetensors"]


def test_a_file_is_replaced_whole(tmp_path):
    target = tmp_path / "target"
    write_atomically(target, b"first")
    write_atomically(target, b"second")
    assert target.read_bytes() == b"second"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_hold_no_pickle_and_metadata_is_json(tmp_path):
    path = save_checkpoint(tmp_path, CONFIG, *trained(), TrainingState(step=1))
    tensors, metadata = read_tensors(path)
    assert json.loads(metadata["config"])["width"] == 20
    assert any(name.endswith("exp_avg") for name in tensors)
    assert path.read_bytes()[8:9] == b"{"
