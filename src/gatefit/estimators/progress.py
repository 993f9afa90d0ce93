"""The log of a fit, and its lines on standard output where ``verbose`` asks for them."""

import sys
from typing import Any

from torch import nn

from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.loop import Observer


class ProgressLines(Observer):
    """One line an evaluation."""

    def __init__(self, *, validated: bool) -> None:
        self.validated, self.steps = validated, 0

    def started(self, config: RunConfig, network: nn.Module, state: TrainingState) -> None:
        """Remember how many steps there will be."""
        self.steps = config.steps

    def evaluated(self, state: TrainingState, network: nn.Module, metrics: dict[str, Any]) -> None:
        """Write the line."""
        row = history_row(metrics, validated=self.validated)
        scores = "".join(
            f"  {name.removesuffix('_score')} {row[name]:.4f}"
            for name in ("train_score", "validation_score")
            if name in row
        )
        sys.stdout.write(f"step {row['step']}/{self.steps}  loss {row['loss']:.4f}{scores}\n")
        sys.stdout.flush()


def history_row(metrics: dict[str, Any], *, validated: bool, after: int = 0) -> dict[str, Any]:
    """An evaluation as an entry of ``history_``: scores of the deployed network, and of the soft one it came from."""
    row = {"step": metrics["step"] + after, "loss": metrics["loss"]}
    for name, source in (("train", "train"), ("validation", "test")):
        if source == "train" or validated:
            row[f"{name}_score"] = metrics[f"{source}_hard"]
            row[f"{name}_soft_score"] = metrics[f"{source}_soft"]
    return row
