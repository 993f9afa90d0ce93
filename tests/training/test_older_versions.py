"""What earlier versions wrote is read: networks, run folders with checkpoints, stores (``tests/samples/version-1``)."""

import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from gatefit.cli import app
from gatefit.experiments.store import Store
from gatefit.training.checkpoint import read_tensors
from gatefit.training.runs import load_network

SAMPLES = Path(__file__).parent.parent / "samples" / "version-1"


def gatefit(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_stopped_run_goes_on_to_the_bits_it_would_have_had(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "stopped-run", folder)
    gatefit("train", "--resume", folder, "--quiet", "--threads", 1)
    assert (folder / "metrics.jsonl").read_bytes() == (SAMPLES / "finished-run" / "metrics.jsonl").read_bytes()
    own, sample = (load_network(path / "model.safetensors") for path in (folder, SAMPLES / "finished-run"))
    for mine, theirs in zip(own.parameters(), sample.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", ["finished-run/model.safetensors", "linear-local-network.safetensors"])
def test_a_network_keeps_every_learned_number(name):
    network = load_network(SAMPLES / name)
    saved = [value for value in read_tensors(SAMPLES / name)[0].values() if value.is_floating_point()]
    kept = [parameter.detach() for parameter in network.parameters()]
    assert sorted(value.numpy().tobytes() for value in kept) == sorted(value.numpy().tobytes() for value in saved)


def test_a_finished_run_is_evaluated_and_compiled(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "finished-run", folder)
    gatefit("evaluate", folder)
    gatefit("compile", folder, "--out", tmp_path / "model.gate")


def test_a_store_has_its_run_under_its_name(tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(SAMPLES / "store", folder)
    with Store.open(folder, read_only=True) as store:
        (record,) = store.records()
    assert (record.config.identity, record.status) == ("8ef53a99272d", "finished")
    assert "8ef53a99272d" in gatefit("runs", "list", "--store", folder)
