"""Runs beside the paper's that a small machine can afford at, or near, the paper's own scale."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment, loss
from gatefit.paper.catalogue.measures import accuracy_until, best_accuracy, discretisation_gap
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Cell, Experiment, Scale, Value
from gatefit.paper.scales import DEPTHS, MAIN_METHODS, METHOD_NAMES, SETTINGS
from gatefit.paper.values import paper

MONKS_METHODS = (*MAIN_METHODS, "hard-st", "iwp", "iwp-ste")
LITERAL_GUMBEL: Final[dict[str, Any]] = {"noise_in": None}
"""Noise in the forward pass too: Gumbel-ST as it is usually written down."""
CORNER_METHODS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "IWP-STE": ("iwp-ste", {}),
    "IWP-STE, sigmoid(s) snapped": ("iwp-ste", {"corner_activation": "sigmoid"}),
    "IWP-STE, 1/2 + 1/2 sin(s) snapped": ("iwp-ste", {"corner_activation": "sin01"}),
    "IWP, rounded": ("iwp", {}),
}
"""Ways to train four corner weights into a gate; the first is the paper's ablation."""
CLASSES: Final = {"adult": 2, "splice": 3, "monks-1": 2, "monks-3": 2}
NARROW = 8000
SHORT = 20_000
_RULE: Final = "These runs have the rule of thumb's class scores, T = 0.36 √(gates a class); Splice has one split."


def show_monks(draft: Draft) -> None:
    """All seven methods on MONK's-2, which costs seconds at the paper's own scale."""
    last, best = paper("tab:mnist-main"), paper("tab:best-acc")
    rows = [
        (
            METHOD_NAMES[m],
            [
                draft.cell(last[m, "monks-2"], "monks-2", m),
                draft.cell(best[m, "monks-2"], "monks-2", m, best_accuracy),
                draft.cell(None, "monks-2", m, discretisation_gap, "pp"),
            ],
        )
        for m in MONKS_METHODS
    ]
    literal = [
        draft.cell(None, "monks-2", "gumbel-st", **LITERAL_GUMBEL),
        draft.cell(None, "monks-2", "gumbel-st", best_accuracy, **LITERAL_GUMBEL),
        draft.cell(None, "monks-2", "gumbel-st", discretisation_gap, "pp", **LITERAL_GUMBEL),
    ]
    rows.append(("Gumbel-ST, noise in both passes", literal))
    draft.table(f"{draft.name('monks-2')}: accuracy, %", (draft.measure, "best checkpoint", "DG"), rows)
    values = draft.methods("monks-2", MONKS_METHODS)
    draft.claim("M-CovJac is the best of seven methods on MONK's-2", best_of("", values), id="best-of-seven")
    draft.claim(
        "M-STE is behind Soft-Mix on MONK's-2, which needs every pairwise interaction",
        above(
            "",
            ("Soft-Mix", values["Soft-Mix"]),
            ("M-STE", values["M-STE"]),
            (last["soft-mix", "monks-2"], last["multilinear-ste", "monks-2"]),
        ),
        id="ste-behind-soft-mix",
    )
    draft.claim(
        "The polynomial basis beats the corner basis under STE on MONK's-2",
        above("", ("M-STE", values["M-STE"]), ("IWP-STE", values["IWP-STE"])),
        id="basis",
    )


def _by_depth(
    draft: Draft, dataset: str, methods: Sequence[str], depths: Sequence[int], label: str, width: int | None
) -> dict[tuple[str, int], Value | None]:
    """Accuracy after the short runs' steps: of a longer run, as it stood then."""
    setting = SETTINGS[draft.scale][dataset]
    short = min(SHORT, setting.steps)
    block, rows = paper(label), []
    values: dict[tuple[str, int], Value | None] = {}
    for m in methods:
        cells = []
        for depth in depths:
            changes = {} if width is None else {"width": width}
            # Six layers and fewer are there with all their steps; deeper ones are run for the short budget.
            steps = setting.steps if depth in _SHARED[dataset] else short
            configs = draft.rule_configs(dataset, m, depth=depth, steps=steps, **changes)
            theirs = block[m, depth] if depth in DEPTHS else None
            cell = draft.cell_of(configs, theirs, accuracy_until(short))
            values[m, depth] = cell.value
            cells.append(cell)
        rows.append((METHOD_NAMES[m], cells))
    draft.table(
        f"{draft.name(dataset)}, k={width or setting.width:,}: accuracy, %, at step {short:,}",
        [f"L={depth}" for depth in depths],
        rows,
    )
    return values


