"""Every label that ``gatefit reproduce`` knows, in the order of the paper."""

import difflib
from typing import Final

from gatefit.paper.catalogue import (
    ablation,
    codebook_tables,
    cost,
    cross_dataset,
    depth,
    dynamics,
    extra,
    images,
    interaction,
    long_runs,
    open_settings,
    other_readings,
    selection,
    temperature,
    width,
)
from gatefit.paper.outcome import Experiment

EXPERIMENTS: Final[dict[str, Experiment]] = {
    each.label: each
    for section in (
        cross_dataset,
        depth,
        ablation,
        width,
        interaction,
        dynamics,
        selection,
        images,
        temperature,
        cost,
        codebook_tables,
        extra,
        open_settings,
        other_readings,
        long_runs,
    )
    for each in section.EXPERIMENTS
}


def labels() -> tuple[str, ...]:
    """Every label, in the order of the paper; those that begin with "extra:" are runs beside it."""
    return tuple(EXPERIMENTS)


def experiment(label: str) -> Experiment:
    """The experiment of a label; an unknown one is refused with the nearest that there are."""
    if label in EXPERIMENTS:
        return EXPERIMENTS[label]
    words = label.replace(":", " ").replace("-", " ").split()
    near = difflib.get_close_matches(label, EXPERIMENTS, 3, cutoff=0.5)
    near += [each for each in EXPERIMENTS if any(word in each for word in words if len(word) > 3) and each not in near]
    hint = f"nearest: {', '.join(near[:4])}; " if near else ""
    raise ValueError(f"unknown label {label!r}; {hint}all labels: gatefit reproduce --list")
