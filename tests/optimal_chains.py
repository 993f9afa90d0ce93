"""Finds the smallest chain of two-input gates for every function of four variables, by exhaustive search.

Run as a script it prints the text of ``CHAINS`` in ``gatefit.circuit.passes.library`` (about a minute); the tests
run the same search for few gates.
"""

import sys
from itertools import permutations

import numba
import numpy as np

OPS = np.array([1, 2, 4, 6, 7], np.int64)  # the gates of two operands with g(0, 0) = 0
VARIABLES = np.array([0xAAAA, 0xCCCC, 0xF0F0, 0xFF00], np.int64)


@numba.njit(cache=True)
def apply(op, x, y):
    if op == 1:
        return x & y
    if op == 2:
        return x & ~y
    if op == 4:
        return ~x & y
    if op == 6:
        return x ^ y
    return x | y


@numba.njit(cache=True)
def search(steps, class_of, cost, chains):
    """Every chain of ``steps`` gates, first gate x0 & x1 or x0 ^ x1: enough up to renaming and inverting variables."""
    value = np.zeros(4 + steps, np.int64)
    value[:4] = VARIABLES
    choice = np.full(steps, -1, np.int64)  # (pair index) * 5 + op index, the odometer of the search
    left, right = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    used = np.zeros(4 + steps, np.int64)
    depth = 0
    found = 0
    while depth >= 0:
        nodes = 4 + depth
        if choice[depth] >= 0:
            used[left[depth]] -= 1
            used[right[depth]] -= 1
        choice[depth] += 1
        pair, op = choice[depth] // 5, OPS[choice[depth] % 5]
        if pair >= nodes * (nodes - 1) // 2 or (depth == 0 and (pair > 0)):
            choice[depth] = -1
            depth -= 1
            continue
        j = 1
        while j * (j + 1) // 2 <= pair:
            j += 1
        i = pair - j * (j - 1) // 2
        left[depth], right[depth] = i, j
        used[i] += 1
        used[j] += 1
        if depth == 0 and op != 1 and op != 6:
            continue
        if depth > 0 and j != nodes - 1 and choice[depth] < choice[depth - 1]:
            continue  # independent neighbours are tried in one order only
        result = apply(op, value[i], value[j]) & 0xFFFF
        if result == 0:
            continue
        seen = False
        for k in range(nodes):
            if value[k] == result:
                seen = True
        if seen:
            continue
        unused = 0
        for k in range(4, nodes):
            if used[k] == 0:
                unused += 1
        if unused > steps - 1 - depth:
            continue
        value[nodes] = result
        if depth == steps - 1:
            number = class_of[result]
            if cost[number] < 0:
                cost[number] = steps
                for k in range(steps):
                    chains[number, k, 0] = OPS[choice[k] % 5]
                    chains[number, k, 1] = left[k]
                    chains[number, k, 2] = right[k]
                found += 1
                if (cost >= 0).all():
                    return found
            continue
        depth += 1
        used[4 + depth] = 0
    return found


def npn_classes() -> np.ndarray:
    """The number of every function's class, in the order of the classes' smallest members."""
    class_of = np.full(2**16, -1, np.int64)
    moves = []
    for order in permutations(range(4)):
        for mask in range(16):
            moves.append([sum(((x >> order[i]) & 1) << i for i in range(4)) ^ mask for x in range(16)])
    for function in range(2**16):
        if class_of[function] < 0:
            members = ((function >> np.array(moves)) & 1) @ (1 << np.arange(16))
            class_of[members] = class_of[members ^ 0xFFFF] = class_of.max() + 1
    return class_of


def main() -> None:
    class_of = npn_classes()
    cost = np.full(class_of.max() + 1, -1, np.int64)
    chains = np.zeros((len(cost), 7, 3), np.int64)
    cost[class_of[[0, 0xAAAA]]] = 0
    for steps in range(1, 8):
        search(steps, class_of, cost, chains)
        print(steps, int((cost == steps).sum()), file=sys.stderr)
    for chain, length in zip(chains, cost, strict=True):
        print("".join(f"{op:x}{i:x}{j:x}" for op, i, j in chain[:length]) or "-")


if __name__ == "__main__":
    main()
