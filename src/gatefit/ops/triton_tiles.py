"""What every operation on layers needs of a GPU: tiles of gates and samples, read, computed and differentiated.

    pool        what a layer reads: rows of numbers (nodes, batch), or words of bits (words, nodes), never unpacked
    forward     z[g] = c_0 + c_a a + b (c_b + c_ab a)
    backward    by the inputs' uses (the transposed wiring in CSR form), in the order of gates, first every a, then
                every b: dx[i] = Σ δ[g] (c_a + c_ab b) + Σ δ[g] (c_b + c_ab a)
                dc[g] = Σ_batch δ[g] (1, a, b, ab) falls out of the visit in which the input is the gate's a
    votes       sums over groups of neighbours, chunk by chunk

δ of the last layer is its group's gradient: δ[g] is row g // share of what is given, and is never spread out. Every sum
has a fixed order: the same arguments give the same bits, whatever runs beside them.
"""
# mypy: disable-error-code="no-untyped-def"

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int, Int32
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from gatefit.bits import PackedBatch
from gatefit.ops.batches import Batch, on_device, pack_samples
from gatefit.ops.stacks import Stack
from gatefit.ops.tensors import version
from gatefit.ops.triton_launch import launch, parts, tile

CHUNK: Final = 256
"""Gates of a group that one program adds up."""
ROWS: Final = 256
"""Rows that a program takes which has one number of each."""


@triton.jit
def read(pool, size, nodes, samples, mask, kind: tl.constexpr, BITS: tl.constexpr):
    """Values of nodes (rows) for samples (columns); ``size`` is what lies between two rows, or between two words."""
    if BITS:
        words = tl.load(pool + (samples >> 6).to(tl.int64)[None, :] * size + nodes[:, None], mask=mask, other=0)
        return ((words >> (samples & 63).to(tl.int64)[None, :]) & 1).to(kind)
    else:
        return tl.load(pool + nodes.to(tl.int64)[:, None] * size + samples[None, :], mask=mask, other=0.0)


