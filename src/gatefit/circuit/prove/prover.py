"""Proof that two circuits have equal scores on every input, or an input on which they have not.

    prove(spec, impl)  ->  Equivalent | Counterexample(bits) | Undecided(reason)

1. random simulation, which finds most differences at once;
2. SAT sweeping of both circuits together: every output bit gets a literal that it equals;
3. the readout by construction: sums in which everything cancels are equal, what is left is compared by adders;
4. the sweep's whole reasoning, as a refutation of "some score differs", is checked by an independent checker.

No verdict rests on one engine: ``Equivalent`` has passed the checker of ``prove.rup`` (or all inputs were tried),
``Counterexample`` has been replayed by ``circuit.simulate``. Inputs and classes are matched by position; encoders,
names and the temperature of probabilities are not compared. Where the outputs of one circuit are its answer, no scores
are left: the other one is lowered alike (``circuit.lower_readout``), and the answers are compared.
"""

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
from jaxtyping import Bool, Int32, Shaped

from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.literals import dimacs
from gatefit.circuit.logic.words import PATTERNS, signatures
from gatefit.circuit.lower_readout import in_one_form
from gatefit.circuit.prove.certificate import refuse_existing, write_certificate
from gatefit.circuit.prove.miter import equalities_cnf, join, obligations
from gatefit.circuit.prove.questions import CONFLICTS, Effort
from gatefit.circuit.prove.rup import find_flaw
from gatefit.circuit.prove.search import EXHAUSTIVE_INPUTS, try_all_inputs, try_random_inputs, try_words
from gatefit.circuit.prove.sweeper import Swept, sweep


class _Verdict:
    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"a verdict is not true or false ({type(self).__name__} is one of three); "
            f"use isinstance(verdict, Equivalent) or match"
        )


@dataclass(frozen=True)
class Equivalent(_Verdict):
    """The scores are equal on every input; ``method`` is "sat" (checked refutation) or "exhaustive"."""

    method: str
    seconds: float
    queries: int
    certificate: Path | None = None


@dataclass(frozen=True, eq=False)
class Counterexample(_Verdict):
    """An input on which the scores differ, and both circuits' scores there."""

    bits: Bool[np.ndarray, " inputs"]
    spec_scores: Shaped[np.ndarray, " classes"]
    impl_scores: Shaped[np.ndarray, " classes"]


@dataclass(frozen=True)
class Undecided(_Verdict):
    """Neither was shown; ``reason`` says why and what could help."""

    reason: str


PATIENT_CONFLICTS: Final = 50_000
NO_LIMIT: Final = 2**62
"""Conflicts spent on an output that does not cancel, and on a sum of such outputs (where only the whole counts)."""

ALL_CONFLICTS: Final = 10_000_000
"""Conflicts spent on all questions together: some minutes, where most proofs need less than a second."""

Verdict = Equivalent | Counterexample | Undecided


def prove(
    spec: Circuit,
    impl: Circuit,
    *,
    certificate: str | os.PathLike[str] | None = None,
    conflicts: int = ALL_CONFLICTS,
    timeout: float | None = None,
    patterns: int = PATTERNS,
    seed: int = 0,
) -> Verdict:
    """Decide whether ``impl`` has the same scores as ``spec`` on every input.

    ``certificate`` is a path for a directory to be written with the proof (see ``prove.certificate``). ``conflicts``
    bounds the solver's work, and so does ``timeout``, in seconds, if given; without it the verdict does not depend on
    how fast the machine is. ``patterns`` and ``seed`` choose the random patterns, which affect speed, not what is true.
    If the outputs of one circuit are its answer (``lower_readout``), the other one is lowered too, to compare answers.
    """
    _check_circuits(spec, impl)
    spec, impl = in_one_form(spec, impl)
    _check_comparable(spec, impl)
    _check_limits(conflicts, timeout, patterns)
    path = None if certificate is None else Path(certificate)
    if path is not None:
        refuse_existing(path)
    start = time.monotonic()
    effort = Effort(conflicts, math.inf if timeout is None else start + timeout)
    graph, outputs = join(spec, impl)
    known = signatures(graph, patterns, seed)
    bits = try_random_inputs(spec, impl, known, patterns, seed)
    if bits is not None:
        return _replayed(spec, impl, bits)
    swept = sweep(graph, outputs, effort=effort, known=known, seed=seed)
    queries = swept.queries
    bits = try_words(spec, impl, swept.words)
    if bits is not None:
        return _replayed(spec, impl, bits)
    claims = swept.literals[outputs]
    goal = obligations(spec, impl, claims)
    if goal is None:
        kind = type(spec.readout).__name__
        obstacle = f"the {kind} readouts do not add the same terms in the same order, with the same weights"
        return _try_everything(spec, impl, path, start, queries, obstacle)
    if len(goal.sums):
        # Not everything cancels: sweep again with adders, patient with what they add, until their bits are decided.
        budgets = np.full(goal.graph.nodes, CONFLICTS)
        budgets[goal.graph.operands[:, graph.gates.size :]] = PATIENT_CONFLICTS
        budgets[goal.sums >> 1] = NO_LIMIT
        roots = (goal.pairs >> 1).ravel()
        known = signatures(goal.graph, patterns, seed)
        swept = sweep(goal.graph, roots, budgets=budgets, effort=effort, known=known, seed=seed)
        queries += swept.queries
        bits = try_words(spec, impl, swept.words)
        if bits is not None:
            return _replayed(spec, impl, bits)
    pairs = goal.pairs
    left, right = (swept.literals[side >> 1] ^ (side & 1) for side in pairs.T)
    if np.any(left != right):
        if effort.spent:
            count = np.count_nonzero(left != right)
            within, limit = (f"{timeout:g} s", "timeout") if effort.late else (f"{conflicts:,} conflicts", "conflicts")
            return Undecided(f"{count} of {len(pairs)} equalities were not decided in {within}; raise {limit}")
        return _try_everything(
            spec, impl, path, start, queries, "the sums differ, but the values may collide by rounding"
        )
    cnf = equalities_cnf(goal.graph, pairs)
    proof = _refutation(goal.graph, pairs, swept)
    flaw = find_flaw(cnf, proof)
    if flaw is not None:
        return Undecided(f"the proof that was found does not pass its check: {flaw}; this is a defect, report it")
    if path is not None:
        write_certificate(path, spec, impl, claims, cnf, proof)
    return Equivalent("sat", time.monotonic() - start, queries, path)


