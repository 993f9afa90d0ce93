"""The fused gate layer computes what four lines of torch define, with every gradient, for every odd shape."""

import pytest
import torch

from gatefit.ops.gate_layer_numba import feature_major, gate_layer_numba, transpose_wiring
from gatefit.ops.threads import training_threads


def reference(x, wiring, c):
    a, b = x[:, wiring[0].long()], x[:, wiring[1].long()]
    return c[:, 0] + c[:, 1] * a + c[:, 2] * b + c[:, 3] * a * b


def example(batch, inputs, gates, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, inputs, generator=generator, dtype=dtype)
    wiring = torch.randint(inputs, (2, gates), generator=generator, dtype=torch.int32)
    coefficients = torch.randn(gates, 4, generator=generator, dtype=dtype)
    delta = torch.randn(batch, gates, generator=generator, dtype=dtype)
    return x, wiring, coefficients, delta


def with_gradients(layer, x, wiring, coefficients, delta, **options):
    x, coefficients = x.detach().requires_grad_(), coefficients.detach().requires_grad_()
    z = layer(x, wiring, coefficients, **options)
    grad_x, grad_c = torch.autograd.grad(z, (x, coefficients), delta)
    return {"z": z.detach(), "grad_x": grad_x, "grad_coefficients": grad_c}


def assert_same(fused, expected, tolerance=1e-10):
    assert fused.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            fused[name], value, rtol=tolerance, atol=tolerance, msg=lambda m, name=name: f"{name}: {m}"
        )


@pytest.mark.parametrize("batch", [1, 63, 64, 65, 511])
@pytest.mark.parametrize(("inputs", "gates"), [(2, 1), (5, 7), (40, 1000), (1000, 1000)])
def test_fused_layer_matches_reference(batch, inputs, gates):
    case = example(batch, inputs, gates)
    assert_same(with_gradients(gate_layer_numba, *case), with_gradients(reference, *case))


def test_repeated_and_unused_inputs():
    x, _, c, delta = example(33, 6, 5)
    wiring = torch.tensor([[2, 2, 2, 0, 4], [2, 2, 0, 2, 4]], dtype=torch.int32)  # 1, 3 and 5 are unused
    fused = with_gradients(gate_layer_numba, x, wiring, c, delta)
    assert_same(fused, with_gradients(reference, x, wiring, c, delta))
    assert not fused["grad_x"][:, [1, 3, 5]].any()


@pytest.mark.parametrize(
    "view", [lambda x: x[:, 1:], lambda x: x.T.contiguous().T, lambda x: x[::2], lambda x: x.expand(40, 7)]
)
def test_any_strides_are_accepted(view):
    generator = torch.Generator().manual_seed(1)
    rows = 1 if view(torch.zeros(1, 7)).shape[0] == 40 else 30
    x = view(torch.randn(rows, 7, generator=generator, dtype=torch.float64))
    _, wiring, c, delta = example(x.shape[0], x.shape[1], 9)
    assert_same(with_gradients(gate_layer_numba, x, wiring, c, delta), with_gradients(reference, x, wiring, c, delta))
    expanded = torch.ones((), dtype=torch.float64).expand_as(delta)  # as the gradient of a sum comes
    assert_same(
        with_gradients(gate_layer_numba, x, wiring, c, expanded), with_gradients(reference, x, wiring, c, expanded)
    )


def test_layers_compose_without_copies():
    x, wiring, c, _ = example(64, 50, 80)
    z = gate_layer_numba(x, wiring, c)
    assert z.shape == (64, 80)
    assert z.T.is_contiguous()
    assert feature_major(z).data_ptr() == z.data_ptr()
    z.T[3, 5] = 7.0
    assert feature_major(z)[3, 5] == 7.0


def test_gradcheck():
    x, wiring, c, _ = example(3, 4, 6)
    torch.autograd.gradcheck(
        lambda x, c: gate_layer_numba(x, wiring, c), (x.requires_grad_(), c.requires_grad_()), atol=1e-8
    )


@pytest.mark.parametrize("needs_x", [True, False])
@pytest.mark.parametrize("needs_c", [True, False])
def test_only_asked_gradients_are_given(needs_x, needs_c):
    x, wiring, c, _ = example(20, 8, 12)
    x.requires_grad_(needs_x)
    c.requires_grad_(needs_c)
    z = gate_layer_numba(x, wiring, c)
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
            results.append(with_gradients(gate_layer_numba, *case))
    for name, value in results[0].items():
        assert torch.equal(value, results[1][name]), name


