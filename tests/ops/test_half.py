"""Layers that hand one another numbers of 16 bits: how they round, and how little of it is seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gatefit.bits import pack
from gatefit.network import LogicNetwork
from gatefit.ops.implementations import NUMBA, REFERENCE, TRITON
from gatefit.ops.simd import load, store
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stack_tiles import kernel
from gatefit.ops.stacks import Stack
from gatefit.ops.threads import training_threads
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import loss_of, train

TILE = (0, 0)
SOFT = ["multilinear-covjac", "soft-mix", "iwp"]
BOOLEAN = ["multilinear-ste", "hard-st", "iwp-ste"]


@kernel
def _copy(given, to):
    for i in range(0, given.size, 32):
        store(to, i, load(given, i, TILE))


def copied(values, dtype):
    to = np.empty(values.size, dtype)
    _copy(values, to)
    return to


def awkward_numbers():
    """Ties and their neighbours, numbers too small or too large for a half, both zeros."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 0x7F80_0000, 4096, dtype=np.uint32)  # every finite magnitude
    ties = (bits & np.uint32(0xFFFF_0000)) | np.uint32(0x8000)
    near = rng.random(4096, dtype=np.float32)
    values = np.concatenate([each.view(np.float32) for each in (bits, ties, ties - 1, ties + 1)] + [near])
    zeros = np.zeros(32, np.float32)
    return np.concatenate([values, -values, zeros, -zeros])


def test_what_is_stored_is_the_nearest_number_of_16_bits():
    values = awkward_numbers()
    with np.errstate(over="ignore"):
        assert np.array_equal(copied(values, np.uint16), values.astype(np.float16).view(np.uint16))
    brains = torch.from_numpy(values).bfloat16().view(torch.int16).numpy()
    assert np.array_equal(copied(values, np.int16), brains)


def test_what_is_loaded_is_what_was_stored():
    every = np.arange(1 << 16, dtype=np.uint16)
    halves = copied(every, np.float32)
    assert np.array_equal(halves, every.view(np.float16).astype(np.float32), equal_nan=True)
    brains = copied(every.view(np.int16), np.float32)
    assert np.array_equal(brains.view(np.uint32), every.astype(np.uint32) << 16)


def batch_of(samples, inputs=60):
    rng = np.random.default_rng(1)
    return pack(rng.random((samples, inputs)) < 0.4), torch.from_numpy(rng.integers(0, 10, samples))


def scores_and_gradients(network, x, targets, *, expect=False):
    network.zero_grad()
    if expect:
        network.expect([targets], [None])
    scores = network(x)
    loss_of(scores, targets, None, network.implementation).backward()
    named = {name: parameter.grad.clone() for name, parameter in network.named_parameters()}
    return {"scores": scores.detach(), **named}


def assert_near(found, wanted, share):
    for name, value in wanted.items():
        off = float((found[name] - value).norm() / value.norm())
        assert off <= share, f"{name} is off by {off:.2e} of its size"


@pytest.mark.parametrize("method", [*SOFT, *BOOLEAN])
@pytest.mark.parametrize("fields", [{}, {"votes": "all"}, {"wiring": "learned", "votes": "all"}], ids=str)
@pytest.mark.parametrize("samples", [1, 70, 128])
def test_kernels_round_as_the_definition(method, fields, samples):
    x, targets = batch_of(samples)
    found, wanted, single = (
        scores_and_gradients(
            LogicNetwork(60, 10, (80, 120, 100), method=method, implementation=way, precision=precision, **fields),
            x,
            targets,
        )
        for way, precision in (("numba", "half"), ("reference", "half"), ("numba", "single"))
    )
    # Three layers, each rounding to 2^-9, some of them twice.
    assert_near(found, wanted, 2**-7)
    assert_near(found, single, 2**-6)
    assert any(not torch.equal(found[name], single[name]) for name in single), "nothing was rounded"


