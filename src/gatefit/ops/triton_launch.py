"""How Triton's kernels are found and started: imported when first used, launched on the device of their tensors.

    rows x samples      a tile: as many rows of a feature-major array (gates, or inputs), as many samples of the batch
    partial sums        one for each tile of samples, added in their order by a kernel of its own: no atomics

How a batch is cut decides the order of sums, and with it the last bits: sizes of tiles follow from the size of the
batch alone. They are not tuned on the device, as another choice on another day would give other bits.

Without a GPU the kernels run on the CPU where TRITON_INTERPRET=1 was set before Triton was imported: slowly, for tests.
"""

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

TILE: Final = 2048
"""Numbers of a tile: sixteen for each thread of four warps."""
WARPS: Final = 4
MOST_SAMPLES: Final = 128
"""Samples of a tile at most: 512 bytes of a row, one after another."""
LEAST_SAMPLES: Final = 16


@cache
def installed() -> bool:
    """Whether Triton can be imported; it is not imported to find out."""
    return importlib.util.find_spec("triton") is not None


def interpreted() -> bool:
    """Whether kernels run on the CPU, by Triton's interpreter."""
    return os.environ.get("TRITON_INTERPRET", "") in ("1", "true", "on", "yes")


def lazily(operation: str, name: str) -> Callable[..., Any]:
    """The function ``name`` of ``gatefit.ops.<operation>.triton``, imported when it is first called."""

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(f"gatefit.ops.{operation}.triton"), name)(*arguments, **named)

    call.__name__ = name
    return call


def power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(0, n - 1).bit_length()


def tile(batch: int) -> tuple[int, int]:
    """Rows and samples of a tile for batches of this size."""
    samples = min(MOST_SAMPLES, max(LEAST_SAMPLES, power_of_two(batch)))
    return TILE // samples, samples


def parts(size: int, part: int) -> int:
    """How many parts of a size cover the whole."""
    return -(-size // part)


@dataclass
class Recorder:
    """Launches that were written down instead of made: each kernel with its arguments, by name."""

    launches: list[tuple[Any, dict[str, Any], dict[str, Any]]] = field(default_factory=list)


_recorder: Recorder | None = None


@contextmanager
def recording() -> Iterator[Recorder]:
    """Within, kernels are not run: what would be launched is written down. Results are not computed."""
    global _recorder  # noqa: PLW0603
    before, _recorder = _recorder, Recorder()
    try:
        yield _recorder
    finally:
        _recorder = before


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, fused: bool = True, **constants: Any) -> None:
    """Run a kernel on the device of its first tensor; with ``fused`` products and sums may be rounded as one."""
    if not all(grid):
        return
    options = {"num_warps": WARPS, "enable_fp_fusion": fused}
    if _recorder is not None:
        names = kernel.arg_names[: len(arguments)]
        _recorder.launches.append((kernel, dict(zip(names, arguments, strict=True)) | constants, options))
        return
    if interpreted():
        # NumPy warns of numbers that are none, which a processor computes with as a matter of course.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)  # of numpy's nanmax
            kernel[grid](*arguments, **constants)
        return
    device = next(each.device for each in arguments if isinstance(each, Tensor))
    with torch.cuda.device(device):
        kernel[grid](*arguments, **constants, **options)
