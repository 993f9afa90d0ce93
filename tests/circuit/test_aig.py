"""The round trip through aigverse's and-inverter graphs."""

import sys

import numpy as np
import pytest

from gatefit.circuit.optimise import optimise
from gatefit.circuit.passes.aig import from_aig, optimise_aig, to_aig
from gatefit.circuit.simulate import scores
from strategies import all_patterns, layered_circuit, random_circuit


def test_graphs_and_back_on_random_circuits():
    pytest.importorskip("aigverse")
    rng = np.random.default_rng(6)
    for _ in range(150):
        circuit = random_circuit(rng)
        bits = all_patterns(circuit.inputs)
        back = from_aig(to_aig(circuit), circuit)
        assert np.array_equal(scores(back, bits), scores(circuit, bits))


def test_optimised_graphs_keep_the_scores_and_never_add_gates():
    pytest.importorskip("aigverse")
    rng = np.random.default_rng(7)
    for _ in range(10):
        circuit = random_circuit(rng)
        bits = all_patterns(circuit.inputs)
        result = optimise_aig(circuit, rounds=1)
        assert np.array_equal(scores(result, bits), scores(circuit, bits))
        assert result.gates.size <= circuit.gates.size


def test_resubstitution_goes_beyond_our_own_passes():
    pytest.importorskip("aigverse")
    circuit, _ = optimise(layered_circuit(np.random.default_rng(0), 30, 1000, 6, classes=2))
    result = optimise_aig(circuit, rounds=1)
    assert result.gates.size < circuit.gates.size
    bits = np.random.default_rng(1).random((300, 30)) < 0.5
    assert np.array_equal(scores(result, bits), scores(circuit, bits))


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aigverse", None)
    with pytest.raises(ImportError, match="optimise_aig needs the library aigverse; pip install aigverse"):
        optimise_aig(random_circuit(np.random.default_rng(0)))
