"""Drawings: every node and edge of the circuit, and nothing that a name could add."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

from gatefit.backends.dot import to_dot
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.gates import Gate
from strategies import circuits, layered_circuit


def edges(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^  (\w+) -> (\w+)", text, re.MULTILINE)


def test_a_drawing_in_full():
    circuit = Circuit(
        inputs=3,
        gates=[Gate.A_AND_NOT_B, Gate.NOT_A],
        operands=[[0, 3], [1, 0]],
        outputs=[4, 0],
        readout=GroupSum([0, 1], [0, 2]),
        input_names=("p", "q", "unread"),
        class_names=("no", 'ye"s'),
    )
    (origin,) = origin_lines(circuit)
    assert to_dot(circuit).splitlines() == [
        "digraph circuit {",
        f"  // {origin}",
        "  rankdir=LR;",
        '  x0 [shape=box, label="p"];',
        '  x1 [shape=box, label="q"];',
        '  g0 [label="A AND NOT B"];',
        '  g1 [label="NOT A"];',
        '  s0 [shape=hexagon, label="no (+0)"];',
        '  s1 [shape=hexagon, label="ye\\"s (+2)"];',
        "  x0 -> g0 [label=a];",
        "  x1 -> g0 [label=b];",
        "  g0 -> g1;",
        "  g1 -> s0;",
        "  x0 -> s1;",
        "}",
    ]


@given(circuits())
@settings(max_examples=60)
def test_edges_are_those_that_matter(circuit):
    name = [f"x{i}" for i in range(circuit.inputs)] + [f"g{i}" for i in range(circuit.gates.size)]
    expected = []
    for g, gate in enumerate(map(Gate, circuit.gates)):
        a, b = circuit.operands[:, g]
        expected += [(name[a], f"g{g}")] * gate.depends_on_a + [(name[b], f"g{g}")] * gate.depends_on_b
    for i, node in enumerate(circuit.outputs):
        classes = (
            [circuit.readout.groups[i]] if isinstance(circuit.readout, GroupSum) else range(circuit.readout.classes)
        )
        expected += [(name[node], f"s{k}") for k in classes]
    text = to_dot(circuit)
    assert edges(text) == expected
    drawn = set(re.findall(r"^  (\w+) \[", text, re.MULTILINE))
    assert {node for edge in expected for node in edge} <= drawn


def test_regressions_and_linear_readouts_say_what_they_compute():
    fields = {"inputs": 1, "gates": [], "operands": np.empty((2, 0), int), "outputs": [0]}
    assert '"0.5 + 2 * (-3 + sum)"' in to_dot(Circuit(**fields, readout=Affine(1, -3, 2.0, 0.5)))
    assert '"1 (weighted)"' in to_dot(Circuit(**fields, readout=Linear([[1.0], [2.0]], [0, 0])))


def test_names_cannot_add_nodes():
    name = '"]; evil -> x0; y [label="\\'
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], GroupSum([0], [0]), (name,), (name + "\n",))
    text = to_dot(circuit)
    assert edges(re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)) == [("x0", "s0")]
    assert "evil" not in re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


def test_large_circuits_are_refused_unless_asked_for():
    circuit = layered_circuit(np.random.default_rng(0), 8, 300, 2)
    with pytest.raises(ValueError, match=r"600 gates cannot be read \(the limit is 500\)"):
        to_dot(circuit)
    assert len(to_dot(circuit, max_gates=600).splitlines()) > 600
