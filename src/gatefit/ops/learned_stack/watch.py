"""What is written down while a learned stack is differentiated: whose inputs are to be regrown, and what that takes."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from gatefit.bits import PackedBatch


@dataclass
class Watch:
    """``inputs`` names, for each layer, the gate inputs that are watched: side · gates + gate, in rising order.

    The backward pass fills in, for each layer that has some, the loss's gradient at these inputs, and the values of all
    nodes that the layer could read.
    """

    inputs: list[Int64[np.ndarray, " watched"]]
    gradients: dict[int, Float[Tensor, "watched batch"]] = field(default_factory=dict)
    pools: dict[int, PackedBatch | Float[Tensor, "nodes batch"]] = field(default_factory=dict)
