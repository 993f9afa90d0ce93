"""Mutants of the encodings: each gives some formula a wrong answer, or is equivalent, for a reason that is listed.

Operators, each at every place of ``encode`` where it applies:

    minus      -x becomes x                    next        a whole number becomes the next one
    compare    < <= > >= == != become another  add         a + b becomes a - b, and the reverse
    and        & and | are exchanged           not         ~x and ``not x`` become x
    call       a statement that only calls something is left out
    never, always                              the condition of an ``if`` becomes False, True

A mutant is caught if on some problem its formula is satisfiable where brute force finds no point, or the reverse, or
if the point of a model does not satisfy the problem, or if it raises. Counters and sets of patterns are tried by
themselves too, on every assignment. The order in which outputs are counted (``neighbours``) is left alone: any counts
the same.
"""

import ast
import copy
import itertools
import os
import resource
import types
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pysat.solvers import Solver

from gatefit.circuit.logic.cnf import clause_lists
from gatefit.circuit.verify import encode
from gatefit.circuit.verify.problem import Problem
from verify_cases import all_points, posed_at_random

FUNCTIONS = (
    *(
        "columns_of",
        "fresh",
        "add",
        "add_rows",
        "cnf",
        "at_most",
        "_merge",
        "__init__",
        "_placed",
        "terms",
        "formula",
    ),
    *("domain_clauses", "_differs", "point", "_value", "patterns_clauses"),
)
OTHER = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}

SECONDS, MEMORY = 3, 2**31
"""Of the processor (one that ends takes half of one), and bytes beside those that the tests themselves have."""

_TERMS = "return (2 * nodes + (own < 0), np.abs(own), -constant - int(own[own < 0].sum()))"
_NO_PROBLEM = "if problem.changes is not None and (problem.base is None or not problem.inside(problem.base)):"
_MANY = "if a_values.size * b_values.size > MOST_LITERALS:"
_ALL = "if columns < 63 and patterns == 2 ** columns:"
_NESTED = "if not np.any(ordered[:, 1:] & ~ordered[:, :-1]):"
_INNER = "if not np.any(inner[:, 1:] & ~inner[:, :-1]):"
_ALONE = "alone = np.flatnonzero((counts == 1) & (values.T @ values.sum(axis=1) == 1))"

