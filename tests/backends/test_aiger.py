"""AIGER: exact text, both forms, foreign and damaged files, and what ABC and yosys make of it."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from faults import KINDS, with_fault
from gatefit.backends.aiger import from_aiger, to_aiger
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import scores, simulate
from gatefit.gates import Gate
from netlist_tools import run_abc, run_yosys
from scramble import scramble
from strategies import all_patterns, circuits, layered_circuit, random_circuit

NASTY_NAMES = (
    "petal width > 0.8", "x\n.latch q r", "#comment", "\\", "né", "", "$n", "a[3]", '"', "%41", "c", "i0 x", "\x00",
    "⋀", "y0", "x1",
)  # fmt: skip


def one_gate(gate, outputs=(2,)):
    return Circuit(2, [gate], [[0], [1]], outputs, GroupSum([0] * len(outputs), [0]))


def origin(circuit):
    (line,) = origin_lines(circuit)
    return f"{line}\n".encode()


def test_the_text_of_an_exclusive_or():
    assert to_aiger(one_gate(Gate.XOR)) == (
        b"aag 5 2 0 1 3\n2\n4\n10\n6 4 2\n8 5 3\n10 9 7\ni0 x0\ni1 x1\no0 y0\n"
        b"c\ncombinational circuit written by gatefit\n"
    ) + origin(one_gate(Gate.XOR))


def test_the_bytes_of_an_exclusive_or():
    assert to_aiger(one_gate(Gate.XNOR), binary=True) == (
        b"aig 5 2 0 1 3\n11\n\x02\x02\x03\x02\x01\x02i0 x0\ni1 x1\no0 y0\nc\ncombinational circuit written by gatefit\n"
    ) + origin(one_gate(Gate.XNOR))


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("gate", Gate)
def test_every_gate_comes_back_as_at_most_one_gate(gate, binary):
    circuit = one_gate(gate, outputs=(2, 0))
    back = from_aiger(to_aiger(circuit, binary=binary), like=circuit)
    assert np.array_equal(simulate(back, all_patterns(2)), simulate(circuit, all_patterns(2)))
    assert back.gates.size <= 1
    assert back.gates.tolist() == [gate] or not (gate.depends_on_a and gate.depends_on_b)


@settings(deadline=None)
@given(circuits())
def test_round_trip(circuit):
    bits = all_patterns(circuit.inputs)
    for binary in (False, True):
        data = to_aiger(circuit, binary=binary)
        back = from_aiger(data, like=circuit)
        assert np.array_equal(scores(back, bits), scores(circuit, bits))
        assert back.readout is circuit.readout
        # Nothing blows up: the three ANDs of an exclusive or are one gate again, inverters are absorbed.
        assert back.gates.size <= circuit.gates.size
        alone = from_aiger(data)
        assert np.array_equal(simulate(alone, bits), simulate(circuit, bits))
        assert alone.readout.groups.tolist() == list(range(circuit.outputs.size))


def test_ascii_text_may_be_given_as_str():
    circuit = one_gate(Gate.NAND)
    assert from_aiger(to_aiger(circuit).decode()).gates.tolist() == [Gate.NAND]
    with pytest.raises(TypeError, match="a binary AIGER file is bytes; read it in binary mode"):
        from_aiger(to_aiger(circuit, binary=True).decode("latin-1"))


def test_files_in_any_order_of_gates_and_without_symbols():
    """A half adder as other tools may write it: gates out of order, literals with gaps."""
    text = "aag 9 2 0 2 3\n2\n4\n6\n12\n6 13 15\n12 2 4\n14 3 5\n"
    circuit = from_aiger(text)
    bits = all_patterns(2)
    assert np.array_equal(simulate(circuit, bits), np.stack([bits[:, 0] ^ bits[:, 1], bits.all(axis=1)], axis=1))
    assert circuit.gates.size == 2
    assert circuit.input_names == ()


def test_names_are_harmless_and_come_back():
    rng = np.random.default_rng(0)
    circuit = replace(
        layered_circuit(rng, len(NASTY_NAMES), 20, 2, classes=2), input_names=NASTY_NAMES, class_names=("no\no1 x", "é")
    )
    for binary in (False, True):
        data = to_aiger(circuit, binary=binary)
        assert from_aiger(data).input_names == NASTY_NAMES
        assert data.rpartition(b"\no0 ")[0].endswith(b"i15 x15.x1")
        assert binary or data.count(b"\ni") == len(NASTY_NAMES)
        assert data.endswith(b"\nc\ncombinational circuit written by gatefit\n" + origin(circuit))
    assert from_aiger("aag 2 2 0 0 0\n2\n4\ni0 left\ni1 right one\n").input_names == ("left", "right one")


def test_long_names_are_cut():
    circuit = replace(one_gate(Gate.AND), input_names=("a" * 1000, "b"))
    assert from_aiger(to_aiger(circuit)).input_names == ("a" * 120, "b")


def test_like_gives_readout_names_and_encoder():
    circuit = replace(one_gate(Gate.OR), input_names=("a", "b"), class_names=("k",), metadata={"run": "7"})
    back = from_aiger(to_aiger(circuit), like=circuit)
    assert (back.readout, back.input_names, back.class_names, back.metadata) == (
        circuit.readout, circuit.input_names, circuit.class_names, circuit.metadata,
    )  # fmt: skip
    wider = replace(circuit, inputs=3, input_names=())
    message = r"^the netlist has 2 inputs and 1 outputs, the circuit given as like= has 3 and 1; pass the circuit that"
    with pytest.raises(ValueError, match=message):
        from_aiger(to_aiger(circuit), like=wider)


def test_ports_in_another_order_are_matched_by_name_if_they_are_those_of_like():
    circuit = Circuit(2, [Gate.A_AND_NOT_B, Gate.OR], [[0, 0], [1, 1]], [2, 3], GroupSum([0, 1], [0, 0]))
    swapped = "aag 4 2 0 2 2\n2\n4\n9\n6\n6 4 3\n8 3 5\ni0 x1\ni1 x0\no0 y1\no1 y0\nc\n"
    assert isinstance(prove(circuit, from_aiger(swapped, like=circuit)), Equivalent)
    foreign = swapped.replace("x", "in").replace("y", "out")
    assert isinstance(prove(circuit, from_aiger(foreign, like=circuit)), Counterexample)


ERRORS = {
    "": "^not an AIGER file: it must start with 'aag M I L O A' or 'aig', got b''",
    "aag 1 1 0\n": "^not an AIGER file",
    "aag 1 -1 0 0 0\n": "^not an AIGER file",
    "aag 2 1 1 0 0\n2\n4 2\n": "has 1 latches; only combinational circuits can be read$",
    "aag 1 1 0 0 0 1\n2\n2\n": "has bad states, constraints or justice; only plain outputs can be read$",
    "aag 1 1 0 1 1\n2\n2\n": "^AIGER line 1: 1 variables do not fit 1 inputs and 1 ANDs$",
    "aig 9 1 0 1 1\n": "^AIGER line 1: 9 variables do not fit 1 inputs and 1 ANDs$",
    "aag 0 0 0 1 0\n0\n": "^a circuit needs at least one input, the netlist has none$",
    "aig 4000000000 4000000000 0 0 0\n": "at most 134217728 and 1048576 can be read$",
    "aag 1 1 0 1 0\n2\n": "^AIGER line 3: the file ends here; it is truncated$",
    "aag 1 1 0 1 0\n2\nx\n": "^AIGER line 3: needs one literal, got 'x'$",
    "aag 1 1 0 1 0\n2\n2 2\n": "^AIGER line 3: needs one literal, got '2 2'$",
    "aag 2 1 0 1 1\n2\n4\n4 2\n": "^AIGER line 4: needs 3 literals, got '4 2'$",
    "aag 1 1 0 1 0\n2\n4\n": "^AIGER line 3: literal 4 is beyond the header's 3$",
    "aag 2 2 0 0 0\n2\n2\n": "^AIGER input 1 is literal 2; inputs must be different even literals from 2 up$",
    "aag 1 1 0 0 0\n3\n": "^AIGER input 0 is literal 3;",
    "aag 1 1 0 0 0\n0\n": "^AIGER input 0 is literal 0;",
    "aag 2 1 0 0 1\n2\n5 2 2\n": "^AIGER line 3: an AND must define a new even literal, got 5$",
    "aag 3 1 0 0 2\n2\n4 2 2\n4 2 2\n": "^AIGER line 4: an AND must define a new even literal, got 4$",
    "aag 2 1 0 0 1\n2\n2 2 2\n": "^AIGER literal 2 is defined twice; each must be an input or one AND$",
    "aag 3 1 0 0 1\n2\n4 6 2\n": "^AIGER literal 6, read by AIGER literal 4, is not defined$",
    "aag 3 1 0 0 2\n2\n4 6 2\n6 5 2\n": "^AIGER literal 4 depends on itself; only acyclic circuits can be read$",
    "aag 2 1 0 0 1\n2\n4 4 2\n": "^AIGER literal 4 depends on itself;",
    "aag 2 1 0 1 0\n2\n5\n": "^AIGER output literal 5 is not defined by an input or an AND$",
    "aag 1 1 0 0 0\n2\ni1 x\n": "^AIGER line 3: needs a symbol such as 'i0 name', got 'i1 x'$",
    "aag 1 1 0 0 0\n2\nl0 x\n": "^AIGER line 3: needs a symbol",
    "aag 1 1 0 0 0\n2\ni0\n": "^AIGER line 3: needs a symbol",
    "aag 1 1 0 0 0\n2\ni² x\n": "^AIGER line 3: needs a symbol",
}


@pytest.mark.parametrize("text", ERRORS)
def test_malformed_files_are_refused_by_line(text):
    with pytest.raises(ValueError, match=ERRORS[text]):
        from_aiger(text.encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"aig 3 2 0 0 1\n", "^AIGER gate 6: the file is truncated or damaged here$"),
        (b"aig 3 2 0 0 1\n\x00\x00", "^AIGER gate 6: its operands 6 and 6 are not below it$"),
        (b"aig 3 2 0 0 1\n\x02\x09", "^AIGER gate 6: its operands 4 and -5 are not below it$"),
        (b"aig 3 2 0 0 1\n\xff\xff\xff\xff\xff\xff\x00", "^AIGER gate 6: the file is truncated or damaged here$"),
    ],
)
def test_malformed_binary_files_are_refused_by_gate(data, message):
    with pytest.raises(ValueError, match=message):
        from_aiger(data)


def test_damaged_files_never_crash():
    rng = np.random.default_rng(1)
    circuit = layered_circuit(rng, 6, 8, 2)
    for i in range(3000):
        data = bytearray(to_aiger(circuit, binary=bool(i % 2)))
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(data)))
            match int(rng.integers(3)):
                case 0:
                    data[at] = int(rng.integers(256))
                case 1:
                    del data[at : at + int(rng.integers(1, 20))]
                case _:
                    data[at:at] = bytes(rng.integers(48, 58, 2).tolist())
        with contextlib.suppress(ValueError):
            circuit_read = from_aiger(bytes(data))
            simulate(circuit_read, np.zeros((1, circuit_read.inputs), bool))


def test_abc_reads_and_writes_what_we_do(tmp_path):
    rng = np.random.default_rng(2)
    circuit = layered_circuit(rng, 64, 150, 5)
    (tmp_path / "ours.aig").write_bytes(to_aiger(circuit, binary=True))
    output = run_abc(
        tmp_path, "read_aiger ours.aig; print_stats; dc2; write_aiger -s theirs.aig; cec ours.aig theirs.aig"
    )
    assert "i/o =   64/  150" in output
    assert "Networks are equivalent" in output
    back = from_aiger((tmp_path / "theirs.aig").read_bytes(), like=circuit)
    assert back.gates.size < circuit.gates.size
    assert isinstance(prove(circuit, back), Equivalent)


def test_abc_agrees_with_every_verdict(tmp_path):
    """Output by output, ABC's cec says what prove says: a second engine for both answers."""
    rng = np.random.default_rng(3)
    equal = []
    for i in range(24):
        linear = random_circuit(rng, max_inputs=12, max_gates=80, readout_kinds=["linear"])  # keeps outputs in order
        if linear.outputs.size == 0:
            continue
        readout = GroupSum(np.arange(linear.outputs.size), np.zeros(linear.outputs.size, np.int64))
        spec = replace(linear, readout=readout)
        impl = with_fault(rng, replace(scramble(rng, linear), readout=readout), KINDS[i % 3])
        for name, circuit in (("spec", spec), ("impl", impl)):
            (tmp_path / f"{name}.aig").write_bytes(to_aiger(circuit, binary=True))
        output = run_abc(tmp_path, "cec spec.aig impl.aig")
        equal.append("Networks are equivalent" in output)
        assert equal[-1] or "NOT EQUIVALENT" in output, output
        assert isinstance(prove(spec, impl), Equivalent if equal[-1] else Counterexample)
    assert 3 < sum(equal) < len(equal) - 3


def test_yosys_reads_both_forms_and_may_reorder_ports(tmp_path):
    rng = np.random.default_rng(4)
    circuit = replace(layered_circuit(rng, 16, 40, 3), input_names=NASTY_NAMES)
    for binary, name in ((False, "ours.aag"), (True, "ours.aig")):
        (tmp_path / name).write_bytes(to_aiger(circuit, binary=binary))
        run_yosys(tmp_path, f"read_aiger {name}; write_aiger -symbols theirs.aig")
        back = from_aiger((tmp_path / "theirs.aig").read_bytes(), like=circuit)
        assert isinstance(prove(circuit, back), Equivalent)
