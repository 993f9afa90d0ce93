"""Local rewriting: what up to four leaves decide is computed by the smallest chain of gates for it.

    cuts(n) = {{n}}  ∪  {u ∪ v : u in cuts(a), v in cuts(b), |u ∪ v| <= 4}        for a gate n = g(a, b)
    gain    = gates that only this node needs (down to the leaves) - gates of the chain that do not exist yet

A cut is up to four nodes below a node that decide its value; its function is 16 bits, variable i being the i-th leaf in
ascending order. Nodes are rebuilt one by one in topological order. For each, every cut is tried; the largest gain wins,
and of equal gains the smaller depth. A chain that gains nothing is taken only if it is shallower.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt8, UInt16

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph, readers
from gatefit.circuit.logic.hashing import dereference, empty_network, find, make, reference, share
from gatefit.circuit.logic.literals import FALSE, normal_gate
from gatefit.circuit.logic.words import gate_of_words
from gatefit.circuit.passes.assemble import assemble
from gatefit.circuit.passes.library import MAX_STEPS, library
from gatefit.circuit.passes.structural import remove_dead
from gatefit.compiled import njit

CUTS_PER_NODE = 12
_UNKNOWN = np.int64(1) << 60  # a literal that stands for a gate that would have to be made


def rewrite_cuts(circuit: Circuit) -> Circuit:
    """Replace cones of up to four leaves by smaller equal ones, counting gates that are shared; never adds gates."""
    circuit = remove_dead(circuit)
    graph, literals = share(Graph.of(circuit))
    outputs = literals[circuit.outputs + 1]
    capacity = 1 + circuit.inputs + 2 * graph.gates.size + 64
    net = empty_network(circuit.inputs, capacity)
    cuts = _empty_cuts(capacity, net.first, CUTS_PER_NODE)
    count = readers(graph, outputs >> 1)
    became = np.empty(graph.nodes, np.int64)
    _rewrite(net, cuts, library(), graph.gates, graph.operands, count, became)
    literals = became[outputs >> 1] ^ (outputs & 1)
    made = slice(net.first, int(net.used[0]))
    live = net.readers[made] > 0
    number = np.arange(net.used[0], dtype=np.int32)
    number[made] = circuit.inputs + np.cumsum(live)
    smaller = Graph(circuit.inputs, net.gates[made][live], number[net.operands[:, made][:, live]])
    rewritten = assemble(circuit, smaller, 2 * number[literals >> 1].astype(np.int64) + (literals & 1))
    # Inverters that outputs need are not in the kernel's count.
    return rewritten if rewritten.gates.size <= circuit.gates.size else circuit


@njit(cache=True)
def _rewrite(net, cuts, chains, gates, operands, count, literals):
    """Fill ``net`` and ``literals``, which say what each node has become. ``count`` are the readers of every node."""
    first = net.first
    for node in range(first):
        literals[node] = 2 * node
        net.readers[node] = count[node]
    for i in range(len(gates)):
        if count[first + i] == 0:
            literals[first + i] = FALSE
            continue
        a, b = literals[operands[0, i]], literals[operands[1, i]]
        literal = make(net, np.int64(gates[i]), a, b)
        fresh = net.readers[literal >> 1] == 0 and literal >> 1 >= first
        _add_cuts(net, cuts, literal >> 1)
        reference(net, literal >> 1, count[first + i])
        dereference(net, a >> 1, np.int64(1))
        dereference(net, b >> 1, np.int64(1))
        room = len(net.gates) - net.used[0] - (len(gates) - i) > 8
        if fresh and room:
            better = _improve(net, cuts, chains, literal >> 1)
            if better != 2 * (literal >> 1):
                reference(net, better >> 1, count[first + i])
                dereference(net, literal >> 1, count[first + i])
                literal = better ^ (literal & 1)
        literals[first + i] = literal


@njit(cache=True, inner=True)
def _add_cuts(net, cuts, node):
    if cuts.number[node] == 0:
        _find_cuts(cuts, node, np.int64(net.gates[node]), net.operands[0, node], net.operands[1, node])


@njit(cache=True, inner=True)
def _improve(net, cuts, chains, node):
    """The literal of the best chain for a node over all its cuts, or of the node itself."""
    best_cut, best_gain, best_level = np.int64(-1), 0, net.levels[node]
    for cut in range(1, cuts.number[node]):
        gain, level = _gain(net, cuts, chains, node, cut)
        if gain > best_gain or (gain == best_gain and level < best_level):
            best_cut, best_gain, best_level = np.int64(cut), gain, level
    if best_cut < 0:
        return np.int64(2 * node)
    values, function = cuts.values, cuts.functions[node, best_cut]
    steps = _start(cuts, chains, node, best_cut, values)
    number = chains.class_of[function]
    for step in range(steps):
        gate = chains.chains[number, step, 0]
        a, b = values[chains.chains[number, step, 1]], values[chains.chains[number, step, 2]]
        values[4 + step] = make(net, gate, a, b)
        _add_cuts(net, cuts, values[4 + step] >> 1)
    return _result(chains, function, steps, values)


@njit(cache=True, inner=True)
def _start(cuts, chains, node, cut, values):
    """Write the literals of y0 to y3; the number of steps to come."""
    function = cuts.functions[node, cut]
    for i in range(4):
        leaf = chains.order[function, i]
        values[i] = FALSE
        if leaf < cuts.sizes[node, cut]:
            values[i] = 2 * cuts.leaves[node, cut, leaf] + ((chains.inverted[function] >> i) & 1)
    return chains.steps[chains.class_of[function]]


@njit(cache=True, inner=True)
def _result(chains, function, steps, values):
    """The chain's literal: its last step, or without steps y0 or a constant."""
    out = np.int64(chains.inverted[function] >> 4)
    if steps:
        return values[3 + steps] ^ out
    if function == 0 or function == 0xFFFF:
        return np.int64(FALSE) ^ out
    return values[0] ^ out


