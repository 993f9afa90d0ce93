"""SAT sweeping: nodes that compute the same function, or opposite ones, become one node.

    simulation   proposes: nodes with equal signatures (see signatures)
    SAT          decides:  is there an input for which they differ?   no: merge;   yes: it refines the signatures

Nodes are visited in topological order, and a node is compared with the smallest of its class in the circuit as
merged so far, so that every query is about a small difference. A query that takes too many conflicts is dropped: the
node stays. Nothing is merged without the solver's word.
"""

from contextlib import closing
from enum import Enum
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.assemble import assemble
from gatefit.circuit.passes.signatures import Signatures
from gatefit.circuit.passes.structural import merge_duplicates, remove_dead
from gatefit.circuit.passes.sweep import share
from gatefit.compiled import njit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B

_SOLVER: Final = "minisat22"  # many easy queries: faster here than glucose, and it takes budgets
_PROPAGATIONS_PER_CONFLICT: Final = 5_000  # deep cones can spend minutes on propagations alone
_VARIABLES_PER_SOLVER: Final = 4096  # more slow down every answer, because a model assigns them all
_MAX_PATTERNS: Final = 1000


def merge_equivalent(circuit: Circuit, *, conflicts: int = 200, words: int = 1024) -> Circuit:
    """Merge functionally equal or opposite nodes, and nodes that are constant.

    ``conflicts`` bounds the work per query, ``words`` is how many words of 64 patterns are simulated at first.
    """
    circuit = remove_dead(merge_duplicates(circuit))
    # Any patterns will do, because SAT decides; fixed ones give the same circuit every time.
    signatures = Signatures(circuit, np.random.default_rng(0), words)
    merged = 2 * np.arange(circuit.nodes, dtype=np.int64)
    # What reads one operand or none is an inverter or constant that an output needs.
    two = DEPENDS_ON_A[circuit.gates] & DEPENDS_ON_B[circuit.gates]
    with closing(Queries(circuit, merged, conflicts)) as queries:
        for node in np.intersect1d(signatures.members, circuit.inputs + np.flatnonzero(two)).tolist():
            # Every pattern splits the class; the bound only guards against a collision of hashes.
            for _ in range(_MAX_PATTERNS):
                other = signatures.representative(node)
                if other is None:
                    break
                literal = 2 * other + signatures.opposite(node, other)
                answer = queries.difference(node, literal)
                if isinstance(answer, Verdict):
                    if answer is Verdict.EQUAL:
                        merged[node] = literal
                    break
                signatures.tell_apart(answer)
    return remove_dead(assemble(circuit, share(circuit, merged)))


class Verdict(Enum):
    """What the solver says when it gives no pattern that tells two literals apart."""

    EQUAL = "equal"
    UNKNOWN = "unknown"


class Queries:
    """Asks whether two literals can differ; loads the gates below them on demand, as ``merged`` so far."""

    def __init__(self, circuit: Circuit, merged: Int64[np.ndarray, " nodes"], conflicts: int) -> None:
        self._circuit, self._merged, self._conflicts = circuit, merged, conflicts
        self._variable = np.zeros(circuit.nodes, np.int32)
        self._stack = np.empty(2 * circuit.nodes + 2, np.int32)
        self._used = self._room = 0
        self._solver: Any = None

    def difference(self, node: int, literal: int) -> Verdict | Bool[np.ndarray, " inputs"]:
        """An input pattern for which the node differs from the literal, or why there is none."""
        if self._solver is None or self._used > self._room:
            self._restart()
            # A deep cone is worth keeping for the next queries, which are likely to share it.
            self._load(2 * node)
            self._room = max(_VARIABLES_PER_SOLVER, 2 * self._used)
        x, y = self._load(2 * node), self._load(literal)
        for assumptions in ([x, -y], [-x, y]):
            self._solver.conf_budget(self._conflicts)
            self._solver.prop_budget(self._conflicts * _PROPAGATIONS_PER_CONFLICT)
            answer = self._solver.solve_limited(assumptions=assumptions)
            if answer is None:
                return Verdict.UNKNOWN
            if answer:
                model = np.zeros(self._used + 1, bool)
                values = np.array(self._solver.get_model())
                model[1 : values.size + 1] = values > 0
                return model[self._variable[: self._circuit.inputs]]
        return Verdict.EQUAL

    def _restart(self) -> None:
        from pysat.solvers import Solver

        self.close()
        self._solver = Solver(name=_SOLVER)
        self._variable[:] = 0
        self._used = 1  # variable 1 is the constant false
        self._solver.add_clause([-1])

    def _load(self, literal: int) -> int:
        """The literal as the solver knows it, with all the gates below it."""
        if literal >= 0:
            self._used, threes, twos = _encode(
                self._circuit.inputs,
                self._circuit.gates,
                self._circuit.operands,
                self._merged,
                literal >> 1,
                self._variable,
                self._used,
                self._stack,
            )
            self._solver.append_formula(threes.tolist())
            self._solver.append_formula(twos.tolist())
        variable = int(self._variable[literal >> 1]) if literal >= 0 else 1
        return -variable if literal & 1 else variable

    def close(self) -> None:
        """Free the solver."""
        if self._solver is not None:
            self._solver.delete()
            self._solver = None


@njit(cache=True)
def _encode(inputs, gates, operands, merged, root, variable, used, stack):  # type: ignore[no-untyped-def]
    """Number the nodes below ``root`` that have no variable yet; (variables used, clauses of 3, clauses of 2)."""
    first, top = used, 0
    if variable[root] == 0:
        used += 1
        variable[root] = used
        stack[0] = root
        top = 1
    done = 0
    # The stack is also the list of what was numbered: ``done`` runs after ``top``.
    while done < top:
        node = stack[done]
        done += 1
        if node < inputs:
            continue
        for k in range(2):
            below = merged[operands[k, node - inputs]]
            if below >= 0 and variable[below >> 1] == 0:
                used += 1
                variable[below >> 1] = used
                stack[top] = below >> 1
                top += 1
    threes = np.empty((4 * (used - first), 3), np.int32)
    twos = np.empty((2 * (used - first), 2), np.int32)
    n3, n2 = 0, 0
    for k in range(top):
        node = stack[k]
        if node < inputs:
            continue
        gate = gates[node - inputs]
        out = variable[node]
        a, b = merged[operands[0, node - inputs]], merged[operands[1, node - inputs]]
        x = variable[a >> 1] if a >= 0 else np.int32(1)
        y = variable[b >> 1] if b >= 0 else np.int32(1)
        x, y = -x if a & 1 else x, -y if b & 1 else y
        ones = (gate & 1) + ((gate >> 1) & 1) + ((gate >> 2) & 1) + ((gate >> 3) & 1)
        for corner in range(4):
            value = (gate >> (3 - corner)) & 1
            not_x, not_y = -x if corner & 2 else x, -y if corner & 1 else y
            odd_one_out = ones & 1 and value == (ones == 1)
            if odd_one_out or ones & 1 == 0:
                threes[n3] = not_x, not_y, out if value else -out
                n3 += 1
            if odd_one_out:  # outside of this corner the gate has the other value
                twos[n2] = -not_x, -out if value else out
                twos[n2 + 1] = -not_y, -out if value else out
                n2 += 2
    return used, threes[:n3], twos[:n2]
