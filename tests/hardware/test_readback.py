"""Gates that Yosys read back are proven equal to the circuit, and wrong ones are not."""

import numpy as np
import pytest

from gatefit.backends.aiger import to_aiger
from gatefit.backends.verilog.modules import to_verilog_modules
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import simulate
from gatefit.gates import Gate
from gatefit.hardware.readback import DifferentError, by_output, from_yosys, prove_gates
from gatefit.hardware.simulation import module_texts
from gatefit.hardware.tools import ToolError, find_yosys
from strategies import all_patterns, layered_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

CIRCUIT = layered_circuit(np.random.default_rng(1), 10, 30, 3, 3, gates=range(1, 15))


@pytest.mark.parametrize("stages", [0, 3, 9])
def test_the_export_is_proven_whatever_its_registers(stages, tmp_path):
    require_tool("yosys")
    text = to_verilog_modules(CIRCUIT, "net", pipeline_stages=stages).text
    (tmp_path / "design.v").write_text(text)
    gates = text[text.index("module net_gates") : text.index("endmodule")]
    assert ("posedge clk" in gates) == (stages > 3)
    shown = prove_gates(CIRCUIT, find_yosys(), "design.v", "", "net", tmp_path, 60)
    assert shown.startswith("30 outputs equal on every input")


def test_a_wrong_gate_is_found(tmp_path):
    require_tool("yosys")
    circuit = Circuit(3, [Gate.XOR, Gate.AND], [[0, 3], [1, 2]], [3, 4], GroupSum([0, 1], [0, 0]))
    text = to_verilog_modules(circuit, "net").text
    (tmp_path / "design.v").write_text(text.replace("x[0] ^ x[1]", "x[0] | x[1]"))
    with pytest.raises(DifferentError, match=r"output 0 of design\.v is not the circuit's for the input bits 11"):
        prove_gates(circuit, find_yosys(), "design.v", "", "net", tmp_path, 60)


def test_ports_are_matched_by_name_not_by_order():
    circuit = by_output(Circuit(2, [Gate.A_AND_NOT_B], [[0], [1]], [2, 0], GroupSum([0, 0], [0])))
    text = to_aiger(circuit).decode()
    names = {"i0 x0": "i0 x[1]", "i1 x1": "i1 x[0]", "o0 y0": "o0 y[1]", "o1 y1": "o1 y[0]"}
    for old, new in names.items():
        text = text.replace(old, new)
    found = from_yosys(text, circuit)
    patterns = all_patterns(2)
    expected = simulate(circuit, patterns[:, ::-1])[:, ::-1]
    assert np.array_equal(simulate(found, patterns), expected)
    with pytest.raises(ToolError, match="does not name the 2 inputs x, each once"):
        from_yosys(text.replace("x[1]", "x[0]"), circuit)
    with pytest.raises(ToolError, match="Yosys's AIGER file cannot be read back: AIGER"):
        from_yosys(text.replace("aag 3", "aag 2"), circuit)


def test_models_of_cells_are_found_through_includes(tmp_path):
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / "cells.v").write_text(
        '`define ON 1\n`include "more.vh"\nmodule A(input a);\nendmodule\nmodule A2(input a);\nendmodule\n'
    )
    (tmp_path / "more.vh").write_text(
        "(* x *)\nmodule B (output b);\n  C c (b);\nendmodule\nmodule C (output b);\n  assign b = `ON;\nendmodule\n"
    )
    text = module_texts([tmp_path / "family" / "cells.v"], {"A", "B"})
    assert text.index("`define ON 1") < text.index("module A(") < text.index("module B (") < text.index("module C (")
    assert "A2" not in text
    assert "include" not in text
    with pytest.raises(ToolError, match=r"no model of the cells D in cells\.v"):
        module_texts([tmp_path / "family" / "cells.v"], {"A", "D"})
