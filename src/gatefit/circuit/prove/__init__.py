"""Proof that two circuits have equal scores on every input: ``prove``, its verdicts, and what they rest on.

prover        the order of the steps, from random simulation to a checked refutation
miter         both circuits over shared inputs, and what must hold for their scores to be equal
sweeper       equal nodes found and merged by SAT, with a proof (here) or without (``passes.merge_equivalent``)
window        a prover for a few gates;   questions: a SAT solver for more
search        inputs on which scores differ
rup           the independent checker;    certificate: proofs as files
"""

from gatefit.circuit.prove.prover import ALL_CONFLICTS, Counterexample, Equivalent, Undecided, Verdict, prove

__all__ = ["ALL_CONFLICTS", "Counterexample", "Equivalent", "Undecided", "Verdict", "prove"]
