"""BLIF: exact text, covers of every size, foreign and damaged texts, and what ABC and yosys make of it."""

import contextlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatefit.backends.blif import TABLE_INPUTS, from_blif, to_blif
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import scores, simulate
from gatefit.gates import Gate
from netlist_tools import run_abc, run_yosys
from strategies import all_patterns, circuits, layered_circuit


def one_gate(gate, operands=(0, 1)):
    return Circuit(2, [gate], np.array([operands]).T, [2, 0], GroupSum([0, 0], [0]))


def test_the_text_of_a_small_circuit():
    circuit = Circuit(2, [Gate.XOR, Gate.OR, Gate.NOT_B, Gate.TRUE], [[0, 0, 2, 0], [1, 1, 3, 0]], [2, 4, 5, 2, 1],
                      GroupSum([0] * 5, [0]))  # fmt: skip
    (origin,) = origin_lines(circuit)
    assert to_blif(circuit, model="top") == (
        f".model top\n# {origin}\n"
        ".inputs \\\n x0 x1\n.outputs \\\n y0 y1 y2 y3 y4\n"
        ".names x0 x1 n2\n01 1\n10 1\n"
        ".names x0 x1 n3\n00 0\n"
        ".names n3 n4\n0 1\n"
        ".names n5\n1\n"
        ".names n2 y0\n1 1\n.names n4 y1\n1 1\n.names n5 y2\n1 1\n.names n2 y3\n1 1\n.names x1 y4\n1 1\n.end\n"
    )


@pytest.mark.parametrize("operands", [(0, 1), (1, 1)])
@pytest.mark.parametrize("gate", Gate)
def test_every_gate_comes_back(gate, operands):
    circuit = one_gate(gate, operands)
    back = from_blif(to_blif(circuit), like=circuit)
    assert np.array_equal(simulate(back, all_patterns(2)), simulate(circuit, all_patterns(2)))
    assert back.gates.size <= 1


@settings(deadline=None)
@given(circuits())
def test_round_trip(circuit):
    bits = all_patterns(circuit.inputs)
    back = from_blif(to_blif(circuit), like=circuit)
    assert np.array_equal(scores(back, bits), scores(circuit, bits))
    assert back.gates.size <= circuit.gates.size
    assert np.array_equal(simulate(from_blif(to_blif(circuit)), bits), simulate(circuit, bits))


@given(st.integers(1, TABLE_INPUTS + 2), st.integers(0, 1), st.data())
def test_covers_of_any_size(inputs, value, data):
    cubes = data.draw(st.lists(st.text("01-", min_size=inputs, max_size=inputs), max_size=6))
    names = " ".join(f"x{i}" for i in range(inputs))
    rows = "".join(f"{cube} {value}\n" for cube in cubes)
    circuit = from_blif(f".model m\n.inputs {names}\n.outputs f\n.names {names} f\n{rows}.end\n")
    bits = all_patterns(inputs)
    covered = np.zeros(len(bits), bool)
    for cube in cubes:
        covered |= np.all(
            [bits[:, i] == (c == "1") for i, c in enumerate(cube) if c != "-"] or [covered | True], axis=0
        )
    expected = covered == bool(value) if cubes else covered  # no row at all: the constant 0
    assert np.array_equal(simulate(circuit, bits)[:, 0], expected)


def test_all_functions_of_three_inputs_take_few_gates():
    """At most 4 two-input gates are needed for any of them; a multiplexer takes 3, on top of its two branches."""
    sizes = []
    for table in range(256):
        rows = [f"{a}{b}{c} 1" for i, (a, b, c) in enumerate(product((0, 1), repeat=3)) if table >> i & 1]
        circuit = from_blif("\n".join([".inputs a b c", ".outputs f", ".names a b c f", *rows, ".end"]))
        values = simulate(circuit, all_patterns(3))[:, 0]
        assert [bool(table >> (4 * a + 2 * b + c) & 1) for c, b, a in product((0, 1), repeat=3)] == values.tolist()
        sizes.append(circuit.gates.size)
    assert max(sizes) <= 6
    assert np.mean(sizes) < 3.3


