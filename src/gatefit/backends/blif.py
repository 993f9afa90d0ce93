"""BLIF: a circuit as one named cover per gate, and back.

    .names a b n        one line per row of the truth table that is 1 (or, if that is shorter, that is 0)
    11 1

Ports are those of ``backends.names``; inner nodes are n<i>. BLIF holds bits, not sums: the readout is in the
text if it is made of gates (``readout="gates"``: the class number in binary, or a regression's sum), class names and
encoder are not. Pass the circuit that was exported (as it was, or ``lower_readout`` of it) as ``like`` to ``from_blif``
to get them back.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NoReturn

import numpy as np
from jaxtyping import Bool

from gatefit.backends.names import input_ports, names_of_ports, output_ports, positions
from gatefit.circuit.ir import Circuit
from gatefit.circuit.logic.literals import OF_EQUALS
from gatefit.circuit.lower_readout import Form, with_readout
from gatefit.circuit.netlist import Netlist, check_counts, in_order
from gatefit.circuit.provenance import origin_lines
from gatefit.gates import Gate

TABLE_INPUTS: Final = 8
"""Covers of at most this many inputs are decomposed by truth table, larger ones as sums of products."""

_REFUSED: Final = {
    ".latch": "it has state; only combinational circuits can be read",
    ".mlatch": "it has state; only combinational circuits can be read",
    ".gate": "it is mapped to a cell library; write it with .names (in ABC: strash; write_blif)",
    ".subckt": "it has a hierarchy; flatten it first",
    ".search": "it refers to another file; write it as one model",
    ".exdc": "it has don't-cares; remove them first",
}
_IGNORED: Final = frozenset({".default_input_arrival", ".default_output_required", ".area", ".delay"})


def to_blif(circuit: Circuit, model: str = "gatefit", *, readout: Form = "none") -> str:
    """The circuit's gates as BLIF, one .names per gate and one per output port.

    ``readout`` is ``"none"`` to end at the gates' outputs, ``"gates"`` for the whole model: the class number in binary
    or the sum of a regression, or ``"one-hot"`` for one output a class.
    """
    comments = [f"# {line}" for line in origin_lines(circuit)]
    circuit = with_readout(circuit, readout)
    if not (model.isascii() and model.replace("_", "").isalnum()):
        raise ValueError(f"a BLIF model needs a name of letters, digits and _, got {model!r}")
    inputs, outputs = input_ports(circuit), output_ports(circuit)
    names = [*inputs, *(f"n{i}" for i in range(circuit.inputs, circuit.nodes))]
    lines = [f".model {model}", *comments, *_ports(".inputs", inputs), *_ports(".outputs", outputs)]
    covers = [_cover(gate) for gate in Gate]
    for i, (kind, a, b) in enumerate(zip(circuit.gates.tolist(), *circuit.operands.tolist(), strict=True)):
        if a == b:  # a cover that reads a signal twice is legal, but not every tool thinks so
            kind = OF_EQUALS[kind]
        used, rows = covers[kind]
        reads = [names[node] for node, needed in ((a, used[0]), (b, used[1])) if needed]
        lines.append(" ".join([".names", *reads, names[circuit.inputs + i]]))
        lines += rows
    for port, node in zip(outputs, circuit.outputs.tolist(), strict=True):
        lines += [f".names {names[node]} {port}", "1 1"]
    return "\n".join([*lines, ".end", ""])


def _ports(keyword: str, names: tuple[str, ...]) -> list[str]:
    """A list of ports over several lines."""
    rows = [" ".join(names[i : i + 8]) for i in range(0, len(names), 8)]
    return " \\\n ".join([keyword, *rows]).split("\n")


def _cover(gate: Gate) -> tuple[tuple[bool, bool], list[str]]:
    """Which operands a gate's cover reads, and its rows."""
    used = gate.depends_on_a, gate.depends_on_b
    rows: dict[int, list[str]] = {0: [], 1: []}
    for a in (0, 1) if used[0] else (0,):
        for b in (0, 1) if used[1] else (0,):
            value = gate(a, b)
            cube = f"{a}" * used[0] + f"{b}" * used[1]
            rows[value].append(f"{cube} {value}" if cube else f"{value}")
    # No row at all means the constant 0, so the shorter side must not be empty unless it says just that.
    shorter = 0 if 0 < len(rows[0]) < len(rows[1]) else 1
    return used, rows[shorter]


