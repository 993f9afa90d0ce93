"""Basis and constraint (paper §5.2, app. basis-constraint, app. ste-failures): what the polynomial basis does to STE.

basis × constraint   {polynomial, corner} × {straight-through snap, free}
backward basis       ψ~ = A ψ in the straight-through gradient, forward pass unchanged
"""

from dataclasses import replace
from typing import Any

from gatefit.codebook import affine_basis
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, experiment, loss
from gatefit.paper.catalogue.measures import discretisation_gap, soft_accuracy
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import METHOD_NAMES
from gatefit.paper.values import paper, paper_number

FACTORIAL = ("multilinear-ste", "iwp-ste", "multilinear-free", "iwp-free")
_COLLAPSED = 50.0
"""A per cent of MNIST below which a network has not just fallen behind."""
_FREE = "not Boolean: accuracy of the soft network"
_CHANGES = {
    "iwp-ste": "corner basis, straight-through",
    "multilinear-ste": "→ polynomial basis",
    "multilinear-covjac": "→ CovJac gradient",
    "soft-mix": "→ softmax over 16 gates",
    "iwp": "corner basis, continuous",
    "multilinear-free": "polynomial basis, continuous",
}


def _noted(cell: Cell, note: str) -> Cell:
    return Cell(cell.ours, cell.paper, "; ".join(filter(None, (note, cell.note))))


def _free_cell(cell: Cell, method: str) -> Cell:
    return _noted(cell, _FREE) if method.endswith("-free") and cell.ours is not None else cell


def show_ablation(draft: Draft) -> None:
    """tab:ablation."""
    block, rows, before = paper("tab:ablation"), [], None
    values: dict[str, Value | None] = {}
    for m, change in _CHANGES.items():
        values[m] = draft.value("mnist", m)
        step = difference(values[m], before) if block[m, "step"] is not None else None
        before = values[m]
        cell = _free_cell(draft.cell(block[m, "mnist"], "mnist", m), m)
        delta = Cell(step, block[m, "step"], "" if step or block[m, "step"] is None else NO_RUNS)
        rows.append((f"{METHOD_NAMES[m]}: {change}", [cell, delta]))
    draft.table(f"{draft.name('mnist')}, L=6: one design choice at a time", ("accuracy, %", "step"), rows)
    continuous = Cell(draft.value("mnist", "iwp", soft_accuracy), None, "IWP before rounding")
    gap = draft.cell(None, "mnist", "iwp", discretisation_gap, "pp")
    draft.table(
        "IWP before and after rounding",
        ("soft, %", "deployed, %", "gap"),
        [("IWP", [continuous, draft.cell(block["iwp", "mnist"], "mnist", "iwp"), gap])],
        best="none",
    )
    theirs = paper("sec:ablation")
    parts = {}
    for dataset in ("mnist", "cifar10", "adult"):
        high, low = (draft.value(dataset, m) for m in ("multilinear-ste", "iwp-ste"))
        part = above(draft.name(dataset), ("M-STE", high), ("IWP-STE", low), by=1.0)
        claimed = theirs["basis", dataset]
        said = f" (paper: {claimed.mean:+.2f})" if claimed else ""
        parts[dataset] = replace(part, evidence=part.evidence + said)
        text = f"The polynomial basis beats the corner basis under STE on {draft.name(dataset)}"
        draft.claim(text, parts[dataset], id=f"basis-{dataset}")
    draft.claim(
        "The CovJac gradient beats the straight-through gradient on MNIST",
        above(
            "",
            ("M-CovJac", values["multilinear-covjac"]),
            ("M-STE", values["multilinear-ste"]),
            (block["multilinear-covjac", "mnist"], block["multilinear-ste", "mnist"]),
        ),
        id="covjac-beats-ste",
    )
    free, snapped = values["multilinear-free"], values["multilinear-ste"]
    typed = [paper_number("tab:ablation", m, "mnist") for m in ("multilinear-free", "multilinear-ste")]
    draft.claim(
        "The polynomial basis alone, continuous, is about as accurate as M-STE, within a point",
        Part(
            None if free is None or snapped is None else abs(free.mean - snapped.mean) < 1.0,
            NO_RUNS
            if free is None or snapped is None
            else f"M-free {free.mean:.2f}, M-STE {snapped.mean:.2f} (paper: {typed[0]:.2f} and {typed[1]:.2f})",
        ),
        id="free-as-accurate",
    )
    draft.note("IWP is reported as deployed, with its corner weights rounded; its soft accuracy stands below.")


