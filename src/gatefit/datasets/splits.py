"""Splits of data sets that come in one piece.

    stratified    of every class, the same share of its samples, chosen by the raw stream of PCG64(seed)

The raw stream of a bit generator never changes between versions of numpy (the methods of Generator may), so a split
is the same everywhere.
"""

import numpy as np
from jaxtyping import Int64


def stratified_split(
    y: Int64[np.ndarray, " samples"], *, test_fraction: float = 0.2, seed: int = 0
) -> tuple[Int64[np.ndarray, " train"], Int64[np.ndarray, " test"]]:
    """Indices of the train and of the test samples, each in the original order."""
    keys = np.random.PCG64(seed).random_raw(y.size)
    test = np.zeros(y.size, dtype=np.bool_)
    for number in np.unique(y):
        members = np.flatnonzero(y == number)
        chosen = np.argsort(keys[members], kind="stable")[: round(members.size * test_fraction)]
        test[members[chosen]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)
