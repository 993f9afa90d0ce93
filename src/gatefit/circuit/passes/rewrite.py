"""Local rewriting: what up to four leaves decide is computed by the smallest chain of gates for it.

    gain = gates that only this node needs (down to the leaves) - gates of the chain that do not exist yet

Nodes are rebuilt one by one in topological order. For each, every cut is tried; the largest gain wins, and of equal
gains the smaller depth. A chain that gains nothing is taken only if it is shallower.
"""

import numpy as np

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.assemble import from_literals
from gatefit.circuit.passes.cuts import empty_cuts, find_cuts
from gatefit.circuit.passes.library import library
from gatefit.circuit.passes.literals import FALSE, reduce_gate
from gatefit.circuit.passes.network import dereference, empty_network, find, make, reference
from gatefit.circuit.passes.structural import remove_dead
from gatefit.circuit.passes.sweep import share
from gatefit.compiled import njit

CUTS_PER_NODE = 12
_UNKNOWN = np.int64(1) << 60  # a literal that stands for a gate that would have to be made


def rewrite_cuts(circuit: Circuit) -> Circuit:
    """Replace cones of up to four leaves by smaller equal ones, counting gates that are shared; never adds gates."""
    circuit = remove_dead(circuit)
    swept = share(circuit)
    capacity = circuit.inputs + 2 * swept.gates.size + 64
    net = empty_network(circuit.inputs, capacity)
    cuts = empty_cuts(capacity, circuit.inputs, CUTS_PER_NODE)
    literals = _rewrite(net, cuts, library(), swept.gates, swept.operands, swept.literals[circuit.outputs])
    live = net.readers[circuit.inputs : net.used[0]] > 0
    number = np.arange(net.used[0], dtype=np.int64)
    number[circuit.inputs :] = circuit.inputs - 1 + np.cumsum(live)
    gates = net.gates[circuit.inputs : net.used[0]][live]
    operands = number[net.operands[:, circuit.inputs : net.used[0]][:, live]].astype(np.int32)
    literals = np.where(literals < 0, literals, 2 * number[literals >> 1] + (literals & 1))
    rewritten = from_literals(circuit, gates, operands, literals)
    # Inverters that outputs need are not in the kernel's count.
    return rewritten if rewritten.gates.size <= circuit.gates.size else circuit


@njit(cache=True)
def _rewrite(net, cuts, chains, gates, operands, outputs):  # type: ignore[no-untyped-def]
    """Fill ``net``; the outputs' literals in it."""
    inputs, count = net.inputs, len(gates)
    readers = _count_readers(inputs, gates, operands, outputs)
    literals = np.empty(inputs + count, np.int64)
    for node in range(inputs):
        literals[node] = 2 * node
        net.readers[node] = readers[node]
    for i in range(count):
        if readers[inputs + i] == 0:
            literals[inputs + i] = FALSE
            continue
        below = operands[0, i], operands[1, i]
        literal = make(net, np.int64(gates[i]), literals[below[0]], literals[below[1]])
        fresh = literal >= 0 and net.readers[literal >> 1] == 0 and literal >> 1 >= inputs
        if literal >= 0:
            _add_cuts(net, cuts, literal >> 1)
            reference(net, literal >> 1, readers[inputs + i])
        for k in range(2):
            if literals[below[k]] >= 0:
                dereference(net, literals[below[k]] >> 1, 1)
        room = len(net.gates) - net.used[0] - (count - i) > 8
        if fresh and room:
            better = _improve(net, cuts, chains, literal >> 1)
            if better != 2 * (literal >> 1):
                if better >= 0:
                    reference(net, better >> 1, readers[inputs + i])
                dereference(net, literal >> 1, readers[inputs + i])
                literal = better ^ (literal & 1)
        literals[inputs + i] = literal
    result = np.empty(len(outputs), np.int64)
    for k in range(len(outputs)):
        result[k] = literals[outputs[k] >> 1] ^ (outputs[k] & 1) if outputs[k] >= 0 else outputs[k]
    return result


@njit(cache=True)
def _count_readers(inputs, gates, operands, outputs):  # type: ignore[no-untyped-def]
    """Readers of every node, counting live gates and outputs."""
    readers = np.zeros(inputs + len(gates), np.int64)
    for literal in outputs:
        if literal >= 0:
            readers[literal >> 1] += 1
    for i in range(len(gates) - 1, -1, -1):
        if readers[inputs + i]:
            readers[operands[0, i]] += 1
            readers[operands[1, i]] += 1
    return readers


