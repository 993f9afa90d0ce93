"""How many arithmetic operations a gate costs (app. opcounts), counted from the algorithms themselves.

    naive    evaluate all sixteen gates for every sample, mix them with the softmax
    gatefit  coefficients once a batch, then one polynomial a sample: z = c_0 + c_a a + c_b b + c_ab ab

A count is a number of additions, multiplications, divisions, exponentials, logarithms and comparisons. Coefficients do
not depend on the sample, so that what makes them is shared by the batch; this holds for Soft-Mix as for every method.
"""

import itertools
from dataclasses import dataclass
from typing import Final

from gatefit.gates import Gate

GATES: Final = len(Gate)
COEFFICIENTS: Final = 4
BATCH: Final = 512
ADAM_FLOATS: Final = 3
"""Value, first and second moment of every parameter."""

PARAMETERS: Final[dict[str, int]] = {
    "soft-mix": GATES,
    "gumbel-st": GATES,
    "hard-st": GATES,
    "multilinear-ste": COEFFICIENTS,
    "multilinear-covjac": COEFFICIENTS,
    "multilinear-free": COEFFICIENTS,
    "iwp": COEFFICIENTS,
    "iwp-ste": COEFFICIENTS,
    "iwp-free": COEFFICIENTS,
}
"""Learned numbers a gate; tests compare them with the methods."""


@dataclass(frozen=True)
class Operations:
    """Operations of a gate: for every sample, and once a batch."""

    sample: int
    batch: int

    def per_sample(self, batch: int = BATCH) -> float:
        """Both together, the batch's share spread over its samples."""
        return self.sample + self.batch / batch


def dot(length: int) -> int:
    """Σ x_i y_i: multiplications, and additions between them."""
    return length + (length - 1)


def softmax(length: int) -> int:
    """exp of each, their sum, a division each."""
    return length + (length - 1) + length


def polynomial(*, product_given: bool = False) -> int:
    """c_0 + c_a a + c_b b + c_ab (ab): a product for each monomial but the constant, as many sums, and ab itself."""
    return 2 * (COEFFICIENTS - 1) + (0 if product_given else 1)


def distances() -> int:
    """‖c - G_j‖² up to ‖c‖², which all share: a dot product with -2 G_j and the addition of ‖G_j‖²."""
    return GATES * (dot(COEFFICIENTS) + 1)


def argmin() -> int:
    """Comparisons between sixteen."""
    return GATES - 1


def mixture() -> int:
    """Σ_j π_j G_j: a dot product for each coefficient."""
    return COEFFICIENTS * dot(GATES)


def gumbel_noise() -> int:
    """-log(-log u) for every gate: two logarithms and a sign, as the paper counts; and the addition to the logits."""
    return GATES * 3 + GATES


def naive(method: str) -> Operations:
    """The form that the paper counts for methods of sixteen logits; for the others, theirs and ours are the same."""
    if PARAMETERS[method] == COEFFICIENTS:
        return shared(method)
    gates = 1 + GATES * polynomial(product_given=True)
    return Operations(softmax(GATES) + gates + dot(GATES), gumbel_noise() if method == "gumbel-st" else 0)


def shared(method: str) -> Operations:
    """The form that gatefit runs: coefficients of the batch, then one polynomial for every sample."""
    once = {
        "soft-mix": softmax(GATES) + mixture(),
        "gumbel-st": gumbel_noise() + softmax(GATES) + argmin(),
        "hard-st": softmax(GATES) + argmin(),
        "multilinear-ste": distances() + argmin(),
        # The division by τ is one more for each gate.
        "multilinear-covjac": distances() + GATES + softmax(GATES) + mixture(),
    }
    return Operations(polynomial(), once[method])


@dataclass(frozen=True)
class NetworkSize:
    """Learned numbers of a floating-point network, and its multiplications for one sample."""

    parameters: int
    multiplications: int


@dataclass(frozen=True)
class CircuitSize:
    """Learned numbers while training, and what the deployed circuit stores."""

    parameters: int
    gate_bytes: float
    wiring_bytes: float


CHANNELS: Final = (32, 64, 128, 256, 256, 256)
"""Of the paper's convolutional networks; tests compare them with the networks."""


def baseline_size(name: str, *, bits: int = 784, side: int = 28, classes: int = 10) -> NetworkSize:
    """Of "mlp-LAYERSxUNITS" or "cnn-KERNEL-LAYERS" on square images of ``side``², by default MNIST's."""
    kind, _, rest = name.partition("-")
    if kind == "mlp":
        depth, width = map(int, rest.split("x"))
        sizes = [bits, *[width] * depth, classes]
        products = sum(read * written for read, written in itertools.pairwise(sizes))
        return NetworkSize(products + sum(sizes[1:]), products)
    kernel, depth = int(rest[0]), int(rest.partition("-")[2])
    planes = [bits // side**2, *CHANNELS[:depth]]
    parameters = multiplications = planes[-1] * classes
    parameters += classes
    for i, (read, written) in enumerate(itertools.pairwise(planes)):
        weights = kernel * kernel * read * written
        parameters += weights + written
        # Every second layer is followed by pooling that halves the side.
        multiplications += weights * (side >> i // 2) ** 2
    return NetworkSize(parameters, multiplications)


def circuit_size(inputs: int, width: int, depth: int) -> CircuitSize:
    """Four bits a gate; two indices a gate, each of as many bits as number the layer below."""
    wiring = sum(2 * width * (below - 1).bit_length() for below in (inputs, *[width] * (depth - 1)))
    return CircuitSize(COEFFICIENTS * width * depth, width * depth / 2, wiring / 8)
