"""The Yosys scripts of the flow, one command a line.

    whole    flattened: what is placed, routed and simulated
    split    the parts kept apart: what each costs; nothing is shared across their borders
    readback a module as an and-inverter graph, registers made transparent: what is proven

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


def whole(target: Target, source: str, top: str, stem: str) -> str:
    """Synthesise ``top`` flat; writes STEM_stat.json, STEM.json and STEM.v."""
    return _lines(f"read_verilog {source}", f"{target.synthesis} -top {top}", *_written(stem))


def split(target: Target, source: str, top: str, parts: list[str], stem: str) -> str:
    """Synthesise with the modules ``parts`` kept apart; writes the same files."""
    return _lines(
        f"read_verilog {source}",
        f"setattr -mod -set keep_hierarchy 1 {' '.join(parts)}",
        f"{target.synthesis} -top {top}",
        *_written(stem),
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


def _written(stem: str) -> tuple[str, ...]:
    return (
        f"tee -q -o {stem}_stat.json stat -json",
        f"write_json {stem}.json",
        # Every bit of a register as a net of its own, with names that benches find.
        "splitnets",
        f"write_json {stem}_nets.json",
        f"write_verilog -noattr {stem}.v",
    )


def _lines(*commands: str) -> str:
    return "\n".join([*commands, ""])
