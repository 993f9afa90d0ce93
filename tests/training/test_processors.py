"""Training on a processor without AVX-512 ends with the bits of one that has it."""

import json
import os
import platform
import subprocess
import sys

import llvmlite.binding
import pytest
import torch

from gatefit.methods import METHODS

pytestmark = pytest.mark.outside

BOOLEAN = [name for name in METHODS if not name.endswith("-free")]
BOOLEAN += ["multilinear-covjac/learned", "multilinear-ste/learned"]
BOOLEAN += ["multilinear-covjac//half", "multilinear-ste//half", "multilinear-covjac/learned/half"]
# A random wiring is walked along cycles, the default along trails.
BOOLEAN += ["multilinear-covjac/random", "multilinear-ste/random", "multilinear-covjac/random/half"]
# Ten classes, and sizes that are no multiple of a register's width.
WORKER = """
import hashlib, json, sys
import numpy as np, torch
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import train
x = np.random.default_rng(0).random((1500, 64)) < 0.5
y = torch.tensor(x[:, :16].sum(1) % 10)
data = TrainingData(PackedRows(x), y, PackedRows(x[:101]), y[:101])
found = {"capability": torch.backends.cpu.get_cpu_capability()}
for name in sys.argv[1:]:
    method, wiring, precision, *_ = [*name.split("/"), "", ""]
    wiring = wiring or "unique"
    votes = "all" if wiring == "learned" else "last"
    network = LogicNetwork(64, 10, 330, 4, method=method, wiring=wiring, votes=votes, precision=precision or "single")
    config = RunConfig(dataset="custom", method=method, width=330, depth=4, steps=60, evaluate_every=20, batch_size=509,
                       wiring=wiring)
    rows = train(config, network, data, threads=1).state.metrics
    digest = hashlib.sha256(json.dumps(rows).encode())
    for parameter in network.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    found[name] = digest.hexdigest()
print(json.dumps(found))
"""


def trained(methods, **environment):
    done = subprocess.run(
        [sys.executable, "-c", WORKER, *methods],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="compares AVX2 with AVX-512",
)


@x86
def test_torch_with_avx2_gives_the_same_bits():
    own, narrow = trained(BOOLEAN), trained(BOOLEAN, ATEN_CPU_CAPABILITY="avx2")
    assert narrow.pop("capability") == "AVX2"
    del own["capability"]
    assert narrow == own


@x86
@pytest.mark.slow
def test_kernels_compiled_for_avx2_give_the_same_bits(tmp_path):
    # All is compiled anew, for a processor with AVX2 and fused multiply-add.
    haswell = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CACHE_DIR": str(tmp_path), "ATEN_CPU_CAPABILITY": "avx2"}
    own, narrow = trained(BOOLEAN), trained(BOOLEAN, **haswell)
    del own["capability"], narrow["capability"]
    assert narrow == own


@x86
@pytest.mark.slow
@pytest.mark.parametrize("name", ["skylake-avx512", "znver4", "znver3"])
def test_kernels_tuned_for_another_processor_give_the_same_bits(name, tmp_path):
    # What this processor can, as LLVM would use it on another one: it schedules and fuses in another way there.
    features = llvmlite.binding.get_host_cpu_features().flatten()
    own, other = (
        trained(BOOLEAN, NUMBA_CPU_NAME=each, NUMBA_CPU_FEATURES=features, NUMBA_CACHE_DIR=str(tmp_path / each))
        for each in (llvmlite.binding.get_host_cpu_name(), name)
    )
    assert own == other
