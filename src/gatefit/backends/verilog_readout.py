"""The readout in Verilog: sums by trees of counters, and an argmax by a tree of comparisons.

    score_k   = offset_k + Σ of the class's outputs        in as many bits as the largest and smallest score need
    class     = the first class with the largest score     the left of two equal scores wins, in a balanced tree

Offsets hold what constant outputs contributed before they were folded away: without them scores would be wrong.
"""

from dataclasses import dataclass

import numpy as np

from gatefit.backends.verilog_counters import count_ones
from gatefit.backends.verilog_pipeline import Body, Pipeline, number
from gatefit.circuit.readout import Affine, GroupSum


@dataclass(frozen=True)
class Sums:
    """The integer sums that a readout computes, one per class, and the number format that holds all of them."""

    members: tuple[tuple[int, ...], ...]
    """Output numbers of each class."""
    offsets: tuple[int, ...]
    width: int
    signed: bool

    @property
    def classes(self) -> int:
        """How many sums."""
        return len(self.offsets)

    @property
    def adder_levels(self) -> int:
        """Levels of two-operand adders in the largest sum."""
        return (max(len(outputs) for outputs in self.members) - 1).bit_length() if any(self.members) else 0

    @property
    def comparison_levels(self) -> int:
        """Levels of the argmax tree."""
        return (self.classes - 1).bit_length()

    @property
    def index_width(self) -> int:
        """Bits of a class number."""
        return max(1, (self.classes - 1).bit_length())


def readout_sums(readout: GroupSum | Affine) -> Sums:
    """The sums of a readout; a regression has one."""
    members: tuple[tuple[int, ...], ...] = (tuple(range(readout.outputs)),)
    offsets: tuple[int, ...] = ()
    if isinstance(readout, Affine):
        offsets = (readout.offset,)
    else:
        order = np.argsort(readout.groups, kind="stable")
        sizes = np.bincount(readout.groups, minlength=readout.classes)
        members = tuple(tuple(part.tolist()) for part in np.split(order, np.cumsum(sizes)[:-1]))
        offsets = tuple(readout.offsets.tolist())
    lowest = min(offsets)
    highest = max(offset + len(outputs) for offset, outputs in zip(offsets, members, strict=True))
    bits = max(1, highest.bit_length())
    if lowest < 0:
        bits = 1 + max(max(highest, 0).bit_length(), (-lowest - 1).bit_length())
    return Sums(members, offsets, bits, signed=lowest < 0)


def write_sum(body: Body, sums: Sums, k: int, terms: list[str], pipeline: Pipeline, counter: int) -> str:
    """The score of class k from its output bits, by counters of 3 or 6 bits, registers between levels included."""
    last = pipeline.adder_levels
    inner = [cut / last for cut in pipeline.adder_cuts if cut != last]
    rows = count_ones(body, f"sum_{k}", terms, counter, sums.width, inner)
    if sums.offsets[k] or not rows:
        rows.append(number(sums.offsets[k], sums.width))
    name = body.wire(f"sum_{k}", " + ".join(rows), sums.width, sums.signed)
    return body.delayed(name, 1, sums.width, sums.signed) if last in pipeline.adder_cuts else name


def write_argmax(body: Body, sums: Sums, scores: list[str], pipeline: Pipeline) -> str:
    """The class number, by a balanced tree that keeps the classes in order."""
    entries = [(score, number(k, sums.index_width)) for k, score in enumerate(scores)]
    for level in range(1, sums.comparison_levels + 1):
        winners = []
        for i in range(0, len(entries) - 1, 2):
            (left, left_index), (right, right_index) = entries[i : i + 2]
            stem = f"{level}_{i // 2}"
            first = body.wire(f"first_{stem}", f"{left} >= {right}")
            index = body.wire(f"index_{stem}", f"{first} ? {left_index} : {right_index}", sums.index_width)
            best = ""  # nobody asks how large the last one is
            if level < sums.comparison_levels:
                best = body.wire(f"best_{stem}", f"{first} ? {left} : {right}", sums.width, sums.signed)
            winners.append((best, index))
        entries = winners + entries[2 * len(winners) :]
        if level in pipeline.comparison_cuts:
            entries = [
                (best and body.delayed(best, 1, sums.width, sums.signed), body.delayed(index, 1, sums.index_width))
                for best, index in entries
            ]
    return entries[0][1]
