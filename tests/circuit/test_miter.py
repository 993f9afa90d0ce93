"""What has to be equal for scores to be equal."""

import numpy as np
import pytest
from pysat.solvers import Solver

from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.graph import Graph
from gatefit.circuit.logic.words import simulate_words
from gatefit.circuit.prove.miter import Remainder, add_sums, equalities_cnf, join, obligations, remainders
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.simulate import scores, simulate
from strategies import all_patterns, random_circuit


def node_values(graph: Graph) -> np.ndarray:
    """Values (nodes, patterns) on all inputs, at most six of them."""
    patterns = all_patterns(graph.inputs)
    words = np.array([sum(int(x) << i for i, x in enumerate(column)) for column in patterns.T], np.uint64)
    values = simulate_words(graph, words[:, None])[:, 0]
    return (values[:, None] >> np.arange(len(patterns), dtype=np.uint64) & np.uint64(1)).astype(np.int64)


def literal_values(values: np.ndarray, literals: np.ndarray) -> np.ndarray:
    return values[literals >> 1] ^ (literals & 1)[..., None]


def test_joined_circuits_compute_what_each_computes():
    rng = np.random.default_rng(0)
    for _ in range(100):
        spec = random_circuit(rng)
        impl = random_circuit(rng)
        if impl.inputs != spec.inputs:
            continue
        graph, outputs = join(spec, impl)
        values = node_values(graph)[outputs].T.astype(bool)
        bits = all_patterns(spec.inputs)
        assert np.array_equal(values, np.concatenate([simulate(spec, bits), simulate(impl, bits)], axis=1))


def test_adders_compute_the_sums_of_a_remainder():
    rng = np.random.default_rng(1)
    for _ in range(200):
        graph = Graph(5, np.empty(0, np.uint8), np.empty((2, 0), np.int32))
        size = int(rng.integers(1, 6))
        nodes = np.sort(1 + rng.choice(5, size, replace=False))
        part = Remainder(int(rng.integers(-9, 10)), nodes, rng.choice([-7, -2, -1, 1, 2, 3, 5], size))
        larger, sums = add_sums(graph, [part])
        values = node_values(larger)
        left, right = (literal_values(values, sums[:, i]) for i in (0, 1))
        weights = 1 << np.arange(len(sums))[:, None]
        difference = part.constant + (part.coefficients[:, None] * values[part.nodes]).sum(axis=0)
        assert np.array_equal((weights * (left - right)).sum(axis=0), difference)


def test_remainders_are_the_difference_of_the_scores():
    """With claims that hold (each output claimed equal to itself) the polynomial is exact."""
    rng = np.random.default_rng(2)
    for kind in ("group_sum", "affine"):
        for _ in range(100):
            spec, impl = random_circuit(rng, readout_kinds=[kind]), None
            while impl is None or (impl.inputs, impl.readout.classes) != (spec.inputs, spec.readout.classes):
                impl = random_circuit(rng, readout_kinds=[kind])
            if kind == "affine":
                impl = Circuit(
                    impl.inputs, impl.gates, impl.operands, impl.outputs,
                    Affine(impl.outputs.size, impl.readout.offset, spec.readout.scale, spec.readout.intercept),
                )  # fmt: skip
            graph, outputs = join(spec, impl)
            parts = remainders(spec.readout, impl.readout, 2 * outputs)
            values, bits = node_values(graph), all_patterns(spec.inputs)
            total = sum((abs(p.constant + p.coefficients @ values[p.nodes]) for p in parts), np.zeros(len(bits)))
            same = (scores(spec, bits) == scores(impl, bits)).all(axis=1)
            if kind == "group_sum" or spec.readout.scale != 0:
                assert np.array_equal(total == 0, same)


def test_complements_and_constants_cancel():
    spec = GroupSum([0, 0, 0, 1], [0, 4])
    impl = GroupSum([1, 0, 0], [1, 3])
    # Outputs of spec: x, not x, true, false.  Of impl: true, node 9 twice inverted and not: one in all.
    claims = np.array([10, 11, 1, 0, 1, 18, 19], np.int32)
    assert remainders(spec, impl, claims) == []
    parts = remainders(spec, GroupSum([1, 0, 0], [1, 2]), claims)
    assert [(p.constant, p.nodes.tolist()) for p in parts] == [(1, [])]


