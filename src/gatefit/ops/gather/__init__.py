"""A batch from a data set that lies on a device as rows of bits: gathered and turned into words there.

    rows     int64 (samples, ⌈bits/64⌉)     bit b % 64 of rows[s, b // 64] is bit b of sample s
    words    int64 (⌈batch/64⌉, bits)       bit i % 64 of words[i // 64, b] is bit b of sample indices[i]

The same as ``bits.gather``, which serves arrays on the CPU.
"""

from collections.abc import Callable
from typing import Final

from jaxtyping import Int64
from torch import Tensor

from gatefit.ops.gather.reference import gather_reference
from gatefit.ops.implementations import Implementation
from gatefit.ops.triton_launch import lazily

GATHER: Final[dict[str, Callable[[Tensor, Tensor, int], Tensor]]] = {
    "reference": gather_reference,
    "triton": lazily("gather", "gather_triton"),
}


def gather(
    rows: Int64[Tensor, "samples row_words"],
    indices: Int64[Tensor, " batch"],
    bits: int,
    *,
    implementation: Implementation,
) -> Int64[Tensor, "words bits"]:
    """The samples at ``indices``, sixty-four to a word; bits beyond the last sample are 0."""
    return implementation.choose(GATHER)(rows, indices, bits)
