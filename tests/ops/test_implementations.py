"""Every implementation of every operation computes what the reference defines: outputs and each gradient, by name.

An operation is a dict {implementation: function} in a package of ``gatefit.ops``. A new implementation is tested once
it is registered there and, if it has a name of its own, in ``IMPLEMENTATIONS``. A new operation needs an entry in
``OPERATIONS`` below: a function that makes its arguments, by keyword, for each of its cases.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import gatefit.ops
from gatefit.bits import pack, pack_rows
from gatefit.codebook import CODEBOOK
from gatefit.ops.implementations import IMPLEMENTATIONS
from gatefit.ops.stacks import Stack
from stacks import SHAPES, owners_of, wirings_of
from triton_interpreter import patched_once_a_launch

FLOATS = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Operation:
    """How an operation is tested.

    ``arguments(case, generator, dtype)`` gives what all implementations are called with; floating tensors in it, in
    sequences too, are differentiated where the operation is, and one that the function fills is an output.
    """

    arguments: Callable[[Any, torch.Generator, torch.dtype], dict[str, Any]]
    cases: Sequence[Any]
    exact: bool = False
    """The same bits whatever computes it."""
    true_gradient: bool = True
    """The reference's gradient is that of its output: not of what commits to a gate or draws."""
    tolerance: float = 1e-5
    """In float32, times 1 + the largest number of each result of the reference in float64; in float64 it is 1e-10."""
    dtypes: Sequence[torch.dtype] = FLOATS
    few: Sequence[Any] | None = None
    """Cases for an implementation that is interpreted; None: all."""


def normal(generator: torch.Generator, dtype: torch.dtype, *shape: int, scale: float = 1.0) -> Tensor:
    """Numbers that float32 holds, so that both types are given the same."""
    return (scale * torch.randn(*shape, generator=generator)).to(dtype)