_SHARED = {"mnist": (1, 3, 6), "adult": (6,)}


def _depth_claims(draft: Draft, dataset: str, values: dict[tuple[str, int], Value | None], label: str) -> None:
    block = paper(label)
    lost = {
        m: loss(METHOD_NAMES[m], values[m, 6], values[m, 12], (block[m, 6], block[m, 12]))
        for m in ("soft-mix", "multilinear-ste", "multilinear-covjac")
    }
    words = "; ".join(text for _, text in lost.values())
    soft, covjac = lost["soft-mix"][0], lost["multilinear-covjac"][0]
    missing = soft is None or covjac is None
    name = draft.name(dataset)
    draft.claim(
        f"From L=6 to L=12 Soft-Mix loses more than M-CovJac on {name}",
        Part(None if soft is None or covjac is None else soft > covjac + 1.0, words),
        id="soft-mix-loses-more",
    )
    held = None if missing or covjac is None else covjac < 1.0
    draft.claim(f"M-CovJac loses less than a point from L=6 to L=12 on {name}", Part(held, words), id="covjac-holds")


def show_mnist(draft: Draft) -> None:
    """MNIST at the width of the paper's narrowest networks, with twelve layers too."""
    methods = ("soft-mix", "multilinear-ste", "multilinear-covjac")
    width = NARROW if draft.scale == "paper" else None
    values = _by_depth(draft, "mnist", methods, (3, 6, 12), "tab:depth", width)
    _depth_claims(draft, "mnist", values, "tab:depth")
    if draft.scale == "paper":
        block, depths = paper("tab:width-scaling"), (1, 3, 6)
        rows = [
            (
                METHOD_NAMES[m],
                [draft.cell(block[f"{d}/{width}", m], "mnist", m, depth=d, width=width) for d in depths],
            )
            for m in MAIN_METHODS
        ]
        title = f"{draft.name('mnist')}, k={width:,}: accuracy, %, after all 50,000 steps"
        draft.table(title, [f"L={d}" for d in depths], rows)
        _agreement(draft, [(f"{m}, L={d}", cell) for m, cells in rows for d, cell in zip(depths, cells, strict=True)])
        draft.note(
            "The paper's values beside ours are those of 64,000 gates a layer and 50,000 steps (tab:depth) in the "
            "first table, those of as many gates and steps as here (tab:width-scaling) in the second."
        )


def _agreement(draft: Draft, cells: Sequence[tuple[str, Cell]]) -> None:
    """Ours is the paper's within a point, in every cell."""
    apart = {
        name: cell.ours.mean - cell.paper.mean
        for name, cell in cells
        if isinstance(cell.ours, Value) and isinstance(cell.paper, Value)
    }
    name, most = max(apart.items(), key=lambda item: abs(item[1]), default=("", 0.0))
    holds = None if len(apart) < len(cells) and abs(most) <= 1.0 else abs(most) <= 1.0
    text = f"{len(apart)} of {len(cells)} with runs; farthest apart: {name} by {most:+.2f}" if apart else NO_RUNS
    claim = "Every method at every depth is within a point of the paper's accuracy (not a claim of the paper)"
    draft.claim(claim, Part(holds, text), id="agreement")


def show_basis(draft: Draft) -> None:
    """The polynomial basis against the corner basis under STE, at the narrow width for which the paper has it too."""
    width = NARROW if draft.scale == "paper" else SETTINGS[draft.scale]["mnist"].width
    theirs = paper("sec:ablation")["basis", "mnist-8k"]
    first = draft.cell(None, "mnist", "multilinear-ste", width=width)
    rows = [("M-STE", [first, Cell("")])]
    parts: dict[str, Part] = {}
    for name, (method, changes) in CORNER_METHODS.items():
        cell = draft.cell(None, "mnist", method, width=width, **changes)
        gap = difference(first.value, cell.value)
        rows.append((name, [cell, Cell(gap, None if parts else theirs, "" if gap else NO_RUNS)]))
        parts[name] = above("", ("M-STE", first.value), (name, cell.value), by=1.0)
    title = f"{draft.name('mnist')}, k={width:,}, L=6: the basis, accuracy as deployed, %"
    draft.table(title, ("accuracy, %", "M-STE less it"), rows, best="none")
    asked, *others = parts.values()
    evidence = f"{asked.evidence} (paper: about +{theirs.mean:.0f})" if isinstance(theirs, Value) else asked.evidence
    text = "The polynomial basis beats the corner basis under STE on MNIST"
    draft.claim(text, replace(asked, evidence=evidence), id="basis")
    text = "M-STE beats the corner basis however that is snapped or rounded (not a claim of the paper)"
    draft.claim(text, *others, id="basis-however")
    draft.note("The paper gives the difference at 8,000 gates a layer in its caveats, without the two accuracies.")
    draft.note(
        "IWP-STE snaps each corner weight s to the nearer of 0 and 1. The rows below it are other ways to read its "
        "name: an activation of s is snapped, as IWP rounds it, and the gradient passes through the activation's slope."
    )