def test_comments_continuations_and_blank_lines():
    text = """
    # a comment
    .model half adder has one model name # and another comment
    .inputs a \\
      b
    .inputs c
    .outputs \\
      s\t t

    .names a b \\
     s
    10 1   # first
    01 1

    .default_input_arrival 0 0
    .names s   c t
    0- 0
    -0 0
    .end
    .latch ignored after the end
    """
    circuit = from_blif(text)
    bits = all_patterns(3)
    s = bits[:, 0] ^ bits[:, 1]
    assert np.array_equal(simulate(circuit, bits), np.stack([s, s & bits[:, 2]], axis=1))
    assert circuit.input_names == ("a", "b", "c")


def test_signals_may_be_defined_in_any_order():
    text = ".inputs a b\n.outputs f\n.names g h f\n11 1\n.names h g\n0 1\n.names a b h\n1- 1\n-1 1\n.end"
    assert simulate(from_blif(text), all_patterns(2)).sum() == 0


def test_deep_chains_do_not_overflow_the_stack():
    depth = 20_000
    lines = [f".names n{i} n{i + 1}\n0 1" for i in reversed(range(depth))]
    text = "\n".join([".inputs n0 z", f".outputs n{depth}", *lines, ".end"])
    assert from_blif(text).gates.size == 0


NASTY_NAMES = (
    "a b",
    "x\n.latch q r",
    "#c",
    "\\",
    "né",
    "",
    "$n",
    "a[3]",
    '"',
    "%41",
    ".end",
    "y0",
    "=",
    "n7",
    "x0",
    ".names a",
)


def test_names_are_harmless_and_come_back(tmp_path):
    rng = np.random.default_rng(0)
    circuit = replace(
        layered_circuit(rng, 16, 20, 2, classes=2), input_names=NASTY_NAMES, class_names=("\n.end", "b # c")
    )
    text = to_blif(circuit)
    assert from_blif(text).input_names == NASTY_NAMES
    assert isinstance(prove(circuit, from_blif(text, like=circuit)), Equivalent)
    assert sum(line.startswith(".") for line in text.splitlines()) == 4 + circuit.gates.size + 20
    for model in ("", "a b", "x\n.end", "#"):
        with pytest.raises(ValueError, match=r"^a BLIF model needs a name of letters, digits and _, got "):
            to_blif(circuit, model=model)


def test_like_is_checked_and_ports_are_matched_by_name():
    circuit = one_gate(Gate.A_AND_NOT_B)
    with pytest.raises(
        ValueError, match=r"^the netlist has 1 inputs and 1 outputs, the circuit given as like= has 2 and 2"
    ):
        from_blif(".inputs a\n.outputs a\n.end", like=circuit)
    text = ".inputs x1 x0\n.outputs y1 y0\n.names x0 x1 y0\n10 1\n.names x0 y1\n1 1\n.end"
    assert isinstance(prove(circuit, from_blif(text, like=circuit)), Equivalent)
    assert isinstance(prove(circuit, from_blif(text.replace("x", "p"), like=circuit)), Counterexample)


