"""One object says how operations are computed: resolved as a module is made and moved, refused where it cannot."""

import pytest
import torch
from torch import nn

from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops.implementations import IMPLEMENTATIONS, NUMBA, REFERENCE, Implementation, Implemented, resolve


def small(**options):
    return LogicNetwork(8, 2, 10, 2, **options)


def test_auto_takes_the_fastest_that_serves():
    assert resolve("auto", "cpu", torch.float32) == resolve("auto", torch.device("cpu"), torch.float64) == NUMBA
    assert resolve("auto", "cpu", torch.bfloat16) == resolve("auto", "meta", torch.float32) == REFERENCE
    assert [resolve(name, "cpu", torch.float32) for name in IMPLEMENTATIONS] == list(IMPLEMENTATIONS.values())
    assert resolve(REFERENCE, "meta", torch.float16) is REFERENCE


def test_what_cannot_serve_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"unknown implementation 'cuda'; choose auto or one of reference, numba"):
        resolve("cuda", "cpu", torch.float32)
    message = r"'numba' computes float32 and float64 on cpu, got bfloat16 on cpu; use implementation=\"auto\" or"
    for given in ("numba", NUMBA):
        with pytest.raises(ValueError, match=message):
            resolve(given, "cpu", torch.bfloat16)
    with pytest.raises(ValueError, match=message):
        small(implementation="numba", dtype=torch.bfloat16)


def test_an_operation_without_a_function_of_its_own_is_the_references():
    functions = {"reference": min, "numba": max}
    assert (REFERENCE.choose(functions), NUMBA.choose(functions)) == (min, max)
    assert Implementation("another").choose(functions) is min


@pytest.mark.parametrize("method", METHODS)
def test_the_whole_network_has_one_and_auto_follows_its_moves(method):
    network = small(method=method)

    def found():
        return {module.implementation for module in network.modules() if isinstance(module, Implemented)}

    assert found() == {NUMBA}
    network.bfloat16()
    assert found() == {REFERENCE}
    network.float()
    assert found() == {NUMBA}
    network.to("meta")
    assert found() == {REFERENCE}


def test_a_named_one_refuses_a_move_before_anything_moves():
    network = small(implementation="numba")
    with pytest.raises(ValueError, match=r"'numba' computes .* got float32 on meta"):
        network.to("meta")
    assert {parameter.device.type for parameter in network.parameters()} == {"cpu"}
    with pytest.raises(ValueError, match=r"got float16 on cpu"):
        network.half()
    assert network.double().implementation == NUMBA
    plain = small(implementation="reference")
    assert plain.bfloat16().implementation == plain.to("meta").implementation == REFERENCE


def test_a_module_without_parameters_is_served_too():
    assert Implemented().implementation == NUMBA
    inner = Implemented()
    outer = Implemented()
    outer.inner = nn.Sequential(inner)
    outer.implementation = "reference"
    assert inner.implementation == REFERENCE