@pytest.mark.parametrize(
    ("spec", "impl", "equal"),
    [
        (Affine(1, 0, 2.0, 5.0), Affine(1, 0, 2.0, 5.0), True),
        (Affine(1, 3, 2.0, 5.0), Affine(1, 2, 2.0, 7.0), True),  # the offset moved to the intercept
        (Affine(1, 3, 2.0, 5.0), Affine(1, 1, 2.0, 7.0), False),
        (Affine(1, 0, 0.1, 0.0), Affine(1, -3, 0.1, 0.3), None),  # 0.1 · 1 is not 0.3 + 0.1 · -2 in floating point
        (Affine(1, 0, 2.0, 5.0), Affine(1, 0, 3.0, 5.0), None),
        (Affine(1, 0, 0.0, 5.0), Affine(1, 9, 0.0, 5.0), True),  # the sum does not matter
        (Affine(1, 0, 1.0, 1e300), Affine(1, 0, 1.0, -1e300), None),
    ],
)
def test_affine_values_are_compared_as_shifted_sums(spec, impl, equal):
    parts = remainders(spec, impl, np.array([4, 4], np.int32))
    assert (None if parts is None else parts == []) == equal


def test_affine_values_that_never_change_are_compared_as_numbers():
    claims = np.array([1, 0, 4, 5], np.int32)  # one and zero; x and not x
    assert remainders(Affine(2, 0, 3.0, 0.0), Affine(2, 0, 1.0, 2.0), claims) == []
    assert remainders(Affine(2, 0, 3.0, 0.0), Affine(2, 0, 1.0, 3.0), claims) is None


def linear(weights, bias=(0.0,)):
    return Linear(np.array(weights, np.float32).reshape(len(bias), -1), np.array(bias, np.float32))


ROUGH = 1e-9  # next to 1, so small that sums round


@pytest.mark.parametrize(
    ("spec", "impl", "claims", "equal"),
    [
        (linear([1, ROUGH]), linear([1, ROUGH]), [4, 6, 4, 6], True),
        (linear([1, ROUGH]), linear([ROUGH, 1]), [4, 6, 6, 4], False),  # another order rounds differently
        (linear([1, ROUGH]), linear([1, ROUGH]), [4, 6, 4, 7], False),
        (linear([1, 9, ROUGH, 0]), linear([1, ROUGH]), [4, 0, 6, 8, 4, 6], True),  # constant false, and no weight
        (linear([3, 1, ROUGH]), linear([1, ROUGH], (3.0,)), [1, 4, 6, 4, 6], True),  # leading ones: part of the bias
        (linear([1, 3, ROUGH]), linear([1, ROUGH], (3.0,)), [4, 1, 6, 4, 6], False),  # later ones are not
    ],
)
def test_linear_terms_that_may_round_must_be_the_same_in_order(spec, impl, claims, equal):
    assert remainders(spec, impl, np.array(claims, np.int32)) == ([] if equal else None)


@pytest.mark.parametrize(
    ("spec", "impl", "claims", "equal"),
    [
        (linear([1, 2]), linear([2, 1]), [4, 6, 6, 4], True),  # any order
        (linear([0.5, 2]), linear([-0.5, 2], (0.5,)), [4, 6, 5, 6], True),  # w x = w - w (not x)
        (linear([1, 3, 2]), linear([1, 2], (3.0,)), [4, 1, 6, 4, 6], True),  # constants are part of the bias
        (linear([1, 2]), linear([1, 2]), [4, 6, 4, 7], False),
        (linear([1, 2]), linear([1, 2.25]), [4, 6, 4, 6], False),
    ],
)
def test_linear_terms_that_add_exactly_are_compared_as_integers(spec, impl, claims, equal):
    parts = remainders(spec, impl, np.array(claims, np.int32))
    assert parts is not None
    assert (parts == []) == equal


def test_the_formula_has_a_model_exactly_when_some_claim_is_false_somewhere():
    rng = np.random.default_rng(3)
    verdicts = []
    for _ in range(300):
        spec = random_circuit(rng, max_inputs=5, max_gates=12, max_outputs=3, readout_kinds=["group_sum"])
        graph, outputs = join(spec, spec)
        claims = np.where(rng.random(outputs.size) < 0.5, 2 * outputs, rng.integers(0, 2 * graph.nodes, outputs.size))
        goal = obligations(spec, spec, claims.astype(np.int32))
        values = node_values(goal.graph)
        holds = all(np.array_equal(*literal_values(values, pair)) for pair in goal.pairs)
        literals = equalities_cnf(goal.graph, goal.pairs).literals.tolist()
        text = " ".join(map(str, literals)).split(" 0")
        clauses = [[int(v) for v in part.split()] for part in text[:-1]]
        if any(not clause for clause in clauses) or literals[0] == 0:
            satisfiable = False
        else:
            with Solver(name="minisat22", bootstrap_with=clauses) as solver:
                satisfiable = solver.solve()
        assert satisfiable == (not holds)
        verdicts.append(holds)
    assert 20 < sum(verdicts) < 280


def test_readouts_of_different_kinds_are_not_compared():
    with pytest.raises(TypeError, match="cannot compare GroupSum with Affine"):
        remainders(GroupSum([0], [0]), Affine(1), np.array([2, 2], np.int32))
