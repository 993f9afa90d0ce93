"""Verilog: ``to_verilog`` writes a circuit, ``to_testbench`` what checks it in any simulator."""

from gatefit.backends.verilog.modules import to_verilog
from gatefit.backends.verilog.testbench import to_testbench

__all__ = ["to_testbench", "to_verilog"]
