"""How an operation is computed, by name: every operation asks here, so that one word decides for all of them.

reference   plain torch (numpy for noise): the definition, on any device and in any floating type
numba       compiled kernels: the CPU, in float32 and float64
auto        numba where it serves, else reference
"""

from typing import Final

import torch
from torch import Tensor

IMPLEMENTATIONS: Final = ("reference", "numba")
COMPILED_TYPES: Final = (torch.float32, torch.float64)


def check_implementation(name: str) -> str:
    """Refuse a name that is none; returns it."""
    if name != "auto" and name not in IMPLEMENTATIONS:
        raise ValueError(f"unknown implementation {name!r}; choose auto or one of {', '.join(IMPLEMENTATIONS)}")
    return name


def choose(name: str, tensor: Tensor) -> str:
    """The implementation that ``name`` means for an operation on ``tensor``; a named one is taken at its word."""
    if check_implementation(name) != "auto":
        return name
    return "numba" if tensor.device.type == "cpu" and tensor.dtype in COMPILED_TYPES else "reference"
