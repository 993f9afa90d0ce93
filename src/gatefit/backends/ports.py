"""Port names of netlists: unique, made of characters that no netlist format gives a meaning, and readable back.

    input i     x<i>  or  x<i>.<name>          output i     y<i>  or  y<i>.<class>

In <name> everything but letters, digits and _ is percent-encoded (UTF-8): no blank, newline, ``#`` or ``\\`` survives,
so a name cannot end a line, open a comment or start a directive. The number in front keeps equal names apart.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

from gatefit.backends.names import bit_names
from gatefit.circuit.ir import Circuit

_LIMIT: Final = 120
"""Characters of a name that are kept: tools have fixed buffers."""


def input_ports(circuit: Circuit) -> tuple[str, ...]:
    """One port for every input bit, with the bit's name if it has one."""
    if not circuit.input_names and circuit.encoder is None:
        return tuple(f"x{i}" for i in range(circuit.inputs))
    return tuple(f"x{i}.{_escaped(name)}" for i, name in enumerate(bit_names(circuit)))


def output_ports(circuit: Circuit) -> tuple[str, ...]:
    """One port for every output bit, with the name that the readout gives it: of its class, if classes have names."""
    names = circuit.readout.output_names(circuit.class_names)
    if not names:
        return tuple(f"y{i}" for i in range(circuit.outputs.size))
    return tuple(f"y{i}.{_escaped(name)}" for i, name in enumerate(names))


def names_of_ports(ports: Sequence[str]) -> tuple[str, ...]:
    """The bits' names behind input ports: what ``input_ports`` hid in them, or the ports as they are.

    Plain ports x0, x1, … carry no names: the result is empty.
    """
    if all(port == f"x{i}" for i, port in enumerate(ports)):
        return ()
    if all(re.fullmatch(rf"x{i}\.[A-Za-z0-9_%]*", port) for i, port in enumerate(ports)):
        return tuple(unquote(port.partition(".")[2], errors="replace") for port in ports)
    return tuple(ports)


def positions(ports: Sequence[str], exported: Sequence[str] | None) -> list[int]:
    """For every port of a netlist its number in the circuit.

    Tools may list ports in another order. If the names are exactly those that were exported, they decide; else the
    order does.
    """
    if exported is None or len(ports) != len(exported) or set(ports) != set(exported):
        return list(range(len(ports)))
    number = {name: i for i, name in enumerate(exported)}
    return [number[port] for port in ports]


def _escaped(name: str) -> str:
    kept = name[:_LIMIT].encode("utf-8", errors="replace")
    return re.sub(r"[.~-]", lambda match: f"%{ord(match[0]):02X}", quote(kept, safe=""))