def show_factorial(draft: Draft) -> None:
    """tab:basis-constraint-main."""
    block = paper("tab:basis-constraint-main")
    rows = [(METHOD_NAMES[m], [_free_cell(draft.cell(block[m, "mnist"], "mnist", m), m)]) for m in (*FACTORIAL, "iwp")]
    draft.table(f"{draft.name('mnist')}, L=6: basis and constraint", ("accuracy, %",), rows, best="none")
    v = {m: draft.value("mnist", m) for m in FACTORIAL}
    draft.claim(
        "Under STE the polynomial basis beats the corner basis by far",
        above(
            "",
            ("M-STE", v["multilinear-ste"]),
            ("IWP-STE", v["iwp-ste"]),
            (block["multilinear-ste", "mnist"], block["iwp-ste", "mnist"]),
            by=2.0,
        ),
        id="basis-by-far",
    )
    ste, free = (difference(v[f"multilinear-{kind}"], v[f"iwp-{kind}"]) for kind in ("ste", "free"))
    typed = {
        kind: paper_number("tab:basis-constraint-main", f"multilinear-{kind}", "mnist")
        - paper_number("tab:basis-constraint-main", f"iwp-{kind}", "mnist")
        for kind in ("ste", "free")
    }
    draft.claim(
        "Without STE the two bases are comparable: the effect is the basis under STE, not the function class",
        Part(
            None if ste is None or free is None else abs(free.mean) < abs(ste.mean) / 2,
            NO_RUNS
            if ste is None or free is None
            else f"polynomial less corner: {ste.mean:+.2f} under STE (paper: {typed['ste']:+.2f}), {free.mean:+.2f} "
            f"free ({typed['free']:+.2f})",
        ),
        id="free-comparable",
    )
    here, there = (
        paper_number(label, "multilinear-free", "mnist") for label in ("tab:basis-constraint-main", "tab:ablation")
    )
    draft.note(
        f"The paper gives Multilinear-free as {here} % in this table and as {there} % in its text and tab:ablation."
    )


def show_factorial_depth(draft: Draft) -> None:
    """tab:basis-constraint-depth."""
    block, depths = paper("tab:basis-constraint-depth"), (1, 6, 12)
    rows, v = [], dict[tuple[str, int], Value | None]()
    for m in FACTORIAL:
        cells = [_free_cell(draft.cell(block[m, d], "mnist", m, depth=d), m) for d in depths]
        rows.append((METHOD_NAMES[m], cells))
        v |= {(m, d): draft.value("mnist", m, depth=d) for d in depths}
    columns = [f"L={d}" for d in depths]
    draft.table(f"{draft.name('mnist')}: basis and constraint by depth, accuracy, %", columns, rows, best="none")
    gaps = {d: difference(v["multilinear-ste", d], v["iwp-ste", d]) for d in depths}
    typed = {d: difference(block["multilinear-ste", d], block["iwp-ste", d]) for d in depths}
    draft.claim(
        "M-STE's lead over IWP-STE grows with depth",
        above("M-STE less IWP-STE", ("L=6", gaps[6]), ("L=1", gaps[1]), (typed[6], typed[1]), by=1.0),
        above("M-STE less IWP-STE", ("L=12", gaps[12]), ("L=6", gaps[6]), (typed[12], typed[6]), by=1.0),
        id="lead-grows",
    )
    lost, words = loss(
        "IWP-STE",
        v["iwp-ste", 6],
        v["iwp-ste", 12],
        (block["iwp-ste", 6], block["iwp-ste", 12]),
        " from L=6 to L=12",
    )
    draft.claim("IWP-STE collapses at L=12", Part(None if lost is None else lost > 10.0, words), id="iwp-ste-collapses")
    draft.claim(
        "Without STE the ranking reverses at L=12: IWP-free holds, M-free drops",
        above(
            "L=12",
            ("IWP-free", v["iwp-free", 12]),
            ("M-free", v["multilinear-free", 12]),
            (block["iwp-free", 12], block["multilinear-free", 12]),
        ),
        id="free-reverses",
    )
    first = [value.mean for m in FACTORIAL if (value := v[m, 1]) is not None]
    spread = max(first) - min(first) if len(first) == len(FACTORIAL) else None
    typed_first = [paper_number("tab:basis-constraint-depth", m, 1) for m in FACTORIAL]
    said = f"(paper: {max(typed_first) - min(typed_first):.2f})"
    draft.claim(
        "At L=1 all four are within about half a point",
        Part(
            None if spread is None else spread < 1.0,
            NO_RUNS if spread is None else f"{spread:.2f} points apart {said}",
        ),
        id="one-layer-alike",
    )