@triton.jit
def gradient_of(delta, share, batch, gates, samples, mask):
    """δ of gates (rows) for samples (columns)."""
    return tl.load(delta + (gates // share).to(tl.int64)[:, None] * batch + samples[None, :], mask=mask, other=0.0)


@triton.jit
def store_sums(partial, part, gates_there, gates, mask, d, a, b):
    """dc[g] = Σ δ (1, a, b, ab) over the tile's samples, as the tile's part."""
    row = partial + (part.to(tl.int64) * gates_there + gates) * 4
    d_b = d * b
    tl.store(row, tl.sum(d, axis=1), mask=mask)
    tl.store(row + 1, tl.sum(d * a, axis=1), mask=mask)
    tl.store(row + 2, tl.sum(d_b, axis=1), mask=mask)
    tl.store(row + 3, tl.sum(d_b * a, axis=1), mask=mask)


@triton.jit
def _forward(
    pool, size, wiring, c, z, gates, batch, BITS: tl.constexpr, SIGMOID: tl.constexpr, ROWS: tl.constexpr,
    SAMPLES: tl.constexpr,
):  # fmt: skip
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    s = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    there = g < gates
    mask = there[:, None] & (s < batch)[None, :]
    kind: tl.constexpr = c.dtype.element_ty
    a = read(pool, size, tl.load(wiring + g, mask=there, other=0), s, mask, kind, BITS)
    b = read(pool, size, tl.load(wiring + gates + g, mask=there, other=0), s, mask, kind, BITS)
    c_0, c_a = tl.load(c + 4 * g, mask=there, other=0.0), tl.load(c + 4 * g + 1, mask=there, other=0.0)
    c_b, c_ab = tl.load(c + 4 * g + 2, mask=there, other=0.0), tl.load(c + 4 * g + 3, mask=there, other=0.0)
    value = (c_0[:, None] + c_a[:, None] * a) + b * (c_b[:, None] + c_ab[:, None] * a)
    if SIGMOID:
        value = 1 / (1 + tl.exp(-value))
    tl.store(z + g.to(tl.int64)[:, None] * batch + s[None, :], value, mask=mask)


@triton.jit
def _backward(
    delta, share, pool, size, starts, middles, users, others, c, votes, group, below, partial, inputs, gates, batch,
    BITS: tl.constexpr, VOTES: tl.constexpr, SIGMOID: tl.constexpr, ROWS: tl.constexpr, SAMPLES: tl.constexpr,
):  # fmt: skip
    """The gradients of a layer's inputs, and the tile's part of those of its coefficients."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    s = part * SAMPLES + tl.arange(0, SAMPLES)
    there, in_batch = i < inputs, s < batch
    mask = there[:, None] & in_batch[None, :]
    kind: tl.constexpr = c.dtype.element_ty
    own = read(pool, size, i, s, mask, kind, BITS)
    total = tl.zeros((ROWS, SAMPLES), dtype=kind)
    first, middle = tl.load(starts + i, mask=there, other=0), tl.load(middles + i, mask=there, other=0)
    last = tl.load(starts + i + 1, mask=there, other=0)
    # Rows of a tile have as many turns as the one with most uses; the others wait.
    for turn in range(0, tl.max(middle - first, axis=0)):
        used = first + turn < middle
        g = tl.load(users + first + turn, mask=used, other=0)
        on = used[:, None] & in_batch[None, :]
        b = read(pool, size, tl.load(others + first + turn, mask=used, other=0), s, on, kind, BITS)
        d = gradient_of(delta, share, batch, g, s, on)
        c_a, c_ab = tl.load(c + 4 * g + 1, mask=used, other=0.0), tl.load(c + 4 * g + 3, mask=used, other=0.0)
        total += d * (c_a[:, None] + c_ab[:, None] * b)
        store_sums(partial, part, gates, g, used, d, own, b)
    for turn in range(0, tl.max(last - middle, axis=0)):
        used = middle + turn < last
        g = tl.load(users + middle + turn, mask=used, other=0)
        on = used[:, None] & in_batch[None, :]
        a = read(pool, size, tl.load(others + middle + turn, mask=used, other=0), s, on, kind, BITS)
        d = gradient_of(delta, share, batch, g, s, on)
        c_b, c_ab = tl.load(c + 4 * g + 2, mask=used, other=0.0), tl.load(c + 4 * g + 3, mask=used, other=0.0)
        total += d * (c_b[:, None] + c_ab[:, None] * a)
    if VOTES:
        total += gradient_of(votes, group, batch, i, s, mask)
    if SIGMOID:
        total *= own * (1 - own)
    tl.store(below + i.to(tl.int64)[:, None] * batch + s[None, :], total, mask=mask)


@triton.jit
def _backward_coefficients(
    delta, share, pool, size, wiring, partial, gates, batch, BITS: tl.constexpr, ROWS: tl.constexpr,
    SAMPLES: tl.constexpr,
):  # fmt: skip
    """The tile's part of the coefficients' gradients, where nothing below learns."""
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    s = part * SAMPLES + tl.arange(0, SAMPLES)
    there = g < gates
    mask = there[:, None] & (s < batch)[None, :]
    kind: tl.constexpr = partial.dtype.element_ty
    a = read(pool, size, tl.load(wiring + g, mask=there, other=0), s, mask, kind, BITS)
    b = read(pool, size, tl.load(wiring + gates + g, mask=there, other=0), s, mask, kind, BITS)
    store_sums(partial, part, gates, g, there, gradient_of(delta, share, batch, g, s, mask), a, b)


@triton.jit
def _add_up(partial, total, size, count, ROWS: tl.constexpr):
    """total[i] = Σ_k partial[k, i], one after another."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = i < size
    value = tl.load(partial + i, mask=there, other=0.0)
    place = i
    for _ in range(1, count):
        place += size
        value += tl.load(partial + place, mask=there, other=0.0)
    tl.store(total + i, value, mask=there)


@triton.jit
def _group_sums(
    pool, size, partial, group, chunks, batch, BITS: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr,
    SAMPLES: tl.constexpr,
):  # fmt: skip
    """Sums over one chunk of a group's rows, for a tile of samples."""
    place = tl.program_id(0)
    s = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    first = place // chunks * group + place % chunks * CHUNK
    last = tl.minimum(first + CHUNK, (place // chunks + 1) * group)
    kind: tl.constexpr = partial.dtype.element_ty
    total = tl.zeros((ROWS, SAMPLES), dtype=kind)
    for start in range(0, CHUNK, ROWS):
        g = first + start + tl.arange(0, ROWS)
        total += read(pool, size, g, s, (g < last)[:, None] & (s < batch)[None, :], kind, BITS)
    tl.store(partial + place.to(tl.int64) * batch + s, tl.sum(total, axis=0), mask=s < batch)


@triton.jit
def _add_chunks(partial, sums, chunks, batch, MORE: tl.constexpr, SAMPLES: tl.constexpr):
    """A group's sum: its chunks, one after another; with ``MORE`` on top of what layers below have voted."""
    group = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    there = s < batch
    value = tl.load(partial + group * chunks * batch + s, mask=there, other=0.0)
    for k in range(1, chunks):
        value += tl.load(partial + (group * chunks + k) * batch + s, mask=there, other=0.0)
    if MORE:
        value += tl.load(sums + group * batch + s, mask=there, other=0.0)
    tl.store(sums + group * batch + s, value, mask=there)


@triton.jit
def _slope(rows, group, z, delta, size, batch, ROWS: tl.constexpr):
    """δ before a sigmoid z: that of its group, times z (1 - z)."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = i < size
    value = tl.load(z + i, mask=there, other=0.0)
    given = tl.load(rows + i // batch // group * batch + i % batch, mask=there, other=0.0)
    tl.store(delta + i, given * value * (1 - value), mask=there)


@triton.jit
def _unpack(words, nodes, values, batch, ROWS: tl.constexpr, SAMPLES: tl.constexpr):
    """Words of bits (words, nodes) as rows of numbers (nodes, batch)."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    s = tl.program_id(1) * SAMPLES + tl.arange(0, SAMPLES)
    mask = (i < nodes)[:, None] & (s < batch)[None, :]
    kind: tl.constexpr = values.dtype.element_ty
    tl.store(
        values + i.to(tl.int64)[:, None] * batch + s[None, :], read(words, nodes, i, s, mask, kind, True), mask=mask
    )


@triton.jit
def _shared_rows(starts, users, gradient, total, rows, ROWS: tl.constexpr):
    """total[r] = Σ over the gates that share row r of their gradients, in the order of gates; four numbers each."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row, column = i // 4, i % 4
    there = row < rows
    first, last = tl.load(starts + row, mask=there, other=0), tl.load(starts + row + 1, mask=there, other=0)
    value = tl.zeros((ROWS,), dtype=total.dtype.element_ty)
    for turn in range(0, tl.max(last - first, axis=0)):
        used = first + turn < last
        gate = tl.load(users + first + turn, mask=used, other=0)
        value += tl.load(gradient + 4 * gate.to(tl.int64) + column, mask=used, other=0.0)
    tl.store(total + i, value, mask=there)


@dataclass(frozen=True, eq=False)
class Pool:
    """What a layer reads: rows (nodes, batch) of numbers, or words (words, nodes) of bits."""

    values: Tensor
    batch: int

    @property
    def bits(self) -> bool:
        """Whether it holds words."""
        return self.values.dtype == torch.int64

    @property
    def nodes(self) -> int:
        """How many there are to read."""
        return int(self.values.shape[1 if self.bits else 0])

    @property
    def size(self) -> int:
        """What lies between two rows, or between two words."""
        return int(self.values.shape[1])

    def rows(self, dtype: torch.dtype) -> Float[Tensor, "nodes batch"]:
        """As numbers."""
        if not self.bits:
            return self.values
        rows, samples = tile(self.batch)
        unpacked = self.values.new_empty((self.nodes, self.batch), dtype=dtype)
        grid = (parts(self.nodes, rows), parts(self.batch, samples))
        launch(_unpack, grid, self.values, self.nodes, unpacked, self.batch, ROWS=rows, SAMPLES=samples)
        return unpacked


@dataclass(frozen=True, eq=False)
class Uses:
    """A wiring seen from its inputs (CSR): entries starts[i] to middles[i] read input i as a, the next ones as b."""

    starts: Int32[Tensor, " inputs+1"]
    middles: Int32[Tensor, " inputs"]
    users: Int32[Tensor, " 2*gates"]
    """The gate that uses it."""
    others: Int32[Tensor, " 2*gates"]
    """That gate's other input."""


def uses_of(wiring: Int[Tensor, "2 gates"], inputs: int) -> Uses:
    """The wiring seen from its inputs, sorted where it lies."""
    read_nodes = wiring.reshape(-1)
    ordered, order = torch.sort(read_nodes, stable=True)
    nodes = torch.arange(inputs + 1, device=wiring.device, dtype=read_nodes.dtype)
    starts = torch.searchsorted(ordered, nodes, out_int32=True)
    as_a = torch.searchsorted(wiring[0].sort().values, nodes, out_int32=True).diff()
    gates = wiring.shape[1]
    return Uses(
        starts,
        starts[:-1] + as_a,
        (order % gates).to(torch.int32),
        read_nodes.roll(gates)[order].to(torch.int32),
    )


_USES: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def remembered_uses(wiring: Tensor, inputs: int) -> tuple[Tensor, Uses]:
    """The wiring as checked int32 indices and its uses, made again only after the tensor was written to."""
    state = (version(wiring), inputs)
    known = _USES.get(wiring)
    if known is None or known[0] != state:
        check_wirings([wiring], [inputs])
        narrow = wiring.to(torch.int32).contiguous()
        known = (state, narrow, uses_of(narrow, inputs))
        _USES[wiring] = known
    return known[1], known[2]


def check_wirings(wirings: Sequence[Tensor], inputs: Sequence[int]) -> None:
    """Refuse wirings that read what is not there; one question to the device for all layers."""
    ends = [torch.stack(wiring.aminmax()) for wiring in wirings if wiring.numel()]
    if not ends:
        return
    for layer, ((low, high), size) in enumerate(zip(torch.stack(ends).tolist(), inputs, strict=True)):
        if low < 0 or high >= size:
            raise ValueError(f"layer {layer} reads inputs {low} to {high}, but there are {size}, numbered from 0")


def check_floats(**tensors: Tensor) -> None:
    """Refuse what the kernels cannot serve: other types, a mix of types or of devices."""
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"{name} must be float32 or float64, got {tensor.dtype}; convert with .float()")
    for what, found in (
        ("type", {str(tensor.dtype) for tensor in tensors.values()}),
        ("device", {str(tensor.device) for tensor in tensors.values()}),
    ):
        if len(found) > 1:
            raise TypeError(f"{' and '.join(tensors)} must have one {what}, got {sorted(found)}")


def pool_of(x: Batch, device: torch.device) -> Pool:
    """A batch of bits as words on the device; packed there where it is a tensor."""
    if isinstance(x, PackedBatch):
        return Pool(on_device(x, device).words, x.samples)
    return Pool(pack_samples(x.to(device).bool()), x.shape[0])


def layer_forward(
    pool: Pool, wiring: Int32[Tensor, "2 gates"], c: Float[Tensor, "gates 4"], *, sigmoid: bool = False
) -> Pool:
    """The layer's outputs, as rows."""
    gates, (rows, samples) = int(wiring.shape[1]), tile(pool.batch)
    z = c.new_empty((gates, pool.batch))
    launch(
        _forward, (parts(gates, rows), parts(pool.batch, samples)),
        pool.values, pool.size, wiring, c, z, gates, pool.batch,
        BITS=pool.bits, SIGMOID=sigmoid, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    return Pool(z, pool.batch)


@dataclass(frozen=True, eq=False)
class Delta:
    """The loss's gradients at a layer's outputs: gate g has row g // share."""

    rows: Float[Tensor, "rows batch"]
    share: int = 1


def layer_backward(
    delta: Delta,
    pool: Pool,
    uses: Uses,
    c: Float[Tensor, "gates 4"],
    *,
    votes: Delta | None = None,
    sigmoid: bool = False,
) -> tuple[Float[Tensor, "inputs batch"], Float[Tensor, "gates 4"]]:
    """The gradients of what the layer reads (with what comes from votes, before a sigmoid) and of its coefficients."""
    gates, batch, (rows, samples) = int(c.shape[0]), pool.batch, tile(pool.batch)
    below, cuts = c.new_empty((pool.nodes, batch)), parts(batch, samples)
    partial = c.new_empty((cuts, gates, 4))
    launch(
        _backward, (parts(pool.nodes, rows), cuts),
        delta.rows, delta.share, pool.values, pool.size, uses.starts, uses.middles, uses.users, uses.others, c,
        below if votes is None else votes.rows, 1 if votes is None else votes.share, below, partial,
        pool.nodes, gates, batch,
        BITS=pool.bits, VOTES=votes is not None, SIGMOID=sigmoid, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    return below, added_up(partial)


def coefficients_backward(
    delta: Delta, pool: Pool, wiring: Int32[Tensor, "2 gates"], dtype: torch.dtype
) -> Float[Tensor, "gates 4"]:
    """The gradients of the coefficients alone."""
    gates, batch, (rows, samples) = int(wiring.shape[1]), pool.batch, tile(pool.batch)
    cuts = parts(batch, samples)
    partial = wiring.new_empty((cuts, gates, 4), dtype=dtype)
    launch(
        _backward_coefficients, (parts(gates, rows), cuts),
        delta.rows, delta.share, pool.values, pool.size, wiring, partial, gates, batch,
        BITS=pool.bits, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    return added_up(partial)


def added_up(partial: Float[Tensor, "parts ..."]) -> Float[Tensor, "..."]:
    """The parts' sum, added in their order."""
    if len(partial) < 2:
        return partial[0] if len(partial) else partial.new_zeros(partial.shape[1:])
    total = torch.empty_like(partial[0])
    launch(_add_up, (parts(total.numel(), ROWS),), partial, total, total.numel(), len(partial), ROWS=ROWS)
    return total


def vote(pool: Pool, groups: int, dtype: torch.dtype, before: Tensor | None = None) -> Float[Tensor, "groups batch"]:
    """Sums over equal groups of neighbours, on top of ``before``, which is changed."""
    group, batch, (rows, samples) = pool.nodes // groups, pool.batch, tile(pool.batch)
    chunks, cuts = parts(group, CHUNK), parts(batch, samples)
    partial = pool.values.new_empty((groups * chunks, batch), dtype=dtype)
    launch(
        _group_sums, (groups * chunks, cuts), pool.values, pool.size, partial, group, chunks, batch,
        BITS=pool.bits, CHUNK=CHUNK, ROWS=rows, SAMPLES=samples,
    )  # fmt: skip
    sums = pool.values.new_empty((groups, batch), dtype=dtype) if before is None else before
    launch(_add_chunks, (groups, cuts), partial, sums, chunks, batch, MORE=before is not None, SAMPLES=samples)
    return sums


def votes_of_pools(stack: Stack, pools: Sequence[Pool], dtype: torch.dtype) -> Float[Tensor, "batch columns"]:
    """The stack's sums, from what its layers gave; stored column by column."""
    if stack.groups is None:
        return pools[-1].rows(dtype).T
    sums = None
    for number in stack.votes:
        sums = vote(pools[number - 1], stack.groups, dtype, sums)
    assert sums is not None
    return sums.T


def stack_backward(
    stack: Stack,
    pools: Sequence[Pool],
    wirings: Sequence[Int32[Tensor, "2 _"]],
    uses: Sequence[Uses],
    coefficients: Sequence[Float[Tensor, "_ 4"]],
    gradient: Float[Tensor, "batch columns"],
    *,
    sigmoid: bool = False,
    visit: Any = None,
) -> list[Tensor]:
    """The gradients of every layer's coefficients; ``pools`` begin with the batch.

    ``visit(layer, delta)`` is told every layer's δ on the way down. Bits learn nothing: the first layer's inputs get no
    gradient.
    """
    depth = len(wirings)
    given = gradient.T.contiguous()

    def share_of(number: int) -> Delta:
        return Delta(given, 1 if stack.groups is None else stack.widths[number - 1] // stack.groups)

    delta = share_of(depth)
    if sigmoid:
        z = pools[depth].values
        rows = torch.empty_like(z)
        arguments = given, delta.share, z, rows, z.numel(), max(1, pools[0].batch)
        launch(_slope, (parts(z.numel(), ROWS),), *arguments, ROWS=ROWS)
        delta = Delta(rows)
    found: list[Tensor] = []
    for layer in range(depth - 1, -1, -1):
        if visit is not None:
            visit(layer, delta)
        c = coefficients[layer]
        if layer == 0:
            found.append(coefficients_backward(delta, pools[0], wirings[0], c.dtype))
            break
        votes = share_of(layer) if layer in stack.votes else None
        below, own = layer_backward(delta, pools[layer], uses[layer], c, votes=votes, sigmoid=sigmoid)
        found.append(own)
        delta = Delta(below)
    return found[::-1]


class _AtPlaces(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, owners: Tensor) -> Tensor:
        ctx.owners, ctx.count = owners, rows.shape[0]
        return rows.index_select(0, owners)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].contiguous()
        ordered, order = torch.sort(ctx.owners, stable=True)
        numbers = torch.arange(ctx.count + 1, device=gradient.device, dtype=ordered.dtype)
        starts = torch.searchsorted(ordered, numbers, out_int32=True)
        total = gradient.new_empty((ctx.count, 4))
        grid = (parts(4 * ctx.count, ROWS),)
        launch(_shared_rows, grid, starts, order.to(torch.int32), gradient, total, ctx.count, ROWS=ROWS)
        return total, None


def placed(rows: Float[Tensor, "rows 4"], owners: Int[Tensor, " gates"] | None) -> Float[Tensor, "gates 4"]:
    """The coefficients of each gate, from those of each row; gradients are added in the order of gates."""
    if owners is None:
        return rows
    result = _AtPlaces.apply(rows, owners)
    assert isinstance(result, Tensor)
    return result
