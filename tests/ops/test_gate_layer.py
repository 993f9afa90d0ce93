"""The reference operation and its dispatch."""

import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.gates import Gate
from gatefit.ops.gate_layer import GATE_LAYERS, gate_layer
from gatefit.ops.implementations import IMPLEMENTATIONS, REFERENCE


@pytest.mark.parametrize("implementation", GATE_LAYERS)
def test_layer_of_the_sixteen_gates_computes_their_truth_tables(implementation):
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    wiring = torch.tensor([[0] * 16, [1] * 16], dtype=torch.int32)
    z = gate_layer(
        x, wiring, torch.tensor(CODEBOOK, dtype=torch.float32), implementation=IMPLEMENTATIONS[implementation]
    )
    for gate in Gate:
        assert z[:, gate].tolist() == [gate(0, 0), gate(0, 1), gate(1, 0), gate(1, 1)]


def test_reference_passes_gradcheck():
    g = torch.Generator().manual_seed(0)
    x = torch.rand(5, 6, generator=g, dtype=torch.float64, requires_grad=True)
    coefficients = torch.randn(7, 4, generator=g, dtype=torch.float64, requires_grad=True)
    wiring = torch.randint(6, (2, 7), generator=g)
    assert torch.autograd.gradcheck(lambda x, c: gate_layer(x, wiring, c, implementation=REFERENCE), (x, coefficients))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": torch.zeros(3)}, ValueError, r"x must have shape \(batch, inputs\), got \(3,\)"),
        ({"wiring": torch.zeros(3, 5, dtype=torch.int32)}, ValueError, r"wiring must have shape \(2, gates\)"),
        ({"coefficients": torch.zeros(5, 3)}, ValueError, r"\(gates, 4\) = \(5, 4\) for this wiring, got \(5, 3\)"),
        ({"wiring": torch.zeros(2, 5)}, TypeError, r"wiring must hold int32 or int64 indices, got torch.float32"),
        ({"x": torch.zeros(3, 4, dtype=torch.bool)}, TypeError, r"x must be floating-point, got torch.bool"),
        ({"x": torch.zeros(3, 4, dtype=torch.float64)}, TypeError, r"float64 but coefficients are torch.float32"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    arguments = {
        "x": torch.zeros(3, 4),
        "wiring": torch.zeros(2, 5, dtype=torch.int32),
        "coefficients": torch.zeros(5, 4),
    }
    with pytest.raises(error, match=message):
        gate_layer(**{**arguments, **change}, implementation=REFERENCE)
