"""Which gates are deployed (paper §5, fig. codebook-neurons, gate-selection): fractions by gate and by kind.

constant     depends on neither input        FALSE, TRUE
separable    depends on one, c_ab = 0        A, B and their complements
weak         |c_ab| = 1                      AND, OR, implications, ...
strong       |c_ab| = 2                      XOR, XNOR
"""

from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from gatefit.gates import Gate, GateKind
from gatefit.methods import NotBooleanError
from gatefit.network import LogicNetwork

KINDS: Final[dict[str, GateKind]] = {kind.value.partition(" ")[0]: kind for kind in GateKind}
"""constant, separable, weak, strong."""

_MEMBERS: Final = {name: np.array([gate.kind is kind for gate in Gate]) for name, kind in KINDS.items()}


def census(network: LogicNetwork) -> dict[str, Any] | None:
    """Fractions of the deployed gates: by kind, by gate number, and layer by layer; None where none is deployed."""
    try:
        layers = [np.bincount(gates.cpu().numpy(), minlength=len(Gate)) for gates in network.gates()]
    except NotBooleanError:
        return None
    return {**_fractions(np.sum(layers, axis=0)), "by_layer": [_fractions(counts) for counts in layers]}


def _fractions(counts: Int64[np.ndarray, "16"]) -> dict[str, Any]:
    total = int(counts.sum())
    kinds = {name: int(counts[members].sum()) / total for name, members in _MEMBERS.items()}
    return {**kinds, "gates": [int(count) / total for count in counts]}
