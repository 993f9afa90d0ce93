"""The definition of a learned stack, in plain torch: any device, any floating type, gradients by autograd."""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from gatefit.ops.batches import Batch, as_float
from gatefit.ops.coefficients import codebook
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.learned_stack.watch import Watch
from gatefit.ops.stacks import Stack, at_places, handed_on, votes_of
from gatefit.ops.straight_through import straight_through


def read_candidates(
    x: Float[Tensor, "batch nodes"],
    candidates: Int[Tensor, "gates candidates"],
    scores: Float[Tensor, "gates candidates"],
) -> Float[Tensor, "batch gates"]:
    """The best scored candidates' values; the scores' gradient is that of the softmax mixture."""
    best = candidates.gather(1, scores.argmax(1, keepdim=True)).squeeze(1).long()
    mixture = (x.detach()[:, candidates.long()] * torch.softmax(scores, dim=1)).sum(2)
    return x[:, best] + (mixture - mixture.detach())


def best_candidates_reference(
    candidates: Int[Tensor, "2 gates candidates"], scores: Float[Tensor, "2 gates candidates"]
) -> Int[Tensor, "2 gates"]:
    """The candidates at the scores' argmax."""
    return candidates.gather(2, scores.argmax(2, keepdim=True)).squeeze(2)


def polynomial(
    a: Float[Tensor, "batch gates"], b: Float[Tensor, "batch gates"], c: Float[Tensor, "gates 4"]
) -> Float[Tensor, "batch gates"]:
    """c_0 + c_a a + c_b b + c_ab ab."""
    c_0, c_a, c_b, c_ab = c.unbind(1)
    return c_0 + c_a * a + c_b * b + c_ab * (a * b)


def learned_stack_reference(
    x: Batch,
    stack: Stack,
    candidates: Sequence[Int[Tensor, "2 _ candidates"] | None],
    scores: Sequence[Float[Tensor, "2 _ candidates"] | None],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    *,
    gates: Sequence[UInt8[Tensor, " _"]] | None = None,
    watch: Watch | None = None,
    expected: ExpectedLoss | None = None,
) -> Float[Tensor, "batch columns"]:
    """One layer after another; activations are kept, whatever is expected."""
    dtype, device = coefficients[0].dtype, coefficients[0].device
    h, voters = as_float(x, dtype, device), []
    for layer, rows in enumerate(coefficients):
        nodes, values = candidates[layer], scores[layer]
        if nodes is None or values is None:
            a, b = (h[:, side.long()] for side in stack.wirings[layer])
        else:
            a, b = (read_candidates(h, nodes[side], values[side]) for side in (0, 1))
        if watch is not None and len(watch.inputs[layer]):
            note_gradients(watch, layer, h, a, b)
        z = polynomial(a, b, at_places(rows, stack.owners[layer]))
        if gates is not None:
            snapped = codebook(dtype, device)[at_places(gates[layer], stack.owners[layer]).long()]
            z = straight_through(z, polynomial(a.detach(), b.detach(), snapped))
        h = handed_on(stack, z)
        voters += [h] if layer + 1 in stack.votes else []
    return votes_of(stack, voters)


def note_gradients(
    watch: Watch,
    layer: int,
    x: Float[Tensor, "batch nodes"],
    a: Float[Tensor, "batch gates"],
    b: Float[Tensor, "batch gates"],
) -> None:
    """Of a layer that reads a and b among the nodes x: write down what is watched, when the gradient comes."""
    width, inputs = a.shape[1], torch.from_numpy(watch.inputs[layer]).to(a.device)
    watch.pools[layer] = x.detach().T[torch.from_numpy(watch.offered(layer, x.shape[1])).to(x.device)]
    watch.gradients[layer] = torch.empty(len(inputs), a.shape[0], dtype=a.dtype, device=a.device)

    def store(gradient: Tensor, side: int) -> None:
        mine = (inputs // width) == side
        watch.gradients[layer][mine] = gradient.T[inputs[mine] % width]

    for side, read in enumerate((a, b)):
        if read.requires_grad:
            read.register_hook(partial(store, side=side))
