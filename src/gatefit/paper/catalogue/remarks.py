"""Numbers in words, and the remarks that every outcome owes its reader: what differs from the paper, and why."""

from collections.abc import Sequence

from gatefit.paper.outcome import Scale, Value
from gatefit.paper.scales import (
    CLASS_SCORES,
    DATASET_NAMES,
    MONKS_WIRINGS,
    SETTINGS,
    SPLICE_SPLITS,
    counted_evaluations,
    width_name,
)
from gatefit.training.config import RunConfig


def number(value: Value, digits: int = 2) -> str:
    """98.29 ± 0.04, without its unit."""
    spread = f" ± {value.std:.{digits}f}" if value.std is not None else ""
    return f"{value.mean:.{digits}f}{spread}"


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def notes(scale: Scale, datasets: Sequence[str], configs: Sequence[RunConfig]) -> list[str]:
    """What holds for every label at this scale with these data sets and runs."""
    if not datasets:
        return []
    absent = [DATASET_NAMES[name] for name in datasets if name not in SETTINGS[scale]]
    present = [name for name in datasets if name in SETTINGS[scale]]
    remarks = [_scale(scale, present)] if scale != "paper" else []
    if absent:
        remarks.append(f"{listed(absent)}: not part of this scale; run them with --scale paper where the data are.")
    if configs:
        remarks.append(_class_scores(scale, present, configs))
        remarks.append(
            "Wiring: the paper's stride pairs with their outputs permuted ('unique'), the same for every seed."
        )
    if any(config.method == "gumbel-st" and config.noise_in == "backward" for config in configs):
        remarks.append(
            "Gumbel-ST is our variant with noise in the gradient alone; the paper does not say which it ran. With "
            "noise in the forward pass too, as it is usually written down: extra:monks-methods, docs/gumbel.md."
        )
    if any(counted_evaluations(config) != 10 for config in configs) and scale != "paper":
        remarks.append(
            "Accuracy at the end: the mean of the last fifth of a run's evaluations, at least two; paper: of the last "
            "ten, which is what `gatefit runs` shows for every run."
        )
    if "monks-2" in present and scale != "tiny":
        wirings = (
            f"four runs for each seed on each of {MONKS_WIRINGS} wirings" if scale == "paper" else "four runs a seed"
        )
        remarks.append(
            f"MONK's-2: {wirings} (paper: 3 in all), because 432 test samples make one run noisy. Its 10,000 steps "
            "have ten evaluations, so that the last-10 accuracy is the mean over the whole run."
        )
    if "splice" in present and scale != "tiny":
        splits = f"seeds 0 to {SPLICE_SPLITS - 1}, one run each" if scale == "paper" else "seed 0"
        remarks.append(f"Splice: the paper does not give its split; stratified 80/20, {splits}; 240 one-hot bits.")
    if "adult" in present and scale != "tiny":
        remarks.append("Adult: 116 bits with the six hours columns set, which difflogic's encoding leaves at 0.")
    return remarks


def _class_scores(scale: Scale, datasets: Sequence[str], configs: Sequence[RunConfig]) -> str:
    """Which temperature of the class scores these runs have, and why."""
    unknown = "The paper does not give the temperature T of its class scores"
    if scale == "paper":
        chosen = [
            f"{DATASET_NAMES[name]} {' and '.join(f'{t:g}' for t in scores.temperatures)} ({scores.reason})"
            for name in datasets
            if (scores := CLASS_SCORES[name])
        ]
        return f"{unknown}: {'; '.join(chosen)}. Where nothing else is said it is 0.36 √(gates a class)."
    found = sorted({(c.readout_temperature, DATASET_NAMES[c.dataset]) for c in configs if c.readout_temperature})
    other = listed([f"{temperature:g} for {name}" for temperature, name in found])
    higher = f", but {other}, where other implementations have a higher one" if other else ""
    return f"{unknown}: 0.36 √(gates a class) here{higher}."


def _scale(scale: Scale, datasets: Sequence[str]) -> str:
    if scale == "tiny":
        return "Tiny scale: tens of gates and steps, small data sets in place of the paper's. No number is comparable."
    parts = []
    for name in datasets:
        ours, theirs = SETTINGS[scale][name], SETTINGS["paper"][name]
        if (ours.width, ours.steps) == (theirs.width, theirs.steps):
            parts.append(f"{DATASET_NAMES[name]} with the paper's gates and steps")
            continue
        thresholds = ours.options.get("thresholds")
        bits = f", {thresholds} thresholds a channel (31)" if thresholds else ""
        parts.append(
            f"{DATASET_NAMES[name]} {ours.width:,} gates a layer ({width_name(theirs.width)}), "
            f"{ours.steps:,} steps ({theirs.steps:,}){bits}"
        )
    return f"Small scale, the paper's in brackets: {'; '.join(parts)}." if parts else "Small scale."
