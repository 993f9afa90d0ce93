"""Verilog around the circuit: a harness that needs five pins whatever the circuit's ports, and benches that check.

    harness    shift_in -> input register -> circuit -> output register -> shift register -> shift_out
    bench      applies vectors, compares every output with the engine's, prints how many differ

The harness lets a circuit with hundreds of ports be placed on any device, and makes every path of the circuit run
from register to register. Its registers and multiplexers are counted apart from the circuit's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool

from gatefit.backends.verilog.modules import Modules
from gatefit.backends.verilog.readout import sum_format
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.hardware.simulation import Registers

PIN_VECTORS: Final = 2
"""Vectors that go in through the pin, one bit a clock; all others are put into the input register directly."""


@dataclass(frozen=True)
class Vectors:
    """Values of the input port, and what the concatenated outputs must be, the first port lowest."""

    stimulus: tuple[int, ...]
    expected: tuple[int, ...]
    inputs: int
    outputs: int

    def write(self, folder: Path, prefix: str = "") -> None:
        """As files that ``$readmemh`` reads."""
        for name, values, width in (
            ("stimulus", self.stimulus, self.inputs),
            ("expected", self.expected, self.outputs),
        ):
            lines = [f"{value:0{-(-width // 4)}x}" for value in values]
            (folder / f"{prefix}{name}.hex").write_text("\n".join([*lines, ""]), encoding="ascii")


def make_vectors(
    circuit: Circuit,
    modules: Modules,
    bits: Bool[np.ndarray, "vectors inputs"],
    stimulus: Sequence[int] | None = None,
) -> Vectors:
    """The engine's answers to ``bits``; ``stimulus`` are the input port's values where they are not the bits."""
    engine, whole = Engine(circuit), circuit.readout.sums_for("hardware")
    sums, totals = sum_format(whole), whole.totals(engine.outputs(bits)).tolist()
    modulus = 2**sums.width
    if circuit.readout.gives_value:
        columns = {"sum": [total % modulus for (total,) in totals]}
    else:
        packed = [sum((total % modulus) << (sums.width * k) for k, total in enumerate(row)) for row in totals]
        columns = {"scores": packed, "class_index": engine.predict(bits).tolist()}
    expected, place = [0] * len(bits), 0
    for port in modules.outputs:
        expected = [value | answer << place for value, answer in zip(expected, columns[port.name], strict=True)]
        place += port.width
    values = tuple(stimulus) if stimulus is not None else tuple(as_number(row) for row in bits)
    return Vectors(values, tuple(expected), modules.inputs.width, place)


def as_number(row: Bool[np.ndarray, " bits"]) -> int:
    """A row of bits as a number, bit i from column i."""
    return int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")


def encoder_vectors(modules: Modules, bits: Bool[np.ndarray, "vectors inputs"], stimulus: Sequence[int]) -> Vectors:
    """Values of the port ``features``, and the bits that the comparators must make of them."""
    return Vectors(tuple(stimulus), tuple(as_number(row) for row in bits), modules.inputs.width, bits.shape[1])


def encoder_bench(modules: Modules, vectors: Vectors) -> str:
    """Drives the comparators alone: through the gates behind them a wrong one may not show."""
    return _core_bench(f"{modules.module}_encoder", ".features(in), .bits(out)", 0, vectors, "encoder_")


def harness(modules: Modules) -> str:
    """The module MODULE_harness."""
    inputs, outputs = modules.inputs.width, sum(port.width for port in modules.outputs)
    shifted = f"{{in_q[{inputs - 2}:0], shift_in}}" if inputs > 1 else "shift_in"
    return f"""
// Not part of the circuit: five pins for any number of ports, and registers around the circuit.
module {modules.module}_harness (
    input wire clk,
    input wire shift,
    input wire shift_in,
    input wire load,
    output wire shift_out
);
    // Kept, so that benches find them in every netlist.
    (* keep *) reg [{inputs - 1}:0] in_q;
    wire [{outputs - 1}:0] answer;
    (* keep *) reg [{outputs - 1}:0] out_q;
    reg [{outputs - 1}:0] shift_q;
    {modules.module} core ({_connections(modules, "in_q", "answer")});
    always @(posedge clk) begin
        // Enabled by a pin: else a register of the circuit that follows one bit would be merged with the next bit.
        if (shift) in_q <= {shifted};
        out_q <= answer;
        shift_q <= load ? out_q : shift_q >> 1;
    end
    assign shift_out = shift_q[0];
endmodule
"""


def core_bench(modules: Modules, vectors: Vectors) -> str:
    """Drives the circuit's ports, a new vector every clock; for the exported Verilog and for netlists of it."""
    return _core_bench(modules.module, _connections(modules, "in", "out"), modules.pipeline.latency, vectors)


def _core_bench(module: str, connections: str, latency: int, vectors: Vectors, prefix: str = "") -> str:
    count = len(vectors.stimulus)
    return f"""`timescale 1ns / 1ps
module bench;
    reg clk = 1'b0;
    reg [{vectors.inputs - 1}:0] in;
    wire [{vectors.outputs - 1}:0] out;
    reg [{vectors.inputs - 1}:0] stimulus [0:{count - 1}];
    reg [{vectors.outputs - 1}:0] expected [0:{count - 1}];
    integer t, failures;
    {module} dut ({connections});
    initial begin
        $readmemh("{prefix}stimulus.hex", stimulus);
        $readmemh("{prefix}expected.hex", expected);
        failures = 0;
        for (t = 0; t < {count + latency}; t = t + 1) begin
            if (t < {count}) in = stimulus[t];
            #5;
            if (t >= {latency}) begin
                if (out !== expected[t - {latency}]) failures = failures + 1;
            end
            #5 clk = 1'b1;
            #5 clk = 1'b0;
        end
        $display("DIFFER %0d OF %0d", failures, {count});
        $finish;
    end
endmodule
"""


