"""The engine: a circuit as a function on bits, fast on any processor without a compiler. See ``run``."""

from gatefit.backends.engine.run import Engine

__all__ = ["Engine"]
