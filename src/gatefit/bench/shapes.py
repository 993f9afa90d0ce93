"""Networks whose training steps are measured."""

from typing import Final

MNIST: Final = {"inputs": 784, "width": 8000, "depth": 6, "classes": 10, "batch": 512}
SHAPES: Final[dict[str, dict[str, int]]] = {
    "mnist-8k": MNIST,
    "mnist-64k": {**MNIST, "width": 64_000},
    "mnist-128k": {**MNIST, "width": 128_000},
    "mnist-256k": {**MNIST, "width": 256_000},
    "cifar-12k": {"inputs": 95232, "width": 12000, "depth": 4, "classes": 10, "batch": 128},
    "monks": {"inputs": 17, "width": 136, "depth": 6, "classes": 2, "batch": 169},
}
