"""The gates of a circuit in C: one statement per gate, or tables and the loop that reads them.

    straight    const uint64_t n7 = (n3 & ~x1);
    table       for each run of equal operations:  w[code[0]] = w[code[1]] op w[code[2]]

Both define ``<name>_evaluate(w)``, bit s of a word being sample s: the inputs are the first words of w, and output i is
then ``<name>_output_word(w, i)``. A value that nobody needs any more gives its word to another, inputs too, so that w
is not much longer than the inputs or the outputs are; a call has one such array and no other.
"""

from typing import Final

import numpy as np

from gatefit.backends.c_text import unsigned_table, unsigned_type
from gatefit.circuit.ir import Circuit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate

PART: Final = 100
"""Statements in one function: compilers take quadratic time over a function, and so linear time over many."""
_READS: Final = (DEPENDS_ON_A, DEPENDS_ON_B)
_PART_HEAD: Final = """
static void @m_part_@PART(uint64_t *w)
{
"""
_PART_TAIL: Final = """
}
"""
_STRAIGHT: Final = """
static void @m_evaluate(uint64_t *w)
{
    /* Called through a table, lest the compiler make one large function of them again. */
    static void (*const parts[@PARTS])(uint64_t *) = {@NAMES};
    int k;

    for (k = 0; k < @PARTS; k++)
        parts[k](w);
}
"""
_NO_GATES: Final = """
static void @m_evaluate(uint64_t *w)
{
    (void)w;
}
"""
_OUTPUT: Final = """
/* The lowest bit of an output's entry says that its complement was computed. */
static uint64_t @m_output_word(const uint64_t *w, long i)
{
    return w[@m_output[i] >> 1] ^ (UINT64_C(0) - (uint64_t)(@m_output[i] & 1));
}
"""
_TABLE: Final = """
static void @m_evaluate(uint64_t *w)
{
    const @CODE *code = @m_code;
    long i, run, end;

    w[@M_INPUTS] = 0;
    for (i = 0, run = 0; run < @RUNS; run++) {
        end = (long)@m_run_end[run];
        switch (@m_run_operation[run]) {
        case 0:
            for (; i < end; i++, code += 3)
                w[code[0]] = w[code[1]] & w[code[2]];
            break;
        case 1:
            for (; i < end; i++, code += 3)
                w[code[0]] = w[code[1]] & ~w[code[2]];
            break;
        case 2:
            for (; i < end; i++, code += 3)
                w[code[0]] = w[code[1]] | w[code[2]];
            break;
        default:
            for (; i < end; i++, code += 3)
                w[code[0]] = w[code[1]] ^ w[code[2]];
            break;
        }
    }
}
"""


def live_nodes(circuit: Circuit) -> np.ndarray:
    """Whether each node is read, through gates that use what they read, by an output."""
    used = np.zeros(circuit.nodes, dtype=bool)
    used[circuit.outputs] = True
    reads = np.stack([reads[circuit.gates] for reads in _READS])
    for gate in range(circuit.gates.size - 1, -1, -1):
        if used[circuit.inputs + gate]:
            used[circuit.operands[reads[:, gate], gate]] = True
    return used


def straight_evaluate(circuit: Circuit) -> tuple[str, int]:
    """One statement per gate that matters, in parts, and how many words they work on."""
    used = live_nodes(circuit)
    order = np.flatnonzero(used[circuit.inputs :])
    parts = -(-order.size // PART)
    part = np.full(circuit.nodes, -1)
    part[circuit.inputs + order] = np.arange(order.size) // PART
    words = _Words(circuit, _last_reader(circuit, used, part))
    functions = []
    for k in range(parts):
        lines: list[str] = []
        known: dict[int, str] = {}

        def value(node: int, k: int = k, lines: list[str] = lines, known: dict[int, str] = known) -> str:
            if node not in known:
                known[node] = f"x{node}" if node < circuit.inputs else f"n{node - circuit.inputs}"
                lines.append(f"    const uint64_t {known[node]} = w[{words.read(node, k)}];")
            return known[node]

        for g in order[k * PART : (k + 1) * PART].tolist():
            gate, node = Gate(circuit.gates[g]), circuit.inputs + g
            operands = zip(circuit.operands[:, g].tolist(), _READS, strict=True)
            a, b = (value(n) if reads[gate] else "" for n, reads in operands)
            formula = {Gate.FALSE: "UINT64_C(0)", Gate.TRUE: "~UINT64_C(0)"}.get(gate, gate.formula)
            known[node] = f"n{g}"
            lines.append(f"    const uint64_t n{g} = {formula.format(a=a, b=b)};")
            if words.needed_after(node, k):
                lines.append(f"    w[{words.write(node)}] = n{g};")
        functions.append(_PART_HEAD.replace("@PART", str(k)) + "\n".join(lines) + _PART_TAIL)
    names = ", ".join(f"@m_part_{k}" for k in range(parts))
    body = _STRAIGHT.replace("@PARTS", str(parts)).replace("@NAMES", names) if parts else _NO_GATES
    entries = np.array([2 * words.slot[node] for node in circuit.outputs.tolist()], dtype=np.int64)
    return "".join(functions) + body + unsigned_table("@m_output", entries) + _OUTPUT, words.count


class _Words:
    """Which word holds which value: a word is free once the last part that reads its value has loaded it."""

    def __init__(self, circuit: Circuit, last: np.ndarray) -> None:
        self.last = last.tolist()
        self.outputs = set(circuit.outputs.tolist())
        self.slot = {node: node for node in range(circuit.inputs)}
        self.count = circuit.inputs
        self.free = [node for node in range(circuit.inputs) if not self.needed_after(node, -1)]

    def needed_after(self, node: int, part: int) -> bool:
        """Whether a later part reads the value, or the readout does."""
        return self.last[node] > part or node in self.outputs

    def read(self, node: int, part: int) -> int:
        """The word of a value that ``part`` loads."""
        slot = self.slot[node]
        if not self.needed_after(node, part):
            self.free.append(slot)
        return slot

    def write(self, node: int) -> int:
        """A word for a new value."""
        if self.free:
            self.slot[node] = self.free.pop()
        else:
            self.slot[node], self.count = self.count, self.count + 1
        return self.slot[node]


def _last_reader(circuit: Circuit, used: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The last part that reads each node."""
    last = np.full(circuit.nodes, -1)
    gates = np.flatnonzero(used[circuit.inputs :])
    for operand, reads in zip(circuit.operands, _READS, strict=True):
        reading = gates[reads[circuit.gates[gates]]]
        np.maximum.at(last, operand[reading], part[circuit.inputs + reading])
    return last


def table_evaluate(circuit: Circuit) -> tuple[str, int]:
    """The circuit as tables, which compile in seconds whatever their size, and the words that it works on."""
    from gatefit.backends.engine_plan import plan

    program = plan(circuit)
    output = 2 * program.output_slots + (program.output_flips != 0)
    tables = [
        unsigned_table("@m_code", program.code.ravel()),
        unsigned_table("@m_run_operation", program.run_operations),
        unsigned_table("@m_run_end", program.run_ends),
        unsigned_table("@m_output", output),
    ]
    body = _TABLE.replace("@CODE", unsigned_type(program.code.ravel())).replace("@RUNS", str(program.run_ends.size))
    return "".join(tables) + body + _OUTPUT, program.slots
