"""The gate layer: truth tables, refusals, and what the compiled one promises besides agreeing with its reference."""

import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.gates import Gate
from gatefit.ops.gate_layer import GATE_LAYER, gate_layer, numba, reference
from gatefit.ops.implementations import IMPLEMENTATIONS, REFERENCE
from gatefit.ops.threads import training_threads


@pytest.mark.parametrize("implementation", GATE_LAYER)
def test_layer_of_the_sixteen_gates_computes_their_truth_tables(implementation):
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    wiring = torch.tensor([[0] * 16, [1] * 16], dtype=torch.int32)
    z = gate_layer(
        x, wiring, torch.tensor(CODEBOOK, dtype=torch.float32), implementation=IMPLEMENTATIONS[implementation]
    )
    for gate in Gate:
        assert z[:, gate].tolist() == [gate(0, 0), gate(0, 1), gate(1, 0), gate(1, 1)]


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


def example(batch, inputs, gates, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, inputs, generator=generator, dtype=dtype)
    wiring = torch.randint(inputs, (2, gates), generator=generator, dtype=torch.int32)
    coefficients = torch.randn(gates, 4, generator=generator, dtype=dtype)
    delta = torch.randn(batch, gates, generator=generator, dtype=dtype)
    return x, wiring, coefficients, delta


def with_gradients(layer, x, wiring, coefficients, delta):
    x, coefficients = x.detach().requires_grad_(), coefficients.detach().requires_grad_()
    z = layer(x, wiring, coefficients)
    grad_x, grad_c = torch.autograd.grad(z, (x, coefficients), delta)
    return {"z": z.detach(), "grad_x": grad_x, "grad_coefficients": grad_c}


def assert_same(fused, expected, tolerance=1e-10):
    assert fused.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            fused[name], value, rtol=tolerance, atol=tolerance, msg=lambda m, name=name: f"{name}: {m}"
        )


def test_repeated_and_unused_inputs():
    x, _, c, delta = example(33, 6, 5)
    wiring = torch.tensor([[2, 2, 2, 0, 4], [2, 2, 0, 2, 4]], dtype=torch.int32)  # 1, 3 and 5 are unused
    fused = with_gradients(numba.gate_layer, x, wiring, c, delta)
    assert_same(fused, with_gradients(reference.gate_layer, x, wiring, c, delta))
    assert not fused["grad_x"][:, [1, 3, 5]].any()


@pytest.mark.parametrize(
    "view", [lambda x: x[:, 1:], lambda x: x.T.contiguous().T, lambda x: x[::2], lambda x: x.expand(40, 7)]
)
def test_any_strides_are_accepted(view):
    generator = torch.Generator().manual_seed(1)
    rows = 1 if view(torch.zeros(1, 7)).shape[0] == 40 else 30
    x = view(torch.randn(rows, 7, generator=generator, dtype=torch.float64))
    _, wiring, c, delta = example(x.shape[0], x.shape[1], 9)
    assert_same(
        with_gradients(numba.gate_layer, x, wiring, c, delta), with_gradients(reference.gate_layer, x, wiring, c, delta)
    )
    expanded = torch.ones((), dtype=torch.float64).expand_as(delta)  # as the gradient of a sum comes
    assert_same(
        with_gradients(numba.gate_layer, x, wiring, c, expanded),
        with_gradients(reference.gate_layer, x, wiring, c, expanded),
    )


def test_layers_compose_without_copies():
    x, wiring, c, _ = example(64, 50, 80)
    z = numba.gate_layer(x, wiring, c)
    assert z.shape == (64, 80)
    assert z.T.is_contiguous()
    assert numba.feature_major(z).data_ptr() == z.data_ptr()
    z.T[3, 5] = 7.0
    assert numba.feature_major(z)[3, 5] == 7.0