@njit(cache=True, inner=True)
def _gain(net, cuts, chains, node, cut):
    """(gates saved, level of the result) if the node were replaced by the chain for one of its cuts."""
    size = cuts.sizes[node, cut]
    for k in range(size):
        leaf = cuts.leaves[node, cut, k]
        if leaf >= net.first and net.readers[leaf] == 0:
            return -1, 0  # replaced meanwhile: using it would bring it back to life
    for k in range(size):
        net.readers[cuts.leaves[node, cut, k]] += 1
    readers = np.int64(net.readers[node])
    saved = dereference(net, node, readers)
    values, levels = cuts.values, cuts.levels
    steps = _start(cuts, chains, node, cut, values)
    for i in range(4):
        levels[i] = net.levels[values[i] >> 1]
    number = chains.class_of[cuts.functions[node, cut]]
    for step in range(steps):
        gate, i, j = chains.chains[number, step, 0], chains.chains[number, step, 1], chains.chains[number, step, 2]
        levels[4 + step] = (levels[i] if levels[i] > levels[j] else levels[j]) + 1
        values[4 + step] = _UNKNOWN
        exists = False
        if values[i] != _UNKNOWN and values[j] != _UNKNOWN:
            done, literal, gate, a, b = normal_gate(gate, values[i], values[j])
            found = np.int64(-1)
            if not done:
                found = np.int64(find(net.table, net.gates, net.operands, gate, a, b)[0])
                exists = bool(found >= 0 and net.readers[found] > 0)
                if found >= 0:
                    literal += 2 * found
            if done or found >= 0:
                values[4 + step] = literal
                levels[4 + step] = net.levels[literal >> 1]
            exists = done or exists
        if not exists:
            saved -= 1
            if saved < 0:
                break
    reference(net, node, readers)
    for k in range(size):
        net.readers[cuts.leaves[node, cut, k]] -= 1
    return saved, levels[3 + steps] if steps else levels[0]


_LEAVES: Final = 4


class _Cuts(NamedTuple):
    """Cut 0 of a node is the node itself; unused leaves hold no meaning. The last three are scratch."""

    number: UInt8[np.ndarray, " capacity"]
    sizes: UInt8[np.ndarray, "capacity cuts"]
    leaves: Int32[np.ndarray, "capacity cuts 4"]
    functions: UInt16[np.ndarray, "capacity cuts"]
    union: Int32[np.ndarray, "4"]
    values: Int64[np.ndarray, "11"]
    levels: Int64[np.ndarray, "11"]


