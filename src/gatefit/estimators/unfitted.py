"""A warning where a network did not even learn its training set.

    accuracy   < m + (1 - m) / 3      m: the share of the most frequent class, what guessing would reach
    R²         < 1 / 3                the mean would reach 0

Data may be so noisy that nothing more can be had. More often a setting is in the way, and a score on unseen rows alone
would not tell.
"""

import warnings
from typing import Any, Final

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

JUDGED_STEPS: Final = 500
"""Steps from which a fit is judged; shorter ones are stopped short on purpose."""
SHARE: Final = 1 / 3
"""Of what the simplest model leaves unexplained, the part that a fit should explain."""


def warn_unfitted(row: dict[str, Any], targets: Tensor, *, weighted: bool, stacklevel: int) -> None:
    """Warn if the last evaluation says that the training set is not fitted, with what to try.

    ``targets`` are those that were measured; what weights ask for is not measured by an accuracy.
    """
    reached, soft = row["train_hard"], row["train_soft"]
    if weighted:
        return
    if targets.dtype == torch.int64:
        simplest = float(targets.bincount().max()) / len(targets)
        what, least = "accuracy", simplest + SHARE * (1 - simplest)
        reference = f"always the most frequent class has {simplest:.3f}"
    else:
        if float(targets.min()) == float(targets.max()):
            return
        what, least, reference = "R²", SHARE, "the mean has 0"
    if reached >= least:
        return
    advice = (
        "the network before its gates were chosen had much more: try another method or random_state"
        if soft - reached > 0.5 * (least - reached) and soft >= least
        else "try more steps, a larger width, more thresholds or a lower readout_temperature; "
        "or the features say little about the target"
    )
    warnings.warn(
        f"the training set is not fitted: its {what} is {reached:.3f}, and {reference}; {advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
