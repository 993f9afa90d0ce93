"""What feature importances are measured over: rows that have every column of the training set, and no row of it.

rows    up to ``ROWS`` training rows, the bits of each feature in an order of their own: features are independent

A fitted model is passed on; the rows that it was fitted on should not be, and are not part of it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, UInt8

from gatefit.circuit.ir import Circuit
from gatefit.encoders import Encoder
from gatefit.randomness import stream

ROWS: Final = 512


@dataclass(frozen=True, eq=False)
class Background:
    """Rows of bits, eight to a byte."""

    packed: UInt8[np.ndarray, "rows bytes"]
    bits: int
    features: Int64[np.ndarray, " bits"]
    """Which feature each bit is of."""
    count: int
    """How many features there are."""

    @classmethod
    def of(cls, encoder: Encoder, bits: Bool[np.ndarray, "samples bits"], seed: int) -> "Background":
        """Of encoded training rows: spread evenly over them, then each feature by itself in a random order."""
        chosen = np.linspace(0, len(bits) - 1, min(ROWS, len(bits))).astype(np.int64)
        features = np.array([rule.feature for rule in encoder.rules], np.int64)
        generator = stream(seed, "background")
        rows = np.empty((len(chosen), bits.shape[1]), np.bool_)
        orders = [torch.randperm(len(chosen), generator=generator).numpy() for _ in range(encoder.features)]
        for bit, feature in enumerate(features.tolist()):
            rows[:, bit] = bits[chosen[orders[feature]], bit]
        return cls(np.packbits(rows, axis=1), bits.shape[1], features, encoder.features)

    def importances(self, circuit: Circuit) -> Float64[np.ndarray, " features"]:
        """I_f for every feature of the encoder, divided by their sum."""
        from gatefit.circuit.dependence import importances
        from gatefit.circuit.verify.domain import Domain

        rows = np.unpackbits(self.packed, axis=1, count=self.bits).astype(np.bool_)
        found = importances(circuit, Domain.of(circuit), rows)
        total = found.sum()
        return found / total if total > 0 else found
