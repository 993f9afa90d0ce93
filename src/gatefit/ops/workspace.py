"""Reused buffers: a fresh 16 MB array costs as much in page faults as the arithmetic done in it.

    free(buffer)  <=>  nobody but the pool holds a reference to it

A buffer is a NumPy array; what is handed out is a tensor made by ``torch.from_numpy``, whose storage owns a reference
to the array until the last tensor, view or saved-for-backward copy of it is gone. The array's reference count
therefore says exactly when the memory may be used again, whatever autograd does with it in between.
"""

import sys
import threading
from collections import OrderedDict
from math import prod

import numpy as np
import torch
from torch import Tensor

_NUMPY_TYPES: dict[torch.dtype, type[np.generic]] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int32: np.int32,
}


def _references(buffers: list[np.ndarray], place: int) -> int:
    return sys.getrefcount(buffers[place])


# What an array held by nothing but a list counts, interpreter's own temporaries included: asked, not assumed.
_IDLE_REFERENCES = _references([np.empty(1)], 0)

_SMALL = 1 << 16
"""Bytes below which torch's own allocator is as good: malloc reuses such blocks without page faults."""


class Workspace:
    """A pool of buffers by size and type; holds at most ``idle_bytes`` that nobody uses."""

    def __init__(self, idle_bytes: int = 2 << 30) -> None:
        self.idle_bytes = idle_bytes
        self._buffers: OrderedDict[tuple[int, torch.dtype], list[np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An uninitialised contiguous tensor; its memory returns to the pool when the last reference to it dies."""
        size = prod(shape)
        if size * dtype.itemsize < _SMALL:
            return torch.empty(shape, dtype=dtype)
        key = (size, dtype)
        with self._lock:
            pooled = self._buffers.setdefault(key, [])
            self._buffers.move_to_end(key)
            for place in range(len(pooled)):
                if _references(pooled, place) == _IDLE_REFERENCES:
                    return torch.from_numpy(pooled[place]).view(shape)
            self._drop_idle(keep=key)
            # NumPy asks for huge pages for large arrays: fewer page faults now, fewer misses of the TLB later.
            buffer = np.empty(size, dtype=_NUMPY_TYPES[dtype])
            pooled.append(buffer)
            return torch.from_numpy(buffer).view(shape)

    def clear(self) -> None:
        """Forget every buffer; those in use are freed by their users."""
        with self._lock:
            self._buffers.clear()

    def _drop_idle(self, keep: tuple[int, torch.dtype]) -> None:
        """Free idle buffers of the sizes not asked for longest, until the idle ones fit into ``idle_bytes``."""
        idle = {
            key: [place for place in range(len(buffers)) if _references(buffers, place) == _IDLE_REFERENCES]
            for key, buffers in self._buffers.items()
        }
        excess = sum(key[0] * key[1].itemsize * len(places) for key, places in idle.items()) - self.idle_bytes
        for key, places in idle.items():
            if excess <= 0:
                break
            if key == keep:
                continue
            for place in reversed(places):
                del self._buffers[key][place]
                excess -= key[0] * key[1].itemsize


workspace = Workspace()
"""The pool that the kernels' results and temporaries come from."""
