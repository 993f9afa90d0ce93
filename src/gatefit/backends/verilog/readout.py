"""The readout in Verilog: sums by trees of counters that fit the tables of an FPGA, argmax by a tree of comparisons.

    score_k        = offset_k + Σ of weights · outputs          in as many bits as the largest and smallest score need
    class          = the first class with the largest score    the left of two equal scores wins, in a balanced tree
    full adder     3 bits of weight w      ->  weights w, 2w             two tables of 3 inputs
    by a carry     3 bits                  ->  weights w, 2w             one table and a carry cell
    six-counter    6 (or 5) bits           ->  weights w, 2w, 4w         three tables of 6 inputs

Offsets hold what constant outputs contributed before they were folded away: without them scores would be wrong.

In a sum, bits of equal weight stand in a column. Every level compresses all columns; when no column is higher than two,
one addition is left, which tools map to a carry chain. Against a plain sum written by ``+`` this saves about a tenth of
the tables of 4 inputs (counter 3) and a quarter of those of 6 (counter 6), and is shallower. Both rows of that addition
are as wide as its result, so that no linter asks what was meant.

A six-counter takes away three bits with three tables, so a sum of n bits needs about n - log2(n) of them, if the threes
that are left over do not cost two tables to take away one bit. Where there are carry chains (``carries``), they are an
addition of two bits with a carry in, (a, c) + (b, c), whose only table is a xor b.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gatefit.backends.verilog.pipeline import Body, Pipeline, number
from gatefit.circuit.readout import Sums

COUNTERS: Final = (3, 6)
"""Bits that one counter may take."""


@dataclass(frozen=True)
class SumFormat:
    """The integer sums that a readout computes, one per class, and the number format that holds all of them."""

    members: tuple[tuple[tuple[int, int], ...], ...]
    """Output numbers and weights of each class."""
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
        bits = max(sum(abs(weight).bit_count() for _, weight in own) for own in self.members)
        return max(0, bits - 1).bit_length()

    @property
    def comparison_levels(self) -> int:
        """Levels of the argmax tree."""
        return (self.classes - 1).bit_length()

    @property
    def index_width(self) -> int:
        """Bits of a class number."""
        return max(1, (self.classes - 1).bit_length())


def sum_format(sums: Sums) -> SumFormat:
    """How a readout's sums are written."""
    pairs = list(zip(sums.outputs.tolist(), sums.weights.tolist(), strict=True))
    members = tuple(tuple(pairs[begin:end]) for begin, end in itertools.pairwise(sums.starts.tolist()))
    lowest, highest = min(sums.low), max(sums.high)
    bits = max(1, highest.bit_length())
    if lowest < 0:
        bits = 1 + max(max(highest, 0).bit_length(), (-lowest - 1).bit_length())
    return SumFormat(members, tuple(sums.offsets.tolist()), bits, signed=lowest < 0)


def write_sum(
    body: Body, sums: SumFormat, k: int, bits: list[str], pipeline: Pipeline, counter: int, *, carries: bool = False
) -> str:
    """The score of class k from the output bits, by counters of 3 or 6 bits, registers between levels included.

    What a weight of many binary digits multiplies stands in as many columns; w y is w + |w| (1 - y) where w < 0.
    """
    last = pipeline.adder_levels
    inner = [cut / last for cut in pipeline.adder_cuts if cut != last]
    columns: dict[int, list[str]] = {}
    offset = sums.offsets[k]
    for i, weight in sums.members[k]:
        bit = bits[i]
        if weight < 0:
            bit, offset = body.wire(f"sum_{k}_not_{i}", f"~{bit}"), offset + weight
        for place in range(abs(weight).bit_length()):
            if abs(weight) >> place & 1:
                columns.setdefault(place, []).append(bit)
    rows = count_ones(body, f"sum_{k}", columns or {0: []}, counter, sums.width, inner, carries=carries)
    if offset or not rows:
        rows.append(number(offset, sums.width))
    name = body.wire(f"sum_{k}", " + ".join(rows), sums.width, sums.signed)
    return body.delayed(name, 1, sums.width, sums.signed) if last in pipeline.adder_cuts else name


