"""Passes: each maps a Circuit to a Circuit with the same scores and no more gates. They are listed in their order."""

from collections.abc import Callable
from typing import Final

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes.equivalence import merge_equivalent
from gatefit.circuit.passes.rewrite import rewrite_cuts
from gatefit.circuit.passes.structural import (
    absorb_inverters,
    fold_constants,
    forward_wires,
    merge_duplicates,
    remove_dead,
    simplify_operands,
)

Pass = Callable[[Circuit], Circuit]

STRUCTURAL: Final[tuple[Pass, ...]] = (
    fold_constants,
    forward_wires,
    absorb_inverters,
    simplify_operands,
    merge_duplicates,
    remove_dead,
)
"""Linear time; they look at one gate and its operands."""

PASSES: Final[tuple[Pass, ...]] = (*STRUCTURAL, rewrite_cuts, merge_equivalent)
"""All passes."""

__all__ = [
    "PASSES",
    "STRUCTURAL",
    "Pass",
    "absorb_inverters",
    "fold_constants",
    "forward_wires",
    "merge_duplicates",
    "merge_equivalent",
    "remove_dead",
    "rewrite_cuts",
    "simplify_operands",
]
