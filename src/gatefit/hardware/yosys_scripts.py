"""The Yosys scripts of the flow, one command a line.

    synthesis   each part by itself, so that its cells are counted and its gates can be proven; then put together
    readback    a module as an and-inverter graph, registers made transparent: what is proven

Parts that are synthesised by themselves come out smaller than the flattened circuit does, on tables of 6 inputs by a
quarter: across their borders Yosys trades area for depth.

A pipeline without feedback computes its combinational function some cycles later, whatever its registers hold at
first: with registers that pass their input on, that function is left. The latency is checked by simulation.
"""

from typing import Final

from gatefit.hardware.targets import Target

TRANSPARENT: Final = """\
(* techmap_celltype = "$dff" *)
module transparent_register (CLK, D, Q);
    parameter WIDTH = 1;
    parameter CLK_POLARITY = 1;
    input CLK;
    input [WIDTH-1:0] D;
    output [WIDTH-1:0] Q;
    assign Q = D;
endmodule
"""
"""A map for Yosys's ``techmap``: a register becomes a wire."""


def synthesis(target: Target, source: str, top: str, parts: list[str]) -> str:
    """Synthesise ``top`` with the modules ``parts`` kept apart, then flatten what came out.

    Writes parts_stat.json, parts.json and parts.v before flattening, and whole_stat.json, whole.json, whole_nets.json
    and whole.v after it.
    """
    return _lines(
        f"read_verilog {source}",
        f"setattr -mod -set keep_hierarchy 1 {' '.join(parts)}",
        f"{target.synthesis} -top {top}",
        "tee -q -o parts_stat.json stat -json",
        "write_json parts.json",
        "write_verilog -noattr parts.v",
        "setattr -mod -unset keep_hierarchy *",
        "flatten",
        "opt_clean",
        "tee -q -o whole_stat.json stat -json",
        "write_json whole.json",
        # Every bit of a register as a net of its own, with names that benches find.
        "splitnets",
        "write_json whole_nets.json",
        "write_verilog -noattr whole.v",
    )


def readback(sources: list[str], module: str, transparent: str, out: str) -> str:
    """Read ``module`` from Verilog files, models of its cells among them, and write it as ascii AIGER."""
    return _lines(
        *(f"read_verilog {source}" for source in sources),
        f"hierarchy -top {module}",
        "proc",
        "flatten",
        "opt_expr",
        "opt_dff -nodffe -nosdff",
        f"techmap -map {transparent}",
        "techmap",
        f"delete -port {module}/w:clk",  # nothing is clocked any more
        "opt_clean",
        "aigmap",
        f"write_aiger -ascii -symbols {out}",
    )


def to_netlist(source: str, out: str) -> str:
    """A routed design, as nextpnr writes it, as Verilog."""
    return _lines(f"read_json {source}", f"write_verilog -noattr {out}")


def _lines(*commands: str) -> str:
    return "\n".join([*commands, ""])