EQUIVALENT: dict[str, tuple[str, ...]] = {
    "a limit of size, which no formula here comes near; or a problem that is none": (
        "__init__: next 0 in: self.size = 0",
        "add: compare self.size > MOST_LITERALS in: if self.size > MOST_LITERALS:",
        "add: never in: if self.size > MOST_LITERALS:",
        f"_merge: compare a_values.size * b_values.size > MOST_LITERALS in: {_MANY}",
        f"_merge: never in: {_MANY}",
        f"__init__: never in: {_NO_PROBLEM}",
    ),
    "a variable more that no clause has": (
        "fresh: next 1 in: return self.variables - count + 1",
        "__init__: next 1 in: self.second = count = 1 + int(self.widths.sum())",
        "point: next 2 in: true = np.zeros(len(model) + 2, bool)",
        "_merge: next 1 in: values = unit * np.arange(1, min(int(both[-1, -1]), most) // unit + 1)",
    ),
    "columns are one-dimensional, and any negative size is the one that is left over": (
        "add_rows: minus -1 in: rows = np.stack(np.broadcast_arrays(*columns, np.int32(0)), axis=-1)",
        "add_rows: next 1 in: self.add(rows.reshape(-1))",
    ),
    "a constraint that cannot fail is counted all the same": (
        "at_most: compare int(weights.sum()) <= most in: if int(weights.sum()) <= most:",
        "at_most: never in: if int(weights.sum()) <= most:",
    ),
    "equal weights are all equal to any of them; clauses for unequal ones hold for equal ones too": (
        "at_most: next 0 in: even = bool(np.all(weights == weights[0]))",
        "at_most: compare weights == weights[0] in: even = bool(np.all(weights == weights[0]))",
        "_merge: never in: if even:",
        "_merge: always in: if not even:",
    ),
    "columns are made again instead of kept, or kept beyond the limit": (
        "__init__: compare len(known) < _KEPT in: if len(known) < _KEPT:",
        "__init__: never in: if len(known) < _KEPT:",
        "__init__: always in: if len(known) < _KEPT:",
        "__init__: always in: if columns is None:",
    ),
    "false weighs something, and is counted among what is false": ("terms: next 0 in: weights[0] = 0",),
    "weights are whole numbers and none of them is 0": (
        f"terms: next 0 in: {_TERMS}",
        f"terms: compare own < 0 in: {_TERMS}",
    ),
    "constants are folded before: no clause reads the variable that is false": (
        "formula: minus -1 in: clauses.add([-1, 0])",
        "formula: call in: clauses.add([-1, 0])",
    ),
    "a literal of its own says that the only column differs": ("_differs: never in: if away.size == 1:",),
    "a model holds no 0, and variable 1 is never true": (
        "point: next 0 in: true[1:len(model) + 1] = np.array(model) > 0",
        "point: compare np.array(model) > 0 in: true[1:len(model) + 1] = np.array(model) > 0",
    ),
    "the short form for some patterns is not chosen: the last one is right for all": (
        *(f"patterns_clauses: {what} in: {_ALL}" for what in ("next 63", "compare columns < 63", "next 2", "never")),
        "patterns_clauses: minus -counts in: order = np.argsort(-counts, kind='stable')",
        f"patterns_clauses: and ordered[:, 1:] & ~ordered[:, :-1] in: {_NESTED}",
        f"patterns_clauses: never in: {_NESTED}",
        "patterns_clauses: compare values.sum(axis=1) > 1 in: if not np.any(values.sum(axis=1) > 1):",
        "patterns_clauses: never in: if not np.any(values.sum(axis=1) > 1):",
        f"patterns_clauses: next 1 in: {_ALONE}",
        f"patterns_clauses: compare counts == 1 in: {_ALONE}",
        f"patterns_clauses: compare values.T @ values.sum(axis=1) == 1 in: {_ALONE}",
        f"patterns_clauses: and (counts == 1) & (values.T @ values.sum(axis=1) == 1) in: {_ALONE}",
        "patterns_clauses: next 1 in: if alone.size == 1:",
        "patterns_clauses: never in: if alone.size == 1:",
        "patterns_clauses: minus -counts[rest] in: chain = rest[np.argsort(-counts[rest], kind='stable')]",
        f"patterns_clauses: and inner[:, 1:] & ~inner[:, :-1] in: {_INNER}",
        f"patterns_clauses: never in: {_INNER}",
    ),
}
"""Mutants that change no answer, by the reason why."""


class Mutator(ast.NodeTransformer):
    """Counts the places of mutants, and makes the one at ``target``."""

    def __init__(self, target: int = -1) -> None:
        self.target, self.count, self.function, self.what = target, 0, "", ""
        self.statement: Any = None

    def visit(self, node: Any) -> Any:
        if isinstance(node, ast.stmt):
            self.statement = node
        return super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name not in FUNCTIONS:
            return node
        before, self.function = self.function, node.name
        node.body = [self.visit(statement) for statement in node.body]
        self.function = before
        return node

    def generic_visit(self, node: Any) -> Any:
        node = super().generic_visit(node)
        if not self.function or isinstance(node, ast.arguments | ast.Assert | ast.Raise):
            return node
        replacement = node
        for operator, made in self._mutants(node):
            if self.count == self.target:
                whole = isinstance(node, ast.stmt)
                where = ast.unparse(node if whole else self.statement).splitlines()[0]
                self.what = f"{self.function}: {operator}{'' if whole else ' ' + ast.unparse(node)} in: {where}"
                replacement = ast.copy_location(made(), node)
            self.count += 1
        return replacement

    @staticmethod
    def _mutants(node: Any) -> list[tuple[str, Any]]:
        def changed(**fields: Any) -> Any:
            def make() -> Any:
                made = copy.copy(node)
                for name, value in fields.items():
                    setattr(made, name, value)
                return made

            return make

        match node:
            case ast.UnaryOp(op=ast.USub()):
                return [("minus", lambda: node.operand)]
            case ast.UnaryOp(op=ast.Invert() | ast.Not()):
                return [("not", lambda: node.operand)]
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return [("next", changed(value=value + 1))]
            case ast.Compare(ops=[op, *_]) if type(op) in OTHER:
                return [("compare", changed(ops=[OTHER[type(op)](), *node.ops[1:]]))]
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return [("add", changed(op=ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()))]
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                return [("and", changed(op=ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()))]
            case ast.Expr(value=ast.Call()):
                return [("call", changed(value=ast.Constant(value=0)))]
            case ast.If():
                no, yes = ast.Constant(value=False), ast.Constant(value=True)
                return [("never", changed(test=no)), ("always", changed(test=yes))]
        return []