def _empty_cuts(capacity: int, first: int, limit: int) -> _Cuts:
    """Room for ``limit`` cuts a node; the nodes before the first gate have theirs."""
    cuts = _Cuts(
        number=np.zeros(capacity, np.uint8),
        sizes=np.zeros((capacity, limit), np.uint8),
        leaves=np.zeros((capacity, limit, _LEAVES), np.int32),
        functions=np.zeros((capacity, limit), np.uint16),
        union=np.zeros(_LEAVES, np.int32),
        values=np.zeros(_LEAVES + MAX_STEPS, np.int64),
        levels=np.zeros(_LEAVES + MAX_STEPS, np.int64),
    )
    cuts.number[:first] = 1
    cuts.sizes[:first, 0] = 1
    cuts.leaves[:first, 0, 0] = np.arange(first)
    cuts.functions[:first, 0] = 0xAAAA
    return cuts


_EXCHANGE_MASKS = np.array(
    [
        [sum(1 << p for p in range(16) if (p >> i) & 1 and not (p >> j) & 1) for j in range(_LEAVES)]
        for i in range(_LEAVES)
    ],
    np.int64,
)
"""The points with variable i = 1 and variable j = 0."""


@njit(cache=True, inner=True)
def _spread(cuts, node, cut, union):
    """The function of a cut's leaves as a function of the larger, also ascending ``union``."""
    function, j = np.int64(cuts.functions[node, cut]), _LEAVES
    for i in range(np.int64(cuts.sizes[node, cut]) - 1, -1, -1):
        j -= 1
        while union[j] != cuts.leaves[node, cut, i]:
            j -= 1
        if j > i:
            shift = (1 << j) - (1 << i)
            mask = _EXCHANGE_MASKS[i, j]
            function = (function & ~(mask | mask << shift)) | (function & mask) << shift | (function >> shift) & mask
    return function


@njit(cache=True, inner=True)
def _merge(cuts, p, u, q, v, union):
    """Write the union of cut u of p and cut v of q; its size, or 5 if it has too many leaves."""
    i, j, size = 0, 0, 0
    left, right = cuts.sizes[p, u], cuts.sizes[q, v]
    while i < left or j < right:
        if size == _LEAVES:
            return _LEAVES + 1
        if j == right or (i < left and cuts.leaves[p, u, i] < cuts.leaves[q, v, j]):
            leaf = cuts.leaves[p, u, i]
            i += 1
        elif i == left or cuts.leaves[q, v, j] < cuts.leaves[p, u, i]:
            leaf = cuts.leaves[q, v, j]
            j += 1
        else:
            leaf = cuts.leaves[p, u, i]
            i += 1
            j += 1
        union[size] = leaf
        size += 1
    for k in range(size, _LEAVES):
        union[k] = -1
    return size


@njit(cache=True, inner=True)
def _dominated(cuts, node, used, union, size):
    """Whether an earlier cut of the node (not the node itself) is contained in ``union``."""
    for k in range(1, used):
        if cuts.sizes[node, k] > size:
            continue
        i = 0
        for j in range(size):
            if i < cuts.sizes[node, k] and cuts.leaves[node, k, i] == union[j]:
                i += 1
        if i == cuts.sizes[node, k]:
            return True
    return False


@njit(cache=True, inner=True)
def _find_cuts(cuts, node, gate, p, q):
    """Fill in the cuts of a new gate g(p, q); those of p and q are there already."""
    union = cuts.union
    cuts.sizes[node, 0] = 1
    cuts.leaves[node, 0, 0] = node
    cuts.functions[node, 0] = 0xAAAA
    used = np.int64(1)
    limit = cuts.sizes.shape[1]
    for u in range(cuts.number[p]):
        for v in range(cuts.number[q]):
            if used == limit:
                break
            size = _merge(cuts, p, u, q, v, union)
            if size > _LEAVES or _dominated(cuts, node, used, union, size):
                continue
            x, y = _spread(cuts, p, u, union), _spread(cuts, q, v, union)
            cuts.sizes[node, used] = size
            for k in range(_LEAVES):
                cuts.leaves[node, used, k] = union[k]
            cuts.functions[node, used] = gate_of_words(gate, np.uint64(x), np.uint64(y)) & np.uint64(0xFFFF)
            used += 1
    cuts.number[node] = used
