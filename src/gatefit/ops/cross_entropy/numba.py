"""Cross-entropy of class scores by a compiled kernel, with the same bits on every processor.

    log p_j = (x_j - m) - log Σ_k exp(x_k - m),   m = max x;   loss = -log p_target;   ∂loss/∂x_j = p_j - [j = target]

torch's own adds a row up register by register, so that its sums depend on how wide the processor's registers are. Here
the order is written down: that of torch on AVX-512, with whose results these agree to the bit. ``exp`` and ``log`` are
the polynomials that torch uses (SLEEF, within one unit in the last place), with every fused product written as one.

Samples do not see each other: ``tile_gradient`` computes the gradients of a few of them inside of another kernel.
"""
# mypy: disable-error-code="no-untyped-def, untyped-decorator, call-arg, var-annotated"

from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int64
from numba import float32, int32, types
from numba.extending import intrinsic
from torch import Tensor

from gatefit.compiled import njit
from gatefit.ops.cross_entropy import reference
from gatefit.ops.expected_loss import ExpectedLoss
from gatefit.ops.simd import float_of_bits, fma

_WIDTH: Final = 16
"""Columns that are added up side by side: a register of AVX-512."""

# No fastmath: what is to be fused says so.
_inlined = njit(cache=True, inner=True, plain=True, forceinline=True, error_model="numpy")
_inner = njit(cache=True, inner=True, nogil=True, plain=True, error_model="numpy")
_kernel = njit(cache=True, nogil=True, plain=True, error_model="numpy")


