"""C: ``to_c`` for any processor, ``arduino`` for microcontrollers, ``native`` to compile and call what was written."""

from gatefit.backends.c.export import to_c

__all__ = ["to_c"]
