"""The gates of a circuit in C: one statement per gate, or tables and the loop that reads them.

    straight    const uint64_t n7 = (n3 & ~x1);               compilers take more than linear time over it
    table       for each run of equal operations:  w[code[0]] = w[code[1]] op w[code[2]]

Both define ``<name>_evaluate(x, stride, y)``: output words y[i] from input words x[i * stride], bit s of a word
being sample s. The table is the engine's program: working memory is one word per slot, not per gate.
"""

from typing import Final

import numpy as np

from gatefit.backends.c_text import unsigned_table, unsigned_type
from gatefit.circuit.ir import Circuit
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate

_TABLE: Final = """
static void @m_evaluate(const uint64_t *x, size_t stride, uint64_t *y)
{
    @STORAGE uint64_t w[@SLOTS];
    const @CODE *code = @m_code;
    long i, run, end;

    for (i = 0; i < @M_INPUTS; i++)
        w[i] = x[(size_t)i * stride];
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


def live_gates(circuit: Circuit) -> np.ndarray:
    """Whether each gate is read, through gates that use what they read, by an output."""
    used = np.zeros(circuit.nodes, dtype=bool)
    used[circuit.outputs] = True
    reads = np.stack([DEPENDS_ON_A[circuit.gates], DEPENDS_ON_B[circuit.gates]])
    for gate in range(circuit.gates.size - 1, -1, -1):
        if used[circuit.inputs + gate]:
            used[circuit.operands[reads[:, gate], gate]] = True
    return used


def straight_evaluate(circuit: Circuit) -> tuple[str, int]:
    """One statement per gate that matters, and 0: it needs no table of words."""
    used = live_gates(circuit)
    names = [f"x{i}" if i < circuit.inputs else f"n{i - circuit.inputs}" for i in range(circuit.nodes)]
    lines = ["", "static void @m_evaluate(const uint64_t *x, size_t stride, uint64_t *y)", "{"]
    for i in np.flatnonzero(used[: circuit.inputs]):
        lines.append(f"    const uint64_t x{i} = x[{i} * stride];")
    for g in np.flatnonzero(used[circuit.inputs :]):
        gate, (a, b) = Gate(circuit.gates[g]), circuit.operands[:, g]
        formula = {Gate.FALSE: "UINT64_C(0)", Gate.TRUE: "~UINT64_C(0)"}.get(gate, gate.formula)
        lines.append(f"    const uint64_t n{g} = {formula.format(a=names[a], b=names[b])};")
    lines += ["    (void)x;", "    (void)stride;", "    (void)y;"]
    lines += [f"    y[{i}] = {names[node]};" for i, node in enumerate(circuit.outputs)]
    return "\n".join([*lines, "}", ""]), 0


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
