"""Local rewriting: what up to four leaves decide is computed by the smallest chain of gates for it.

    cuts(n) = {{n}}  ∪  {u ∪ v : u in cuts(a), v in cuts(b), |u ∪ v| <= 4}        for a gate n = g(a, b)
    gain    = gates that only this node needs (down to the leaves) - gates of the chain that do not exist yet

A cut is up to four nodes below a node that decide its value; its function is 16 bits, variable i being the i-th leaf in
ascending order. Nodes are rebuilt one by one in topological order. For each, every cut is tried; the largest gain wins,
and of equal gains the smaller depth. A chain that gains nothing is taken only if it is shallower.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int32, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, readers
from gatefit.circuit.logic.hashing import dereference, empty_network, find, make, reference, share
from gatefit.circuit.logic.literals import FALSE, normal_gate
from gatefit.circuit.logic.words import gate_of_words
from gatefit.circuit.passes.assemble import assemble
from gatefit.circuit.passes.library import MAX_STEPS, library
from gatefit.circuit.passes.structural import remove_dead
from gatefit.compiled import njit

CUTS_PER_NODE: Final = 12
_LEAVES: Final = 4
_UNKNOWN = np.int64(1) << 60  # a literal that stands for a gate that would have to be made


def rewrite_cuts(circuit: Circuit) -> Circuit:
    """Replace cones of up to four leaves by smaller equal ones, counting gates that are shared; never adds gates."""
    circuit = remove_dead(circuit)
    graph, literals = share(Graph.of(circuit))
    outputs = literals[circuit.outputs + 1]
    capacity = 1 + circuit.inputs + 2 * graph.gates.size + 64
    net = empty_network(circuit.inputs, capacity)
    count = readers(graph, outputs >> 1)
    became = np.empty(graph.nodes, np.int64)
    _rewrite(net, _empty_cuts(capacity, net.first), _recipes(), graph.gates, graph.operands, count, became)
    literals = became[outputs >> 1] ^ (outputs & 1)
    made = slice(net.first, int(net.used[0]))
    live = net.readers[made] > 0
    number = np.arange(net.used[0], dtype=np.int32)
    number[made] = circuit.inputs + np.cumsum(live)
    smaller = Graph(circuit.inputs, net.gates[made][live], number[net.operands[:, made][:, live]])
    rewritten = assemble(circuit, smaller, 2 * number[literals >> 1].astype(np.int64) + (literals & 1))
    # Inverters that outputs need are not in the kernel's count.
    return rewritten if rewritten.gates.size <= circuit.gates.size else circuit


class _Cuts(NamedTuple):
    """Cut c of node n is row ``CUTS_PER_NODE`` · n + c; cut 0 is the node itself. The last three are scratch."""

    number: Int64[np.ndarray, " capacity"]
    rows: Int32[np.ndarray, "cuts 6"]
    """Leaves, those that are not used without a meaning, then how many are, then the function."""
    union: Int64[np.ndarray, "4"]
    values: Int64[np.ndarray, "11"]
    levels: Int64[np.ndarray, "11"]


_SIZE: Final = _LEAVES
_FUNCTION: Final = _LEAVES + 1


def _empty_cuts(capacity: int, first: int) -> _Cuts:
    """Room for the cuts of all nodes; the nodes before the first gate have theirs."""
    cuts = _Cuts(
        number=np.zeros(capacity, np.int64),
        rows=np.zeros((capacity * CUTS_PER_NODE, _LEAVES + 2), np.int32),
        union=np.zeros(_LEAVES, np.int64),
        values=np.zeros(_LEAVES + MAX_STEPS, np.int64),
        levels=np.zeros(_LEAVES + MAX_STEPS, np.int64),
    )
    cuts.number[:first] = 1
    own = cuts.rows[: first * CUTS_PER_NODE : CUTS_PER_NODE]
    own[:, 0], own[:, _SIZE], own[:, _FUNCTION] = np.arange(first), 1, 0xAAAA
    return cuts


class _Recipes(NamedTuple):
    """``library`` as the kernels read it."""

    of: Int64[np.ndarray, "65536"]
    """For every function: its class in 8 bits, the order of its leaves in 4 x 2, inversions in 4 and 1."""
    chains: Int64[np.ndarray, "222 22"]
    """For every class: the number of steps, then gate and operands of each."""


@cache
def _recipes() -> _Recipes:
    chains = library()
    order = chains.order.astype(np.int64) @ (1 << np.array([8, 10, 12, 14]))
    steps = chains.chains.reshape(len(chains.steps), -1)
    return _Recipes(
        chains.class_of | order | chains.inverted.astype(np.int64) << 16,
        np.concatenate([chains.steps[:, None], steps], axis=1),
    )


@njit(cache=True, plain=True)
def _rewrite(net, cuts, recipes, gates, operands, count, literals):
    """Fill ``net`` and ``literals``, which say what each node has become. ``count`` are the readers of every node."""
    first, readers, own, stack = net.first, net.readers, net.operands, net.stack
    for node in range(first):
        literals[node] = 2 * node
        readers[node] = count[node]
    for i in range(len(gates)):
        if count[first + i] == 0:
            literals[first + i] = FALSE
            continue
        a, b = literals[operands[0, i]], literals[operands[1, i]]
        literal = make(net, np.int64(gates[i]), a, b)
        node = literal >> 1
        fresh = readers[node] == 0 and node >= first
        _find_cuts(net, cuts, node)
        reference(readers, own, stack, first, node, count[first + i])
        for k in range(2):  # a loop, as LLVM copies what is called wherever that is
            dereference(readers, own, stack, first, (a if k else b) >> 1, np.int64(1))
        room = len(readers) - net.used[0] - (len(gates) - i) > 8
        if fresh and room:
            better = _improve(net, cuts, recipes, node)
            if better != 2 * node:
                reference(readers, own, stack, first, better >> 1, count[first + i])
                dereference(readers, own, stack, first, node, count[first + i])
                literal = better ^ (literal & 1)
        literals[first + i] = literal


@njit(cache=True, inner=True, plain=True)
def _improve(net, cuts, recipes, node):
    """The literal of the best chain for a node over all its cuts, or of the node itself."""
    values, chains = cuts.values, recipes.chains
    best_row, best_gain, best_level = np.int64(-1), np.int64(0), np.int64(net.levels[node])
    for cut in range(1, cuts.number[node]):
        row = CUTS_PER_NODE * node + cut
        gain, level = _gain(net, cuts, recipes, node, row)
        if gain > best_gain or (gain == best_gain and level < best_level):
            best_row, best_gain, best_level = row, gain, level
    if best_row < 0:
        return 2 * node
    recipe = _start(cuts.rows, recipes.of, best_row, values)
    chain = recipe & 0xFF
    steps = chains[chain, 0]
    for step in range(steps):
        gate, i, j = chains[chain, 1 + 3 * step], chains[chain, 2 + 3 * step], chains[chain, 3 + 3 * step]
        values[_LEAVES + step] = make(net, gate, values[i], values[j])
        _find_cuts(net, cuts, values[_LEAVES + step] >> 1)
    # The last step, or without steps a constant, which the first class is, or y0.
    result = values[_LEAVES - 1 + steps] if steps else (values[0] if chain else FALSE)
    return result ^ (recipe >> 20)


@njit(cache=True, inner=True, plain=True)
def _start(rows, of, row, values):
    """Write the literals of y0 to y3 for a cut; the recipe of its function."""
    recipe = of[rows[row, _FUNCTION]]
    for i in range(_LEAVES):
        leaf = recipe >> (8 + 2 * i) & 3
        values[i] = FALSE
        if leaf < rows[row, _SIZE]:
            values[i] = 2 * rows[row, leaf] + (recipe >> (16 + i) & 1)
    return recipe


@njit(cache=True, inner=True, plain=True)
def _gain(net, cuts, recipes, node, row):
    """(gates saved, level of the result) if the node were replaced by the chain for one of its cuts."""
    first, readers, operands, stack, depth = net.first, net.readers, net.operands, net.stack, net.levels
    rows, values, levels, chains = cuts.rows, cuts.values, cuts.levels, recipes.chains
    size = rows[row, _SIZE]
    for k in range(size):
        leaf = rows[row, k]
        if leaf >= first and readers[leaf] == 0:
            return np.int64(-1), np.int64(0)  # replaced meanwhile: using it would bring it back to life
    for k in range(size):
        readers[rows[row, k]] += 1
    times = np.int64(readers[node])
    saved = dereference(readers, operands, stack, first, node, times)
    chain = _start(rows, recipes.of, row, values) & 0xFF
    for i in range(_LEAVES):
        levels[i] = depth[values[i] >> 1]
    steps = chains[chain, 0]
    for step in range(steps):
        gate, i, j = chains[chain, 1 + 3 * step], chains[chain, 2 + 3 * step], chains[chain, 3 + 3 * step]
        a, b = values[i], values[j]
        result, level, exists = _UNKNOWN, (levels[i] if levels[i] > levels[j] else levels[j]) + 1, False
        if a != _UNKNOWN and b != _UNKNOWN:
            exists, literal, gate, a, b = normal_gate(gate, a, b)
            if exists:
                result, level = literal, np.int64(depth[literal >> 1])
            else:
                known, _ = find(net.table, net.gates, operands, gate, a, b)
                if known >= 0:
                    exists = readers[known] > 0
                    result, level = literal + 2 * known, np.int64(depth[known])
        values[_LEAVES + step], levels[_LEAVES + step] = result, level
        if not exists:
            saved -= 1
            if saved < 0:
                break
    reference(readers, operands, stack, first, node, times)
    for k in range(size):
        readers[rows[row, k]] -= 1
    return saved, levels[_LEAVES - 1 + steps] if steps else levels[0]


_EXCHANGE_MASKS = np.array(
    [
        [sum(1 << p for p in range(16) if (p >> i) & 1 and not (p >> j) & 1) for j in range(_LEAVES)]
        for i in range(_LEAVES)
    ],
    np.int64,
)
"""The points with variable i = 1 and variable j = 0."""


@njit(cache=True, inner=True, plain=True)
def _spread(rows, row, union):
    """The function of a cut's leaves as a function of the larger, also ascending ``union``."""
    function, j = np.int64(rows[row, _FUNCTION]), _LEAVES
    for i in range(rows[row, _SIZE] - 1, -1, -1):
        j -= 1
        while union[j] != rows[row, i]:
            j -= 1
        if j > i:
            shift = (1 << j) - (1 << i)
            mask = _EXCHANGE_MASKS[i, j]
            function = (function & ~(mask | mask << shift)) | (function & mask) << shift | (function >> shift) & mask
    return function