def gate_layer(case: tuple[int, int, int], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    """Batch, inputs, gates: inputs that several gates read, that none reads, that one reads twice."""
    batch, inputs, gates = case
    return {
        "x": normal(generator, dtype, batch, inputs),
        "wiring": torch.randint(inputs, (2, gates), generator=generator, dtype=torch.int32),
        "coefficients": normal(generator, dtype, gates, 4),
    }


def soft_coefficients(case: tuple[int, float], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    gates, temperature = case
    return {
        "latent": normal(generator, dtype, gates, 4, scale=1.5),
        "temperature": torch.tensor(temperature, dtype=dtype),
    }


def mixture(case: tuple[int, float], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    gates, temperature = case
    return {"logits": normal(generator, dtype, gates, 16, scale=1.5), "temperature": temperature}


def snap(case: int | str, generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    if case == "ties":
        steps = torch.arange(-2, 2.5, 0.5, dtype=dtype)
        return {"coefficients": torch.cartesian_prod(steps, steps, steps, steps)}
    if case == "no numbers":
        odd = normal(generator, dtype, 70, 4)
        odd[3, 1], odd[66, 3], odd[67, 0] = torch.nan, torch.inf, -torch.inf
        return {"coefficients": odd}
    if case == "between two gates":
        first, second = torch.randint(16, (2, 5000), generator=generator)
        points = torch.tensor(CODEBOOK, dtype=dtype)
        return {"coefficients": (points[first] + points[second]) / 2 + 2e-7 * normal(generator, dtype, 5000, 4)}
    return {"coefficients": normal(generator, dtype, case, 4, scale=1.5)}


def largest(case: int | str, generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    if case == "ties":
        return {"logits": torch.randint(3, (500, 16), generator=generator).to(dtype)}
    if case == "no numbers":
        odd = normal(generator, dtype, 70, 16)
        odd[3, 1], odd[66, 3], odd[67, 0] = torch.nan, torch.inf, -torch.inf
        return {"logits": odd}
    return {"logits": normal(generator, dtype, case, 16)}


def corners(case: int | str, generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    if case == "halves":
        return {"corners": torch.cartesian_prod(*[torch.tensor([0.25, 0.5, 0.75], dtype=dtype)] * 4)}
    return {"corners": normal(generator, dtype, case, 4, scale=1.5)}


def cross_entropy(case: tuple[int, int, float], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    samples, classes, scale = case
    return {
        "scores": normal(generator, dtype, samples, classes, scale=scale),
        "targets": torch.randint(classes, (samples,), generator=generator),
    }


def gumbel(case: int, generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    low, high = torch.randint(2**32, (2,), generator=generator).tolist()
    return {"key_low": low, "key_high": high, "noise": torch.full((case,), torch.nan, dtype=dtype)}


def noisy(case: tuple[int, int, float], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    gates, streams, scale = case
    keys = [tuple(torch.randint(2**32, (2,), generator=generator).tolist()) for _ in range(streams)]
    return {"logits": normal(generator, dtype, gates, 16), "keys": keys, "scale": scale}


def stack(case: dict[str, Any], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    """Bits, layers one above another, and the coefficients of each."""
    inputs, widths = SHAPES[case["shape"]]
    owners = [owners_of(gates) for gates in widths] if case.get("shared") else [None] * len(widths)
    rows = [gates if owner is None else int(owner.max()) + 1 for gates, owner in zip(widths, owners, strict=True)]
    wirings = wirings_of(inputs, widths, case["wiring"])
    groups = None if widths[-1] == 1 else 10
    every = groups is not None and len(set(widths)) == 1 and not case["batch"] % 2
    return {
        "x": torch.rand(case["batch"], inputs, generator=generator) < 0.5,
        "stack": Stack(wirings, groups=groups, votes=range(1, len(widths) + 1) if every else (), owners=owners),
        "coefficients": [normal(generator, dtype, count, 4, scale=0.5) for count in rows],
        **({"sigmoid": True} if case.get("sigmoid") else {}),
    }


def boolean_stack(case: dict[str, Any], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    given = stack(case, generator, dtype)
    rows = [len(coefficients) for coefficients in given["coefficients"]]
    return {**given, "gates": [torch.randint(16, (n,), generator=generator, dtype=torch.uint8) for n in rows]}


def boolean_counts(case: dict[str, Any], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    given = boolean_stack(case, generator, dtype)
    return {name: given[name] for name in ("x", "stack", "gates")}


def learned_stack(case: dict[str, Any], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    """Candidates for every input, the best scored of which are wired; a layer in the middle has a fixed wiring."""
    given = (boolean_stack if case["boolean"] else stack)(case, generator, dtype)
    inputs, widths = SHAPES[case["shape"]]
    candidates, scores, wirings = [], [], []
    for layer, (pool, gates) in enumerate(zip((inputs, *widths[:-1]), widths, strict=True)):
        if layer == 1 and len(widths) > 2:
            candidates.append(None)
            scores.append(None)
            wirings.append(given["stack"].wirings[layer])
            continue
        shape = (2, gates, case["candidates"])
        nodes = torch.randint(pool, shape, generator=generator, dtype=torch.int32)
        values = normal(generator, dtype, *shape)
        candidates.append(nodes)
        scores.append(values)
        wirings.append(nodes.gather(2, values.argmax(2, keepdim=True)).squeeze(2))
    return {
        **given,
        "stack": replace(given["stack"], wirings=wirings, changing=[nodes is not None for nodes in candidates]),
        "candidates": candidates,
        "scores": scores,
    }


def best_candidates(case: tuple[int, int], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    shape = (2, *case)
    # Few different scores: the first of equal ones is the best.
    return {
        "candidates": torch.randint(1000, shape, generator=generator, dtype=torch.int32),
        "scores": normal(generator, dtype, *shape).round(),
    }


def best_nodes(case: tuple[int, int, int, bool], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    inputs, nodes, batch, packed = case
    bits = torch.rand(batch, nodes, generator=generator) < 0.5
    present = torch.stack([torch.randperm(nodes, generator=generator)[: min(3, nodes)] for _ in range(inputs)])
    present[:, -1] = torch.where(torch.rand(inputs, generator=generator) < 0.5, -1, present[:, -1])
    return {
        "gradients": normal(generator, dtype, inputs, batch),
        "pool": pack(bits.numpy()) if packed else normal(generator, dtype, nodes, batch),
        "present": present,
    }


def gather(case: tuple[int, int, int], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    samples, batch, bits = case
    values = torch.rand(samples, bits, generator=generator) < 0.5
    return {
        "rows": torch.from_numpy(pack_rows(values.numpy()).view(np.int64)),
        "indices": torch.randint(samples, (batch,), generator=generator),
        "bits": bits,
    }


def replace_lowest(case: tuple[int, int, bool], generator: torch.Generator, dtype: torch.dtype) -> dict[str, Any]:
    gates, count, moments = case
    shape = (2, gates, count)
    inputs = torch.randperm(2 * gates, generator=generator)[: max(1, gates)]
    return {
        "candidates": torch.randint(1000, shape, generator=generator, dtype=torch.int32),
        "scores": normal(generator, dtype, *shape),
        "moments": [normal(generator, dtype, *shape), normal(generator, dtype, *shape).abs()] if moments else [],
        "inputs": inputs,
        "nodes": torch.randint(-1, 5, inputs.shape, generator=generator),
        "offset": 1.0,
    }


STACKS = [
    {"batch": batch, "shape": shape, "wiring": wiring, "shared": shared}
    for batch in (1, 64, 130)
    for shape in SHAPES
    for wiring in ("balanced", "random", "twins")
    for shared in (False, True)
]
SIZES = (1, 63, 64, 65, 4097)
FEW_STACKS = [
    {"batch": batch, "shape": shape, "wiring": wiring, "shared": shared}
    for batch, shape, wiring, shared in (
        (1, "one layer", "random", True),
        (130, "two square", "twins", False),
        (64, "one gate", "random", False),
        (64, "deep", "random", True),
        (130, "narrowing", "balanced", False),
        (1, "widening", "twins", True),
        (300, "widening", "random", False),
    )
]
"""Every shape, batches that are less than a tile, whole words, several tiles and no multiple of either."""
OPERATIONS: dict[str, Operation] = {
    "coefficients.SNAP": Operation(
        snap, (*SIZES, "ties", "no numbers", "between two gates"), exact=True, true_gradient=False
    ),
    "coefficients.LARGEST": Operation(largest, (*SIZES, "ties", "no numbers"), exact=True, true_gradient=False),
    "coefficients.CORNER_COEFFICIENTS": Operation(corners, SIZES, exact=True),
    "coefficients.SNAP_CORNERS": Operation(corners, (*SIZES, "halves"), exact=True, true_gradient=False),
    "coefficients.SOFT_COEFFICIENTS": Operation(
        soft_coefficients,
        [(gates, temperature) for gates in SIZES for temperature in (0.1, 1.0, 5.0)],
        tolerance=1e-4,  # of the temperature's gradient: a small difference of large numbers where it is low
    ),
    "coefficients.MIXTURE_COEFFICIENTS": Operation(mixture, [(gates, tau) for gates in SIZES for tau in (0.5, 1.0)]),
    "coefficients.STRAIGHT_THROUGH_MIXTURE": Operation(
        mixture, [(gates, tau) for gates in SIZES for tau in (0.5, 1.0)], true_gradient=False
    ),
    "cross_entropy.CROSS_ENTROPY": Operation(
        cross_entropy, [(77, classes, scale) for classes in (1, 2, 15, 16, 33, 200) for scale in (0.01, 5.0, 300.0)]
    ),
    "gate_layer.GATE_LAYER": Operation(
        gate_layer,
        [(batch, *layer) for batch in (0, 1, 63, 64, 65, 511) for layer in ((2, 1), (5, 7), (40, 1000), (1000, 1000))],
        few=[(0, 5, 7), (1, 2, 1), (65, 40, 300), (511, 40, 70)],
    ),
    "soft_stack.SOFT_STACKS": Operation(
        stack,
        [{**case, "sigmoid": s} for case in STACKS for s in (False, True)],
        few=[{**case, "sigmoid": place % 3 == 2} for place, case in enumerate(FEW_STACKS)],
    ),
    "boolean_stack.BOOLEAN_STACKS": Operation(boolean_stack, STACKS, true_gradient=False, few=FEW_STACKS),
    "boolean_stack.BOOLEAN_COUNTS": Operation(boolean_counts, STACKS, exact=True, true_gradient=False, few=FEW_STACKS),
    "learned_stack.LEARNED_STACKS": Operation(
        learned_stack,
        [
            {**case, "candidates": count, "boolean": boolean}
            for case in STACKS
            if case["wiring"] == "random"
            for count in (1, 3, 4, 8, 16)
            for boolean in (False, True)
        ],
        true_gradient=False,
        few=[
            {**case, "candidates": (1, 3, 8)[place % 3], "boolean": place % 2 == 0}
            for place, case in enumerate(FEW_STACKS)
        ],
    ),
    "learned_stack.BEST_CANDIDATES": Operation(
        best_candidates,
        [(gates, count) for gates in (1, 130) for count in (1, 3, 8)],
        exact=True,
        true_gradient=False,
        dtypes=(torch.float64,),
    ),
    "regrowth.BEST_NODES": Operation(
        best_nodes,
        [
            (inputs, nodes, batch, bits)
            for inputs, nodes in ((1, 2), (7, 4), (130, 90))
            for batch in (1, 64, 130)
            for bits in (False, True)
        ],
        exact=True,
        true_gradient=False,
        dtypes=(torch.float64,),
        few=[(1, 2, 1, True), (7, 4, 64, False), (40, 90, 130, True), (33, 70, 65, False)],
    ),
    "gather.GATHER": Operation(
        gather,
        [(samples, batch, bits) for samples in (1, 100) for batch in (1, 64, 130) for bits in (1, 64, 129)],
        exact=True,
        true_gradient=False,
        dtypes=(torch.float32,),
    ),
    "regrowth.REPLACE_LOWEST": Operation(
        replace_lowest,
        [(gates, count, moments) for gates in (1, 130) for count in (1, 3, 8) for moments in (False, True)],
        true_gradient=False,
    ),
    "gumbel.FILL": Operation(
        gumbel, (1, 255, 256, 257, 80_000), exact=True, true_gradient=False, dtypes=(torch.float32,)
    ),
    "gumbel.NOISY": Operation(
        noisy,
        [(gates, streams, scale) for gates, streams in ((1, 1), (12, 3), (8194, 2)) for scale in (1.0, 0.3)],
        true_gradient=False,
        few=[(12, 3, 1.0), (70, 2, 0.3)],
    ),
}


def tables() -> dict[str, Mapping[str, Callable[..., Any]]]:
    """Every dict in the packages of ``gatefit.ops`` that has a reference, as "package.NAME"."""
    return {
        f"{module.name}.{name}": value
        for module in pkgutil.iter_modules(gatefit.ops.__path__)
        if module.ispkg
        for name, value in vars(importlib.import_module(f"gatefit.ops.{module.name}")).items()
        if isinstance(value, dict) and "reference" in value
    }


def marks(implementation: str, dtype: torch.dtype) -> list[pytest.MarkDecorator]:
    """By Triton's interpreter, what networks are trained in belongs to `make test`, the other to `make test-slow`."""
    if implementation != "triton":
        return []
    return [pytest.mark.gpu, pytest.mark.outside, *([pytest.mark.slow] if dtype == torch.float64 else [])]


REGISTERED = [
    pytest.param(name, other, dtype, marks=marks(other, dtype))
    for name, table in tables().items()
    for other in table
    for dtype in (OPERATIONS[name].dtypes if name in OPERATIONS else ())
    if other != "reference"
]


def test_every_operation_is_compared():
    assert sorted(tables()) == sorted(OPERATIONS)
    assert {each.values[1] for each in REGISTERED} <= IMPLEMENTATIONS.keys()


def device_for(implementation: str, dtype: torch.dtype) -> str:
    """A device of this machine that the implementation serves."""
    if implementation == "triton":
        pytest.importorskip("triton")
    here = ["cpu", *(["cuda"] if torch.cuda.is_available() else []), *(["mps"] if torch.mps.is_available() else [])]
    serving = [device for device in here if IMPLEMENTATIONS[implementation].serves(device, dtype)]
    if not serving:
        pytest.skip(f"{implementation} needs one of {', '.join(IMPLEMENTATIONS[implementation].devices)}")
    return serving[0]


def converted(value: Any, device: str, dtype: torch.dtype) -> Any:
    """The same arguments elsewhere: floating tensors as leaves of their own."""
    if isinstance(value, Tensor):
        moved = value.detach().to(device, dtype if value.is_floating_point() else value.dtype, copy=True)
        return moved.requires_grad_() if value.is_floating_point() else moved
    if isinstance(value, list | tuple):
        return type(value)(converted(each, device, dtype) for each in value)
    if isinstance(value, Stack):
        return replace(value, **{f.name: converted(getattr(value, f.name), device, dtype) for f in fields(value)})
    return value


def leaves_of(arguments: dict[str, Any]) -> dict[str, Tensor]:
    """The floating tensors, by name and place in a sequence."""
    return {
        f"{name}[{place}]" if isinstance(value, list | tuple) else name: each
        for name, value in arguments.items()
        for place, each in enumerate(value if isinstance(value, list | tuple) else [value])
        if isinstance(each, Tensor) and each.is_floating_point()
    }


def results(function: Callable[..., Any], given: dict[str, Any], device: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Outputs and gradients of one call, by name, on the CPU."""
    arguments = {name: converted(value, device, dtype) for name, value in given.items()}
    leaves = leaves_of(arguments)
    with torch.no_grad():
        filled = function(**arguments)
    found = {}
    if filled is None:
        found = {name: leaf.detach() for name, leaf in leaves.items()}
    else:
        outputs = function(**arguments)
        for place, output in enumerate(outputs if isinstance(outputs, tuple) else [outputs]):
            found[f"output {place}"] = output.detach()
            if not output.requires_grad:
                continue
            upstream = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(device, dtype)
            asked = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
            gradients = torch.autograd.grad(output, list(asked.values()), upstream, allow_unused=True)
            for name, gradient in zip(asked, gradients, strict=True):
                if gradient is not None:
                    found[f"gradient of {name}"] = gradient
    return {name: value.cpu() for name, value in found.items()}


@pytest.mark.parametrize(("operation", "implementation", "dtype"), REGISTERED, ids=str)
def test_outputs_and_gradients_are_those_of_the_reference(operation, implementation, dtype):
    how, table = OPERATIONS[operation], tables()[operation]
    device = device_for(implementation, dtype)
    exact = dtype if how.exact else torch.float64
    slow = implementation == "triton" and device == "cpu"
    for case in how.few if slow and how.few is not None else how.cases:
        given = how.arguments(case, torch.Generator().manual_seed(0), dtype)
        with patched_once_a_launch() if slow else nullcontext():
            found = results(table[implementation], given, device, dtype)
        expected = results(table["reference"], given, "cpu", exact)
        assert found.keys() == expected.keys(), case
        for name, value in expected.items():
            if how.exact or not value.is_floating_point():
                assert found[name].dtype == value.dtype
                assert torch.equal(found[name].nan_to_num(nan=77.0), value.nan_to_num(nan=77.0)), f"{case}: {name}"
                continue
            assert found[name].dtype == dtype
            assert found[name].shape == value.shape
            allowed = how.tolerance if dtype == torch.float32 else 1e-10
            apart = (found[name].double() - value).abs()
            assert not apart.numel() or apart.max() <= allowed * (1 + value.abs().max()), (
                f"{case}: {name} by {apart.max()}"
            )


@pytest.mark.parametrize("operation", [name for name, how in OPERATIONS.items() if how.true_gradient])
def test_the_reference_passes_gradcheck(operation):
    how, table = OPERATIONS[operation], tables()[operation]
    given = how.arguments(how.cases[1], torch.Generator().manual_seed(0), torch.float64)
    given = {name: converted(value, "cpu", torch.float64) for name, value in given.items()}
    leaves = leaves_of(given)
    assert leaves

    # The leaves are in the arguments already: gradcheck moves them in place.
    torch.autograd.gradcheck(lambda *_: table["reference"](**given), list(leaves.values()), fast_mode=False)
