"""An independent checker of refutations: every step must follow from what stands before it by unit propagation.

    clause C is accepted   iff   unit propagation on  F ∧ ¬C  reaches a conflict           (RUP)
    proof refutes F        iff   all its steps up to the empty clause are accepted, and the empty clause is reached

It shares no code with the solver, the sweeper or the simulator, and trusts none of them: a formula that passes is
unsatisfiable whatever made the proof. Resolution asymmetric tautologies (the "RAT" of DRAT) are not accepted, so
deletions can only make a proof fail, never succeed. Forward checking with two watched literals:

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
    step = _check_steps(
        np.ascontiguousarray(cnf.literals, np.int32), np.ascontiguousarray(proof, np.int32), cnf.variables, DELETE
    )
    if step == _REFUTED:
        return None
    if step == _INCOMPLETE:
        return "the proof ends without reaching the empty clause"
    return f"step {step + 1} of the proof does not follow by unit propagation"


@njit(cache=True, inner=True)
def _index(literal):
    return 2 * literal if literal > 0 else 1 - 2 * literal


@njit(cache=True, inner=True)
def _propagate(done, size, trail, value, pool, start, watch_head, watch_next, deleted):
    """Propagate trail[done:size]; return (conflict, new size). ``value[index(l)]`` is 1: true, -1: false, 0: open."""
    while done < size:
        false = -trail[done]
        done += 1
        before, watch = -1, watch_head[_index(false)]
        while watch != -1:
            after = watch_next[watch]
            clause, place = watch >> 1, watch & 1
            first, end = start[clause], start[clause + 1]
            moved = deleted[clause]
            if not moved:
                other = pool[first + 1 - place]
                if value[_index(other)] == 1:
                    before, watch = watch, after
                    continue
                for i in range(first + 2, end):
                    literal = pool[i]
                    if value[_index(literal)] != -1:
                        pool[i], pool[first + place] = false, literal
                        watch_next[watch] = watch_head[_index(literal)]
                        watch_head[_index(literal)] = watch
                        moved = True
                        break
            if moved:
                if before == -1:
                    watch_head[_index(false)] = after
                else:
                    watch_next[before] = after
            elif value[_index(other)] == -1:
                return True, size
            else:
                value[_index(other)], value[_index(-other)] = 1, -1
                trail[size] = other
                size += 1
                before = watch
            watch = after
    return False, size


@njit(cache=True, inner=True)
def _fingerprint(literals):
    """A number that does not depend on the order of the literals."""
    total = np.uint64(0)
    for literal in literals:
        x = np.uint64(_index(literal)) * np.uint64(0x9E3779B97F4A7C15)
        total += (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(total >> np.uint64(1))


@njit(cache=True)
def _check_steps(cnf, proof, variables, delete):
    """_REFUTED if the proof reaches the empty clause, _INCOMPLETE if it ends before, else the first step that fails."""
    limit = 1 + _count(cnf) + _count(proof)
    pool = np.empty(cnf.size + proof.size + 1, np.int32)
    start = np.zeros(limit + 1, np.int64)
    deleted = np.zeros(limit, np.bool_)
    watch_next = np.empty(2 * limit, np.int64)
    watch_head = np.full(2 * variables + 2, -1, np.int64)
    value = np.zeros(2 * variables + 2, np.int8)
    seen = np.full(2 * variables + 2, -1, np.int64)  # the step in which a literal was last seen
    trail = np.empty(variables + 1, np.int32)
    bucket_next = np.empty(limit, np.int64)
    slots = 1
    while slots < limit:
        slots *= 2
    buckets = np.full(slots, -1, np.int64)
    # Of one type from the first pass on: a literal would compile what it is given to once more.
    clauses, fixed, at, step = np.int64(0), np.int64(0), np.int64(0), np.int64(-1)
    total = cnf.size + proof.size
    while at < total:
        step += 1
        given = at < cnf.size
        source, offset = (cnf, 0) if given else (proof, cnf.size)
        removes = not given and source[at - offset] == delete
        at += removes
        # Copy the clause without repeated literals behind the pool; keep it there if it is added.
        first = start[clauses]
        end, tautology = first, False
        while source[at - offset] != 0:
            literal = source[at - offset]
            at += 1
            if seen[_index(literal)] != step:
                seen[_index(literal)] = step
                tautology |= seen[_index(-literal)] == step
                pool[end] = literal
                end += 1
        at += 1
        slot = _fingerprint(pool[first:end]) & (slots - 1)
        if removes:
            before, clause = -1, buckets[slot]
            while clause != -1:
                matches = start[clause + 1] - start[clause] == end - first
                for i in range(start[clause], start[clause + 1]):
                    matches &= seen[_index(pool[i])] == step
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
                if value[_index(literal)] == 1:
                    satisfied = True  # by a fixed literal: the clause follows, and says nothing new
                    break
                if value[_index(literal)] == 0:
                    value[_index(literal)], value[_index(-literal)] = -1, 1
                    trail[size] = -literal
                    size += 1
            if not satisfied:
                conflict, size = _propagate(fixed, size, trail, value, pool, start, watch_head, watch_next, deleted)
            for i in range(fixed, size):
                value[_index(trail[i])], value[_index(-trail[i])] = 0, 0
            if not (satisfied or conflict):
                return step - _count(cnf)
        if satisfied:
            continue
        # Watch two literals that are not false; with fewer of them the clause fixes a literal or refutes the formula.
        open_literals = 0
        for i in range(first, end):
            if value[_index(pool[i])] != -1:
                pool[i], pool[first + open_literals] = pool[first + open_literals], pool[i]
                open_literals += 1
                if open_literals == 2:
                    break
        if open_literals == 0:
            return _REFUTED
        if open_literals == 1:
            literal = pool[first]
            if value[_index(literal)] == 0:
                value[_index(literal)], value[_index(-literal)] = 1, -1
                trail[fixed] = literal
                conflict, fixed = _propagate(
                    fixed, fixed + 1, trail, value, pool, start, watch_head, watch_next, deleted
                )
                if conflict:
                    return _REFUTED
            continue
        for place in range(2):
            index = _index(pool[first + place])
            watch_next[2 * clauses + place] = watch_head[index]
            watch_head[index] = 2 * clauses + place
        bucket_next[clauses] = buckets[slot]
        buckets[slot] = clauses
        clauses += 1
        start[clauses] = end
    return _INCOMPLETE


@njit(cache=True, inner=True)
def _count(literals):
    count = 0
    for literal in literals:
        count += literal == 0
    return count
