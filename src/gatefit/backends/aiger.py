"""AIGER: a circuit as and-inverter graph, in the ascii and the binary form of the format, and back.

    aag M I L O A     M the largest variable, I inputs, L latches (none here), O outputs, A ANDs
    literal           2 · variable + inverted;  0 is false, 1 is true
    i0 x0.name        symbols: the ports of ``backends.names``;  c: a comment, to the end

A gate becomes no AND (constants, wires, inverters), one, or three (XOR and XNOR); ``from_aiger`` makes one gate of
those three again. AIGER holds bits, not sums: the readout is in the file if it is made of gates (``readout="gates"``:
the class number in binary, or a regression's sum), class names and encoder are not. Pass the circuit that was exported
(as it was, or ``lower_readout`` of it) as ``like`` to get them back.
"""

from typing import Final

from gatefit.backends.names import input_ports, names_of_ports, output_ports, positions
from gatefit.circuit.ir import Circuit
from gatefit.circuit.lower_readout import Form, with_readout
from gatefit.circuit.netlist import FORMS, Netlist, check_counts, in_order
from gatefit.circuit.provenance import origin_lines
from gatefit.gates import Gate

MAX_VARIABLES: Final = 2**27
MAX_INPUTS: Final = 2**20
"""Checked before anything is allocated: a binary file says how many inputs it has without listing them."""
_COMMENT: Final = "combinational circuit written by gatefit"


def to_aiger(circuit: Circuit, *, binary: bool = False, readout: Form = "none") -> bytes:
    """The circuit's gates as an AIGER file, ascii (``aag``) or binary (``aig``).

    ``readout`` is ``"none"`` to end at the gates' outputs, ``"gates"`` for the whole model: the class number in binary
    or the sum of a regression, or ``"one-hot"`` for one output a class.
    """
    comments = [_COMMENT, *origin_lines(circuit)]
    circuit = with_readout(circuit, readout)
    ands: list[tuple[int, int]] = []
    literals = [2 * (i + 1) for i in range(circuit.inputs)]

    def conjunction(a: int, b: int) -> int:
        ands.append((max(a, b), min(a, b)))
        return 2 * (circuit.inputs + len(ands))

    for kind, left, right in zip(circuit.gates.tolist(), *circuit.operands.tolist(), strict=True):
        form, a, b = FORMS[kind], literals[left], literals[right]
        if form.core is Gate.AND:
            literal = conjunction(a ^ form.invert_a, b ^ form.invert_b)
        elif form.core is Gate.XOR:
            literal = conjunction(conjunction(a, b) ^ 1, conjunction(a ^ 1, b ^ 1) ^ 1)
        else:
            literal = 0 if form.core is Gate.FALSE else a if form.core is Gate.A else b
        literals.append(literal ^ form.invert)
    outputs = [literals[node] for node in circuit.outputs.tolist()]
    first = circuit.inputs + 1
    counts = f"{circuit.inputs + len(ands)} {circuit.inputs} 0 {len(outputs)} {len(ands)}"
    lines = [] if binary else [str(2 * i) for i in range(1, first)]
    lines += [str(literal) for literal in outputs]
    symbols = [f"i{i} {port}" for i, port in enumerate(input_ports(circuit))]
    symbols += [f"o{i} {port}" for i, port in enumerate(output_ports(circuit))]
    tail = "\n".join([*symbols, "c", *comments, ""]).encode("ascii")
    if binary:
        head = "\n".join([f"aig {counts}", *lines, ""]).encode("ascii")
        return head + _deltas(ands, first) + tail
    lines += [f"{2 * i} {a} {b}" for i, (a, b) in enumerate(ands, start=first)]
    return "\n".join([f"aag {counts}", *lines, ""]).encode("ascii") + tail


def _deltas(ands: list[tuple[int, int]], first: int) -> bytes:
    data = bytearray()
    for i, (a, b) in enumerate(ands, start=first):
        for delta in (2 * i - a, a - b):
            while delta > 127:
                data.append(delta & 127 | 128)
                delta >>= 7
            data.append(delta)
    return bytes(data)


def from_aiger(data: bytes | str, like: Circuit | None = None) -> Circuit:
    """The circuit in an AIGER file, ascii or binary; combinational files only.

    ``like`` gives the readout, names and encoder; without it every output is a class of its own. Inputs and outputs
    keep their order, unless their symbols are those that ``like`` was exported with: then those decide.
    """
    if isinstance(data, str):
        if data.startswith("aig"):
            raise TypeError("a binary AIGER file is bytes; read it in binary mode")
        data = data.encode("utf-8")
    reader = _Reader(data)
    inputs, outputs, ands = reader.header()
    check_counts(inputs, outputs, like)
    if reader.binary:
        inputs_of_file, roots = [2 * (i + 1) for i in range(inputs)], [reader.numbers(1)[0] for _ in range(outputs)]
        gates = reader.deltas(inputs, ands)
    else:
        inputs_of_file = [reader.numbers(1)[0] for _ in range(inputs)]
        roots = [reader.numbers(1)[0] for _ in range(outputs)]
        gates = reader.ascii_gates(ands)
    names = reader.symbols(inputs, outputs)
    places = positions(names[0], None if like is None else input_ports(like))
    netlist = Netlist(inputs)
    literals: dict[int, int] = {0: 0}
    for i, literal in zip(places, inputs_of_file, strict=True):
        if literal & 1 or literal in literals:
            raise ValueError(f"AIGER input {i} is literal {literal}; inputs must be different even literals from 2 up")
        literals[literal] = 2 * (i + 1)
    for literal in gates:
        if literal in literals:
            raise ValueError(f"AIGER literal {literal} is defined twice; each must be an input or one AND")
    reads = {literal: (a & ~1, b & ~1) for literal, (a, b) in gates.items()}
    for literal in in_order(reads, frozenset(literals), lambda literal: f"AIGER literal {literal}"):
        a, b = (literals[x & ~1] ^ (x & 1) for x in gates[literal])
        literals[literal] = netlist.conjunction(a, b)
    missing = next((root for root in roots if root & ~1 not in literals), None)
    if missing is not None:
        raise ValueError(f"AIGER output literal {missing} is not defined by an input or an AND")
    places = positions(names[1], None if like is None else output_ports(like))
    ordered = [literals[x & ~1] ^ (x & 1) for _, x in sorted(zip(places, roots, strict=True))]
    return netlist.finish(ordered, names_of_ports(names[0]), like)


