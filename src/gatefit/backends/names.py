"""Names from outside in generated text: a name can be read there, and can do nothing else.

    comment text    printable ASCII; anything that could end, open or continue a comment as <U+002A>
    string          quotes, backslashes, trigraphs and bytes outside ASCII as escapes of the language
    identifier      letters, digits and _, unique, never a keyword
    port            x<i> or x<i>.<name> for input i, y<i> or y<i>.<class> for output i, of a netlist

Feature and class names come from data files; every backend passes them through here and through nothing else. In the
<name> of a port everything but letters, digits and _ is percent-encoded (UTF-8): no blank, newline, ``#`` or ``\\``
survives, so a name cannot end a line, open a comment or start a directive, and it can be read back. The number in front
keeps equal names apart.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from gatefit.circuit.ir import Circuit

_COMMENT_LIMIT: Final = 160
_PORT_LIMIT: Final = 120
"""Characters of a name in a port: tools have fixed buffers."""
_STRING_LIMIT: Final = 4000
"""Bytes of a name in a C string: the standard promises that 4095 characters are accepted."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


C_KEYWORDS: Final = _words(
    # C99 to C23, and C++, where the generated C is meant to compile too
    """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case
    catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast
    consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long main mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public reflexpr register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch synchronized template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void
    volatile wchar_t while xor xor_eq linux unix
    """
)
VERILOG_KEYWORDS: Final = _words(
    # Verilog-2001 and SystemVerilog
    """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin
    bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos
    config const constraint context continue cover covergroup coverpoint cross deassign default defparam design
    disable dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate
    endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify
    endtable endtask enum event eventually expect export extends extern final first_match for force foreach
    forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins
    implements implies import incdir include initial inout input inside instance int integer interconnect
    interface intersect join join_any join_none large let liblist library local localparam logic longint
    macromodule matches medium modport module nand negedge nettype new nexttime nmos nor noshowcancelled not
    notif0 notif1 null or output package packed parameter pmos posedge primitive priority program property
    protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
    randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0
    rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
    showcancelled signed small soft solve specify specparam static string strong strong0 strong1 struct super
    supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit
    tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until
    until_with untyped use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard
    wire with within wor xnor xor
    """
)


def given_names(circuit: Circuit) -> tuple[str, ...]:
    """The names that the input bits were given: their own, or their encoder's rules; none if there are none."""
    if circuit.input_names or circuit.encoder is None:
        return circuit.input_names
    return circuit.encoder.names


def bit_names(circuit: Circuit) -> tuple[str, ...]:
    """A name for every input bit: the one that it was given, or x0, x1, …"""
    return given_names(circuit) or tuple(f"x{i}" for i in range(circuit.inputs))


def class_names(circuit: Circuit) -> tuple[str, ...]:
    """A name for every class: its own, or its number."""
    return circuit.class_names or tuple(str(k) for k in range(circuit.readout.classes))


def comment_text(name: str) -> str:
    """A name inside a comment of C, Verilog or DOT, always on one line."""
    text = name if len(name) <= _COMMENT_LIMIT else name[:_COMMENT_LIMIT] + "..."
    # Without * there is no */ and no /*; without \ no line goes on; without ?? there is no trigraph for \.
    return re.sub(r"[^ -~]|[*\\]|\?(?=\?)", lambda match: f"<U+{ord(match[0]):04X}>", text)


def c_string(name: str) -> str:
    """A C string literal, quotes included, that holds the name in UTF-8."""
    data = name.encode("utf-8", errors="replace")
    if len(data) > _STRING_LIMIT:
        data = data[:_STRING_LIMIT].decode("utf-8", errors="ignore").encode("utf-8")
    # Octal escapes have at most three digits, so the next character cannot become part of one.
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\?' else f"\\{c:03o}" for c in data) + '"'


def quoted(name: str) -> str:
    """A name in double quotes for DOT, with every character that could end the quotes escaped."""
    text = re.sub(r"[^ -~]", lambda match: f"<U+{ord(match[0]):04X}>", name)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def require_identifier(name: str, keywords: frozenset[str], language: str) -> str:
    """The name, if it can name a function or module as it is; names that the user chooses are not changed."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name) or name in keywords:
        raise ValueError(
            f"{name!r} cannot name anything in {language}; use a letter, then letters, digits or _ (63 at most), "
            f"and no keyword"
        )
    return name


def identifiers(names: Sequence[str], keywords: frozenset[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Different identifiers that resemble the names: ``"age > 37.5"`` becomes ``age_37_5``."""
    used, result = {name.lower() for name in taken}, []
    numbers: dict[str, int] = {}
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:48] or "x"
        if not stem[0].isalpha() or stem.lower() in keywords:
            stem = f"x_{stem}"
        # Some tools fold the case of identifiers, so names that differ by case only are told apart too.
        chosen = stem
        while chosen.lower() in used:
            numbers[stem] = numbers.get(stem, 1) + 1
            chosen = f"{stem}_{numbers[stem]}"
        used.add(chosen.lower())
        result.append(chosen)
    return tuple(result)


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
    kept = name[:_PORT_LIMIT].encode("utf-8", errors="replace")
    return re.sub(r"[.~-]", lambda match: f"%{ord(match[0]):02X}", quote(kept, safe=""))