def harness_bench(registers: Registers, latency: int, vectors: Vectors) -> str:
    """Drives the harness: a few vectors through its pins, in and out.

    The others are put into its input register, and their answers read from its output register, if that can be
    seen: through the pins each would take as many clocks as the circuit has ports.
    """
    module, count, inputs, outputs = registers.top, len(vectors.stimulus), vectors.inputs, vectors.outputs
    # The blank ends an escaped name. iverilog evaluates the right side once, so this is done for every vector.
    force = "\n".join(
        f"        force dut.\\{name} = in[{i}];" for i, names in sorted(registers.inputs.items()) for name in names
    )
    if registers.outputs is None:
        seen = "        unload;"
    else:
        seen = "        out = {" + ", ".join(reversed(registers.outputs)) + "};"
    return f"""`timescale 1ns / 1ps
module bench;
    reg clk = 1'b0, shift = 1'b0, shift_in = 1'b0, load = 1'b0;
    wire shift_out;
    reg [{inputs - 1}:0] in;
    reg [{outputs - 1}:0] out;
    reg [{inputs - 1}:0] stimulus [0:{count - 1}];
    reg [{outputs - 1}:0] expected [0:{count - 1}];
    integer t, i, failures;
    {module} dut (.clk(clk), .shift(shift), .shift_in(shift_in), .load(load), .shift_out(shift_out));
    task tick; begin #5 clk = 1'b1; #5 clk = 1'b0; end endtask
    task put; begin
{force}
    end endtask
    task unload; begin
        load = 1'b1;
        tick;
        load = 1'b0;
        for (i = 0; i < {outputs}; i = i + 1) begin out[i] = shift_out; tick; end
    end endtask
    task look; begin
{seen}
    end endtask
    task compare; begin if (out !== expected[t]) failures = failures + 1; end endtask
    initial begin
        $readmemh("stimulus.hex", stimulus);
        $readmemh("expected.hex", expected);
        failures = 0;
        for (t = 0; t < {min(PIN_VECTORS, count)}; t = t + 1) begin
            in = stimulus[t];
            shift = 1'b1;
            for (i = {inputs - 1}; i >= 0; i = i - 1) begin shift_in = in[i]; tick; end
            shift = 1'b0;
            for (i = 0; i < {latency + 1}; i = i + 1) tick;
            unload;
            compare;
        end
        for (t = {min(PIN_VECTORS, count)}; t < {count}; t = t + 1) begin
            in = stimulus[t];
            put;
            for (i = 0; i < {latency + 1}; i = i + 1) tick;
            look;
            compare;
        end
        $display("DIFFER %0d OF %0d", failures, {count});
        $finish;
    end
endmodule
"""


def _connections(modules: Modules, inputs: str, outputs: str) -> str:
    connected = [".clk(clk)"] * modules.clocked + [f".{modules.inputs.name}({inputs})"]
    place = 0
    for port in modules.outputs:
        connected.append(f".{port.name}({outputs}[{place} +: {port.width}])")
        place += port.width
    return ", ".join(connected)


ROUTED_ECP5: Final = """
module TRELLIS_COMB (
    input A, B, C, D, M, FCI, FXA, FXB, F1, DI0, DI1, WD0, WD1, WAD0, WAD1, WAD2, WAD3, WRE, WCK,
    output F, FCO, OFX
);
    parameter [15:0] INITVAL = 16'h0000;
    parameter MODE = "LOGIC";
    parameter CCU2_INJECT1 = "NO";
    parameter WREMUX = "WRE";
    parameter WCKMUX = "WCK";
    // An input that is not connected reads one.
    wire [3:0] i = {(D === 1'bz) | D, (C === 1'bz) | C, (B === 1'bz) | B, (A === 1'bz) | A};
    wire lut4 = INITVAL[i], lut2 = INITVAL[{2'b00, i[1:0]}];
    wire chained = (MODE == "CCU2") & (CCU2_INJECT1 == "NO");
    assign F = chained ? lut4 ^ FCI : lut4;
    assign FCO = (~lut4 & (chained & lut2)) | (lut4 & FCI);
endmodule

module TRELLIS_FF (input CLK, LSR, CE, DI, M, output reg Q);
    parameter GSR = "DISABLED";
    parameter CEMUX = "1";
    parameter CLKMUX = "CLK";
    parameter LSRMUX = "LSR";
    parameter LSRMODE = "LSR";
    parameter REGSET = "RESET";
    parameter SRMODE = "LSR_OVER_CE";
    parameter SD = "0";
    wire enabled = (CEMUX == "1") | ((CEMUX == "CE") & CE) | ((CEMUX == "INV") & ~CE);
    wire reset = (LSR === 1'b1) ^ (LSRMUX == "INV");
    wire next = (SD == "1") ? DI : M;
    initial Q = (REGSET == "SET");
    always @(posedge CLK)
        if (reset) Q <= (REGSET == "SET");
        else if (enabled) Q <= next;
endmodule

module TRELLIS_IO (inout B, input I, T, output O);
    parameter DIR = "INPUT";
    parameter DATAMUX_ODDR = "PADDO";
    parameter DATAMUX_MDDR = "PADDO";
    generate
        if (DIR == "OUTPUT") assign B = I;
        else assign O = B;
    endgenerate
endmodule

module DCCA (input CLKI, CE, output CLKO);
    assign CLKO = CLKI;
endmodule
"""
"""The cells that nextpnr places on an ECP5; Yosys has models of what it hands over only."""
