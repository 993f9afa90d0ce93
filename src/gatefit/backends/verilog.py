"""A circuit as synthesizable Verilog-2001: gates, group sums and argmax, combinational or pipelined.

    input  x[inputs-1:0]                    or one port per bit, or integer features that are compared inside
    output y[outputs-1:0]                   the gates' outputs, if asked for
    output scores[classes*width-1:0]        class k in bits [k*width +: width]; a regression has ``sum`` instead
    output class_index                      the first class with the largest score

With ``pipeline_stages`` registers on every path a new sample is accepted every clock cycle, and its answer is there
LATENCY cycles later. The text is that of ``verilog_modules``, which ``gatefit synth`` builds as well.
"""

from gatefit.backends.verilog_modules import to_verilog_modules
from gatefit.circuit.ir import Circuit


def to_verilog(
    circuit: Circuit,
    module: str = "gatefit",
    pipeline_stages: int = 0,
    outputs: bool = False,
    readout: bool = True,
    named_ports: bool = False,
    feature_bits: int = 0,
    counter: int = 3,
) -> str:
    """The circuit as a Verilog module, and before it the modules that are its parts.

    Arguments:
        module: its name; a part's is MODULE_part.
        pipeline_stages: registers on every path from inputs to outputs; 0 for a combinational module.
        outputs: add the port ``y`` with the gates' outputs.
        readout: write scores and class; without it the module has ``y`` only.
        named_ports: one input port per bit (or feature), named after it, instead of one vector.
        feature_bits: read features as unsigned integers of this many bits (8 for images) and compare them with the
            encoder's thresholds inside; 0 to read bits. Features that such integers do not carry are refused.
        counter: bits that one counter of the sums takes: 3 for tables of up to 4 inputs, 6 for tables of 6.
    """
    return to_verilog_modules(
        circuit,
        module,
        pipeline_stages,
        feature_bits,
        counter=counter,
        outputs=outputs,
        readout=readout,
        named_ports=named_ports,
    ).text