def _check_circuits(spec: object, impl: object) -> None:
    for name, circuit in (("spec", spec), ("impl", impl)):
        if not isinstance(circuit, Circuit):
            raise TypeError(f"prove compares two circuits, got {type(circuit).__name__} for {name}")


def _check_comparable(spec: Circuit, impl: Circuit) -> None:
    if spec.inputs != impl.inputs:
        raise ValueError(
            f"spec reads {spec.inputs} input bits and impl reads {impl.inputs}; "
            f"give both the same inputs in the same order, unused ones included"
        )
    if spec.readout.kind != impl.readout.kind:
        raise ValueError(
            f"spec is read by {type(spec.readout).__name__} and impl by {type(impl.readout).__name__}; "
            f"give both circuits the same kind of readout"
        )
    if spec.readout.classes != impl.readout.classes:
        raise ValueError(
            f"spec has {spec.readout.classes} classes and impl has {impl.readout.classes}; "
            f"give both the same classes in the same order"
        )


def _check_limits(conflicts: int, timeout: float | None, patterns: int) -> None:
    if conflicts < 1 or patterns < 0:
        raise ValueError(f"conflicts must be >= 1 and patterns >= 0, got {conflicts} and {patterns}")
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise ValueError(f"timeout must be None or a finite number of seconds > 0, got {timeout}")


def _replayed(spec: Circuit, impl: Circuit, bits: Bool[np.ndarray, " inputs"]) -> Counterexample:
    """A counterexample, seen by the definition of a circuit's meaning."""
    with np.errstate(over="ignore", invalid="ignore"):
        one, two = (simulate.scores(circuit, bits[None])[0] for circuit in (spec, impl))
    if np.array_equal(one, two, equal_nan=True):
        raise AssertionError("an input was found by bit-parallel simulation that the reference does not confirm")
    return Counterexample(bits, one, two)


def _try_everything(
    spec: Circuit, impl: Circuit, path: Path | None, start: float, queries: int, obstacle: str
) -> Verdict:
    """For what cannot be settled bit by bit: floating-point sums of different terms, values that collide."""
    if spec.inputs > EXHAUSTIVE_INPUTS:
        return Undecided(
            f"{obstacle}; no input with different scores was found, and {spec.inputs} inputs are too many to try all "
            f"(at most {EXHAUSTIVE_INPUTS}); give both circuits the same readout, outputs in the same order"
        )
    bits = try_all_inputs(spec, impl)
    if bits is not None:
        return _replayed(spec, impl, bits)
    if path is not None:
        write_certificate(path, spec, impl)
    return Equivalent("exhaustive", time.monotonic() - start, queries, path)


def _refutation(graph: Graph, pairs: Int32[np.ndarray, "pairs 2"], swept: Swept) -> Int32[np.ndarray, " steps"]:
    """The sweep's steps, then for each pair: it does not differ where its first literal is false, hence nowhere."""
    differ = graph.nodes + 1 + np.arange(len(pairs), dtype=np.int32)
    zero = np.zeros_like(differ)
    # From the last pair to the first: a checker watches the first literals of the long clause "some pair differs".
    last = np.stack([-differ, dimacs(pairs[:, 0]), zero, -differ, zero], axis=1)[::-1].ravel()
    return np.concatenate([swept.proof, last, zero[:1]]).astype(np.int32)
