"""The census: fractions of deployed gates, by kinds derived from |c_ab|."""

from collections import Counter

import numpy as np
import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.diagnostics.parameters import KINDS, census
from gatefit.gates import Gate
from gatefit.methods import METHODS
from numpy_network import small


def kind(gate):
    """From the coefficients: what the census derives from truth tables."""
    _, c_a, c_b, c_ab = CODEBOOK[gate]
    if c_ab:
        return {1: "weak", 2: "strong"}[abs(c_ab)]
    return "separable" if c_a or c_b else "constant"


def fractions(gates):
    counts = Counter(gates)
    kinds = Counter(kind(gate) for gate in gates)
    found = {name: kinds[name] / len(gates) for name in ("constant", "separable", "weak", "strong")}
    return {**found, "gates": [counts[gate] / len(gates) for gate in range(16)]}


def test_the_kinds_are_the_papers():
    assert list(KINDS) == ["constant", "separable", "weak", "strong"]
    assert Counter(kind(gate) for gate in Gate) == {"constant": 2, "separable": 4, "weak": 8, "strong": 2}


@pytest.mark.parametrize("method", [name for name in METHODS if not name.endswith("-free")])
def test_census_counts_the_deployed_gates(method):
    network = small(method)
    layers = [gates.tolist() for gates in network.gates()]
    found = census(network)
    assert found == {
        **fractions([gate for gates in layers for gate in gates]),
        "by_layer": [fractions(gates) for gates in layers],
    }


@pytest.mark.parametrize("gate", Gate)
def test_each_gate_is_counted_as_itself(gate):
    network = small("multilinear-ste")
    for layer in network.gate_layers:
        layer.method.latent.data = torch.tensor(np.tile(CODEBOOK[gate], (24, 1)), dtype=torch.float64)
    found = census(network)
    assert found[kind(gate)] == 1
    assert found["gates"] == [float(other is gate) for other in Gate]
    assert [layer["gates"] for layer in found["by_layer"]] == [found["gates"]] * 3


@pytest.mark.parametrize("method", ["multilinear-free", "iwp-free"])
def test_the_free_variants_deploy_nothing(method):
    assert census(small(method)) is None