def test_float32_is_as_accurate_as_torch():
    case = example(511, 40, 300, torch.float32)
    double = with_gradients(reference, *(t.double() if t.is_floating_point() else t for t in case))
    for name, value in with_gradients(gate_layer_numba, *case).items():
        error = (value.double() - double[name]).abs().max() / double[name].abs().max()
        assert error < 5e-7, name


def test_not_a_number_propagates():
    x, wiring, c, delta = example(20, 4, 3)
    wiring = torch.tensor([[0, 1, 2], [1, 2, 3]], dtype=torch.int32)
    x[5, 0] = float("nan")
    delta[7, 2] = float("inf")
    fused = with_gradients(gate_layer_numba, x, wiring, c, delta)
    assert fused["z"].isnan().nonzero().tolist() == [[5, 0]]
    assert fused["grad_x"].isnan().any(0).tolist() == [False, True, False, False]
    assert fused["grad_coefficients"][0].isnan().tolist() == [False, True, False, True]
    assert not fused["grad_coefficients"][2].isfinite().any()


def test_buffers_are_not_shared_between_living_results():
    x, wiring, c, delta = example(512, 64, 600)
    first = gate_layer_numba(x, wiring, c)
    copy = first.clone()
    for _ in range(3):
        gate_layer_numba(2 * x, wiring, c)
    assert torch.equal(first, copy)
    # The graph of a first step must survive other steps until its own backward pass.
    held = with_gradients(reference, x, wiring, c, delta)
    leaf = c.clone().requires_grad_()
    z = gate_layer_numba(x, wiring, leaf)
    for _ in range(3):
        with_gradients(gate_layer_numba, -x, wiring, c, delta)
    (gradient,) = torch.autograd.grad(z, leaf, delta)
    torch.testing.assert_close(gradient, held["grad_coefficients"], rtol=1e-10, atol=1e-10)


def test_a_rewritten_wiring_is_noticed():
    x, wiring, c, delta = example(9, 5, 6)
    with_gradients(gate_layer_numba, x, wiring, c, delta)
    wiring.copy_(torch.randint(5, (2, 6), generator=torch.Generator().manual_seed(9)))
    assert_same(with_gradients(gate_layer_numba, x, wiring, c, delta), with_gradients(reference, x, wiring, c, delta))


def test_a_given_transposed_wiring_is_used():
    x, wiring, c, delta = example(9, 5, 6)
    transposed = transpose_wiring(wiring, 5)
    assert transposed.starts.tolist()[-1] == 12
    fused = with_gradients(gate_layer_numba, x, wiring, c, delta, transposed=transposed)
    assert_same(fused, with_gradients(reference, x, wiring, c, delta))


def test_wiring_may_be_int64():
    x, wiring, c, delta = example(9, 5, 6)
    assert_same(
        with_gradients(gate_layer_numba, x, wiring.long(), c, delta), with_gradients(reference, x, wiring, c, delta)
    )


def test_empty_batch():
    x, wiring, c, _ = example(0, 5, 6)
    z = gate_layer_numba(x, wiring, c.requires_grad_())
    assert z.shape == (0, 6)
    z.sum().backward()
    assert not c.grad.any()


def test_errors_say_what_to_do():
    x, wiring, c, _ = example(9, 5, 6)
    with pytest.raises(TypeError, match=r"x must be float32 or float64, got torch.float16; convert with .float\(\)"):
        gate_layer_numba(x.half(), wiring, c)
    with pytest.raises(TypeError, match=r"x and coefficients must have one type, got .*float32.*float64"):
        gate_layer_numba(x, wiring, c.float())
    with pytest.raises(ValueError, match=r"x is on meta; the fused kernels run on the CPU"):
        gate_layer_numba(x.to("meta"), wiring, c)
    with pytest.raises(ValueError, match=r"wiring reads inputs \d to 4, but x has 3 inputs, numbered from 0"):
        gate_layer_numba(x[:, :3], torch.clamp(wiring, max=4) * 0 + 4 * (wiring > 0), c)
    with pytest.raises(ValueError, match=r"belongs to 5 inputs and 6 gates, but x has 4 inputs and the wiring 6 gates"):
        gate_layer_numba(x[:, :4], wiring, c, transpose_wiring(wiring, 5))