def mutant(target: int) -> tuple[Any, str]:
    """The module with one mutant in it, and what it is; the compiled kernels stay as they were."""
    tree = ast.parse(Path(encode.__file__).read_text())
    mutator = Mutator(target)
    tree = ast.fix_missing_locations(mutator.visit(tree))
    module = types.ModuleType("mutated_encode")
    module.__dict__["__name__"] = encode.__name__
    exec(compile(tree, "mutated_encode", "exec"), module.__dict__)
    module.__dict__["_specialise"], module.__dict__["_spread"] = encode._specialise, encode._spread
    return module, mutator.what


def places() -> int:
    mutator = Mutator()
    mutator.visit(ast.parse(Path(encode.__file__).read_text()))
    return mutator.count


@cache
def problems() -> list[tuple[Problem, list[bool]]]:
    """Problems, and for each alternative whether it holds somewhere."""
    found, rising = [], 0
    for seed in itertools.count():
        problem = posed_at_random(np.random.default_rng((31, seed))).problem
        truth = _truth(problem)
        # Of pairs in which one number rises, those that tell whether it has to, and have some thresholds to tell it by.
        telling = problem.rising and truth != _truth(replace(problem, rising=False))
        telling = telling and problem.second is not None and problem.allowed[problem.second].size > 2
        rising += telling
        if telling or len(found) < 70:
            found.append((problem, truth))
        if rising >= 8 and len(found) >= 70:
            return found
    raise AssertionError


def _truth(problem: Problem) -> list[bool]:
    points, other = all_points(problem)
    totals = problem.evaluate(points, other)
    truth = []
    for alternative in problem.alternatives:
        forms = [totals @ form.coefficients + form.constant >= 0 for form in alternative.forms]
        truth.append(bool(np.all([np.ones(len(totals), bool), *forms], axis=0).any()))
    return truth


def solve(literals: Any, assumptions: tuple[int, ...] = ()) -> list[int] | None:
    clauses = clause_lists(np.asarray(literals, np.int32))
    if [] in clauses:
        return None
    with Solver(name="minisat22", bootstrap_with=clauses) as solver:
        return solver.get_model() or [] if solver.solve(assumptions=list(assumptions)) else None


def caught_by_counters(module: Any) -> bool:
    """Whether "at most" is wrong of some assignment."""
    cases = [
        (weights, most)
        for size in (1, 2, 3)
        for weights in itertools.product((1, 2, 3), repeat=size)
        for most in range(-1, sum(weights) + 1)
    ]
    cases += [
        ((1,) * 6, 2),
        ((1,) * 5, 3),
        ((2,) * 5, 4),
        ((1, 1, 2, 3, 5), 6),
        ((4, 1, 4, 1, 4), 8),
        ((7, 5, 3, 1), 9),
        ((16, 1, 1, 1, 1, 2, 4, 8), 18),  # values that only the order of a counter's variables says
    ]
    for numbers, most in cases:
        weights, size = np.array(numbers), len(numbers)
        signs = np.where(np.arange(size) % 2, -1, 1)
        clauses = module.Clauses(size)
        module.at_most(clauses, (signs * np.arange(1, size + 1)).astype(np.int32), weights, most)
        literals = clauses.cnf().literals
        for values in itertools.product((-1, 1), repeat=size):
            weight = int(weights[np.array(values) == signs].sum())
            model = solve(literals, tuple(int(v * (i + 1)) for i, v in enumerate(values)))
            if (model is not None) != (weight <= most):
                return True
    return False


