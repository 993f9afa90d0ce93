"""Threads for the kernels, one knob, no fighting pools.

    kernel_threads()     how many threads a kernel uses: torch's own number, or what training_threads says
    parallel_for(f, n)   f(0), ..., f(n - 1), taken one after another by whichever thread is free
    training_threads(t)  t threads for the kernels and one for torch, while they work

Kernels release the interpreter lock, so plain threads run them side by side. Idle threads sleep on a lock: nothing
spins, which is what makes OpenMP's pools slow each other down many times over on a busy machine, and a forked child
starts afresh. Inside ``training_threads`` torch's own pool is not used at all. Outside it, torch's OpenMP threads are
yours to configure: set OMP_WAIT_POLICY=PASSIVE before torch is imported where other processes share the machine.

Which thread does which part never shows in a result: parts are cut by size, and sums over parts are added in order.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_chosen: int | None = None


def kernel_threads() -> int:
    """The number of threads that kernels use."""
    return torch.get_num_threads() if _chosen is None else _chosen


@contextmanager
def training_threads(threads: int | None = None) -> Iterator[int]:
    """Give the kernels ``threads`` threads (None: as many as torch has) and torch one; both as before afterwards."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads must be a whole number >= 1, or None for torch's own number, got {threads!r}")
    global _chosen  # noqa: PLW0603 -- like torch.set_num_threads, a property of the process
    before, torch_before = _chosen, torch.get_num_threads()
    _chosen = threads or kernel_threads()
    torch.set_num_threads(1)
    try:
        yield _chosen
    finally:
        _chosen = before
        torch.set_num_threads(torch_before)


def parallel_for(task: Callable[[int], None], count: int) -> None:
    """Call ``task`` with 0 to ``count - 1``, in this thread and in idle ones; returns when all have ended."""
    helpers = min(kernel_threads(), count) - 1
    if helpers < 1:
        for place in range(count):
            task(place)
        return
    places, guard = iter(range(count)), threading.Lock()

    def work() -> None:
        while True:
            with guard:
                place = next(places, None)
            if place is None:
                return
            task(place)

    pool = _threads(helpers)
    others: list[Future[None]] = [pool.submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        # Also after an error here: the others still write to the caller's arrays.
        wait(others)
    for other in others:
        other.result()


def _threads(count: int) -> ThreadPoolExecutor:
    """The pool, with at least ``count`` threads."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < count:
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool, _pool_size = ThreadPoolExecutor(count, thread_name_prefix="gatefit"), count
        return _pool


def _forget_threads() -> None:
    """A forked child has a copy of the pool's record, but none of its threads."""
    global _pool, _pool_size, _lock
    _pool, _pool_size, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
