"""The engine: a circuit as a function on bits, fast on any processor without a compiler. See ``run``."""

from gatefit.circuit.engine.run import Engine

__all__ = ["Engine"]
