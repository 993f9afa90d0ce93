"""A gathered batch by a Triton kernel: sixty-four samples of sixty-four bits a program."""
# mypy: disable-error-code="no-untyped-def"

import triton
import triton.language as tl
from jaxtyping import Int64
from torch import Tensor

from gatefit.ops.triton_launch import launch, parts


@triton.jit
def _gather(rows, indices, words, row_words, batch, bits):
    """One column of rows becomes sixty-four words."""
    word, column = tl.program_id(0), tl.program_id(1)
    sample, place = tl.arange(0, 64), tl.arange(0, 64)
    there = word * 64 + sample < batch
    number = tl.load(indices + word * 64 + sample, mask=there, other=0)
    own = tl.load(rows + number * row_words + column, mask=there, other=0)
    turned = ((own[:, None] >> place.to(tl.int64)[None, :]) & 1) << sample.to(tl.int64)[:, None]
    # Each bit has a place of its own, so that a sum is an or.
    b = column * 64 + place
    tl.store(words + word.to(tl.int64) * bits + b, tl.sum(turned, axis=0), mask=b < bits)


def gather_triton(
    rows: Int64[Tensor, "samples row_words"], indices: Int64[Tensor, " batch"], bits: int
) -> Int64[Tensor, "words bits"]:
    """All columns of all words."""
    batch, row_words = indices.numel(), int(rows.shape[1])
    words = rows.new_empty((parts(batch, 64), bits))
    launch(_gather, (parts(batch, 64), row_words), rows, indices.contiguous(), words, row_words, batch, bits)
    return words
