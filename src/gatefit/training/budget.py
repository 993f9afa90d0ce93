"""A budget for a network: the widest that fits, before anything is trained.

    max_gates   live two-input gates of the optimised circuit. No more are live than were trained, since optimising
                adds none: a network of so many gates in all fits whatever it learns. Encoder and readout do not count.
    max_luts    tables of six inputs (LUT6) of the whole model: gates, popcount and argmax, by ``estimated_luts``

A table of six inputs holds a gate and the two that it reads: where only the last layer votes, two layers of gates take
a table for each voter. Where all layers vote, every gate is an output, and takes a table of its own. So a budget of
gates is spent on layers that all vote, one of tables on two layers of which the last votes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ADDED: Final = 0.175
"""Tables of the popcount for each voter and doubling of the voters a class; synthesised networks took 0.16 to 0.173."""


@dataclass(frozen=True)
class Size:
    """``depth`` layers of ``width`` gates, and which of them vote."""

    width: int
    depth: int
    votes: str

    @property
    def gates(self) -> int:
        """Of all layers."""
        return self.width * self.depth

    @property
    def voters(self) -> int:
        """Gates that the readout counts."""
        return self.width * (self.depth if self.votes == "all" else 1)


def estimated_luts(size: Size, classes: int) -> int:
    """Tables of six inputs for a network of this size, as ``gatefit synth --target xilinx`` counts them, or fewer.

    gates      a table for every gate that votes, and in every second layer below where only the last one does
    popcount   ``ADDED`` for each voter
    argmax     ``ARGMAX`` for each bit of the scores, for all classes but one; a value needs none
    """
    tables = size.voters if size.votes == "all" else size.width * -(-size.depth // 2)
    each = max(1, size.voters // classes)
    popcount = math.ceil(ADDED * size.voters * math.log2(each))
    return tables + popcount + (2 * each.bit_length() + 1) * (classes - 1)


def largest_size(
    wanted: Size,
    classes: int,
    *,
    max_gates: int | None = None,
    max_luts: int | None = None,
    fixed_depth: bool = False,
) -> Size:
    """The network nearest to ``wanted`` within the budget: narrower, and where that is not enough less deep.

    Widths are multiples of ``classes`` (1 for a value). With ``fixed_depth`` only the width gives way.
    """
    for name, value in (("max_gates", max_gates), ("max_luts", max_luts)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be None or a whole number >= 1, got {value!r}")

    def fits(size: Size) -> bool:
        return (max_gates is None or size.gates <= max_gates) and (
            max_luts is None or estimated_luts(size, classes) <= max_luts
        )

    depths = [wanted.depth] if fixed_depth else range(wanted.depth, 0, -1)
    for depth in depths:
        low, high = (
            0,
            wanted.width // classes,
        )  # gates of a class in a layer: ``low`` fit, more than ``high`` are not wanted
        while low < high:
            middle = (low + high + 1) // 2
            if fits(Size(middle * classes, depth, wanted.votes)):
                low = middle
            else:
                high = middle - 1
        if low:
            return Size(low * classes, depth, wanted.votes)
    least = Size(classes, depths[-1], wanted.votes)
    raise ValueError(_too_small(least, classes, max_gates, max_luts, fixed_depth=fixed_depth))


def _too_small(least: Size, classes: int, max_gates: int | None, max_luts: int | None, *, fixed_depth: bool) -> str:
    tables = estimated_luts(least, classes)
    if max_gates is not None and least.gates > max_gates:
        budget = f"max_gates={max_gates} is too small: the smallest is {least.gates}"
    else:
        budget = f"max_luts={max_luts} is too small: the smallest is {tables}"
    layers = f"{least.depth} layers" if fixed_depth and least.depth > 1 else "one layer"
    whose = f"each of {classes} classes" if classes > 1 else "the value"
    return f"{budget}, {layers} of one gate for {whose}"


LEARNED: Final[dict[str, Any]] = {
    "wiring": "learned",
    "steps": 12_000,
    "batch_size": 256,
    "learning_rate": 0.02,
    "score_learning_rate": 0.03,
    "beta2": 0.99,
    "schedule": "cosine",
}
"""How a run with a budget is trained where it does not say."""
CALM: Final = 0.45
"""Its temperature in units of √(votes per class)."""


def budgeted(
    given: Mapping[str, Any], classes: int, *, max_gates: int | None = None, max_luts: int | None = None
) -> dict[str, Any]:
    """Fields of the ``RunConfig`` of the largest network within the budget; what is ``given`` stays as it is.

    Two layers of a learned wiring: all vote in a budget of gates, the last in one of tables.
    """
    for name in ("width", "widths"):
        if given.get(name) is not None:
            raise ValueError(f"max_gates and max_luts choose the width, got {name}={given[name]} too; leave one out")
    votes = given.get("votes") or ("all" if max_luts is None else "last")
    limit = min(value for value in (max_gates, max_luts) if value is not None)
    wanted = Size(max(limit, classes), given.get("depth", 2), votes)
    size = largest_size(wanted, classes, max_gates=max_gates, max_luts=max_luts, fixed_depth="depth" in given)
    fields = {**LEARNED, **given, "width": size.width, "depth": size.depth, "votes": size.votes}
    if fields["wiring"] != "learned" and "score_learning_rate" not in given:
        del fields["score_learning_rate"]
    if fields.get("readout_temperature") is None:
        fields["readout_temperature"] = CALM * math.sqrt(size.voters / classes)
    return fields