@cache
def pattern_sets() -> list[list[str]]:
    """Every set of patterns of up to three bits; chains, choices and chances of four and five."""
    found = []
    for bits in (1, 2, 3):
        every = ["".join(row) for row in itertools.product("01", repeat=bits)]
        found += [list(rows) for size in range(1, len(every) + 1) for rows in itertools.combinations(every, size)]
    found += [
        ["0000", "1000", "1100", "1110", "0001"],
        ["0000", "1000", "1100", "1110", "1111"],
        ["1110", "1100", "1000", "0001"],
        ["1000", "0100", "0010", "0001"],
        ["0000", "1000", "0100", "0010", "0001"],
        ["0000", "1000", "1100", "0011"],
        ["0000", "1000", "1100", "1010", "0001"],  # two that are not nested, inside a third
        ["10100", "10000", "01010", "01000", "00001"],  # two chains beside each other
    ]
    rng = np.random.default_rng(33)
    for bits, count in ((4, 300), (5, 150)):
        for _ in range(count):
            rows = rng.choice(2**bits, int(rng.integers(3, 9)), replace=False)
            # Few ones: these look like chains and choices.
            rows = [row for row in rows.tolist() if row.bit_count() <= 2] + rows.tolist()[:2]
            found.append([f"{row:0{bits}b}" for row in dict.fromkeys(rows)])
    return found


def caught_by_patterns(module: Any) -> bool:
    """Whether the clauses of some patterns allow another, or do not allow one."""
    for rows in pattern_sets():
        values = np.array([[c == "1" for c in row] for row in rows])
        columns = module.columns_of(values)
        again = np.stack(
            [
                np.full(len(rows), bool(l)) if l < 2 else columns.values[:, l // 2 - 1] ^ bool(l & 1)
                for l in columns.literals.tolist()
            ],
            axis=1,
        )
        if not np.array_equal(again, values):
            return True
        own = columns.values
        clauses = module.Clauses(3 + own.shape[1])
        module.patterns_clauses(clauses, own, 4)
        literals = clauses.cnf().literals
        allowed = {tuple(row) for row in own.tolist()}
        with Solver(name="minisat22", bootstrap_with=clause_lists(literals)) as solver:
            for bits in itertools.product((False, True), repeat=own.shape[1]):
                assumptions = [4 + i if bit else -4 - i for i, bit in enumerate(bits)]
                if solver.solve(assumptions=assumptions) != (bits in allowed):
                    return True
    return False


def caught_by_problems(module: Any) -> bool:
    for problem, truth in problems():
        for feature in problem.domain.features:  # columns that another mutant may have made
            feature.__dict__.pop("_columns", None)
        encoding = module.Encoding(problem)
        for alternative, exists in zip(problem.alternatives, truth, strict=True):
            model = solve(encoding.formula(alternative.forms).literals)
            if (model is not None) != exists:
                return True
            if model is not None:
                point, other = encoding.point(model)
                if not problem.inside(point, other):
                    return True
                totals = problem.evaluate(point[None], other)[0]
                if any(int(form.coefficients @ totals) + form.constant < 0 for form in alternative.forms):
                    return True
    return False


def caught(target: int) -> tuple[bool, str]:
    """In a process of its own: a mutant that does not end, or takes all memory there is, is caught too."""
    module, what = mutant(target)
    checks = [caught_by_counters, caught_by_patterns, caught_by_problems]
    # What is made for the function goes first: most are caught by it, and the rest need not be run.
    first = {"at_most": 0, "_merge": 0, "columns_of": 1, "patterns_clauses": 1}.get(what.partition(":")[0], 2)
    checks.insert(0, checks.pop(first))
    child = os.fork()
    if child == 0:
        found = True
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with np.errstate(all="ignore"):
                found = any(check(module) for check in checks)
        finally:
            os._exit(1 if found else 0)  # raising is being caught
    return os.waitpid(child, 0)[1] != 0, what


def test_the_encodings_themselves_are_not_caught() -> None:
    module, what = mutant(-1)  # made like a mutant, with nothing changed
    assert what == ""
    assert not caught_by_counters(module)
    assert not caught_by_patterns(module)
    assert not caught_by_problems(module)


def survivors(targets: range) -> set[str]:
    problems(), pattern_sets()  # made once, for all processes
    return {what for found, what in map(caught, targets) if not found}


LISTED = {what for mutants in EQUIVALENT.values() for what in mutants}


@pytest.mark.outside
def test_every_fifth_mutant_is_caught_or_equivalent() -> None:
    assert survivors(range(0, places(), 5)) <= LISTED


@pytest.mark.slow
def test_every_mutant_is_caught_or_equivalent() -> None:
    assert places() >= 200
    assert survivors(range(places())) == LISTED  # what is caught is no longer listed
