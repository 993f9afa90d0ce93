"""Features that are bits already.

bit_i = x_i        x_i ∈ {0, 1}
"""

from typing import Any

import numpy as np
from jaxtyping import Bool

from gatefit.encoders.base import Encoder, Rule
from gatefit.encoders.frames import Matrix, read_matrix


class Identity(Encoder):
    """Boolean columns as they are; bool or numbers that are 0 or 1, anything else is an error."""

    kind = "identity"

    def __init__(self) -> None:
        pass

    def _read(self, x: Any) -> Matrix:
        return read_matrix(x, "Identity")

    def _learn(self, frame: Matrix, names: tuple[str, ...]) -> None:
        _check_bits(frame.values, names)

    def _become(self, state: None) -> None:
        pass

    def _encode(self, frame: Matrix, out: Bool[np.ndarray, "samples bits"]) -> None:
        _check_bits(frame.values, self)
        np.copyto(out, frame.values, casting="unsafe")

    def _bits(self) -> int:
        return self.features

    def _rules(self) -> list[Rule]:
        return [Rule(i, "bit") for i in range(self.features)]


def _check_bits(values: np.ndarray, names: tuple[str, ...] | Encoder) -> None:
    if values.dtype == np.bool_ or values.size == 0:
        return
    if values.dtype.kind == "u" and values.max() <= 1:
        return
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, feature = np.argwhere(wrong)[0]
        name = (names if isinstance(names, tuple) else names.feature_names)[feature]
        raise ValueError(
            f"Identity needs bits (0 or 1), feature {name!r} is {values[row, feature]} in row {row}; "
            f"use Threshold, Thermometer or Table for other numbers"
        )