@intrinsic
def _bits_of_float(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return types.int32(types.float32), generate


@_inlined
def _power_of_two(n):
    return float_of_bits((n + int32(127)) << int32(23))


@_inlined
def _exp(x):
    """e^x for x <= 0; NaN gives NaN."""
    d = float32(-105.0) if x < float32(-105.0) else x
    # Adding 1.5 * 2^23 rounds to an integer. ln 2 in two parts keeps r exact.
    n = (d * float32(1.442695040888963407359924681) + float32(12582912.0)) - float32(12582912.0)
    r = fma(n, float32(-0.693145751953125), d)
    r = fma(n, float32(-1.428606765330187045e-06), r)
    p = fma(float32(0.000198527617612853646278381), r, float32(0.00139304355252534151077271))
    p = fma(p, r, float32(0.00833336077630519866943359))
    p = fma(p, r, float32(0.0416664853692054748535156))
    p = fma(p, r, float32(0.166666671633720397949219))
    p = fma(p, r, float32(0.5))
    p = float32(1.0) + fma(r * r, p, r)
    # In two halves: the whole power may be too small for a float32 of its own.
    whole = int32(n)
    half = whole >> int32(1)
    p = (p * _power_of_two(half)) * _power_of_two(whole - half)
    return float32(0.0) if x < float32(-104.0) else p


@_inlined
def _two_sum(a, b):
    """a + b, and what rounding took from it."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@_inlined
def _log(x):
    """log x for normal x > 0, carried in pairs of numbers; NaN and infinity as they come."""
    # x = m 2^e with m in [0.75, 1.5).
    e = (_bits_of_float(x * float32(1.0 / 0.75)) >> int32(23)) - int32(127)
    m = x * _power_of_two(-e)
    n = float32(e)
    high, low = float32(0.69314718246459960938), float32(-1.904654323148236017e-09)
    s = high * n
    s_low = fma(low, n, fma(high, n, -s))
    # q = (m - 1) / (m + 1), log m = 2 artanh q.
    top, top_low = _two_sum(float32(-1.0), m)
    bottom, bottom_low = _two_sum(float32(1.0), m)
    t = float32(1.0) / bottom
    q = top * t
    rest = fma(-bottom_low, t, fma(-bottom, t, float32(1.0)))
    q_low = fma(q, rest, fma(top_low, t, fma(t, top, -q)))
    square = q * q
    p = fma(float32(0.3027294874), square, float32(0.3996108174))
    p = fma(p, square, float32(0.6666694880))
    twice, twice_low = q * float32(2.0), q_low * float32(2.0)
    total = s + twice
    total_low = (((s - total) + twice) + s_low) + twice_low
    last = (square * q) * p
    result = total + last
    result_low = ((total - result) + last) + total_low
    return result + result_low if x < float32(np.inf) else x


@_inlined
def _row_sum(values, first, classes, register):
    """One after another while they fit a register; else column by column of registers, whose halves are then added."""
    if classes < _WIDTH:
        total = values[first]
        for j in range(1, classes):
            total += values[first + j]
        return total
    for j in range(_WIDTH):
        register[j] = values[first + j]
    start = _WIDTH
    while start + _WIDTH <= classes:
        for j in range(_WIDTH):
            register[j] += values[first + start + j]
        start += _WIDTH
    for j in range(classes - start):
        register[j] += values[first + start + j]
    half = _WIDTH // 2
    while half:
        for j in range(half):
            register[j] += register[half + j]
        half //= 2
    return register[0]


@_inner
def _forward_rows(scores, targets, logs, flat, powers, sums, register, losses):
    """Fill log p and the losses; whether every target is a class. ``flat`` is ``logs`` in one row, the rest scratch."""
    samples, classes = scores.shape
    for i in range(samples):
        largest = scores[i, 0]
        for j in range(1, classes):
            largest = scores[i, j] if scores[i, j] > largest else largest
        for j in range(classes):
            logs[i, j] = scores[i, j] - largest
    # Loops of their own, without anything else in them, become SIMD.
    for k in range(len(flat)):
        powers[k] = _exp(flat[k])
    for i in range(samples):
        sums[i] = _row_sum(powers, i * classes, classes, register)
    for i in range(samples):
        sums[i] = _log(sums[i])
    for i in range(samples):
        for j in range(classes):
            logs[i, j] -= sums[i]
        if not 0 <= targets[i] < classes:
            return False
        losses[i] = -logs[i, targets[i]]
    return True


@_inner
def _backward_rows(flat, targets, upstream, gradient, powers):
    """Fill the gradient, which ``powers`` is in one row, as ``flat`` is log p."""
    samples, classes = gradient.shape
    for k in range(len(flat)):
        powers[k] = _exp(flat[k])
    for i in range(samples):
        own = gradient[i, targets[i]]
        for j in range(classes):
            gradient[i, j] *= upstream[i]
        gradient[i, targets[i]] = fma(own, upstream[i], -upstream[i])


@_kernel
def _forward(scores, targets, logs, flat, powers, sums, register, losses):
    return _forward_rows(scores, targets, logs, flat, powers, sums, register, losses)


@_kernel
def _backward(flat, targets, upstream, gradient, powers):
    _backward_rows(flat, targets, upstream, gradient, powers)


@_kernel
def _there_and_back(
    given, targets, upstream, temperature, scores, logs, flat, sums, register, losses, gradient, powers
):
    """Losses and gradient of the sums ``given``, class by class; whether every target is a class.

    ``flat`` and ``powers`` are ``logs`` and ``gradient`` in one row.
    """
    classes, samples = given.shape
    for i in range(samples):
        for j in range(classes):
            scores[i, j] = given[j, i] / temperature
    if not _forward_rows(scores, targets, logs, flat, powers, sums, register, losses):
        return False
    _backward_rows(flat, targets, upstream, gradient, powers)
    for k in range(len(powers)):
        powers[k] /= temperature
    return True


def _register() -> np.ndarray:
    return np.empty(_WIDTH, np.float32)


def _no_classes(targets: np.ndarray, classes: int) -> ValueError:
    return ValueError(f"targets must be classes 0 to {classes - 1}, got {int(targets.min())} to {int(targets.max())}")


def expected_in_tiles(expected: ExpectedLoss, lanes: int) -> tuple[Any, ...]:
    """What ``tile_gradient`` reads of a loss, and its scratch for so many samples; for one thread."""
    classes = expected.classes
    scores, logs, gradient = (np.empty((lanes, classes), np.float32) for _ in range(3))
    powers, sums, losses = (np.empty(size, np.float32) for size in (lanes * classes, lanes, lanes))
    register, temperature = _register(), np.float32(expected.temperature)
    room = logs.reshape(-1), gradient.reshape(-1), powers, sums, register, losses
    return expected.targets, expected.upstream, temperature, scores, logs, gradient, *room


@_inner
def tile_gradient(sums, first, loss, gradient):
    """The expected loss's gradient to the sums (columns * lanes) of the samples from ``first`` on; 0 beyond the batch.

    Where a target is no class it is not computed: nobody goes on with such a batch.
    """
    targets, upstream, temperature, scores, logs, own, flat, flat_own, powers, totals, register, losses = loss
    lanes, classes = scores.shape
    count = max(0, min(lanes, targets.shape[1] - first))
    for block in range(targets.shape[0]):
        column = block * classes
        here, until = targets[block, first : first + count], count * classes
        for i in range(count):
            for j in range(classes):
                scores[i, j] = sums[(column + j) * lanes + i] / temperature
        if _forward_rows(scores[:count], here, logs[:count], flat[:until], powers, totals, register, losses):
            _backward_rows(flat[:until], here, upstream[block, first : first + count], own[:count], flat_own[:until])
        for j in range(classes):
            for i in range(lanes):
                gradient[(column + j) * lanes + i] = own[i, j] / temperature if i < count else float32(0.0)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor) -> Tensor:
        x, y = scores.detach().contiguous().numpy(), targets.contiguous().numpy()
        logs, losses = np.empty_like(x), np.empty(len(x), np.float32)
        powers, sums, register = (
            np.empty(x.size, np.float32),
            np.empty(len(x), np.float32),
            _register(),
        )
        if not _forward(x, y, logs, logs.reshape(-1), powers, sums, register, losses):
            raise _no_classes(y, x.shape[1])
        ctx.logs, ctx.targets = logs, y
        return torch.from_numpy(losses)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        gradient = np.empty_like(ctx.logs)
        upward = upstream[0].contiguous().numpy()
        _backward(ctx.logs.reshape(-1), ctx.targets, upward, gradient, gradient.reshape(-1))
        return torch.from_numpy(gradient), None


def cross_entropy(scores: Float[Tensor, "batch classes"], targets: Int64[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """The loss of each sample; in float64, where the order of a sum hardly shows, torch's own."""
    if scores.dtype != torch.float32:
        return reference.cross_entropy(scores, targets)
    losses: Tensor = _CrossEntropy.apply(scores, targets)
    return losses


def losses_and_back(
    sums: Float[Tensor, "batch classes"], loss: ExpectedLoss
) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch classes"]]:
    """The losses of a single block of columns, and the gradient of the sums: what autograd computes, by one kernel."""
    given, targets = sums.T.contiguous().numpy(), loss.targets[0]
    classes, samples = given.shape
    scores, logs, gradient = np.empty((3, samples, classes), np.float32)
    sums_of_powers, losses, register = np.empty(samples, np.float32), np.empty(samples, np.float32), _register()
    room = scores, logs, logs.reshape(-1), sums_of_powers, register, losses, gradient, gradient.reshape(-1)
    if not _there_and_back(given, targets, loss.upstream[0], np.float32(loss.temperature), *room):
        raise _no_classes(targets, classes)
    return torch.from_numpy(losses), torch.from_numpy(gradient)
