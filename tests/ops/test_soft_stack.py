"""Every soft stack computes what layer after layer of plain torch defines, with every gradient."""

import pytest
import torch

from gatefit.ops.batches import on_device
from gatefit.ops.implementations import IMPLEMENTATIONS, NUMBA
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stacks import Layered, Stack
from gatefit.ops.threads import training_threads
from stacks import SHAPES, bits_of, gradients, owners_of, plain_scores, wirings_of

compiled = pytest.mark.parametrize("implementation", [NUMBA], ids=["numba"])


@pytest.fixture(params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
def implementation(request):
    return request.param


def coefficients_of(widths, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(width, 4, generator=generator, dtype=dtype).requires_grad_() for width in widths]


def soft_sums(implementation, x, wirings, coefficients, classes=None, sigmoid=False, **options):
    stack = Stack(wirings, classes, **options)
    return soft_stack(x, stack, coefficients, sigmoid=sigmoid, implementation=implementation)


def assert_stack_matches(implementation, values, x, wirings, coefficients, classes, tolerance=1e-10, **options):
    expected = plain_scores(values, wirings, coefficients, classes, **options)
    scores = soft_sums(implementation, x, wirings, coefficients, classes, **options)
    torch.testing.assert_close(scores, expected, rtol=tolerance, atol=tolerance)
    delta = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5), dtype=expected.dtype)
    reference = gradients(expected, delta, coefficients)
    for name, gradient in gradients(scores, delta, coefficients).items():
        scale = float(reference[name].abs().max())
        torch.testing.assert_close(
            gradient,
            reference[name],
            rtol=tolerance,
            atol=tolerance * max(1.0, scale),
            msg=lambda m, n=name: f"{n}: {m}",
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wiring", ["balanced", "random", "twins"])
def test_stack_matches_plain_layers(implementation, shape, wiring):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(70, inputs)
    classes = 5 if widths[-1] % 5 == 0 else 1
    assert_stack_matches(
        implementation, values, x, wirings_of(inputs, widths, wiring), coefficients_of(widths), classes
    )


@pytest.mark.parametrize("batch", [0, 1, 15, 16, 17, 63, 64, 65, 511])
@pytest.mark.parametrize("classes", [1, 4, None])
def test_odd_batches_and_readouts(implementation, batch, classes):
    values, x = bits_of(batch, 11)
    widths = [24, 24, 24]
    assert_stack_matches(implementation, values, x, wirings_of(11, widths), coefficients_of(widths), classes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wiring", ["balanced", "random", "twins"])
def test_a_sigmoid_after_every_layer(implementation, shape, wiring):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(33, inputs)
    coefficients = [(3 * c).detach().requires_grad_() for c in coefficients_of(widths)]
    assert_stack_matches(
        implementation, values, x, wirings_of(inputs, widths, wiring), coefficients, None, sigmoid=True
    )


def test_a_sigmoid_of_large_numbers(implementation):
    _, x = bits_of(8, 2)
    wiring = [torch.tensor([[0, 1, 0], [1, 0, 0]], dtype=torch.int32)]
    far = torch.tensor([[1e5, 0, 0, 0], [-1e5, 0, 0, 0], [float("nan"), 0, 0, 0]], requires_grad=True)
    y = soft_sums(implementation, x, wiring, [far], sigmoid=True)
    assert y[0].detach().tolist()[:2] == [1.0, pytest.approx(0.0, abs=1e-37)]
    assert y[:, 2].isnan().all()
    y[:, :2].sum().backward()
    assert far.grad[:2].abs().max() < 1e-30


def test_a_layer_of_a_thousand_gates(implementation):
    values, x = bits_of(65, 50)
    assert_stack_matches(implementation, values, x, wirings_of(50, [1000, 1000]), coefficients_of([1000, 1000]), 10)


def test_gradcheck(implementation):
    _, x = bits_of(5, 4)
    wirings = wirings_of(4, [6, 6])
    torch.autograd.gradcheck(lambda *c: soft_sums(implementation, x, wirings, c, 2), coefficients_of([6, 6]), atol=1e-8)


@compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_with_one_and_two_threads(implementation, dtype):
    widths = [700, 700, 700]
    _, x = bits_of(600, 30)  # large enough for threads to be used
    wirings, results = wirings_of(30, widths), []
    for threads in (1, 2):
        coefficients = coefficients_of(widths, dtype)
        with training_threads(threads):
            scores = soft_sums(implementation, x, wirings, coefficients, 10)
            results.append([scores, *gradients(scores, torch.ones_like(scores), coefficients).values()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@compiled
def test_float32_is_accurate(implementation):
    widths = [200, 200, 200]
    values, x = bits_of(300, 20)
    wirings = wirings_of(20, widths)
    soft = [torch.softmax(c.detach(), -1).requires_grad_() for c in coefficients_of(widths)]
    single = [c.detach().float().requires_grad_() for c in soft]
    expected, scores = plain_scores(values, wirings, soft, 10), soft_sums(implementation, x, wirings, single, 10)
    assert (scores - expected).abs().max() < 1e-6 * expected.abs().max()
    delta = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    reference = gradients(expected, delta, soft)
    for name, gradient in gradients(scores, delta.float(), single).items():
        assert (gradient - reference[name]).abs().max() < 1e-6 * reference[name].abs().max(), name


@compiled
def test_blocks_side_by_side_give_the_bits_of_each_alone(implementation):
    widths, batch = [24, 24, 24], 70
    parts = [bits_of(batch, 9, seed) for seed in (0, 1)]
    wirings = [wirings_of(9, widths, seed=seed) for seed in (0, 1)]
    coefficients = [coefficients_of(widths, torch.float32, seed) for seed in (0, 1)]
    values, joined = bits_of(batch, 18)
    values[:, :9], values[:, 9:] = parts[0][0], parts[1][0]
    joined.words[:, :9], joined.words[:, 9:] = parts[0][1].words, parts[1][1].words
    both_wirings = [torch.cat([a, b + below], dim=1) for a, b, below in zip(*wirings, [9, 24, 24], strict=True)]
    both = [torch.cat([a, b]).detach().requires_grad_() for a, b in zip(*coefficients, strict=True)]
    scores = soft_sums(implementation, joined, both_wirings, both, 8)
    found = gradients(scores, torch.ones_like(scores), both)
    for i in (0, 1):
        alone = soft_sums(implementation, parts[i][1], wirings[i], coefficients[i], 4)
        assert torch.equal(alone, scores[:, 4 * i : 4 * i + 4])
        for name, gradient in gradients(alone, torch.ones_like(alone), coefficients[i]).items():
            assert torch.equal(gradient, found[name][24 * i : 24 * i + 24]), name


def test_not_a_number_propagates(implementation):
    _, x = bits_of(20, 6)
    wirings = wirings_of(6, [8, 8])
    coefficients = coefficients_of([8, 8])
    with torch.no_grad():
        coefficients[0][3, 1] = float("nan")
    scores = soft_sums(implementation, x, wirings, coefficients, 1)
    assert scores.isnan().any()
    scores.sum().backward()
    assert coefficients[1].grad.isnan().any()


def test_only_asked_gradients_and_no_graph_without_any(implementation):
    _, x = bits_of(20, 6)
    wirings = wirings_of(6, [8, 8])
    first, second = coefficients_of([8, 8])
    soft_sums(implementation, x, wirings, [first.detach(), second], 2).sum().backward()
    assert first.grad is None
    assert second.grad is not None
    assert not soft_sums(implementation, x, wirings, [first.detach(), second.detach()], 2).requires_grad


@compiled
def test_errors_say_what_was_given_and_needed(implementation):
    _, x = bits_of(20, 6)
    wirings, coefficients = wirings_of(7, [8, 8]), coefficients_of([8, 8])
    with pytest.raises(ValueError, match=r"the wiring of layer 0 reads inputs 0 to 6, but there are 6"):
        soft_sums(implementation, x, wirings, coefficients, 2)
    wirings = wirings_of(6, [8, 8])
    with pytest.raises(
        ValueError, match=r"need coefficients of shapes \[\(8, 4\), \(8, 4\)\], got \[\(8, 4\), \(7, 4\)\]"
    ):
        soft_sums(implementation, x, wirings, [coefficients[0], coefficients[1][:7]], 2)
    with pytest.raises(ValueError, match=r"the last layer's 8 gates cannot be divided into 3 equal groups"):
        soft_sums(implementation, x, wirings, coefficients, 3)
    with pytest.raises(TypeError, match=r"coefficients of layer 1 must be float32 or float64, got torch.bfloat16"):
        soft_sums(implementation, x, wirings, [coefficients[0], coefficients[1].bfloat16()], 2)
    with pytest.raises(ValueError, match=r"at least one layer"):
        soft_sums(implementation, x, [], [], 2)


VOTES = {
    "all of three": (11, [24, 24, 24], [1, 2, 3]),
    "two of unequal": (9, [30, 12, 18], [1, 3]),
    "one": (7, [12], [1]),
}


@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("case", VOTES)
def test_several_layers_vote(implementation, case, sigmoid):
    inputs, widths, votes = VOTES[case]
    values, x = bits_of(70, inputs)
    wirings, coefficients = wirings_of(inputs, widths), coefficients_of(widths)
    assert_stack_matches(implementation, values, x, wirings, coefficients, 3, sigmoid=sigmoid, votes=votes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wiring", ["balanced", "random"])
def test_gates_that_share_coefficients(implementation, shape, wiring):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(70, inputs)
    owners = [owners_of(gates, seed) if seed != 1 else None for seed, gates in enumerate(widths)]
    rows = [gates if owner is None else int(owner.max()) + 1 for gates, owner in zip(widths, owners, strict=True)]
    wirings, coefficients = wirings_of(inputs, widths, wiring), coefficients_of(rows)
    assert_stack_matches(implementation, values, x, wirings, coefficients, 1, owners=owners)


@compiled
def test_own_gates_named_one_by_one_give_the_same_bits(implementation):
    widths = [200, 200, 200]
    _, x = bits_of(300, 20)
    wirings, results = wirings_of(20, widths), []
    for owners in ([], [torch.arange(200, dtype=torch.int32)] * 3):
        coefficients = coefficients_of(widths, torch.float32)
        scores = soft_sums(implementation, x, wirings, coefficients, 10, owners=owners)
        results.append([scores, *gradients(scores, torch.ones_like(scores), coefficients).values()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_coefficients_of_all_layers_in_one_tensor_give_the_same_bits(implementation, shape, threads, shared):
    inputs, widths = SHAPES[shape]
    _, x = bits_of(70, inputs)
    owners = [owners_of(gates, seed) for seed, gates in enumerate(widths)] if shared else ()
    sizes = [int(owner.max()) + 1 for owner in owners] or widths
    wirings, parts = wirings_of(inputs, widths), coefficients_of(sizes)
    whole = torch.cat(parts).detach().requires_grad_()
    with training_threads(threads):
        apart = soft_sums(implementation, x, wirings, parts, 1, owners=owners)
        together = soft_sums(implementation, x, wirings, Layered(whole, sizes), 1, owners=owners)
        delta = torch.randn(apart.shape, generator=torch.Generator().manual_seed(5), dtype=apart.dtype)
        (gradient,) = torch.autograd.grad(together, [whole], delta)
        assert torch.equal(together, apart)
        assert torch.equal(gradient, torch.cat(torch.autograd.grad(apart, parts, delta)))


@compiled
def test_one_tensor_for_all_layers_must_fit_them(implementation):
    _, x = bits_of(70, 9)
    with pytest.raises(ValueError, match=r"the layers need coefficients of shapes \[\(30, 4\), \(30, 4\)\]"):
        soft_sums(implementation, x, wirings_of(9, [30, 30]), Layered(torch.zeros(60, 4), [20, 40]), 1)


def test_a_wiring_that_changes_from_step_to_step(implementation):
    values, x = bits_of(70, 9)
    widths, coefficients = [30, 30, 30], coefficients_of([30, 30, 30])
    for seed in range(3):
        for changing in ([True, False, True], [True, True, True]):
            wirings = wirings_of(9, widths, seed=seed)
            assert_stack_matches(implementation, values, x, wirings, coefficients, 5, changing=changing)


def test_words_on_a_device_are_the_same_bits(implementation):
    values, x = bits_of(70, 9)
    there = on_device(x, "cpu")
    assert isinstance(there.words, torch.Tensor)
    coefficients = coefficients_of([30, 30])
    assert_stack_matches(implementation, values, there, wirings_of(9, [30, 30]), coefficients, 5)


def test_stacks_that_do_not_fit_together_are_refused():
    wirings = wirings_of(6, [8, 8])
    for options, message in (
        ({"votes": [1]}, r"votes are layers from 1 to 2, in order, with the last; got \[1\]"),
        ({"votes": [1, 2]}, r"several layers vote in groups alone"),
        ({"votes": [1, 2], "groups": 3}, r"the voting layer's 8 gates cannot be divided into 3 equal groups"),
        ({"owners": [None]}, r"a stack of 2 layers needs as many owners and changing, got 1 and 2"),
        ({"owners": [None, torch.zeros(7).int()]}, r"owners name a row for each of 8 gates, got shape \(7,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Stack(wirings, **options)