def write_argmax(body: Body, sums: SumFormat, scores: list[str], pipeline: Pipeline) -> str:
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


def count_ones(
    body: Body,
    stem: str,
    columns: dict[int, list[str]],
    counter: int,
    width: int,
    cuts: Sequence[float] = (),
    *,
    carries: bool = False,
) -> list[str]:
    """Up to two terms of ``width`` bits whose sum is that of the bits, those in column p counting 2^p.

    Wires are named after ``stem``. Every number in ``cuts`` puts a register on each path, that part of the levels down.
    """
    if counter not in COUNTERS:
        raise ValueError(f"a counter takes 3 bits (tables of 4 inputs) or 6 (tables of 6 inputs), got {counter}")
    last = _levels({weight: len(column) for weight, column in columns.items()}, counter)
    numbers = itertools.count()
    for level in range(last + 1):
        cycles = sum(round(cut * last) == level for cut in cuts)
        columns = {weight: [body.delayed(bit, cycles) for bit in column] for weight, column in columns.items()}
        if level < last:
            groups = list(_groups(columns, counter))
            columns = {}
            for weight, group in groups:
                counted = _counter(body, f"{stem}_{next(numbers)}", group, carries) if len(group) > 2 else group
                for place, bit in enumerate(counted):
                    columns.setdefault(weight + (place if len(group) > 2 else 0), []).append(bit)
    rows = []
    for row in range(max(map(len, columns.values()))):
        digits = [columns.get(weight, [])[row : row + 1] for weight in range(width)]
        rows.append("{" + ", ".join(digit[0] if digit else "1'b0" for digit in reversed(digits)) + "}")
    return rows


def _groups(columns: dict[int, list[str]], counter: int) -> Iterator[tuple[int, list[str]]]:
    """The bits of each column in groups that are counted; one or two that are left go on as they are."""
    for weight in sorted(columns):
        column = columns[weight]
        while len(column) > 2:
            size = min(counter, len(column)) if len(column) > 4 else 3
            yield weight, column[:size]
            column = column[size:]
        if column:
            yield weight, column


def _levels(heights: dict[int, int], counter: int) -> int:
    """Levels of counters until no column is higher than two."""
    levels = 0
    while max(heights.values()) > 2:
        compressed: Counter[int] = Counter()
        for weight, group in _groups({w: ["x"] * h for w, h in heights.items()}, counter):
            counted = len(group).bit_length() if len(group) > 2 else 0
            compressed.update({weight + place: 1 for place in range(counted)} if counted else {weight: len(group)})
        heights, levels = dict(compressed), levels + 1
    return levels


def _counter(body: Body, stem: str, bits: list[str], carries: bool) -> list[str]:
    if len(bits) == 3:
        return (_carry_adder if carries else _full_adder)(body, stem, *bits)
    first, first_carry = _full_adder(body, f"{stem}a", *bits[:3])
    second, second_carry = _full_adder(body, f"{stem}b", *bits[3:], *["1'b0"] * (6 - len(bits)))
    total = body.wire(f"{stem}_s", f"{first} ^ {second}")
    both = body.wire(f"{stem}_h", f"{first} & {second}")
    return [total, *_full_adder(body, f"{stem}c", first_carry, second_carry, both)]


def _full_adder(body: Body, stem: str, a: str, b: str, c: str) -> list[str]:
    total = body.wire(f"{stem}_s", f"{a} ^ {b} ^ {c}")
    return [total, body.wire(f"{stem}_k", f"({a} & {b}) | ({a} & {c}) | ({b} & {c})")]


def _carry_adder(body: Body, stem: str, a: str, b: str, c: str) -> list[str]:
    added = body.wire(f"{stem}_t", f"{{1'b0, {a}, {c}}} + {{1'b0, {b}, {c}}}", 3)
    body.wire(f"{stem}_unused", f"{added}[0]")
    return [body.wire(f"{stem}_s", f"{added}[1]"), body.wire(f"{stem}_k", f"{added}[2]")]
