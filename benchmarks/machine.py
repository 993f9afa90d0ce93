"""What the numbers were measured on: processor, versions, and how fast it copies memory."""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gatefit.training.machine import machine


def copy_bandwidth(threads: int, megabytes: int = 512) -> float:
    """Bytes read and written a second by ``threads`` threads copying arrays that no cache holds."""
    size = megabytes * 1_000_000 // 8 // threads
    pairs = [(np.ones(size), np.empty(size)) for _ in range(threads)]
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(7):
            begun = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pairs))
            best = min(best, time.perf_counter() - begun)
    return 2 * threads * size * 8 / best


def describe() -> dict:
    """The machine, in words and numbers."""
    import numba
    import torch

    return {
        "processor": machine()["cpu"],
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
        "copy_bandwidth": {str(n): copy_bandwidth(n) for n in (1, 2)},
    }