def from_blif(text: str, like: Circuit | None = None) -> Circuit:
    """The circuit in a BLIF text: one model of .names with covers of any size; combinational only.

    ``like`` gives the readout, names and encoder; without it every output is a class of its own. Inputs and outputs
    keep their order, unless they have the names that ``like`` was exported with: then those decide.
    """
    inputs, outputs, covers = _parse(text)
    check_counts(len(inputs), len(outputs), like)
    netlist = Netlist(len(inputs))
    places = positions(inputs, None if like is None else input_ports(like))
    literals = {name: 2 * (place + 1) for name, place in zip(inputs, places, strict=True)}
    if len(literals) < len(inputs):
        raise ValueError("BLIF .inputs names a signal twice; inputs need different names")
    for name, cover in covers.items():
        if name in literals:
            raise ValueError(f"BLIF line {cover.line}: {name!r} is an input and cannot be defined by .names")
    missing = next((name for name in outputs if name not in covers and name not in literals), None)
    if missing is not None:
        raise ValueError(f"BLIF output {missing[:60]!r} is neither an input nor defined by .names")
    reads = {name: tuple(cover.reads) for name, cover in covers.items()}
    for name in in_order(reads, frozenset(inputs), lambda name: f"BLIF signal {name[:60]!r}"):
        cover = covers[name]
        literals[name] = cover.built(netlist, [literals[read] for read in cover.reads])
    places = positions(outputs, None if like is None else output_ports(like))
    roots = [literals[name] for _, name in sorted(zip(places, outputs, strict=True))]
    return netlist.finish(roots, names_of_ports(inputs), like)


class _Cover:
    """One .names: the signals it reads, and rows of 0, 1 and -, all of which mean the same value."""

    def __init__(self, line: int, reads: list[str]) -> None:
        self.line, self.reads, self.rows = line, reads, list[str]()
        self.value = 1

    def add(self, line: int, fields: list[str]) -> None:
        cube = fields[0] if self.reads else ""
        if len(fields) != 1 + bool(self.reads) or len(cube) != len(self.reads) or not set(cube) <= set("01-"):
            _fail(line, f"needs a row of {len(self.reads)} of 0, 1, - and a value, got {' '.join(fields)[:60]!r}")
        if fields[-1] not in ("0", "1") or (self.rows and int(fields[-1]) != self.value):
            _fail(line, "the rows of a cover must all end with 1, or all with 0")
        self.value = int(fields[-1])
        self.rows.append(cube)

    def built(self, netlist: Netlist, operands: list[int]) -> int:
        inverted = int(self.value == 0 and bool(self.rows))
        if len(operands) <= 2:
            a, b = (*operands, 0, 0)[:2]
            return netlist.gate(_small_gate(tuple(self.rows)), a, b) ^ inverted
        if len(operands) > TABLE_INPUTS:
            cubes = [[x ^ (c == "0") for x, c in zip(operands, row, strict=True) if c != "-"] for row in self.rows]
            products = [_balanced(netlist.conjunction, cube, 1) for cube in cubes]
            return _balanced(netlist.disjunction, products, 0) ^ inverted
        table = np.zeros((2,) * len(operands), bool)
        for row in self.rows:
            table[tuple(slice(None) if c == "-" else int(c) for c in row)] = True
        return _decomposed(netlist, table, operands) ^ inverted