def show_bases(draft: Draft) -> None:
    """tab:ste-basis-catalogue."""
    block, rows, v = paper("tab:ste-basis-catalogue"), [], {}
    for name in block.rows:
        changes: dict[str, Any] = {} if name == "canonical" else {"backward_basis": name}
        v[name] = draft.value("mnist", "multilinear-ste", **changes)
        basis = affine_basis(name)
        cells = [
            draft.cell(block[name, "mnist"], "mnist", "multilinear-ste", **changes),
            *(Cell(Value(float(x), unit="")) for x in (basis.coverage, basis.coherence, basis.bias)),
        ]
        rows.append((name, cells))
    draft.table(
        f"{draft.name('mnist')}, L=6: M-STE with other backward bases",
        ("accuracy, %", "coverage ρ", "coherence κ", "bias B"),
        rows,
        best="none",
    )
    for name, reason in (
        ("walsh", "falls behind the canonical one: its gradients for c_ab cancel (κ = 0)"),
        ("smoothed", "collapses: its gradient is biased (B > 0)"),
        ("expected-value", "collapses: its basis is constant"),
        ("uniform", "collapses: its basis is constant"),
    ):
        theirs = (block["canonical", "mnist"], block[name, "mnist"])
        draft.claim(f"The {name} basis {reason}", _failing(name, v["canonical"], v[name], theirs), id=name)
    draft.claim(
        "Bias is worse than incoherence: smoothed falls below Walsh",
        above(
            "",
            ("walsh", v["walsh"]),
            ("smoothed", v["smoothed"]),
            (block["walsh", "mnist"], block["smoothed", "mnist"]),
            by=1.0,
        ),
        id="bias-worse",
    )
    draft.note("ρ, κ and B are computed exactly. The paper ran the two constant bases at 8,000 gates, with one seed.")
    draft.note("The paper says that B = 0 also where φ(1) = 0; φ(x) = 1 - x has B > 0.")


def _failing(
    name: str, canonical: Value | None, other: Value | None, theirs: tuple[Value | None, Value | None]
) -> Part:
    """Behind the canonical basis; where the paper's own figure is near chance, it must have collapsed here too."""
    collapsed = theirs[1] is not None and theirs[1].mean < _COLLAPSED
    part = above("", ("canonical", canonical), (name, other), theirs, by=0.5)
    if collapsed and canonical is not None and other is not None and other.mean >= _COLLAPSED:
        return Part(False, part.evidence)
    return part


def show_controls(draft: Draft) -> None:
    """The paragraph on controls in §5.4: Hard-ST, Walsh, smoothed."""
    block = paper("sec:controls")
    rows = [
        ("Hard-ST", [draft.cell(block["hard-st", d], d, "hard-st") for d in ("mnist", "cifar10")]),
        *(
            (
                f"M-STE, {name} basis",
                [draft.cell(block[name, "mnist"], "mnist", "multilinear-ste", backward_basis=name), Cell()],
            )
            for name in ("walsh", "smoothed")
        ),
        *(
            (METHOD_NAMES[m], [draft.cell(paper("tab:mnist-main")[m, d], d, m) for d in ("mnist", "cifar10")])
            for m in ("multilinear-ste", "multilinear-covjac")
        ),
    ]
    columns = [draft.name(d) for d in ("mnist", "cifar10")]
    draft.table(f"Controls: {draft.measure}, %, with M-STE and M-CovJac for comparison", columns, rows)
    deep = Cell(draft.value("mnist", "hard-st", depth=12), None, "the paper gives no number for L=12")
    draft.table(f"Hard-ST at L=12 on {draft.name('mnist')}", ("accuracy, %",), [("Hard-ST", [deep])], best="none")
    hard, deep_hard = draft.value("mnist", "hard-st"), draft.value("mnist", "hard-st", depth=12)
    text = NO_RUNS if hard is None or deep_hard is None else f"{hard.mean:.2f} at L=6, {deep_hard.mean:.2f} at L=12"
    draft.claim(
        "One gate in the forward pass suffices for depth stability: Hard-ST, with 16 parameters, holds at L=12",
        Part(None if hard is None or deep_hard is None else deep_hard.mean > hard.mean - 2.0, text),
        id="hard-st-holds",
    )
    draft.claim(
        "Hard-ST does not cure starvation: M-CovJac is ahead of it on CIFAR-10",
        above(
            "",
            ("M-CovJac", draft.value("cifar10", "multilinear-covjac")),
            ("Hard-ST", draft.value("cifar10", "hard-st")),
            (paper("tab:mnist-main")["multilinear-covjac", "cifar10"], block["hard-st", "cifar10"]),
        ),
        id="hard-st-starves",
    )
    canonical = draft.value("mnist", "multilinear-ste")
    for name in ("walsh", "smoothed"):
        other = draft.value("mnist", "multilinear-ste", backward_basis=name)
        theirs = (paper("tab:ste-basis-catalogue")["canonical", "mnist"], block[name, "mnist"])
        verb = "falls behind" if name == "walsh" else "collapses"
        draft.claim(f"The {name} basis {verb}", _failing(name, canonical, other, theirs), id=name)


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:ablation", "One design choice at a time", show_ablation),
    experiment("tab:basis-constraint-main", "Basis and constraint", show_factorial),
    experiment("tab:basis-constraint-depth", "Basis and constraint by depth", show_factorial_depth),
    experiment("tab:ste-basis-catalogue", "Other backward bases for STE", show_bases),
    experiment("sec:controls", "Controls: Hard-ST, Walsh, smoothed", show_controls),
)
