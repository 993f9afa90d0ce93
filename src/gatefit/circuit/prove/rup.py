"""An independent checker of refutations: every step must follow from what stands before it by unit propagation.

    clause C is accepted   iff   unit propagation on  F ∧ ¬C  reaches a conflict           (RUP)
    proof refutes F        iff   all its steps up to the empty clause are accepted, and the empty clause is reached

It shares no code with the solver, the sweeper or the simulator, and trusts none of them: a formula that passes is
unsatisfiable whatever made the proof. Resolution asymmetric tautologies (the "RAT" of DRAT) are not accepted, so
deletions can only make a proof fail, never succeed. Forward checking with two watched literals:

    literal          2 v for the variable v, 2 v + 1 for its inverse, so that ``literal ^ 1`` inverts it
    pool, start      the clauses, one behind the other; the first two literals of each are watched
    watch            2 · clause + place, in a linked list per literal
    value            of a literal: 1 true, -1 false, 0 open;  fixed literals stay at the front of the trail
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Final

import numpy as np
from jaxtyping import Int32

from gatefit.circuit.logic.cnf import DELETE, Cnf
from gatefit.compiled import njit

_REFUTED: Final = -1
_INCOMPLETE: Final = -2


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
    numbers = np.concatenate([cnf.literals, proof]).astype(np.int32)
    clauses, numbered = np.count_nonzero(numbers == 0) + 1, 2 * cnf.variables + 2
    step = _check_steps(
        numbers,
        cnf.literals.size,
        DELETE,
        pool=np.empty(numbers.size + 1, np.int32),
        start=np.zeros(clauses + 1, np.int64),
        deleted=np.zeros(clauses, np.bool_),
        watch_next=np.empty(2 * clauses, np.int64),
        watch_head=np.full(numbered, -1, np.int64),
        value=np.zeros(numbered, np.int8),
        seen=np.full(numbered, -1, np.int64),
        trail=np.empty(cnf.variables + 1, np.int32),
        bucket_next=np.empty(clauses, np.int64),
        buckets=np.full(1 << int(clauses).bit_length(), -1, np.int64),
    )
    if step == _REFUTED:
        return None
    if step == _INCOMPLETE:
        return "the proof ends without reaching the empty clause"
    return f"step {step + 1 - cnf.clauses} of the proof does not follow by unit propagation"


@njit(cache=True, inner=True, plain=True)
def _propagate(done, size, trail, value, pool, start, watch_head, watch_next, deleted):
    """Propagate trail[done:size]; return (conflict, new size). ``value[literal]`` is 1: true, -1: false, 0: open."""
    while done < size:
        false = trail[done] ^ 1
        done += 1
        before, watch = -1, watch_head[false]
        while watch != -1:
            after = watch_next[watch]
            clause, place = watch >> 1, watch & 1
            first, end = start[clause], start[clause + 1]
            moved = deleted[clause]
            other = pool[first + 1 - place]
            if not moved:
                if value[other] == 1:
                    before, watch = watch, after
                    continue
                for i in range(first + 2, end):
                    literal = pool[i]
                    if value[literal] != -1:
                        pool[i], pool[first + place] = false, literal
                        watch_next[watch] = watch_head[literal]
                        watch_head[literal] = watch
                        moved = True
                        break
            if moved:
                if before == -1:
                    watch_head[false] = after
                else:
                    watch_next[before] = after
            elif value[other] == -1:
                return True, size
            else:
                value[other] = 1
                value[other ^ 1] = -1
                trail[size] = other
                size += 1
                before = watch
            watch = after
    return False, size


@njit(cache=True, plain=True)
def _check_steps(
    numbers, formula, delete, pool, start, deleted, watch_next, watch_head, value, seen, trail, bucket_next, buckets
):
    """_REFUTED if the proof reaches the empty clause, _INCOMPLETE if it ends before, else the first step that fails.

    ``numbers`` are DIMACS literals, ``formula`` of them of the formula, then those of the proof; steps are counted from
    the formula's first clause on. ``seen`` is the step in which a literal was last seen.
    """
    # Of one type from the first pass on: a literal would compile what it is given to once more.
    clauses, fixed, at, step = np.int64(0), np.int64(0), np.int64(0), np.int64(-1)
    while at < numbers.size:
        step += 1
        given = at < formula
        removes = not given and numbers[at] == delete
        if removes:
            at += 1
        # Copy the clause without repeated literals behind the pool; keep it there if it is added.
        first = start[clauses]
        end, tautology, fingerprint = first, False, np.uint64(0)
        while numbers[at] != 0:
            literal = np.int64(numbers[at])
            literal = 2 * literal if literal > 0 else 1 - 2 * literal
            at += 1
            if seen[literal] != step:
                seen[literal] = step
                if seen[literal ^ 1] == step:
                    tautology = True
                pool[end] = literal
                end += 1
                # A sum, as clauses are equal in any order of their literals.
                x = np.uint64(literal) * np.uint64(0x9E3779B97F4A7C15)
                fingerprint += (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        at += 1
        slot = np.int64(fingerprint >> np.uint64(1)) & (buckets.size - 1)
        if removes:
            before, clause = np.int64(-1), buckets[slot]
            while clause != -1:
                matches = start[clause + 1] - start[clause] == end - first
                for i in range(start[clause], start[clause + 1]):
                    if seen[pool[i]] != step:
                        matches = False
                if matches:
                    deleted[clause] = True
                    if before == -1:
                        buckets[slot] = bucket_next[clause]
                    else:
                        bucket_next[before] = bucket_next[clause]
                    break
                before, clause = clause, bucket_next[clause]
            continue
        satisfied, conflict, size = tautology, False, fixed
        if not given and not tautology:
            for i in range(first, end):
                literal = pool[i]
                if value[literal] == 1:
                    satisfied = True  # by a fixed literal: the clause follows, and says nothing new
                    break
                if value[literal] == 0:
                    value[literal] = -1
                    value[literal ^ 1] = 1
                    trail[size] = literal ^ 1
                    size += 1
            if not satisfied:
                conflict, size = _propagate(fixed, size, trail, value, pool, start, watch_head, watch_next, deleted)
            for i in range(fixed, size):
                value[trail[i]] = value[trail[i] ^ 1] = 0
            if not (satisfied or conflict):
                return step
        if satisfied:
            continue
        # Watch two literals that are not false; with fewer of them the clause fixes a literal or refutes the formula.
        open_literals = 0
        for i in range(first, end):
            if value[pool[i]] != -1:
                pool[i], pool[first + open_literals] = pool[first + open_literals], pool[i]
                open_literals += 1
                if open_literals == 2:
                    break
        if open_literals == 0:
            return _REFUTED
        if open_literals == 1:
            literal = pool[first]
            if value[literal] == 0:
                value[literal] = 1
                value[literal ^ 1] = -1
                trail[fixed] = literal
                conflict, fixed = _propagate(
                    fixed, fixed + 1, trail, value, pool, start, watch_head, watch_next, deleted
                )
                if conflict:
                    return _REFUTED
            continue
        for place in range(2):
            literal = pool[first + place]
            watch_next[2 * clauses + place] = watch_head[literal]
            watch_head[literal] = 2 * clauses + place
        bucket_next[clauses] = buckets[slot]
        buckets[slot] = clauses
        clauses += 1
        start[clauses] = end
    return _INCOMPLETE
