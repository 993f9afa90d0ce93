"""The Boolean stack: the plain path's outputs exactly, its gradients to rounding, for all gates and odd shapes."""

import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.gates import Gate
from gatefit.ops.boolean_stack import boolean_counts, boolean_stack
from gatefit.ops.implementations import IMPLEMENTATIONS, NUMBA
from gatefit.ops.stacks import Layered, Stack
from gatefit.ops.threads import training_threads
from stacks import SHAPES, bits_of, gradients, owners_of, plain_scores, wirings_of

compiled = pytest.mark.parametrize("implementation", [NUMBA], ids=["numba"])


@pytest.fixture(params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
def implementation(request):
    return request.param


def sums(implementation, x, wirings, gates, coefficients, classes=None, **options):
    return boolean_stack(x, Stack(wirings, classes, **options), gates, coefficients, implementation=implementation)


def counts(implementation, x, wirings, gates, classes=None, **options):
    return boolean_counts(x, Stack(wirings, classes, **options), gates, implementation=implementation)


def gates_of(widths, dtype=torch.float64, seed=0):
    """Random gates, and their rows of the codebook with gradients."""
    generator = torch.Generator().manual_seed(seed)
    gates = [torch.randint(16, (width,), generator=generator, dtype=torch.uint8) for width in widths]
    return gates, [torch.tensor(CODEBOOK, dtype=dtype)[layer.long()].requires_grad_() for layer in gates]


def assert_stack_matches(
    implementation, values, x, wirings, rows, classes, dtype=torch.float64, tolerance=1e-10, **options
):
    gates, coefficients = gates_of(rows, dtype)
    expected = plain_scores(values, wirings, coefficients, classes, **options)
    scores = sums(implementation, x, wirings, gates, coefficients, classes, **options)
    assert torch.equal(scores, expected)
    assert torch.equal(counts(implementation, x, wirings, gates, classes, **options), expected.long())
    delta = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5), dtype=dtype)
    reference = gradients(expected, delta, coefficients)
    for name, gradient in gradients(scores, delta, coefficients).items():
        torch.testing.assert_close(
            gradient, reference[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_computes_its_truth_table(implementation, gate):
    values, x = bits_of(70, 2)
    for a, b in ((0, 1), (1, 0), (0, 0)):
        wiring = torch.tensor([[a, 1 - a], [b, 1 - b]], dtype=torch.int32)  # square: walked as cycles when second
        identity = torch.tensor([[0, 1], [1, 0]], dtype=torch.int32)
        gates = [torch.full((2,), Gate.A, dtype=torch.uint8), torch.full((2,), gate, dtype=torch.uint8)]
        out = counts(implementation, x, [identity, wiring], gates)
        assert out[:, 0].tolist() == [gate(int(row[a]), int(row[b])) for row in values]
        assert counts(implementation, x, [wiring], [gates[1]])[:, 1].tolist() == [
            gate(int(row[1 - a]), int(row[1 - b])) for row in values
        ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wiring", ["balanced", "random", "twins"])
def test_stack_matches_plain_layers(implementation, shape, wiring):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(70, inputs)
    classes = 5 if widths[-1] % 5 == 0 else 1
    assert_stack_matches(implementation, values, x, wirings_of(inputs, widths, wiring), widths, classes)


@pytest.mark.parametrize("batch", [0, 1, 63, 64, 65, 511])
@pytest.mark.parametrize("classes", [1, 4, None])
def test_odd_batches_and_readouts(implementation, batch, classes):
    values, x = bits_of(batch, 11)
    assert_stack_matches(implementation, values, x, wirings_of(11, [24, 24, 24]), [24, 24, 24], classes)


def test_a_layer_of_a_thousand_gates_in_float32(implementation):
    values, x = bits_of(65, 50)
    assert_stack_matches(
        implementation, values, x, wirings_of(50, [1000, 1000]), [1000, 1000], 10, torch.float32, tolerance=2e-5
    )


def test_gradients_are_those_of_any_codebook_like_coefficients(implementation):
    # The backward pass uses the coefficients that it is given, not those it could derive from the gates.
    _, x = bits_of(40, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    doubled = [(2 * c).detach().requires_grad_() for c in coefficients]
    scores = sums(implementation, x, wirings, gates, doubled, 1)
    assert torch.equal(scores, sums(implementation, x, wirings, gates, coefficients, 1))
    scores.sum().backward()
    coefficients[1].grad = None
    sums(implementation, x, wirings, gates, coefficients, 1).sum().backward()
    torch.testing.assert_close(doubled[1].grad, coefficients[1].grad)
    torch.testing.assert_close(doubled[0].grad, 2 * coefficients[0].grad)


@compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_with_one_and_two_threads(implementation, dtype):
    widths = [700, 700, 700]
    _, x = bits_of(600, 30)
    wirings, results = wirings_of(30, widths), []
    for threads in (1, 2):
        gates, coefficients = gates_of(widths, dtype)
        with training_threads(threads):
            scores = sums(implementation, x, wirings, gates, coefficients, 10)
            delta = torch.linspace(-1, 1, scores.numel(), dtype=dtype).view_as(scores)
            results.append([scores, *gradients(scores, delta, coefficients).values()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@compiled
def test_activations_take_one_bit(implementation):
    widths = [512, 512]
    _, x = bits_of(640, 16)
    gates, coefficients = gates_of(widths, torch.float32)
    scores = sums(implementation, x, wirings_of(16, widths), gates, coefficients, 2)
    assert scores.grad_fn.bits.nbytes == sum(widths) * 640 // 8


def test_a_broken_loss_shows_in_the_gradients(implementation):
    _, x = bits_of(40, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    (sums(implementation, x, wirings, gates, coefficients, 1) * float("nan")).sum().backward()
    assert coefficients[1].grad[:, 0].isnan().all()
    assert coefficients[0].grad[:, 0].isnan().any()


def test_errors_say_what_was_given_and_needed(implementation):
    _, x = bits_of(20, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    with pytest.raises(ValueError, match=r"need gate numbers of shapes \[\(8,\), \(8,\)\], got \[\(8,\)\]"):
        sums(implementation, x, wirings, gates[:1], coefficients, 2)
    with pytest.raises(TypeError, match=r"gate numbers are uint8, got torch.int64"):
        counts(implementation, x, wirings, [layer.long() for layer in gates], 2)
    with pytest.raises(ValueError, match=r"gate numbers are 0 to 15, got 16"):
        counts(implementation, x, wirings, [gates[0], gates[1] * 0 + 16], 2)
    with pytest.raises(ValueError, match=r"the last layer's 8 gates cannot be divided into 3 equal groups"):
        counts(implementation, x, wirings, gates, 3)


@pytest.mark.parametrize(
    ("widths", "votes"), [([24, 24, 24], [1, 2, 3]), ([30, 12, 18], [1, 3])], ids=["all of three", "two of unequal"]
)
@pytest.mark.parametrize("batch", [1, 70, 200])
def test_several_layers_vote(implementation, widths, votes, batch):
    values, x = bits_of(batch, 11)
    assert_stack_matches(implementation, values, x, wirings_of(11, widths), widths, 3, votes=votes)


@pytest.mark.parametrize("shape", SHAPES)
def test_gates_that_share_coefficients(implementation, shape):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(70, inputs)
    owners = [owners_of(gates, seed) for seed, gates in enumerate(widths)]
    rows = [int(owner.max()) + 1 for owner in owners]
    assert_stack_matches(implementation, values, x, wirings_of(inputs, widths), rows, 1, owners=owners)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_gates_and_coefficients_of_all_layers_in_one_tensor_give_the_same_bits(implementation, shape, threads, shared):
    inputs, widths = SHAPES[shape]
    _, x = bits_of(70, inputs)
    owners = [owners_of(gates, seed) for seed, gates in enumerate(widths)] if shared else ()
    sizes = [int(owner.max()) + 1 for owner in owners] or widths
    wirings, (gates, parts) = wirings_of(inputs, widths), gates_of(sizes)
    whole = torch.cat(parts).detach().requires_grad_()
    with training_threads(threads):
        apart = sums(implementation, x, wirings, gates, parts, 1, owners=owners)
        of_all = Layered(torch.cat(gates), sizes), Layered(whole, sizes)
        together = sums(implementation, x, wirings, *of_all, 1, owners=owners)
        delta = torch.randn(apart.shape, generator=torch.Generator().manual_seed(5), dtype=apart.dtype)
        (gradient,) = torch.autograd.grad(together, [whole], delta, retain_graph=True)
        assert torch.equal(together, apart)
        assert torch.equal(gradient, torch.cat(torch.autograd.grad(apart, parts, delta)))
        # Asked once more: what the way back needs is kept while the graph is.
        assert torch.equal(torch.autograd.grad(together, [whole], 2 * delta)[0], 2 * gradient)


def test_a_wiring_that_changes_from_step_to_step(implementation):
    values, x = bits_of(70, 9)
    for seed in range(3):
        wirings = wirings_of(9, [30, 30, 30], seed=seed)
        assert_stack_matches(implementation, values, x, wirings, [30, 30, 30], 5, changing=[False, True, True])
