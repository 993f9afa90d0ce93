"""The definition of a gathered batch, in plain torch: every bit by itself."""

import torch
from jaxtyping import Int64
from torch import Tensor

from gatefit.ops.batches import pack_samples


def gather_reference(
    rows: Int64[Tensor, "samples row_words"], indices: Int64[Tensor, " batch"], bits: int
) -> Int64[Tensor, "words bits"]:
    """The samples' bits, packed anew."""
    places = torch.arange(64, device=rows.device)
    return pack_samples(((rows[indices][:, :, None] >> places) & 1).flatten(1)[:, :bits].bool())