ERRORS = {
    ".latch a b 0": r"^BLIF line 3: \.latch cannot be read: it has state; only combinational circuits can be read$",
    ".gate and2 A=a B=b O=f": r"^BLIF line 3: \.gate cannot be read: it is mapped to a cell library",
    ".subckt half a=a": r"^BLIF line 3: \.subckt cannot be read: it has a hierarchy; flatten it first$",
    ".exdc": r"^BLIF line 3: \.exdc cannot be read: it has don't-cares",
    ".search other.blif": r"^BLIF line 3: \.search cannot be read: it refers to another file",
    ".wrong": r"^BLIF line 3: \.wrong cannot be read: it is not known$",
    "11 1": r"^BLIF line 3: needs a directive such as \.names, got '11'$",
    ".names": r"^BLIF line 3: \.names needs the signal that it defines$",
    ".names a f\n11 1": "^BLIF line 4: needs a row of 1 of 0, 1, - and a value, got '11 1'$",
    ".names a f\n1": "^BLIF line 4: needs a row of 1 of",
    ".names a f\n2 1": "^BLIF line 4: needs a row of 1 of",
    ".names f\n1 1": "^BLIF line 4: needs a row of 0 of",
    ".names a f\n1 x": "^BLIF line 4: the rows of a cover must all end with 1, or all with 0$",
    ".names a f\n1 1\n0 0": "^BLIF line 5: the rows of a cover must all end with 1, or all with 0$",
    ".names a f\n.names f": "^BLIF line 4: 'f' is defined a second time$",
    ".names b a": "^BLIF line 3: 'a' is an input and cannot be defined by .names$",
    ".names q f\n1 1": "^BLIF signal 'q', read by BLIF signal 'f', is not defined$",
    ".names g f\n1 1\n.names f g\n1 1": "^BLIF signal '[fg]' depends on itself; only acyclic circuits can be read$",
    ".names f f\n1 1": "^BLIF signal 'f' depends on itself;",
    ".names g": "^BLIF output 'f' is neither an input nor defined by .names$",
    ".model one\n.model two": r"^BLIF line 4: a second \.model; write the circuit as one flat model$",
    ".inputs a\n.names f": "^BLIF .inputs names a signal twice; inputs need different names$",
}


@pytest.mark.parametrize("lines", ERRORS)
def test_malformed_texts_are_refused_by_line(lines):
    with pytest.raises(ValueError, match=ERRORS[lines]):
        from_blif(f".inputs a b\n.outputs f\n{lines}\n.end\n")


def test_a_text_without_inputs_is_refused():
    with pytest.raises(ValueError, match=r"^a circuit needs at least one input, the netlist has none$"):
        from_blif(".model m\n.outputs f\n.names f\n1\n.end")


def test_damaged_texts_never_crash():
    rng = np.random.default_rng(1)
    text = to_blif(layered_circuit(rng, 6, 8, 2))
    for _ in range(3000):
        damaged = list(text)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(damaged)))
            match int(rng.integers(3)):
                case 0:
                    damaged[at] = chr(int(rng.integers(1, 300)))
                case 1:
                    del damaged[at : at + int(rng.integers(1, 30))]
                case _:
                    damaged[at:at] = list(text[int(rng.integers(len(text))) :][:20])
        with contextlib.suppress(ValueError):
            circuit = from_blif("".join(damaged))
            simulate(circuit, np.zeros((1, circuit.inputs), bool))


@pytest.mark.parametrize("script", ["strash", "strash; dc2", "strash; if -K 6", "strash; if -K 4; mfs"])
def test_abc_reads_and_writes_what_we_do(script, tmp_path):
    """Netlists of ANDs and of look-up tables come back."""
    rng = np.random.default_rng(2)
    circuit = layered_circuit(rng, 48, 100, 4)
    (tmp_path / "ours.blif").write_text(to_blif(circuit))
    output = run_abc(tmp_path, f"read_blif ours.blif; {script}; write_blif theirs.blif; cec ours.blif theirs.blif")
    assert "Networks are equivalent" in output
    back = from_blif((tmp_path / "theirs.blif").read_text(), like=circuit)
    assert back.gates.size < circuit.gates.size
    assert isinstance(prove(circuit, back), Equivalent)


def test_abc_and_yosys_read_every_name(tmp_path):
    rng = np.random.default_rng(3)
    circuit = replace(
        layered_circuit(rng, 16, 20, 2, classes=2), input_names=NASTY_NAMES, class_names=("\n.end", "b # c")
    )
    (tmp_path / "ours.blif").write_text(to_blif(circuit))
    assert "Networks are equivalent" in run_abc(
        tmp_path, "read_blif ours.blif; write_blif abc.blif; cec ours.blif abc.blif"
    )
    run_yosys(tmp_path, "read_blif ours.blif; write_blif yosys.blif")
    for name in ("abc.blif", "yosys.blif"):
        text = (tmp_path / name).read_text()
        assert isinstance(prove(circuit, from_blif(text, like=circuit)), Equivalent)
        assert from_blif(text).input_names == NASTY_NAMES
