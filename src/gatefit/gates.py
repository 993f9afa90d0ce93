"""The sixteen two-input Boolean gates: the only listing of them in gatefit.

    number   = the truth table read as bits  g(0,0) g(0,1) g(1,0) g(1,1)
    swap     : g(a, b) -> g(b, a)       exchanges the two middle bits
    negate a : g(a, b) -> g(not a, b)   exchanges the two halves
    negate b : g(a, b) -> g(a, not b)   exchanges neighbours within each half
    complement : g -> 1 - g             inverts every bit

Everything else in the project (the codebook, circuits, exporters) is derived from this numbering.
The same numbers are used by difflogic and torchlogix, so their models can be read.
"""

from enum import Enum, IntEnum
from typing import Final

import numpy as np
from jaxtyping import UInt8


class Gate(IntEnum):
    """A two-input gate; its value *is* its truth table, g(0,0) being the highest of four bits."""

    FALSE = 0b0000
    AND = 0b0001
    A_AND_NOT_B = 0b0010
    A = 0b0011
    NOT_A_AND_B = 0b0100
    B = 0b0101
    XOR = 0b0110
    OR = 0b0111
    NOR = 0b1000
    XNOR = 0b1001
    NOT_B = 0b1010
    A_OR_NOT_B = 0b1011
    NOT_A = 0b1100
    NOT_A_OR_B = 0b1101
    NAND = 0b1110
    TRUE = 0b1111

    def __call__(self, a: int, b: int) -> int:
        """The gate's output bit for input bits ``a`` and ``b``."""
        return (self >> (3 - 2 * a - b)) & 1

    @property
    def complement(self) -> "Gate":
        """The gate computing ``not g(a, b)``."""
        return Gate(self ^ 0b1111)

    @property
    def swapped(self) -> "Gate":
        """The gate computing ``g(b, a)``."""
        return Gate((self & 0b1001) | ((self & 0b0100) >> 1) | ((self & 0b0010) << 1))

    @property
    def negated_a(self) -> "Gate":
        """The gate computing ``g(not a, b)``."""
        return Gate(((self & 0b1100) >> 2) | ((self & 0b0011) << 2))

    @property
    def negated_b(self) -> "Gate":
        """The gate computing ``g(a, not b)``."""
        return Gate(((self & 0b1010) >> 1) | ((self & 0b0101) << 1))

    @property
    def depends_on_a(self) -> bool:
        """Whether some value of b makes the output change with a."""
        return self.negated_a is not self

    @property
    def depends_on_b(self) -> bool:
        """Whether some value of a makes the output change with b."""
        return self.negated_b is not self

    @property
    def formula(self) -> str:
        """The gate as an infix formula of ``{a}`` and ``{b}`` in Python's and C's operators ``~ & | ^``."""
        return FORMULAS[self]

    @property
    def kind(self) -> "GateKind":
        """The gate's place in the paper's partition by |c_ab| (app. codebook-neurons)."""
        if not (self.depends_on_a or self.depends_on_b):
            return GateKind.CONSTANT
        if not (self.depends_on_a and self.depends_on_b):
            return GateKind.SEPARABLE
        # An odd truth table (1 or 3 ones) has |c_ab| = 1; XOR and XNOR have |c_ab| = 2.
        return GateKind.WEAK_INTERACTION if int(self).bit_count() % 2 else GateKind.STRONG_INTERACTION


class GateKind(Enum):
    """How strongly a gate's two inputs interact: |c_ab| = 0 (constant or separable), 1 (weak) or 2 (strong)."""

    CONSTANT = "constant"
    SEPARABLE = "separable"
    WEAK_INTERACTION = "weak interaction"
    STRONG_INTERACTION = "strong interaction"


FORMULAS: Final[dict[Gate, str]] = {
    Gate.FALSE: "0",
    Gate.AND: "({a} & {b})",
    Gate.A_AND_NOT_B: "({a} & ~{b})",
    Gate.A: "{a}",
    Gate.NOT_A_AND_B: "(~{a} & {b})",
    Gate.B: "{b}",
    Gate.XOR: "({a} ^ {b})",
    Gate.OR: "({a} | {b})",
    Gate.NOR: "~({a} | {b})",
    Gate.XNOR: "~({a} ^ {b})",
    Gate.NOT_B: "~{b}",
    Gate.A_OR_NOT_B: "({a} | ~{b})",
    Gate.NOT_A: "~{a}",
    Gate.NOT_A_OR_B: "(~{a} | {b})",
    Gate.NAND: "~({a} & {b})",
    Gate.TRUE: "~0",
}

TRUTH_TABLES: Final[UInt8[np.ndarray, "16 4"]] = ((np.arange(16)[:, None] >> np.array([3, 2, 1, 0])) & 1).astype(
    np.uint8
)
"""Row g holds g(0,0), g(0,1), g(1,0), g(1,1)."""


def _table(name: str) -> UInt8[np.ndarray, "16"]:
    table = np.array([int(getattr(gate, name)) for gate in Gate], dtype=np.uint8)
    table.flags.writeable = False
    return table


# The symmetries as look-up tables, for whole arrays of gates at once: COMPLEMENT[gates].
TRUTH_TABLES.flags.writeable = False
COMPLEMENT: Final = _table("complement")
SWAPPED: Final = _table("swapped")
NEGATED_A: Final = _table("negated_a")
NEGATED_B: Final = _table("negated_b")
DEPENDS_ON_A: Final = _table("depends_on_a").astype(bool)
DEPENDS_ON_B: Final = _table("depends_on_b").astype(bool)
