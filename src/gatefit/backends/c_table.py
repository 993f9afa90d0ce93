"""The gates of a circuit in C: one statement per gate, or tables and the loop that reads them.

    straight    const uint64_t n7 = (n3 & ~x1);
    table       for each run of equal operations:  w[code[0]] = w[code[1]] op w[code[2]]

Both define ``<name>_evaluate(x, y)``: output words from input words, bit s of a word being sample s.
The table is the engine's program: working memory is one word per slot, not per gate.
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
static void @m_part_@PART(const uint64_t *x, uint64_t *w, uint64_t *y)
{
"""
_PART_TAIL: Final = """
    (void)x;
    (void)w;
    (void)y;
}
"""
_STRAIGHT: Final = """
static void @m_evaluate(const uint64_t *x, uint64_t *y)
{
    /* Called through a table, lest the compiler make one large function of them again. */
    static void (*const parts[@PARTS])(const uint64_t *, uint64_t *, uint64_t *) = {@NAMES};
    @STORAGE uint64_t w[@WORDS];
    int k;

    for (k = 0; k < @PARTS; k++)
        parts[k](x, w, y);
}
"""
_TABLE: Final = """
static void @m_evaluate(const uint64_t *x, uint64_t *y)
{
    @STORAGE uint64_t w[@SLOTS];
    const @CODE *code = @m_code;
    long i, run, end;

    for (i = 0; i < @M_INPUTS; i++)
        w[i] = x[i];
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
    /* The lowest bit of an output's entry says that its complement was computed. */
    for (i = 0; i < @M_OUTPUTS; i++)
        y[i] = w[@m_output[i] >> 1] ^ (UINT64_C(0) - (uint64_t)(@m_output[i] & 1));
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
    """One statement per gate that matters, in parts, and how many words are handed from part to part."""
    used = live_nodes(circuit)
    order = np.flatnonzero(used[circuit.inputs :])
    parts = max(1, -(-order.size // PART))
    part = np.full(circuit.nodes, -1)
    part[circuit.inputs + order] = np.arange(order.size) // PART
    last = _last_reader(circuit, used, part)
    handed = np.flatnonzero((last > part) & (part >= 0))
    slot = {int(node): k for k, node in enumerate(handed)}
    outputs: dict[int, list[int]] = {}
    for i, node in enumerate(circuit.outputs.tolist()):
        outputs.setdefault(node, []).append(i)
    functions = []
    for k in range(parts):
        lines: list[str] = []
        known: dict[int, str] = {}

        def value(node: int, lines: list[str] = lines, known: dict[int, str] = known) -> str:
            if node not in known:
                source = f"x[{node}]" if node < circuit.inputs else f"w[{slot[node]}]"
                known[node] = f"x{node}" if node < circuit.inputs else f"n{node - circuit.inputs}"
                lines.append(f"    const uint64_t {known[node]} = {source};")
            return known[node]

        for g in order[k * PART : (k + 1) * PART].tolist():
            gate, node = Gate(circuit.gates[g]), circuit.inputs + g
            operands = zip(circuit.operands[:, g].tolist(), _READS, strict=True)
            a, b = (value(n) if reads[gate] else "" for n, reads in operands)
            formula = {Gate.FALSE: "UINT64_C(0)", Gate.TRUE: "~UINT64_C(0)"}.get(gate, gate.formula)
            known[node] = f"n{g}"
            lines.append(f"    const uint64_t n{g} = {formula.format(a=a, b=b)};")
            if node in slot:
                lines.append(f"    w[{slot[node]}] = n{g};")
            lines += [f"    y[{i}] = n{g};" for i in outputs.get(node, ())]
        if k == parts - 1:
            lines += [f"    y[{i}] = {value(n)};" for n in outputs if n < circuit.inputs for i in outputs[n]]
        functions.append(_PART_HEAD.replace("@PART", str(k)) + "\n".join(lines) + _PART_TAIL)
    names = ", ".join(f"@m_part_{k}" for k in range(parts))
    body = _STRAIGHT.replace("@WORDS", str(max(1, handed.size))).replace("@PARTS", str(parts)).replace("@NAMES", names)
    return "".join(functions) + body, handed.size


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
    body = _TABLE.replace("@CODE", unsigned_type(program.code.ravel())).replace("@SLOTS", str(program.slots))
    body = body.replace("@RUNS", str(program.run_ends.size))
    return "".join(tables) + body, program.slots
