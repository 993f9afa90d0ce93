"""How many of some bits are one, by a tree of counters that fit the tables of an FPGA.

    full adder     3 bits of weight w      ->  weights w, 2w             two tables of 3 inputs
    six-counter    6 (or 5) bits           ->  weights w, 2w, 4w         three tables of 6 inputs

Bits of equal weight stand in a column. Every level compresses all columns; when no column is higher than two, one
addition is left, which tools map to a carry chain. Against a plain sum written by ``+`` this saves about a tenth of
the tables of 4 inputs (counter 3) and a quarter of those of 6 (counter 6), and is shallower. Both rows of that addition
are as wide as its result, so that no linter asks what was meant.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from gatefit.backends.verilog_pipeline import Body

SIZES = (3, 6)


def count_ones(
    body: Body, stem: str, bits: list[str], counter: int, width: int, cuts: Sequence[float] = ()
) -> list[str]:
    """Up to two terms of ``width`` bits whose sum is the number of ones; wires are named after ``stem``.

    Every number in ``cuts`` puts a register on each path, that part of the tree's levels down.
    """
    if counter not in SIZES:
        raise ValueError(f"a counter takes 3 bits (tables of 4 inputs) or 6 (tables of 6 inputs), got {counter}")
    columns: dict[int, list[str]] = {0: list(bits)}
    last = _levels(len(bits), counter)
    numbers = iter(range(len(bits)))
    for level in range(last + 1):
        cycles = sum(round(cut * last) == level for cut in cuts)
        columns = {weight: [body.delayed(bit, cycles) for bit in column] for weight, column in columns.items()}
        if level < last:
            groups = list(_groups(columns, counter))
            columns = {}
            for weight, group in groups:
                counted = _counter(body, f"{stem}_{next(numbers)}", group) if len(group) > 2 else group
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


def _levels(bits: int, counter: int) -> int:
    """Levels of counters until no column is higher than two."""
    heights = {0: bits}
    levels = 0
    while max(heights.values()) > 2:
        compressed: Counter[int] = Counter()
        for weight, group in _groups({w: ["x"] * h for w, h in heights.items()}, counter):
            counted = len(group).bit_length() if len(group) > 2 else 0
            compressed.update({weight + place: 1 for place in range(counted)} if counted else {weight: len(group)})
        heights, levels = dict(compressed), levels + 1
    return levels


def _counter(body: Body, stem: str, bits: list[str]) -> list[str]:
    if len(bits) == 3:
        return _full_adder(body, stem, *bits)
    first, first_carry = _full_adder(body, f"{stem}a", *bits[:3])
    second, second_carry = _full_adder(body, f"{stem}b", *bits[3:], *["1'b0"] * (6 - len(bits)))
    total = body.wire(f"{stem}_s", f"{first} ^ {second}")
    both = body.wire(f"{stem}_h", f"{first} & {second}")
    return [total, *_full_adder(body, f"{stem}c", first_carry, second_carry, both)]


def _full_adder(body: Body, stem: str, a: str, b: str, c: str) -> list[str]:
    total = body.wire(f"{stem}_s", f"{a} ^ {b} ^ {c}")
    return [total, body.wire(f"{stem}_k", f"({a} & {b}) | ({a} & {c}) | ({b} & {c})")]
