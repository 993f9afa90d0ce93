"""What methods cost (app. cost): operations and memory counted from the algorithms, gaps measured on MONK's-2."""

from gatefit.experiments.record import RunRecord
from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, experiment
from gatefit.paper.catalogue.measures import discretisation_gap
from gatefit.paper.catalogue.operations import ADAM_FLOATS, BATCH, PARAMETERS, mixture, naive, polynomial, shared
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES
from gatefit.paper.values import paper, paper_number

SUMMARY = {
    "soft-mix": ("softmax(θ) G", "argmax θ", "through the softmax", "> 0"),
    "gumbel-st": ("one-hot(θ [+ noise]) G", "argmax θ", "softmax of θ + noise, straight through", "small"),
    "iwp": ("M sigmoid(s)", "round sigmoid(s)", "exact", "> 0"),
    "iwp-ste": ("M snap(s)", "nearest corner", "straight through the corners", "0"),
    "multilinear-ste": ("snap(c)", "nearest gate", "straight through the monomials", "0"),
    "multilinear-covjac": ("Σ_j ω_j G_j", "nearest gate", "J = (2/τ) Cov_ω(G)", "0 (emp.)"),
}
"""Coefficients in training, gate deployed, gradient; and the paper's word on the discretisation gap."""


def show_cost(draft: Draft) -> None:
    """tab:cost."""
    block, rows = paper("tab:cost"), []
    for m in MAIN_METHODS:
        own = (PARAMETERS[m], naive(m).sample, polynomial(), ADAM_FLOATS * PARAMETERS[m])
        cells = [
            Cell(Value(float(value), unit=unit), block[m, column])
            for value, unit, column in zip(own, ("", "ops", "ops", "floats"), block.columns, strict=True)
        ]
        cells.append(Cell(Value(shared(m).per_sample(), unit="ops"), None, "coefficients once a batch of 512"))
        rows.append((METHOD_NAMES[m], cells))
    draft.table(
        "A gate's cost, counted",
        ("parameters", "train, ops a sample", "deploy, ops", "memory", "train as gatefit does"),
        rows,
        best="none",
    )
    ste, soft = naive("multilinear-ste").sample, naive("soft-mix").sample
    draft.theorem(
        "M-STE and M-CovJac train with 25 times fewer operations a sample than Soft-Mix in its naive form",
        soft == 25 * ste and naive("multilinear-covjac").sample == ste,
        f"{soft} operations against {ste}: {soft / ste:.0f} ×",
        id="naive-factor",
    )
    ours = {METHOD_NAMES[m]: shared(m).per_sample() for m in MAIN_METHODS}
    draft.theorem(
        "Soft-Mix too costs about 7 operations a sample when its coefficients are made once a batch",
        ours["Soft-Mix"] < 8,
        f"with a batch of {BATCH}: " + ", ".join(f"{name} {value:.2f}" for name, value in ours.items()),
        id="soft-mix-shared",
    )
    overhead = {METHOD_NAMES[m]: shared(m).batch / BATCH for m in MAIN_METHODS}
    draft.theorem(
        "What is done once a batch costs less than 0.4 operations a sample",
        max(overhead.values()) < 0.4,
        ", ".join(f"{name} {value:.2f}" for name, value in overhead.items()) + f" with a batch of {BATCH}",
        id="batch-overhead",
    )
    draft.theorem(
        "Four parameters a gate save a factor of four of the optimiser's memory",
        PARAMETERS["soft-mix"] == 4 * PARAMETERS["multilinear-covjac"],
        f"{ADAM_FLOATS * PARAMETERS['soft-mix']} floats against {ADAM_FLOATS * PARAMETERS['multilinear-covjac']}",
        id="four-parameters",
        definition=True,
    )
    draft.note(
        "The factor of 25 is against evaluating all sixteen gates for every sample. Coefficients do not depend on the "
        "sample, so here every method evaluates one polynomial: there is no such factor between our own methods."
    )
    parts = ("together", "distances", "softmax", "mixture")
    whole, distances, softmax, mixed = (paper_number("app:cost", "multilinear-covjac", part) for part in parts)
    draft.note(
        f"The paper counts about {whole:.0f} operations once a batch for CovJac: {distances:.0f} for distances, "
        f"{softmax:.0f} for the softmax and {mixed:.0f} for Σ_j ω_j G_j. That sum has 16 terms for each of 4 "
        f"coefficients, {mixture()} operations."
    )
    draft.note("A gate deployed in a circuit is one logic operation; 7 is the cost of its polynomial in arithmetic.")


def _largest(record: RunRecord) -> float | None:
    gaps = [row["test_discretisation_gap"] for row in record.metrics]
    return None if not gaps or None in gaps else 100 * max(map(abs, gaps))


def show_summary(draft: Draft) -> None:
    """tab:method-summary."""
    block, rows, largest = paper("tab:method-summary"), [], {}
    for m, (train, deployed, gradient, gap) in SUMMARY.items():
        largest[m] = draft.value("monks-2", m, _largest, "pp")
        measured = draft.cell(gap, "monks-2", m, discretisation_gap, "pp")
        cells = [
            Cell(Value(float(PARAMETERS[m]), unit=""), block[m, "parameters"]),
            *map(Cell, (train, deployed, gradient)),
            measured,
        ]
        rows.append((METHOD_NAMES[m], cells))
    draft.table(
        f"The methods; discretisation gap measured on {draft.name('monks-2')}",
        ("parameters", "coefficients in training", "deployed", "gradient", "DG"),
        rows,
        best="none",
    )
    zero = []
    for m in ("multilinear-ste", "iwp-ste"):
        gap_of = largest[m]
        text = NO_RUNS if gap_of is None else f"largest at any evaluation {gap_of.mean:.3f} points"
        zero.append(Part(None if gap_of is None else gap_of.mean == 0, f"{METHOD_NAMES[m]}: {text}"))
    draft.claim("The straight-through methods have no discretisation gap", *zero, id="none-straight-through")
    some = []
    for m in ("soft-mix", "iwp"):
        gap_of = largest[m]
        text = NO_RUNS if gap_of is None else f"largest at an evaluation {gap_of.mean:.2f} points"
        some.append(Part(None if gap_of is None else gap_of.mean > 0, f"{METHOD_NAMES[m]}: {text}"))
    draft.claim("Soft-Mix and IWP can have a discretisation gap", *some, id="some-soft")


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:cost", "What a gate costs", show_cost),
    experiment("tab:method-summary", "The methods", show_summary, small_seeds=(0, 1, 2)),
)