@pytest.mark.parametrize("needs_x", [True, False])
@pytest.mark.parametrize("needs_c", [True, False])
def test_only_asked_gradients_are_given(needs_x, needs_c):
    x, wiring, c, _ = example(20, 8, 12)
    x.requires_grad_(needs_x)
    c.requires_grad_(needs_c)
    z = numba.gate_layer(x, wiring, c)
    assert z.requires_grad == (needs_x or needs_c)
    if z.requires_grad:
        z.sum().backward()
    assert (x.grad is not None) == needs_x
    assert (c.grad is not None) == needs_c


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_with_one_and_two_threads(dtype):
    case = example(512, 300, 2000, dtype)  # several shares of work
    results = []
    for threads in (1, 2):
        with training_threads(threads):
            results.append(with_gradients(numba.gate_layer, *case))
    for name, value in results[0].items():
        assert torch.equal(value, results[1][name]), name


def test_not_a_number_propagates():
    x, wiring, c, delta = example(20, 4, 3)
    wiring = torch.tensor([[0, 1, 2], [1, 2, 3]], dtype=torch.int32)
    x[5, 0] = float("nan")
    delta[7, 2] = float("inf")
    fused = with_gradients(numba.gate_layer, x, wiring, c, delta)
    assert fused["z"].isnan().nonzero().tolist() == [[5, 0]]
    assert fused["grad_x"].isnan().any(0).tolist() == [False, True, False, False]
    assert fused["grad_coefficients"][0].isnan().tolist() == [False, True, False, True]
    assert not fused["grad_coefficients"][2].isfinite().any()


def test_buffers_are_not_shared_between_living_results():
    x, wiring, c, delta = example(512, 64, 600)
    first = numba.gate_layer(x, wiring, c)
    copy = first.clone()
    for _ in range(3):
        numba.gate_layer(2 * x, wiring, c)
    assert torch.equal(first, copy)
    # The graph of a first step must survive other steps until its own backward pass.
    held = with_gradients(reference.gate_layer, x, wiring, c, delta)
    leaf = c.clone().requires_grad_()
    z = numba.gate_layer(x, wiring, leaf)
    for _ in range(3):
        with_gradients(numba.gate_layer, -x, wiring, c, delta)
    (gradient,) = torch.autograd.grad(z, leaf, delta)
    torch.testing.assert_close(gradient, held["grad_coefficients"], rtol=1e-10, atol=1e-10)


def test_a_rewritten_wiring_is_noticed():
    x, wiring, c, delta = example(9, 5, 6)
    with_gradients(numba.gate_layer, x, wiring, c, delta)
    wiring.copy_(torch.randint(5, (2, 6), generator=torch.Generator().manual_seed(9)))
    assert_same(
        with_gradients(numba.gate_layer, x, wiring, c, delta), with_gradients(reference.gate_layer, x, wiring, c, delta)
    )


def test_wiring_may_be_int64():
    x, wiring, c, delta = example(9, 5, 6)
    assert_same(
        with_gradients(numba.gate_layer, x, wiring.long(), c, delta),
        with_gradients(reference.gate_layer, x, wiring, c, delta),
    )


def test_empty_batch():
    x, wiring, c, _ = example(0, 5, 6)
    z = numba.gate_layer(x, wiring, c.requires_grad_())
    assert z.shape == (0, 6)
    z.sum().backward()
    assert not c.grad.any()


def test_errors_say_what_to_do():
    x, wiring, c, _ = example(9, 5, 6)
    with pytest.raises(TypeError, match=r"x must be float32 or float64, got torch.float16; convert with .float\(\)"):
        numba.gate_layer(x.half(), wiring, c)
    with pytest.raises(TypeError, match=r"x and coefficients must have one type, got .*float32.*float64"):
        numba.gate_layer(x, wiring, c.float())
    with pytest.raises(ValueError, match=r"x is on meta; the fused kernels run on the CPU"):
        numba.gate_layer(x.to("meta"), wiring, c)
    with pytest.raises(ValueError, match=r"wiring reads inputs \d to 4, but x has 3 inputs, numbered from 0"):
        numba.gate_layer(x[:, :3], torch.clamp(wiring, max=4) * 0 + 4 * (wiring > 0), c)
