"""One object says how operations are computed: resolved as a module is made and moved, refused where it cannot."""

import pytest
import torch
from torch import nn

from gatefit.methods import METHODS
from gatefit.network import LogicNetwork
from gatefit.ops import implementations
from gatefit.ops.implementations import IMPLEMENTATIONS, NUMBA, REFERENCE, TRITON, Implementation, Implemented, resolve


def small(**options):
    return LogicNetwork(8, 2, 10, 2, **options)


def test_auto_takes_the_fastest_that_serves():
    assert resolve("auto", "cpu", torch.float32) == resolve("auto", torch.device("cpu"), torch.float64) == NUMBA
    assert resolve("auto", "cpu", torch.bfloat16) == resolve("auto", "meta", torch.float32) == REFERENCE
    here = [each for each in IMPLEMENTATIONS.values() if each.serves("cpu", torch.float32)]
    assert {REFERENCE, NUMBA} <= set(here)
    assert [resolve(each.name, "cpu", torch.float32) for each in here] == here
    assert resolve(REFERENCE, "meta", torch.float16) is REFERENCE


def test_a_cuda_device_is_tritons_where_that_is_installed(monkeypatch):
    monkeypatch.setattr(implementations, "installed", lambda: True)
    assert resolve("auto", "cuda", torch.float32) == resolve("triton", "cuda:1", torch.float64) == TRITON
    assert resolve("auto", "cuda", torch.float16) == REFERENCE
    monkeypatch.setattr(implementations, "installed", lambda: False)
    assert resolve("auto", "cuda", torch.float32) == REFERENCE
    with pytest.raises(ValueError, match=r"'triton' needs Triton; install it with pip install 'gatefit\[gpu\]'"):
        resolve("triton", "cuda", torch.float32)


def test_the_cpu_is_tritons_under_its_interpreter_and_only_where_it_is_named(monkeypatch):
    monkeypatch.setattr(implementations, "installed", lambda: True)
    monkeypatch.setattr(implementations, "interpreted", lambda: True)
    assert resolve("triton", "cpu", torch.float32) == TRITON
    assert resolve("auto", "cpu", torch.float32) == NUMBA
    monkeypatch.setattr(implementations, "interpreted", lambda: False)
    with pytest.raises(ValueError, match="'triton' computes float32 and float64 on cuda, got float32 on cpu"):
        resolve("triton", "cpu", torch.float32)


def test_what_cannot_serve_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="unknown implementation 'cuda'; choose auto or one of reference, triton,"):
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
