"""Clauses to text and back, at memory speed: the kernels of ``circuit.cnf``."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-incomplete-defs=False

from typing import Final

import numpy as np

from gatefit.compiled import njit

DELETE: Final = int(np.iinfo(np.int32).min)
"""Marks a proof step as a deletion; no literal has this value."""


@njit(cache=True)
def write_clauses(literals, buffer):
    """Write one line a clause into ``buffer``; returns how many bytes were used."""
    at = 0
    digits = np.empty(12, np.uint8)
    for literal in literals:
        if literal == DELETE:
            buffer[at] = 100  # d
            buffer[at + 1] = 32
            at += 2
            continue
        if literal < 0:
            buffer[at] = 45  # -
            at += 1
        value = abs(literal)
        size = 0
        while value or size == 0:
            digits[size] = 48 + value % 10
            value //= 10
            size += 1
        for i in range(size - 1, -1, -1):
            buffer[at] = digits[i]
            at += 1
        buffer[at] = 32 if literal else 10
        at += 1
    return at


@njit(cache=True)
def read_clauses(text, variables, literals):
    """Return how many numbers were read and, if the text is malformed, the number of the first bad line."""
    at, count, line, fresh = 0, 0, 1, True
    while at < text.size:
        if fresh and text[at] == 100:
            if at + 1 >= text.size or text[at + 1] != 32:
                return count, line
            literals[count] = DELETE
            count += 1
            at += 2
        fresh = False
        negative = at < text.size and text[at] == 45
        at += negative
        value, start = 0, at
        while at < text.size and 48 <= text[at] <= 57:
            value = value * 10 + (text[at] - 48)
            at += 1
            if value > variables:
                return count, line
        if at == start or at >= text.size or (value == 0 and negative):
            return count, line
        if text[at] != (10 if value == 0 else 32):
            return count, line
        literals[count] = -value if negative else value
        count += 1
        at += 1
        if value == 0:
            line += 1
            fresh = True
    return count, 0 if fresh else line