class _Reader:
    """Reads the parts of an AIGER file in order; errors name the line (ascii) or the gate (binary)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.line = data, 0, 0
        self.binary = data.startswith(b"aig ")
        self.largest = 0

    def text(self) -> str:
        """The next line."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise ValueError(f"AIGER line {self.line + 1}: the file ends here; it is truncated")
        raw, self.at, self.line = self.data[self.at : end], end + 1, self.line + 1
        return raw.rstrip(b"\r").decode("utf-8", errors="replace")

    def numbers(self, count: int) -> list[int]:
        """A line of literals."""
        text = self.text()
        fields = text.split(" ")
        if len(fields) != count or not all(f.isascii() and f.isdigit() and len(f) < 12 for f in fields):
            needed = "one literal" if count == 1 else f"{count} literals"
            raise ValueError(f"AIGER line {self.line}: needs {needed}, got {text[:60]!r}")
        values = [int(f) for f in fields]
        if max(values) > self.largest:
            raise ValueError(f"AIGER line {self.line}: literal {max(values)} is beyond the header's {self.largest}")
        return values

    def header(self) -> tuple[int, int, int]:
        """Inputs, outputs and ANDs."""
        text = self.text() if self.data.startswith((b"aag ", b"aig ")) else ""
        fields = text.split(" ")[1:]
        if not 5 <= len(fields) <= 9 or not all(f.isascii() and f.isdigit() and len(f) < 12 for f in fields):
            raise ValueError(f"not an AIGER file: it must start with 'aag M I L O A' or 'aig', got {self.data[:40]!r}")
        variables, inputs, latches, outputs, ands, *properties = map(int, fields)
        if latches:
            raise ValueError(f"the AIGER file has {latches} latches; only combinational circuits can be read")
        if any(properties):
            raise ValueError("the AIGER file has bad states, constraints or justice; only plain outputs can be read")
        if variables > MAX_VARIABLES or inputs > MAX_INPUTS:
            raise ValueError(
                f"the AIGER file has {variables} variables and {inputs} inputs; "
                f"at most {MAX_VARIABLES} and {MAX_INPUTS} can be read"
            )
        if variables < inputs + ands or (self.binary and variables != inputs + ands):
            raise ValueError(f"AIGER line 1: {variables} variables do not fit {inputs} inputs and {ands} ANDs")
        self.largest = 2 * variables + 1
        return inputs, outputs, ands

    def ascii_gates(self, count: int) -> dict[int, tuple[int, int]]:
        """The ANDs of an ascii file."""
        gates: dict[int, tuple[int, int]] = {}
        for _ in range(count):
            literal, a, b = self.numbers(3)
            if literal & 1 or literal == 0 or literal in gates:
                raise ValueError(f"AIGER line {self.line}: an AND must define a new even literal, got {literal}")
            gates[literal] = (a, b)
        return gates

    def deltas(self, inputs: int, count: int) -> dict[int, tuple[int, int]]:
        """The ANDs of a binary file."""
        gates: dict[int, tuple[int, int]] = {}
        for literal in range(2 * (inputs + 1), 2 * (inputs + count + 1), 2):
            a = literal - self._delta(literal)
            b = a - self._delta(literal)
            if not 0 <= b <= a < literal:
                raise ValueError(f"AIGER gate {literal}: its operands {a} and {b} are not below it")
            gates[literal] = (a, b)
        return gates

    def _delta(self, literal: int) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 28:
                raise ValueError(f"AIGER gate {literal}: the file is truncated or damaged here")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def symbols(self, inputs: int, outputs: int) -> tuple[list[str], list[str]]:
        """The symbols of inputs and outputs; those without one are called x<i> and y<i>."""
        names = {"i": [f"x{i}" for i in range(inputs)], "o": [f"y{i}" for i in range(outputs)]}
        while self.at < len(self.data):
            text = self.text()
            if text.startswith("c"):
                break
            kind, (number, _, name) = text[:1], text[1:].partition(" ")
            limit = len(names.get(kind, ()))
            if not (number.isascii() and number.isdigit() and len(number) < 12 and int(number) < limit and name):
                raise ValueError(f"AIGER line {self.line}: needs a symbol such as 'i0 name', got {text[:60]!r}")
            names[kind][int(number)] = name
        return names["i"], names["o"]
