"""What follows from the codebook alone (app. ste-covjac, degree, codebook-neurons): no run is needed.

∂z/∂a = c_a + c_ab b
"""

from gatefit.codebook import CODEBOOK
from gatefit.gates import Gate, GateKind
from gatefit.paper.catalogue.draft import Draft, experiment
from gatefit.paper.outcome import Cell, Experiment, Panel, Series, Value
from gatefit.paper.values import paper

MONOMIALS = ("1", "a", "b", "ab")
_DEGREES = (
    ("c_0", "unconditional output", "FALSE, TRUE"),
    ("c_a a", "independent effect of a", "A, ¬A"),
    ("c_b b", "independent effect of b", "B, ¬B"),
    ("c_ab ab", "pairwise interaction", "AND, XOR, NAND"),
)


def show_enumeration(draft: Draft) -> None:
    """tab:ste-enumeration."""
    block, rows, smallest, largest = paper("tab:ste-enumeration"), [], [], []
    for gate in (Gate[name] for name in block.rows):
        _, c_a, _, c_ab = CODEBOOK[gate].tolist()
        own = (c_a, c_ab, c_a, c_a + c_ab)
        cells = [Cell(Value(float(v), unit=""), block[gate.name, c]) for v, c in zip(own, block.columns, strict=True)]
        rows.append((gate.name.replace("_", " "), cells))
        slopes = [abs(c_a), abs(c_a + c_ab)]
        smallest.append(min(slopes))
        largest.append(max(slopes))
    draft.table("∂z/∂a of the gates that depend on a", ("c_a", "c_ab", "at b=0", "at b=1"), rows, digits=0, best="none")
    dependent = [gate.name for gate in Gate if gate.depends_on_a]
    draft.theorem(
        "Twelve gates depend on a, and for each max over b of |∂z/∂a| is at least 1",
        set(dependent) == set(block.rows) and min(largest) >= 1,
        f"{len(dependent)} gates, smallest maximum {min(largest)}",
        id="twelve-gates",
    )
    equal = all(cell.difference == 0 for _, cells in rows for cell in cells)
    draft.theorem("Every entry of the paper's table is right", equal, f"{4 * len(rows)} entries compared", id="entries")
    draft.theorem(
        "|∂z/∂a| is at least 1 for every b (the caption of the paper's first figure)",
        min(smallest) >= 1,
        f"it is 0 at one of the two b for {smallest.count(0)} of {len(smallest)} gates: the bound is on the maximum",
        id="every-b",
    )


def show_degrees(draft: Draft) -> None:
    """tab:degree-complexity."""
    rows = []
    for k, (term, meaning, examples) in enumerate(_DEGREES):
        degree = len(MONOMIALS[k].replace("1", ""))
        if degree == 2:
            members = [gate for gate in Gate if CODEBOOK[gate][3] != 0]
        else:
            others = [i for i in range(1, 4) if i != k]
            members = [g for g in Gate if not CODEBOOK[g][others].any() and (k == 0 or CODEBOOK[g][k])]
        own = ", ".join(gate.name.replace("_", " ") for gate in members)
        rows.append((f"{degree}: {term}", [Cell(meaning), Cell(own, examples)]))
    draft.table("Degree as logical complexity", ("meaning", "gates whose highest term it is"), rows, best="none")
    interacting = [gate for gate in Gate if CODEBOOK[gate][3] != 0]
    draft.theorem(
        "Two inputs give four monomials: the four parameters are determined by the multilinear form",
        CODEBOOK.shape == (16, 4) and len({tuple(row) for row in CODEBOOK.tolist()}) == 16,
        f"sixteen different points in four dimensions; {len(interacting)} of them have a term of degree 2",
        id="four-monomials",
        definition=True,
    )


def show_codebook(draft: Draft) -> None:
    """fig:codebook-3d."""
    series = []
    for constant in (0, 1):
        for kind in GateKind:
            members = [gate for gate in Gate if gate.kind is kind and CODEBOOK[gate][0] == constant]
            points = CODEBOOK[members].astype(float)
            x, y, z = (tuple(points[:, k].tolist()) for k in (1, 2, 3))
            labels = tuple(gate.name.replace("_", " ") for gate in members)
            series.append(Series(f"c_0 = {constant}, {kind.value}", x, y, labels=labels, z=z))
    at = {gate: tuple(CODEBOOK[gate][1:].astype(float).tolist()) for gate in Gate}
    links = tuple((at[gate], at[gate.complement]) for gate in Gate if gate < gate.complement)
    draft.figure(
        "The sixteen gates in the space of (c_a, c_b, c_ab); lines join each gate to its complement, whose c_0 differs",
        Panel("the codebook", "scatter3d", "c_a", "c_b", tuple(series), z_label="c_ab", links=links),
    )
    rows = []
    for gate in Gate:
        numbers = [Cell(Value(float(c), unit="")) for c in CODEBOOK[gate]]
        rows.append((gate.name.replace("_", " "), [*numbers, Cell(gate.kind.value)]))
    draft.table("The codebook", ("c_0", "c_a", "c_b", "c_ab", "kind"), rows, digits=0, best="none")
    counts = {kind: sum(gate.kind is kind for gate in Gate) for kind in GateKind}
    draft.theorem(
        "The gates are 2 constant, 4 separable, 8 weakly and 2 strongly interacting",
        list(counts.values()) == [2, 4, 8, 2],
        ", ".join(f"{kind.value} {count}" for kind, count in counts.items()),
        id="kinds",
    )
    mirrored = all((CODEBOOK[gate] + CODEBOOK[gate.complement]).tolist() == [1, 0, 0, 0] for gate in Gate)
    draft.theorem(
        "Complements are mirror images: c(g) + c(1 - g) = (1, 0, 0, 0)",
        mirrored,
        "checked for all eight pairs",
        id="complements",
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:ste-enumeration", "The straight-through derivative, gate by gate", show_enumeration),
    experiment("tab:degree-complexity", "Degree as logical complexity", show_degrees),
    experiment("fig:codebook-3d", "The sixteen gates as points", show_codebook),
)
