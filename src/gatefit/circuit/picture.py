"""A circuit at a glance, for notebooks: what it is, its gates by kind, and a small drawing; plain HTML and inline SVG.

    column     a level: the gates with as many logic gates below them on their longest path; inputs on the left
    up to ``MOST_DRAWN`` live gates      a dot a gate, a line a wire, scores on the right
    more                                 a bar a level, as long as there are live gates on it, by kind

Nothing is executed in it, and every name from outside is escaped.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.circuit.statistics import Statistics, fan_out, levels, statistics
from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, Gate, GateKind

MOST_DRAWN: Final = 150
"""Live gates up to which each of them is drawn."""
WIDTH, HEIGHT, MARGIN = 460, 170, 14
KINDS: Final[dict[str, tuple[str, str]]] = {
    "and": ("AND, OR and the like", "#3b6fb5"),
    "xor": ("XOR, XNOR", "#c8553d"),
    "wire": ("inverters, wires, constants", "#9aa0a6"),
}
"""Kinds that are told apart, what they are called, and their colours."""
_INPUT, _SCORE, _LINE = "#5f6368", "#2f8f5b", "#c4c7cc"


def described(circuit: Circuit, counts: Statistics) -> str:
    """What it is, in one sentence."""
    answers = "one value" if circuit.readout.gives_value else f"{circuit.readout.classes} classes"
    reads = (
        f"{counts.used_inputs:,} of {circuit.inputs:,} bits"
        if circuit.encoder is None
        else f"{circuit.encoder.features:,} features through {counts.used_inputs:,} comparisons"
    )
    levels_of = f"{counts.depth} level{'' if counts.depth == 1 else 's'}"
    return f"{counts.live_gates:,} live gates in {levels_of} read {reads} and give {answers}"


def to_html(circuit: Circuit) -> str:
    """A few lines of HTML: the sentence, the census, the drawing."""
    counts = statistics(circuit)
    said = " · ".join(
        f"{escape(name)} {escape(value[: 12 if name == 'data' else 120])}"
        for name, value in sorted(circuit.metadata.items())
        if name != "dataset_options"
    )
    head = f"<strong>Circuit</strong>: {escape(described(circuit, counts))}.<br><small>{said}</small>"
    return _box("gatefit-circuit", head, to_svg(circuit), counts.census, "live")


def layers_html(title: str, layers: Sequence[UInt8[np.ndarray, " gates"]]) -> str:
    """The same of layers of gates that are not a circuit yet: a bar a layer, whatever reads its gates."""
    numbers = np.bincount(np.concatenate([np.empty(0, np.uint8), *layers]), minlength=16)
    drawing = _framed(_chart(layers, 1)) if layers else ""
    return _box("gatefit-network", escape(title), drawing, {gate.name: int(numbers[gate]) for gate in Gate}, "trained")


def _box(name: str, head: str, drawing: str, census: Mapping[str, int], what: str) -> str:
    found = sorted(((count, gate) for gate, count in census.items() if count), reverse=True)
    cells = "".join(
        f'<tr><td style="text-align:left">{gate.replace("_", " ").lower()}</td>'
        f'<td style="text-align:right">{count:,}</td></tr>'
        for count, gate in found
    )
    return (
        f'<div class="{name}" style="font-family:sans-serif;font-size:13px">{head}'
        f'<div style="display:flex;gap:24px;align-items:flex-start;margin-top:6px">{drawing}'
        f'<table style="margin:0;font-size:13px"><thead><tr><th style="text-align:left">gate</th><th>{what}</th></tr>'
        f"</thead><tbody>{cells}</tbody></table></div></div>"
    )


def to_svg(circuit: Circuit) -> str:
    """The drawing alone."""
    live = fan_out(circuit) > 0
    gates = np.flatnonzero(live[circuit.inputs :]) + circuit.inputs
    return _framed(_wires(circuit, live, gates) if len(gates) <= MOST_DRAWN else _bars(circuit, gates))


def _framed(body: str) -> str:
    """A drawing with its legend."""
    legend, x = [], MARGIN
    for text, colour in KINDS.values():
        legend.append(f'<circle cx="{x}" cy="{HEIGHT + 8}" r="4" fill="{colour}"/>')
        legend.append(f'<text x="{x + 8}" y="{HEIGHT + 12}" font-size="11" fill="#5f6368">{text}</text>')
        x += 30 + round(6.2 * len(text))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="gates, from inputs to scores" '
        f'width="{WIDTH}" height="{HEIGHT + 20}" viewBox="0 0 {WIDTH} {HEIGHT + 20}">{body}{"".join(legend)}</svg>'
    )


def _kind(number: int) -> str:
    gate = Gate(number)
    if not (gate.depends_on_a and gate.depends_on_b):
        return "wire"
    return "xor" if gate.kind is GateKind.STRONG_INTERACTION else "and"


def _wires(circuit: Circuit, live: Bool[np.ndarray, " nodes"], gates: Int64[np.ndarray, " live"]) -> str:
    """Every live gate as a dot, in the column of its level."""
    level = levels(circuit)
    # Wires and inverters count no level of their own: they stand right of what they read.
    column = np.zeros(circuit.nodes, np.int64)
    reads: dict[int, list[int]] = {}
    for node in gates.tolist():
        kind = circuit.gates[node - circuit.inputs]
        operands = circuit.operands[:, node - circuit.inputs].tolist()
        reads[node] = [a for a, used in zip(operands, (DEPENDS_ON_A[kind], DEPENDS_ON_B[kind]), strict=True) if used]
        column[node] = max([level[node], *(column[a] + 1 for a in reads[node])])
    inputs = np.flatnonzero(live[: circuit.inputs])
    last = int(column[gates].max(initial=0)) + 1
    place: dict[int, tuple[float, float]] = {}
    for number in range(last):
        own = inputs if number == 0 else gates[column[gates] == number]
        if number == 0:
            own = np.concatenate([inputs, gates[column[gates] == 0]])
        # Near what it reads: the mean height of its operands decides the order within a column.
        height = [np.mean([place[a][1] for a in reads.get(node, ()) if a in place] or [0.0]) for node in own.tolist()]
        for i, node in enumerate(own[np.argsort(height, kind="stable")].tolist()):
            place[node] = _at(number, last, i, len(own))
    scores = [_at(last, last, k, circuit.readout.classes) for k in range(circuit.readout.classes)]
    lines = [_line(place[a], place[node], _LINE) for node in gates.tolist() for a in reads[node]]
    owners = None if circuit.readout.sums() is None else circuit.readout.sums_for("a drawing", compares_totals=False)
    if owners is not None:
        pairs = {
            (int(circuit.outputs[i]), int(k))
            for i, k in zip(owners.outputs.tolist(), owners.sums.tolist(), strict=True)
        }
        lines += [_line(place[node], scores[k], "#d9e8df") for node, k in sorted(pairs)]
    dots = [f'<rect x="{x - 2.5:.1f}" y="{y - 2.5:.1f}" width="5" height="5" fill="{_INPUT}"/>' for x, y in
            (place[node] for node in inputs.tolist())]  # fmt: skip
    dots += [
        f'<circle cx="{place[node][0]:.1f}" cy="{place[node][1]:.1f}" r="3.5" '
        f'fill="{KINDS[_kind(int(circuit.gates[node - circuit.inputs]))][1]}"/>'
        for node in gates.tolist()
    ]
    dots += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{_SCORE}"/>' for x, y in scores]
    return "".join([*lines, *dots])


def _at(column: int, last: int, i: int, count: int) -> tuple[float, float]:
    """The i-th of ``count`` places in a column."""
    return MARGIN + (WIDTH - 2 * MARGIN) * column / max(1, last), HEIGHT * (i + 0.5) / count


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{colour}" stroke-width="1"/>'
    )


def _bars(circuit: Circuit, gates: Int64[np.ndarray, " live"]) -> str:
    """A bar for each level, by kind."""
    level = levels(circuit)[gates]
    first = int(level.min())  # wires and constants alone are on level 0
    return _chart(
        [circuit.gates[gates - circuit.inputs][level == number] for number in range(first, level.max() + 1)], first
    )


def _chart(columns: Sequence[UInt8[np.ndarray, " gates"]], first: int) -> str:
    """A bar for each column of gates, the first of which is number ``first``."""
    of_kind = np.array([list(KINDS).index(_kind(number)) for number in range(16)])
    counts = [np.bincount(of_kind[gates], minlength=len(KINDS)).tolist() for gates in columns]
    tallest, step = max(1, *(sum(row) for row in counts)), (WIDTH - 2 * MARGIN) / len(counts)
    parts = []
    for number, row in enumerate(counts):
        y, x = float(HEIGHT), MARGIN + number * step
        for count, (_, colour) in zip(row, KINDS.values(), strict=True):
            height = (HEIGHT - 16) * count / tallest
            y -= height
            if count:
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.8 * step:.1f}" height="{height:.1f}" fill="{colour}">'
                    f"<title>level {number + first}: {count:,}</title></rect>"
                )
        if step >= 28:
            parts.append(
                f'<text x="{x + 0.4 * step:.1f}" y="{y - 3:.1f}" font-size="10" text-anchor="middle" '
                f'fill="#5f6368">{sum(row):,}</text>'
            )
    return "".join(parts)