@pytest.mark.parametrize("wiring", ["unique", "learned"])
def test_the_same_bits_whatever_the_threads_and_what_is_expected(wiring):
    x, targets = batch_of(512)
    network = LogicNetwork(60, 10, (600, 500, 600), wiring=wiring, precision="half", seed=3)
    bits = []
    for threads in (1, 2, 3):
        with training_threads(threads):
            for expect in (False, True):
                found = scores_and_gradients(network, x, targets, expect=expect)
                bits.append([value.numpy().tobytes() for value in found.values()])
    assert all(each == bits[0] for each in bits)
    assert wiring == "learned" or not network._heeded.failed


def test_it_learns_as_well():
    rng = np.random.default_rng(0)
    x = rng.random((3000, 60)) < 0.5
    y = torch.from_numpy((x[:, 0] & x[:, 1]).astype(np.int64) + 2 * (x[:, 2] ^ x[:, 3]))
    data = TrainingData(PackedRows(x[:2000]), y[:2000], PackedRows(x[2000:]), y[2000:])
    reached = {}
    for precision in ("single", "half"):
        config = RunConfig(
            dataset="custom", widths="200,200", wiring="learned", votes="all", steps=300, batch_size=256,
            learning_rate=0.03, schedule="cosine", evaluate_every=300, precision=precision,
        )  # fmt: skip
        network = LogicNetwork(60, 4, (200, 200), wiring="learned", votes="all", precision=precision)
        reached[precision] = train(config, network, data, threads=1).state.metrics[-1]["test_hard"]
    assert reached["single"] > 0.9
    assert reached["half"] > reached["single"] - 0.03


def test_what_is_deployed_is_what_it_is_without():
    x, _ = batch_of(100)
    single, half = (LogicNetwork(60, 10, 80, 3, precision=precision) for precision in ("single", "half"))
    assert torch.equal(single.eval()(x), half.eval()(x))
    again = LogicNetwork.from_state_dict(half.state_dict())
    assert again.precision == "half"
    single.load_state_dict(half.state_dict())  # how it was trained is its history


@pytest.mark.parametrize(
    ("fields", "got"),
    [
        ({"dtype": torch.float64}, "numbers of torch.float64"),
        ({"skips": "inputs"}, "skips"),
        ({"method": "multilinear-free"}, "a method with an activation of its own"),
    ],
)
def test_networks_that_are_no_such_stack_are_refused(fields, got):
    with pytest.raises(ValueError, match=rf"precision='half' is for layers of gates in float32 .* got .*{got}"):
        LogicNetwork(60, 10, 80, 3, precision="half", **fields)


def test_other_precisions_are_refused():
    with pytest.raises(ValueError, match="precision must be single or half, got 'double'"):
        LogicNetwork(60, 10, 80, 3, precision="double")


def test_a_stack_is_refused_where_no_kernel_computes_it():
    x, _ = batch_of(10)
    stack = Stack([torch.randint(60, (2, 40), dtype=torch.int32)], 10, half=True)
    coefficients = [torch.rand(40, 4) / 4]  # values from 0 to 1
    for implementation, given in ((TRITON, coefficients), (NUMBA, [each.double() for each in coefficients])):
        with pytest.raises(ValueError, match="layers hand on 16-bit numbers on the CPU and in float32 alone"):
            soft_stack(x, stack, given, implementation=implementation)
    whole = soft_stack(x, replace(stack, half=False), coefficients, implementation=REFERENCE)
    assert (soft_stack(x, stack, coefficients, implementation=REFERENCE) - whole).abs().max() < 4 * 2**-12


def test_runs_are_named_by_it_unless_it_is_the_default():
    plain = RunConfig(dataset="monks-1", width=100)
    assert RunConfig(dataset="monks-1", width=100, precision="single").identity == plain.identity
    assert RunConfig(dataset="monks-1", width=100, precision="half").identity != plain.identity
    with pytest.raises(ValueError, match="precision"):
        RunConfig(dataset="monks-1", width=100, precision="double")
