"""The Boolean stack: the plain path's outputs exactly, its gradients to rounding, for all gates and odd shapes."""

import pytest
import torch

from gatefit.codebook import CODEBOOK
from gatefit.gates import Gate
from gatefit.ops.packed import boolean_forward, boolean_stack
from gatefit.ops.threads import training_threads
from stacks import SHAPES, bits_of, gradients, plain_scores, wirings_of


def gates_of(widths, dtype=torch.float64, seed=0):
    """Random gates, and their rows of the codebook with gradients."""
    generator = torch.Generator().manual_seed(seed)
    gates = [torch.randint(16, (width,), generator=generator, dtype=torch.uint8) for width in widths]
    return gates, [torch.tensor(CODEBOOK, dtype=dtype)[layer.long()].requires_grad_() for layer in gates]


def assert_stack_matches(values, x, wirings, widths, classes, dtype=torch.float64, tolerance=1e-10):
    gates, coefficients = gates_of(widths, dtype)
    expected = plain_scores(values, wirings, coefficients, classes)
    scores = boolean_stack(x, wirings, gates, coefficients, classes)
    assert torch.equal(scores, expected)
    assert torch.equal(boolean_forward(x, wirings, gates, classes), expected.long())
    delta = torch.randn(expected.shape, generator=torch.Generator().manual_seed(5), dtype=dtype)
    reference = gradients(expected, delta, coefficients)
    for name, gradient in gradients(scores, delta, coefficients).items():
        torch.testing.assert_close(
            gradient, reference[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("gate", Gate)
def test_every_gate_computes_its_truth_table(gate):
    values, x = bits_of(70, 2)
    for a, b in ((0, 1), (1, 0), (0, 0)):
        wiring = torch.tensor([[a, 1 - a], [b, 1 - b]], dtype=torch.int32)  # square: walked as cycles when second
        identity = torch.tensor([[0, 1], [1, 0]], dtype=torch.int32)
        gates = [torch.full((2,), Gate.A, dtype=torch.uint8), torch.full((2,), gate, dtype=torch.uint8)]
        out = boolean_forward(x, [identity, wiring], gates)
        assert out[:, 0].tolist() == [gate(int(row[a]), int(row[b])) for row in values]
        assert boolean_forward(x, [wiring], [gates[1]])[:, 1].tolist() == [
            gate(int(row[1 - a]), int(row[1 - b])) for row in values
        ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("wiring", ["balanced", "random", "twins"])
def test_stack_matches_plain_layers(shape, wiring):
    inputs, widths = SHAPES[shape]
    values, x = bits_of(70, inputs)
    classes = 5 if widths[-1] % 5 == 0 else 1
    assert_stack_matches(values, x, wirings_of(inputs, widths, wiring), widths, classes)


@pytest.mark.parametrize("batch", [0, 1, 63, 64, 65, 511])
@pytest.mark.parametrize("classes", [1, 4, None])
def test_odd_batches_and_readouts(batch, classes):
    values, x = bits_of(batch, 11)
    assert_stack_matches(values, x, wirings_of(11, [24, 24, 24]), [24, 24, 24], classes)


def test_a_layer_of_a_thousand_gates_in_float32():
    values, x = bits_of(65, 50)
    assert_stack_matches(values, x, wirings_of(50, [1000, 1000]), [1000, 1000], 10, torch.float32, tolerance=2e-5)


def test_gradients_are_those_of_any_codebook_like_coefficients():
    # The backward pass uses the coefficients that it is given, not those it could derive from the gates.
    _, x = bits_of(40, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    doubled = [(2 * c).detach().requires_grad_() for c in coefficients]
    scores = boolean_stack(x, wirings, gates, doubled, 1)
    assert torch.equal(scores, boolean_stack(x, wirings, gates, coefficients, 1))
    scores.sum().backward()
    coefficients[1].grad = None
    boolean_stack(x, wirings, gates, coefficients, 1).sum().backward()
    torch.testing.assert_close(doubled[1].grad, coefficients[1].grad)
    torch.testing.assert_close(doubled[0].grad, 2 * coefficients[0].grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_bits_with_one_and_two_threads(dtype):
    widths = [700, 700, 700]
    _, x = bits_of(600, 30)
    wirings, results = wirings_of(30, widths), []
    for threads in (1, 2):
        gates, coefficients = gates_of(widths, dtype)
        with training_threads(threads):
            scores = boolean_stack(x, wirings, gates, coefficients, 10)
            delta = torch.linspace(-1, 1, scores.numel(), dtype=dtype).view_as(scores)
            results.append([scores, *gradients(scores, delta, coefficients).values()])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_activations_take_one_bit():
    widths = [512, 512]
    _, x = bits_of(640, 16)
    gates, coefficients = gates_of(widths, torch.float32)
    scores = boolean_stack(x, wirings_of(16, widths), gates, coefficients, 2)
    assert scores.grad_fn.bits.nbytes == sum(widths) * 640 // 8


def test_a_broken_loss_shows_in_the_gradients():
    _, x = bits_of(40, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    (boolean_stack(x, wirings, gates, coefficients, 1) * float("nan")).sum().backward()
    assert coefficients[1].grad[:, 0].isnan().all()
    assert coefficients[0].grad[:, 0].isnan().any()


def test_errors_say_what_was_given_and_needed():
    _, x = bits_of(20, 6)
    wirings = wirings_of(6, [8, 8])
    gates, coefficients = gates_of([8, 8])
    with pytest.raises(ValueError, match=r"need gate numbers of shapes \[\(8,\), \(8,\)\], got \[\(8,\)\]"):
        boolean_stack(x, wirings, gates[:1], coefficients, 2)
    with pytest.raises(TypeError, match=r"gate numbers are uint8, got torch.int64"):
        boolean_forward(x, wirings, [layer.long() for layer in gates], 2)
    with pytest.raises(ValueError, match=r"gate numbers are 0 to 15, got 16"):
        boolean_forward(x, wirings, [gates[0], gates[1] * 0 + 16], 2)
    with pytest.raises(ValueError, match=r"the last layer's 8 gates cannot be divided into 3 equal groups"):
        boolean_forward(x, wirings, gates, 3)