@njit(cache=True)
def _add_cuts(net, cuts, node):  # type: ignore[no-untyped-def]
    if cuts.number[node] == 0:
        find_cuts(cuts, node, np.int64(net.gates[node]), net.operands[0, node], net.operands[1, node])


@njit(cache=True)
def _improve(net, cuts, chains, node):  # type: ignore[no-untyped-def]
    """The literal of the best chain for a node over all its cuts, or of the node itself."""
    best_cut, best_gain, best_level = -1, 0, net.levels[node]
    for cut in range(1, cuts.number[node]):
        gain, level = _gain(net, cuts, chains, node, cut)
        if gain > best_gain or (gain == best_gain and level < best_level):
            best_cut, best_gain, best_level = cut, gain, level
    if best_cut < 0:
        return np.int64(2 * node)
    values = np.empty(4 + chains.chains.shape[1], np.int64)
    function = cuts.functions[node, best_cut]
    steps = _start(cuts, chains, node, best_cut, values)
    number = chains.class_of[function]
    for step in range(steps):
        gate, i, j = chains.chains[number, step]
        values[4 + step] = make(net, gate, values[i], values[j])
        if values[4 + step] >= 0:
            _add_cuts(net, cuts, values[4 + step] >> 1)
    return _result(chains, function, steps, values)


@njit(cache=True)
def _start(cuts, chains, node, cut, values):  # type: ignore[no-untyped-def]
    """Write the literals of y0 to y3; the number of steps to come."""
    function = cuts.functions[node, cut]
    for i in range(4):
        leaf = chains.order[function, i]
        values[i] = FALSE
        if leaf < cuts.sizes[node, cut]:
            values[i] = 2 * cuts.leaves[node, cut, leaf] + ((chains.inverted[function] >> i) & 1)
    return chains.steps[chains.class_of[function]]


@njit(cache=True)
def _result(chains, function, steps, values):  # type: ignore[no-untyped-def]
    """The chain's literal: its last step, or without steps y0 or a constant."""
    out = np.int64(chains.inverted[function] >> 4)
    if steps:
        return values[3 + steps] ^ out
    if function in (0, 0xFFFF):
        return np.int64(FALSE) ^ out
    return values[0] ^ out


@njit(cache=True)
def _gain(net, cuts, chains, node, cut):  # type: ignore[no-untyped-def]
    """(gates saved, level of the result) if the node were replaced by the chain for one of its cuts."""
    size = cuts.sizes[node, cut]
    for k in range(size):
        leaf = cuts.leaves[node, cut, k]
        if leaf >= net.inputs and net.readers[leaf] == 0:
            return -1, 0  # replaced meanwhile: using it would bring it back to life
    for k in range(size):
        net.readers[cuts.leaves[node, cut, k]] += 1
    readers = net.readers[node]
    saved = dereference(net, node, readers)
    values = np.empty(4 + chains.chains.shape[1], np.int64)
    levels = np.zeros(4 + chains.chains.shape[1], np.int64)
    steps = _start(cuts, chains, node, cut, values)
    for i in range(4):
        levels[i] = net.levels[values[i] >> 1] if values[i] >= 0 else 0
    number = chains.class_of[cuts.functions[node, cut]]
    for step in range(steps):
        gate, i, j = chains.chains[number, step]
        levels[4 + step] = max(levels[i], levels[j]) + 1
        values[4 + step] = _UNKNOWN
        exists = False
        if values[i] != _UNKNOWN and values[j] != _UNKNOWN:
            done, literal, gate, a, b = reduce_gate(gate, values[i], values[j])
            found = np.int64(-1)
            if not done:
                found = np.int64(find(net, gate, a, b)[0])
                exists = bool(found >= 0 and net.readers[found] > 0)
                if found >= 0:
                    literal += 2 * found
            if done or found >= 0:
                values[4 + step] = literal
                levels[4 + step] = net.levels[literal >> 1] if literal >= 0 else 0
            exists = done or exists
        if not exists:
            saved -= 1
            if saved < 0:
                break
    reference(net, node, readers)
    for k in range(size):
        net.readers[cuts.leaves[node, cut, k]] -= 1
    return saved, levels[3 + steps] if steps else levels[0]