@lru_cache(maxsize=1024)
def _small_gate(rows: tuple[str, ...]) -> int:
    """The gate that is 1 on the rows, of at most two inputs each."""
    cubes = [f"{row:-<2}" for row in rows]
    corners = ((a, b) for a in "01" for b in "01")
    values = (any(cube[0] in ("-", a) and cube[1] in ("-", b) for cube in cubes) for a, b in corners)
    return sum(8 >> i for i, value in enumerate(values) if value)


def _balanced(combine: Callable[[int, int], int], literals: list[int], empty: int) -> int:
    while len(literals) > 1:
        pairs = [literals[i : i + 2] for i in range(0, len(literals), 2)]
        literals = [combine(pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return literals[0] if literals else empty


def _decomposed(netlist: Netlist, table: Bool[np.ndarray, "..."], operands: list[int]) -> int:
    """Gates for a truth table: split off a variable with one gate if some variable allows it, else multiplex."""
    if not table.any() or table.all():
        return int(table.flat[0])
    leanings = []
    for i, x in enumerate(operands):
        low, high = (np.asarray(table.take(v, axis=i)) for v in (0, 1))
        rest = operands[:i] + operands[i + 1 :]
        if np.array_equal(low, high):
            return _decomposed(netlist, low, rest)
        if np.array_equal(low, ~high):
            return netlist.exclusive(x, _decomposed(netlist, low, rest))
        if not low.any():
            return netlist.conjunction(x, _decomposed(netlist, high, rest))
        if low.all():
            return netlist.disjunction(x ^ 1, _decomposed(netlist, high, rest))
        if not high.any():
            return netlist.conjunction(x ^ 1, _decomposed(netlist, low, rest))
        if high.all():
            return netlist.disjunction(x, _decomposed(netlist, low, rest))
        leanings.append(abs(2 * int(low.sum()) - low.size) + abs(2 * int(high.sum()) - high.size))
    i = leanings.index(max(leanings))  # its halves are closest to constants: they should be the simplest
    rest = operands[:i] + operands[i + 1 :]
    low_literal, high_literal = (_decomposed(netlist, np.asarray(table.take(v, axis=i)), rest) for v in (0, 1))
    return netlist.select(operands[i], high_literal, low_literal)


def _parse(text: str) -> tuple[list[str], list[str], dict[str, _Cover]]:
    """Inputs, outputs and the cover of every other signal."""
    inputs: list[str] = []
    outputs: list[str] = []
    covers: dict[str, _Cover] = {}
    cover: _Cover | None = None
    models = 0
    for line, fields in _logical_lines(text):
        keyword = fields[0]
        if not keyword.startswith("."):
            if cover is None:
                _fail(line, f"needs a directive such as .names, got {keyword[:60]!r}")
            cover.add(line, fields)
            continue
        cover = None
        if keyword == ".model":
            models += 1
            if models > 1:
                _fail(line, "a second .model; write the circuit as one flat model")
        elif keyword == ".inputs":
            inputs += fields[1:]
        elif keyword == ".outputs":
            outputs += fields[1:]
        elif keyword == ".names":
            if len(fields) < 2:
                _fail(line, ".names needs the signal that it defines")
            if fields[-1] in covers:
                _fail(line, f"{fields[-1][:60]!r} is defined a second time")
            cover = covers[fields[-1]] = _Cover(line, fields[1:-1])
        elif keyword == ".end":
            break
        elif keyword not in _IGNORED:
            _fail(line, f"{keyword[:60]} cannot be read: {_REFUSED.get(keyword, 'it is not known')}")
    return inputs, outputs, covers


def _logical_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of every line that says something; a line that ends with a backslash goes on."""
    fields: list[str] = []
    start = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        content = raw.partition("#")[0].rstrip()
        start = start or number
        fields += content.removesuffix("\\").split()
        if content.endswith("\\"):
            continue
        if fields:
            yield start, fields
        fields, start = [], 0
    if fields:
        yield start, fields


def _fail(line: int, message: str) -> NoReturn:
    raise ValueError(f"BLIF line {line}: {message}")
