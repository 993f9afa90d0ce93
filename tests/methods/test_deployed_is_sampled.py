"""A method that commits to one gate deploys exactly that gate, on every boundary, whatever computes it."""

import itertools

import pytest
import torch

from gatefit.codebook import CODEBOOK, CORNER_VALUES
from gatefit.methods import METHODS, SingleGateForward
from gatefit.methods.base import SURROGATES
from gatefit.methods.corner import IWPSTE, SNAPS
from gatefit.methods.gate_logits import NOISE_PLACES
from gatefit.ops.coefficients import codebook
from gatefit.ops.implementations import IMPLEMENTATIONS

SINGLE_GATE = {name: kind for name, kind in METHODS.items() if issubclass(kind, SingleGateForward)}
CHOICES = {
    "surrogate": SURROGATES,
    "corner_activation": tuple(IWPSTE.activations),
    "noise_in": NOISE_PLACES,
    "backward_basis": ("canonical", "walsh", "smoothed"),
    "temperature": (0.3, 1.0),
}


def settings():
    """Every method with every combination of the options that it takes; noise without any size."""
    for name, kind in SINGLE_GATE.items():
        taken = {option: values for option, values in CHOICES.items() if option in kind.options()}
        if name == "iwp-ste":
            taken["snap"] = SNAPS
        for values in itertools.product(*taken.values()):
            options = dict(zip(taken, values, strict=True))
            yield name, {**options, **({"noise_scale": 0.0} if "noise_scale" in kind.options() else {})}


def on_boundaries(parameters, dtype):
    """Parameters at which gates are equally near, one unit in the last place beside them, and between."""
    generator = torch.Generator().manual_seed(0)
    if parameters == 16:
        ties = torch.randint(3, (500, 16), generator=generator).to(dtype)
    else:
        steps = torch.arange(-1, 1.5, 0.5, dtype=dtype)
        grid = torch.cartesian_prod(steps, steps, steps, steps)
        first, second = torch.randint(16, (2, 500), generator=generator)
        points = [torch.tensor(table, dtype=dtype) for table in (CODEBOOK, CORNER_VALUES)]
        ties = torch.cat([grid, *((table[first] + table[second]) / 2 for table in points)])
    beside = [torch.nextafter(ties, torch.tensor(way, dtype=dtype)) for way in (-torch.inf, torch.inf)]
    return torch.cat([ties, *beside, 3 * torch.randn(500, parameters, generator=generator).to(dtype)])


QUICK = [each for each in IMPLEMENTATIONS.values() if not each.by_triton]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("name", "options"), list(settings()), ids=str)
def test_gates_are_those_sampled(name, options, dtype):
    points = on_boundaries(METHODS[name].parameters_per_gate, dtype)
    assert len(sampled_by(QUICK, points, name, options).unique()) == 16
    # Triton's interpreter takes a thousand times as long.
    sampled_by(IMPLEMENTATIONS.values(), points[::7], name, options)


def sampled_by(implementations, points, name, options):
    """The gates that are sampled at these points, by whichever implementation."""
    dtype = points.dtype
    method = METHODS[name](len(points), generator=torch.Generator().manual_seed(0), dtype=dtype, **options).train()
    method.latent.data.copy_(points)
    found = []
    for implementation in implementations:
        method.implementation = implementation
        sampled, coefficients = method.sample()
        assert torch.equal(method.gates(), sampled)
        if not method.continuous_backward:
            assert torch.equal(coefficients, codebook(dtype)[sampled.long()])
        found.append(sampled)
    assert all(torch.equal(each, found[0]) for each in found)
    return found[0]
