"""Predictions of many samples need little more memory than what they are made from, and are the same in pieces."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from gatefit.circuit import predict
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import scores
from strategies import layered_circuit


@pytest.mark.parametrize("samples", [0, 1, 64, 65, 1000])
@pytest.mark.parametrize("readout", ["group_sum", "affine", "linear"])
def test_batches_change_nothing(samples, readout, monkeypatch):
    rng = np.random.default_rng(0)
    readouts = {
        "group_sum": GroupSum(np.arange(20) % 2, [0, 0], 2.0),
        "affine": Affine(20, 1, 0.5, 2.0),
        "linear": Linear(rng.normal(size=(2, 20)), [0, 1]),
    }
    circuit = replace(layered_circuit(rng, 30, 20, 2), readout=readouts[readout])
    bits = rng.random((samples, 30)) < 0.5
    whole = circuit.predict(bits)
    monkeypatch.setattr(predict, "BITS_AT_ONCE", 30 * 64)
    assert len(list(predict.input_batches(circuit, bits))) == max(1, -(-samples // 64))
    assert np.array_equal(circuit.predict(bits), whole)
    assert np.array_equal(circuit.predict(bits.astype(int)), whole)
    assert circuit.scores(bits).tobytes() == scores(circuit, bits).tobytes()


@pytest.mark.parametrize("source", ["features", "bits"])
def test_memory_is_bounded(source):
    pytest.importorskip("resource")
    code = f"""
    import resource
    import numpy as np
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.readout import GroupSum
    from gatefit.encoders import Thermometer
    encoder = Thermometer(15, low=0, high=255).fit(np.zeros((1, 100), np.uint8)) if {source == "features"} else None
    circuit = Circuit(1500, [6, 1], [[0, 700], [1499, 3]], [1500, 1501], GroupSum([0, 1], [0, 0]), encoder=encoder)
    x = np.ones((300_000, 100 if encoder else 1500), np.uint8)
    circuit.predict(x[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(len(circuit.predict(x)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, env=os.environ
    )
    assert result.returncode == 0, result.stderr
    samples, kilobytes = map(int, result.stdout.split())
    assert samples == 300_000
    assert kilobytes < 250_000  # all bits at once are 450,000