@njit(cache=True, inner=True, plain=True)
def _merge(rows, p, q, union):
    """Write the union of the cuts of two rows; its size, or 5 if it has too many leaves."""
    i = j = size = 0
    left, right = rows[p, _SIZE], rows[q, _SIZE]
    while i < left or j < right:
        if size == _LEAVES:
            return _LEAVES + 1
        # Past the end: after every node.
        a = np.int64(rows[p, i]) if i < left else _UNKNOWN
        b = np.int64(rows[q, j]) if j < right else _UNKNOWN
        union[size] = a if a < b else b
        size += 1
        if a <= b:
            i += 1
        if b <= a:
            j += 1
    for k in range(size, _LEAVES):
        union[k] = -1
    return size


@njit(cache=True, inner=True, plain=True)
def _dominated(rows, first, last, union, size):
    """Whether one of the cuts of rows ``first`` to ``last`` is contained in ``union``."""
    for row in range(first, last):
        wanted = rows[row, _SIZE]
        if wanted > size:
            continue
        i = 0
        for j in range(size):
            if i < wanted and rows[row, i] == union[j]:
                i += 1
        if i == wanted:
            return True
    return False


@njit(cache=True, inner=True, plain=True)
def _find_cuts(net, cuts, node):
    """Fill in the cuts of a gate g(p, q) where that is not done; those of p and q are there already."""
    number, rows, union = cuts.number, cuts.rows, cuts.union
    if number[node]:
        return
    gate, p, q = np.int64(net.gates[node]), net.operands[0, node], net.operands[1, node]
    first = CUTS_PER_NODE * node
    rows[first, 0], rows[first, _SIZE], rows[first, _FUNCTION] = node, 1, 0xAAAA
    row, end = first + 1, first + CUTS_PER_NODE
    for u in range(CUTS_PER_NODE * p, CUTS_PER_NODE * p + number[p]):
        for v in range(CUTS_PER_NODE * q, CUTS_PER_NODE * q + number[q]):
            if row == end:
                break
            size = _merge(rows, u, v, union)
            if size > _LEAVES or _dominated(rows, first + 1, row, union, size):
                continue
            x, y = _spread(rows, u, union), _spread(rows, v, union)
            for k in range(_LEAVES):
                rows[row, k] = union[k]
            rows[row, _SIZE] = size
            rows[row, _FUNCTION] = gate_of_words(gate, np.uint64(x), np.uint64(y)) & np.uint64(0xFFFF)
            row += 1
    number[node] = row - first
