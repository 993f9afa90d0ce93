"""Reused buffers: a fresh 16 MB array costs as much in page faults as the arithmetic done in it.

    free(buffer)  <=>  nobody but the pool holds a reference to it

A buffer is a NumPy array; what is handed out are views of it, as arrays or as tensors. Every view, and every storage
of a tensor, owns a reference to the buffer until the last array, tensor or saved-for-backward copy of it is gone. The
reference count therefore says exactly when the memory may be used again, whatever autograd does with it in between.
"""

import sys
import threading
from collections import OrderedDict
from math import prod
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

NUMPY_TYPES: Final[dict[torch.dtype, type[np.floating[Any]]]] = {torch.float32: np.float32, torch.float64: np.float64}

_CACHE_LINE: Final = 64
_SMALL: Final = 1 << 14
"""Bytes below which a new array is as good: malloc reuses such blocks without page faults."""


def _references(buffers: list[tuple[np.ndarray, int]], place: int) -> int:
    return sys.getrefcount(buffers[place][0])


# What an array held by nothing but a list counts, interpreter's own temporaries included: asked, not assumed.
_IDLE_REFERENCES = _references([(np.empty(1), 0)], 0)


def _from_line(buffer: np.ndarray) -> tuple[np.ndarray, int]:
    """A buffer, and where in it a cache line begins: asked once, as asking takes longer than handing it out."""
    return buffer, -buffer.ctypes.data % _CACHE_LINE


class Workspace:
    """A pool of buffers by size; holds at most ``idle_bytes`` that nobody uses."""

    def __init__(self, idle_bytes: int = 1 << 30) -> None:
        self.idle_bytes = idle_bytes
        self._buffers: OrderedDict[int, list[tuple[np.ndarray, int]]] = OrderedDict()
        self._lock = threading.Lock()

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An uninitialised contiguous array that begins with a cache line; free again when its last view dies."""
        size = prod(shape) * np.dtype(dtype).itemsize
        whole = size + _CACHE_LINE
        buffer, skip = _from_line(np.empty(whole, dtype=np.uint8)) if size < _SMALL else self._buffer(whole)
        return np.ndarray(shape, dtype, buffer, skip)

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """The same as a tensor, float32 or float64."""
        if prod(shape) * dtype.itemsize < _SMALL:
            return torch.empty(shape, dtype=dtype)
        return torch.from_numpy(self.array(shape, NUMPY_TYPES[dtype]))

    def clear(self) -> None:
        """Forget every buffer; those in use are freed by their users."""
        with self._lock:
            self._buffers.clear()

    def _buffer(self, size: int) -> tuple[np.ndarray, int]:
        with self._lock:
            pooled = self._buffers.setdefault(size, [])
            self._buffers.move_to_end(size)
            for place in range(len(pooled)):
                if _references(pooled, place) == _IDLE_REFERENCES:
                    return pooled[place]
            self._drop_idle(keep=size)
            # NumPy asks for huge pages for large arrays: fewer page faults now, fewer misses of the TLB later.
            pooled.append(_from_line(np.empty(size, dtype=np.uint8)))
            return pooled[-1]

    def _drop_idle(self, keep: int) -> None:
        """Free idle buffers of the sizes not asked for longest, until the idle ones fit into ``idle_bytes``."""
        idle = {
            size: [place for place in range(len(buffers)) if _references(buffers, place) == _IDLE_REFERENCES]
            for size, buffers in self._buffers.items()
        }
        excess = sum(size * len(places) for size, places in idle.items()) - self.idle_bytes
        for size, places in idle.items():
            if excess <= 0:
                break
            if size != keep:
                for place in reversed(places):
                    del self._buffers[size][place]
                    excess -= size


workspace = Workspace()
"""The pool that the kernels' results and temporaries come from."""
