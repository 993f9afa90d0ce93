"""Threads for the kernels, one knob, no fighting pools.

    kernel_threads()     how many threads a kernel uses: torch's own number, or what training_threads says
    parallel_for(f, n)   f(0), ..., f(n - 1), taken one after another by whichever thread is free;
                         by this one alone where all of it takes less time than another takes to wake up
    parallel_torch(f, n) the same for tasks that call torch, each on one thread
    ahead(f)             f() by a thread that is idle, while this one goes on; asked for its result, it waits
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
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final, TypeVar

import torch

WORTH_A_THREAD: Final = 250_000
"""Nanoseconds of work from which threads pay: waking one takes some fifty thousand, and both share an interpreter."""


_T = TypeVar("_T")


class _Chosen(threading.local):
    """What ``training_threads`` says in this thread: models that are fitted side by side do not undo each other's."""

    threads: int | None = None


_chosen = _Chosen()


def kernel_threads() -> int:
    """The number of threads that kernels use which this thread calls."""
    return torch.get_num_threads() if _chosen.threads is None else _chosen.threads


@contextmanager
def training_threads(threads: int | None = None) -> Iterator[int]:
    """Give the kernels ``threads`` threads (None: as many as torch has) and torch one; both as before afterwards."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads must be a whole number >= 1, or None for torch's own number, got {threads!r}")
    before, torch_before = _chosen.threads, torch.get_num_threads()
    _chosen.threads = chosen = threads or kernel_threads()
    torch.set_num_threads(1)
    try:
        yield chosen
    finally:
        _chosen.threads = before
        torch.set_num_threads(torch_before)


class _Job:
    """Tasks to be taken one after another by whoever asks."""

    def __init__(self, task: Callable[[int], None], count: int) -> None:
        self.task, self.count = task, count
        self.taken = self.running = 0
        self.error: BaseException | None = None
        self.lock, self.ended = threading.Lock(), threading.Lock()
        self.ended.acquire()

    def work(self) -> None:
        """Take tasks until none is left; whoever ends the last one says so."""
        while True:
            with self.lock:
                if self.taken == self.count:
                    return
                place, self.taken = self.taken, self.taken + 1
                self.running += 1
            error = None
            try:
                self.task(place)
            except BaseException as caught:  # raised again by parallel_for
                error = caught
            with self.lock:
                self.running -= 1
                if error is not None:
                    self.error, self.taken = self.error or error, self.count
                if not self.running and self.taken == self.count:
                    self.ended.release()


def parallel_for(task: Callable[[int], None], count: int, *, nanoseconds: float | None = None) -> None:
    """Call ``task`` with 0 to ``count - 1``, in this thread and in idle ones; returns when all have ended.

    ``nanoseconds``: about how long one thread takes for all of them; None: long. A thread that the system is slow to
    wake is not waited for: it finds nothing left to do. After an error no further task begins, and the error is raised
    here.
    """
    helpers = min(kernel_threads(), count) - 1
    if helpers < 1 or (nanoseconds is not None and nanoseconds < WORTH_A_THREAD):
        for place in range(count):
            task(place)
        return
    job = _Job(task, count)
    queue = _pool.with_threads(helpers)
    for _ in range(helpers):
        queue.put(job)
    job.work()
    job.ended.acquire()
    # A helper may yet come to look at the job: it should not keep the caller's arrays alive.
    del job.task
    if job.error is not None:
        raise job.error


def parallel_torch(task: Callable[[int], None], count: int, *, nanoseconds: float | None = None) -> None:
    """``parallel_for`` for tasks that call torch without gradients.

    Each is computed by one thread, as inside ``training_threads``, so that it has the bits that it has there; outside,
    one task follows the other in this thread.
    """
    if _chosen.threads is None:
        for place in range(count):
            task(place)
        return

    def alone(place: int) -> None:
        # torch keeps gradient mode and its number of threads for each thread apart.
        if torch.get_num_threads() != 1:
            torch.set_num_threads(1)
        with torch.no_grad():
            task(place)

    parallel_for(alone, count, nanoseconds=nanoseconds)


def ahead(function: Callable[[], _T]) -> Callable[[], _T]:
    """Begin ``function`` in an idle thread, on that thread alone; what is returned gives its result, or its error.

    Where no thread has begun, or there is none to spare, it is computed when it is asked for; likewise in a process
    that was forked meanwhile, whose copy of the thread does not run.
    """
    if _chosen.threads is None or _chosen.threads < 2:
        return function
    found: list[_T] = []
    process = os.getpid()

    def alone(place: int) -> None:
        if torch.get_num_threads() != 1:
            torch.set_num_threads(1)
        found.append(function())

    job = _Job(alone, 1)
    _pool.with_threads(_chosen.threads - 1).put(job)

    def result() -> _T:
        if os.getpid() != process:
            return function()
        job.work()
        with job.ended:  # left open for whoever asks again
            pass
        if job.error is not None:
            raise job.error
        return found[0]

    return result


class _Pool:
    """Threads that sleep until there is a job; more are started when more are asked for."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[_Job] = SimpleQueue()
        self.size = 0
        self.lock = threading.Lock()

    def with_threads(self, count: int) -> "SimpleQueue[_Job]":
        """The queue, served by at least ``count`` threads."""
        if self.size < count:
            with self.lock:
                while self.size < count:
                    self.size += 1
                    # Daemons: an idle thread does not keep the process alive.
                    threading.Thread(
                        target=_serve, args=(self.queue,), name=f"gatefit-{self.size}", daemon=True
                    ).start()
        return self.queue


def _serve(queue: "SimpleQueue[_Job]") -> None:
    while True:
        queue.get().work()


_pool = _Pool()


def _forget_threads() -> None:
    """A forked child has a copy of the pool's record, but none of its threads."""
    global _pool  # noqa: PLW0603
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
