"""An independent checker of refutations: every step must follow from what stands before it by unit propagation.

    clause C is accepted   iff   unit propagation on  F ∧ ¬C  reaches a conflict           (RUP)
    proof refutes F        iff   all its steps up to the empty clause are accepted, and the empty clause is reached

It shares no code with the solver, the sweeper or the simulator, and trusts none of them: a formula that passes is
unsatisfiable whatever made the proof. Resolution asymmetric tautologies (the "RAT" of DRAT) are not accepted, so
deletions can only make a proof fail, never succeed. Forward checking with two watched literals.
"""

import numpy as np
from jaxtyping import Int32

from gatefit.circuit.cnf import DELETE, Cnf
from gatefit.circuit.rup_numba import INCOMPLETE, REFUTED, check_steps


def check_drup(cnf: Cnf, proof: Int32[np.ndarray, " literals"]) -> bool:
    """Whether ``proof`` shows that ``cnf`` is unsatisfiable."""
    return find_flaw(cnf, proof) is None


def find_flaw(cnf: Cnf, proof: Int32[np.ndarray, " literals"]) -> str | None:
    """What is wrong with a proof that ``cnf`` is unsatisfiable; None if it holds."""
    for name, literals in (("formula", cnf.literals), ("proof", proof)):
        plain = literals[literals != DELETE] if name == "proof" else literals
        if literals.size and literals[-1] != 0:
            return f"the {name} does not end with 0"
        if plain.size and np.abs(plain.astype(np.int64)).max() > cnf.variables:
            return f"the {name} has a literal beyond variable {cnf.variables}"
    inner = np.flatnonzero(proof == DELETE)
    if inner.size and np.any(proof[inner[inner > 0] - 1] != 0):
        return "the proof has a deletion mark inside a step"
    step = check_steps(
        np.ascontiguousarray(cnf.literals, np.int32), np.ascontiguousarray(proof, np.int32), cnf.variables, DELETE
    )
    if step == REFUTED:
        return None
    if step == INCOMPLETE:
        return "the proof ends without reaching the empty clause"
    return f"step {step + 1} of the proof does not follow by unit propagation"