def show_adult(draft: Draft) -> None:
    """Adult by depth with fewer steps."""
    values = _by_depth(draft, "adult", MAIN_METHODS, DEPTHS, "tab:adult-depth", None)
    _depth_claims(draft, "adult", values, "tab:adult-depth")
    draft.note("The paper's values are those after 50,000 steps, of three seeds (tab:adult-depth).")
    draft.note(_RULE)


def show_encoding(draft: Draft) -> None:
    """Adult with the six hours columns always 0, as difflogic's code leaves them."""
    block, rows, parts = paper("tab:mnist-main"), [], []
    for m in MAIN_METHODS:
        cells = [draft.cell_of(draft.rule_configs("adult", m), block[m, "adult"])]
        if draft.scale == "tiny":
            cells.append(Cell(None, block[m, "adult"], "another data set stands in for Adult"))
        else:
            encoded = draft.rule_configs("adult", m, adult_encoding="difflogic")
            cells.append(draft.cell_of(encoded, block[m, "adult"]))
            parts.append(above(METHOD_NAMES[m], ("hours set", cells[0].value), ("hours 0", cells[1].value)))
        rows.append((METHOD_NAMES[m], cells))
    draft.table("Adult: accuracy, %, by encoding", ("hours columns set", "hours columns 0 (difflogic)"), rows)
    draft.claim("Setting the hours columns helps every method (not a claim of the paper)", *parts, id="hours-help")
    draft.note(_RULE)


def softer(scale: Scale, dataset: str) -> float:
    """20 √(gates a class / 128): the class-score temperature that difflogic has for Adult, at this scale's width."""
    setting = SETTINGS[scale][dataset]
    return float(round(20 * sqrt(setting.width / (CLASSES[setting.dataset] * 128))))


def show_class_scores(draft: Draft) -> None:
    """Adult and Splice with class scores five times as soft as those of the rule of thumb."""
    block, columns = paper("tab:mnist-main"), []
    rows: dict[str, list[Cell]] = {METHOD_NAMES[m]: [] for m in MAIN_METHODS}
    best = []
    for name in ("adult", "splice"):
        softness = softer(draft.scale, name)
        columns += [f"{draft.name(name)}, rule", f"{draft.name(name)}, T = {softness:g}"]
        values, parts = {}, []
        for m in MAIN_METHODS:
            method, theirs = METHOD_NAMES[m], block[m, name]
            rule = draft.cell_of(draft.rule_configs(name, m), theirs)
            soft = draft.cell_of(draft.rule_configs(name, m, readout_temperature=softness), theirs)
            rows[method] += [rule, soft]
            values[method] = soft.value
            parts.append(above(method, (f"T = {softness:g}", soft.value), ("the rule", rule.value)))
        best.append(best_of(draft.name(name), values))
        text = f"Softer class scores help every method on {draft.name(name)} (not a claim of the paper)"
        draft.claim(text, *parts, id=f"softer-helps-{name}")
    draft.claim("M-CovJac is the best method with softer class scores too", *best, id="best")
    draft.table("Accuracy, %, by the temperature T of the class scores", columns, rows.items())
    draft.note(
        "The rule: T = 0.36 √(gates a class), the default. Beside it T = 20 √(gates a class / 128), which gives "
        "difflogic's 20 for Adult at difflogic's width. The paper does not say what it has."
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("extra:monks-methods", "Seven methods on MONK's-2", show_monks, small_seeds=(0, 1, 2)),
    experiment("extra:mnist-8k-depth", "Depth on MNIST at 8,000 gates a layer", show_mnist, paper_seeds=(0,)),
    experiment("extra:mnist-8k-basis", "The basis at 8,000 gates a layer", show_basis, paper_seeds=(0,)),
    experiment("extra:adult-depth-20k", "Depth on Adult after 20,000 steps", show_adult, paper_seeds=(0,)),
    experiment("extra:adult-difflogic-encoding", "Adult's encoding", show_encoding, paper_seeds=(0,)),
    experiment("extra:class-scores", "Softer class scores on Adult and Splice", show_class_scores, paper_seeds=(0,)),
)
