"""``gatefit bench`` and ``gatefit warm-up``: what they measure and compile, and what they say."""

import json
import os
import subprocess
import sys

import pytest

from gatefit.bench import peers, step
from gatefit.bench.engine import layered, measured
from gatefit.bench.shapes import SHAPES

PEER = """
import torch

class LogicLayer(torch.nn.Module):
    def __init__(self, in_dim, out_dim, device="cuda", grad_factor=1.0, implementation=None, connections="random"):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn(out_dim, 16, device=device))
        self.a, self.b = torch.randint(in_dim, (2, out_dim))

    def forward(self, x):
        return x[:, self.a] * x[:, self.b] * torch.softmax(self.weights, -1)[:, 1]
"""
"""A library with difflogic's constructor, and not much more."""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Puts a library of this source where Python finds it."""

    def put(source):
        (tmp_path / "difflogic.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    yield put
    sys.modules.pop("difflogic", None)


def request(**fields):
    return {"shape": SHAPES["monks"], "method": "soft-mix", "threads": 1, "repeats": 2, **fields}


@pytest.mark.parametrize("method", ["soft-mix", "multilinear-ste", "torch-feature-major", "torch-naive-mixture"])
def test_a_step_is_measured(method):
    row = step.measured(request(method=method))
    assert row["method"] == method
    assert 0 < row["backward"] < 60
    assert 0 < row["forward"] < 60
    assert row["step"] > 0
    assert row["processor"] > 0
    assert row["device"] == "cpu"
    json.dumps(row)


def test_fields_of_the_network_are_passed_on():
    assert step.Step(request(fields={"wiring": "learned"})).model.layers[0].wiring.learns


def test_the_engine_is_measured():
    circuit = layered(64, 100, 2)
    row = measured(circuit, samples=1000, threads=1, repeats=2)
    assert row["evaluated_gates"] <= 200
    assert row["gate_evaluations_per_second"] == pytest.approx(row["samples_per_second"] * row["evaluated_gates"])
    assert 0 < row["one_sample_seconds"] < 10


def test_a_peer_trains_the_same_network(library):
    library(PEER)
    assert peers.is_installed("difflogic")
    row = step.measured(request(method="difflogic"))
    assert row["step"] > 0


def test_a_peer_that_cannot_be_imported_is_a_reason(library):
    library("import difflogic_cuda\n")
    with pytest.raises(peers.PeerMissingError, match="difflogic cannot be imported: ModuleNotFoundError: No module"):
        step.Step(request(method="difflogic"))


@pytest.mark.outside
def test_the_verb_measures_what_is_installed_and_says_what_is_not(gatefit, library):
    library("raise ImportError('its kernels were not built')\n")
    few = ("--threads", 1, "--repeats", 2, "--no-engine", "--json")
    outcome = gatefit("bench", "--shape", "monks", "--precision", "half", *few)
    assert outcome.code == 0
    content = outcome.json
    assert content["precision"] == "half"
    assert [row["method"] for row in content["training"]] == [
        "soft-mix", "multilinear-covjac", "multilinear-ste", "torch-feature-major",
    ]  # fmt: skip
    assert "its kernels were not built" in content["not_measured"]["difflogic"]
    assert content["machine"]["cpu"]
    assert content["engine"] == []


def test_odd_requests_are_refused(refused):
    assert "unknown shape 'mnist-9k'; did you mean mnist-8k?" in refused("bench", "--shape", "mnist-9k")
    assert "unknown precision 'hlaf'; did you mean half?" in refused("bench", "--precision", "hlaf")
    assert "unknown device 'gpu'; choose one of auto, cpu, cuda" in refused("bench", "--device", "gpu")
    assert "unknown part 'trains'; did you mean train?" in refused("warm-up", "--part", "trains")


@pytest.mark.outside
@pytest.mark.slow
def test_what_was_warmed_up_is_not_compiled_again(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "gatefit.cli", "warm-up", "--part", "run"]

    def run(*more):
        return subprocess.run([*command, *more], env=environment, capture_output=True, text=True, check=True).stdout

    first, second = run(), run()
    assert first.startswith("run: ")
    assert "circuit.engine.kernels" in first.splitlines()[0]
    assert f"kept in {tmp_path / 'cache'}" in first
    assert second == "run: compiled already\n"
    content = json.loads(run("--json"))
    assert content["parts"] == [
        {"part": "run", "compiled": 0, "processor_seconds": 0, "functions": {}, "folders": [], "skipped": ""}
    ]
    # A prediction in a fresh process takes what is there.
    code = """
from gatefit.bench.engine import layered
from gatefit.compiled import compilations
import numpy as np
circuit = layered(70, 40, 2)
with compilations() as compiled:
    circuit.predict(np.zeros((3, 70), bool))
print(compiled.seconds, circuit.__dict__["_engine"]._prepared is not None)
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "{} True\n"
