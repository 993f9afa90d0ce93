"""The methods of the basis ablation in other readings of the paper (app. basis-constraint, app. ste-failures).

snap        of IWP-STE: each corner weight, or M s onto the codebook by ‖c - G_j‖ (the only snap that the paper defines)
surrogate   what the backward pass differentiates: the snapped gate, or the continuous polynomial
IWP         z = Σ s_ij φ_ij, soft, without an activation
"""

from typing import Any, Final

from gatefit.paper.catalogue.draft import Draft, Part, above, experiment
from gatefit.paper.catalogue.extra import NARROW, SHORT
from gatefit.paper.catalogue.measures import accuracy_until
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Experiment, Value
from gatefit.paper.scales import SETTINGS
from gatefit.paper.values import paper
from gatefit.training.config import RunConfig

CONTINUOUS: Final[dict[str, Any]] = {"surrogate": "continuous"}
BOTH: Final[dict[str, Any]] = {"snap": "codebook", **CONTINUOUS}
READINGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "M-STE": ("multilinear-ste", {}),
    "M-STE, continuous surrogate": ("multilinear-ste", CONTINUOUS),
    "IWP-STE": ("iwp-ste", {}),
    "IWP-STE, codebook snap": ("iwp-ste", {"snap": "codebook"}),
    "IWP-STE, codebook snap, continuous surrogate": ("iwp-ste", BOTH),
    "IWP, no activation (soft)": ("iwp", {"corner_activation": "identity"}),
}
LAYERS: Final = (1, 6, 12)
BASES: Final = ("canonical", "walsh", "smoothed", "expected-value", "uniform")
_FULL: Final = {("multilinear-ste", 1), ("multilinear-ste", 6), ("iwp-ste", 6)}
"""Method and depth of runs that go on to all the steps for other labels: here they are read as they stood."""


def _steps(draft: Draft) -> int:
    return min(SHORT, SETTINGS[draft.scale]["mnist"].steps)


def _configs(draft: Draft, method: str, depth: int, changes: dict[str, Any]) -> list[RunConfig]:
    """The runs of a reading at the narrow width, with the short budget unless another label has them longer."""
    whole = not changes and (method, depth) in _FULL
    width = NARROW if draft.scale == "paper" else SETTINGS[draft.scale]["mnist"].width
    steps = SETTINGS[draft.scale]["mnist"].steps if whole else _steps(draft)
    return draft.configs("mnist", method, depth=depth, width=width, steps=steps, **changes)


def show_readings(draft: Draft) -> None:
    """M-STE, IWP-STE and IWP by depth, in every reading."""
    theirs, until = paper("tab:basis-constraint-depth"), accuracy_until(_steps(draft))
    rows, v = [], dict[tuple[str, int], Value | None]()
    for name, (method, changes) in READINGS.items():
        cells = []
        for depth in LAYERS:
            typed = paper("tab:ablation")["iwp", "mnist"] if (method, depth) == ("iwp", 6) else theirs[method, depth]
            cell = draft.cell_of(_configs(draft, method, depth, changes), typed, until)
            v[name, depth] = cell.value
            cells.append(cell)
        rows.append((name, cells))
    width = NARROW if draft.scale == "paper" else SETTINGS[draft.scale]["mnist"].width
    title = f"{draft.name('mnist')}, k={width:,}: accuracy, %, at step {_steps(draft):,}"
    draft.table(title, [f"L={depth}" for depth in LAYERS], rows, best="none")
    both, ours = "IWP-STE, codebook snap, continuous surrogate", "M-STE, continuous surrogate"
    for pair in (("M-STE", "IWP-STE"), (ours, both)):
        gaps = {depth: difference(v[pair[0], depth], v[pair[1], depth]) for depth in LAYERS}
        said = {depth: difference(theirs["multilinear-ste", depth], theirs["iwp-ste", depth]) for depth in LAYERS}
        reading = "snapped at the corners" if pair[1] == "IWP-STE" else "codebook snap, continuous surrogate"
        draft.claim(
            f"The polynomial basis's lead over the corner basis grows with depth ({reading})",
            *(
                above("lead", (f"L={deep}", gaps[deep]), (f"L={low}", gaps[low]), (said[deep], said[low]), by=1.0)
                for low, deep in ((1, 6), (6, 12))
            ),
        )
    soft = v["IWP, no activation (soft)", 6]
    draft.claim(
        "IWP without an activation stays far below M-STE",
        above("L=6", ("M-STE", v["M-STE", 6]), ("IWP", soft), by=5.0),
    )
    draft.note("The paper's values are those of 64,000 gates a layer after 50,000 steps (tab:basis-constraint-depth).")


def show_bases(draft: Draft) -> None:
    """The catalogue of backward bases at the narrow width, for which the paper has numbers of its own."""
    block, until, rows = paper("app:basis-futility"), accuracy_until(_steps(draft)), []
    v = dict[tuple[str, str], Value | None]()
    for name in BASES:
        basis: dict[str, Any] = {} if name == "canonical" else {"backward_basis": name}
        cells = []
        for surrogate, changes in (("snapped", {}), ("continuous", CONTINUOUS)):
            configs = _configs(draft, "multilinear-ste", 6, {**basis, **changes})
            cells.append(draft.cell_of(configs, block[name, "mnist-8k"], until))
            v[name, surrogate] = cells[-1].value
        rows.append((name, cells))
    title = f"{draft.name('mnist')}, L=6: M-STE with other backward bases, accuracy, %, at step {_steps(draft):,}"
    draft.table(title, ("snapped surrogate", "continuous surrogate"), rows, best="none")
    for surrogate in ("snapped", "continuous"):
        parts: list[Part] = []
        for name in BASES[1:]:
            typed = (block["canonical", "mnist-8k"], block[name, "mnist-8k"])
            own = (("canonical", v["canonical", surrogate]), (name, v[name, surrogate]))
            parts.append(above("", *own, typed, by=5.0))
        draft.claim(f"Every other basis is more than five points behind the canonical one ({surrogate})", *parts)
    draft.note(
        "With the continuous surrogate the backward pass is that of c·ψ~: inputs receive their gradient in the other "
        "basis too, and none at all in a constant one."
    )
    draft.note("The paper does not say after how many steps it has these numbers.")


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("extra:as-written", "Readings of IWP, IWP-STE and M-STE by depth", show_readings, paper_seeds=(0,)),
    experiment("extra:mnist-8k-bases", "Backward bases at 8,000 gates a layer", show_bases, paper_seeds=(0,)),
)
