"""Formal equivalence: gates that Yosys read from Verilog, against the circuit.

    Verilog -> Yosys -> and-inverter graph -> circuit -> ``circuit.prove``

What is proven is that every gate output, one to one and on every input, is what the circuit says, registers taken as
wires. Sums and argmax come after; they are compared by simulation.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from gatefit.backends.aiger import from_aiger
from gatefit.circuit.ir import Circuit
from gatefit.circuit.prove import Counterexample, Equivalent, prove
from gatefit.circuit.readout import GroupSum
from gatefit.hardware import yosys_scripts
from gatefit.hardware.tools import Tool, ToolError


class DifferentError(ToolError):
    """What a tool made of the circuit is not the circuit."""


def prove_gates(
    circuit: Circuit, yosys: Tool, source: str, models: str, module: str, folder: Path, timeout: float
) -> str:
    """Prove that the gates of SOURCE are the circuit's; how it was shown.

    ``models`` is Verilog of the cells that SOURCE is made of, empty where it is not a netlist.
    """
    stem = f"{Path(source).stem}_gates"
    (folder / "transparent.v").write_text(yosys_scripts.TRANSPARENT, encoding="ascii")
    (folder / f"{stem}_cells.v").write_text(models, encoding="utf-8")
    text = yosys_scripts.readback([source, f"{stem}_cells.v"], f"{module}_gates", "transparent.v", f"{stem}.aag")
    (folder / f"{stem}.ys").write_text(text, encoding="ascii")
    seconds = yosys.run([f"{stem}.ys"], folder, f"{stem}.log", timeout)
    spec = by_output(circuit)
    impl = from_yosys((folder / f"{stem}.aag").read_text(encoding="utf-8"), spec)
    verdict = prove(spec, impl, timeout=max(1.0, timeout - seconds))
    if isinstance(verdict, Equivalent):
        how = {"sat": "by SAT, refutation checked", "exhaustive": "every input tried"}[verdict.method]
        return f"{spec.outputs.size:,} outputs equal on every input ({how})"
    if isinstance(verdict, Counterexample):
        wrong = np.flatnonzero(verdict.spec_scores != verdict.impl_scores)
        bits = "".join("01"[int(bit)] for bit in verdict.bits)
        raise DifferentError(f"output {wrong[0]} of {source} is not the circuit's for the input bits {bits}")
    raise ToolError(f"not proven: {verdict.reason}")


def by_output(circuit: Circuit) -> Circuit:
    """The circuit without names, every output a class of its own: equal scores are then equal outputs, one to one."""
    size = circuit.outputs.size
    readout = GroupSum(np.arange(size), np.zeros(size, dtype=np.int64))
    return replace(circuit, readout=readout, input_names=(), class_names=(), labels=None, encoder=None, metadata={})


def from_yosys(text: str, like: Circuit) -> Circuit:
    """The circuit in an ascii AIGER file by Yosys, whose symbols are bits of the ports x and y."""
    renamed = re.sub(r"^([io]\d+) ([xy])\[(\d+)\]$", r"\1 \2\3", text, flags=re.MULTILINE)
    renamed = re.sub(r"^([io]0) ([xy])$", r"\1 \g<2>0", renamed, flags=re.MULTILINE)
    symbols = re.findall(r"^([io])\d+ [xy](\d+)$", renamed, flags=re.MULTILINE)
    for kind, count in (("i", like.inputs), ("o", like.outputs.size)):
        if sorted(int(number) for side, number in symbols if side == kind) != list(range(count)):
            name = "inputs x" if kind == "i" else "outputs y"
            raise ToolError(
                f"Yosys's AIGER file does not name the {count} {name}, each once; this is a defect, report it"
            )
    try:
        return from_aiger(renamed, like)
    except ValueError as reason:
        raise ToolError(f"Yosys's AIGER file cannot be read back: {reason}; this is a defect, report it") from None
