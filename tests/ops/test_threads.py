"""Threads: one knob, nothing spins, errors come through, a busy neighbour costs less than twice the time."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from gatefit.bits import pack
from gatefit.ops.implementations import NUMBA
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stacks import Stack
from gatefit.ops.threads import WORTH_A_THREAD, ahead, kernel_threads, parallel_for, training_threads
from patience import HANG


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_task_runs_exactly_once(threads, count):
    done, lock = [], threading.Lock()

    def task(place):
        with lock:
            done.append(place)

    with training_threads(threads):
        parallel_for(task, count)
    assert sorted(done) == list(range(count))


def test_tasks_run_side_by_side():
    both = threading.Barrier(2, timeout=HANG)  # passed only if two tasks are under way at once
    with training_threads(2):
        parallel_for(lambda place: both.wait() and None, 2)


def test_an_error_in_a_task_comes_through_after_all_have_ended():
    ended = []

    def task(place):
        if place == 1:
            raise ZeroDivisionError("task 1")
        time.sleep(0.01)
        ended.append(place)

    for threads in (1, 2, 4):
        ended.clear()
        with training_threads(threads), pytest.raises(ZeroDivisionError, match="task 1"):
            parallel_for(task, 4)
        count = len(ended)
        time.sleep(0.05)
        assert len(ended) == count


def test_short_work_wakes_nobody():
    seen = []
    with training_threads(2):
        parallel_for(lambda place: seen.append(threading.get_ident()), 50, nanoseconds=WORTH_A_THREAD - 1)
    assert seen == [threading.get_ident()] * 50


def test_what_is_begun_ahead_is_done_by_another_thread_while_this_one_goes_on():
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert go_on.wait(HANG)
        return threading.get_ident(), kernel_threads()

    with training_threads(2):
        result = ahead(work)
        assert begun.wait(HANG)  # though nobody has asked for it
        go_on.set()
        other, threads = result()
    assert other != threading.get_ident()
    assert threads == 1


def test_what_is_begun_ahead_is_done_here_where_no_thread_is_free():
    with training_threads(1):
        assert ahead(threading.get_ident)() == threading.get_ident()
    assert ahead(threading.get_ident)() == threading.get_ident()
    with training_threads(2):
        for _ in range(200):  # whoever comes first
            assert ahead(lambda: 5)() == 5


def test_what_was_begun_ahead_may_be_asked_for_again():
    with training_threads(2):
        result = ahead(object)
        assert result() is result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not():
    go_on, begun = threading.Event(), threading.Event()
    parent = os.getpid()

    def work():
        begun.set()
        assert os.getpid() != parent or go_on.wait(HANG)
        return 5

    with training_threads(2):
        result = ahead(work)
        assert begun.wait(HANG)
        child = os.fork()
        if not child:
            signal.alarm(int(HANG))  # ends the child where it would wait for ever
            os._exit(result())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        go_on.set()
        assert result() == 5


def test_an_error_ahead_comes_when_the_result_is_asked_for():
    def work():
        raise ZeroDivisionError("ahead")

    for threads in (1, 2):
        with training_threads(threads):
            result = ahead(work)
            with pytest.raises(ZeroDivisionError, match="ahead"):
                result()


def test_numbers_of_threads_are_restored():
    before = torch.get_num_threads()
    assert kernel_threads() == before
    with training_threads(3) as outer:
        assert (outer, kernel_threads(), torch.get_num_threads()) == (3, 3, 1)
        with training_threads(2):
            assert kernel_threads() == 2
        assert (kernel_threads(), torch.get_num_threads()) == (3, 1)
        with training_threads() as inherited:
            assert inherited == 3
    with pytest.raises(KeyError), training_threads(2):
        raise KeyError
    assert kernel_threads() == torch.get_num_threads() == before


def test_trainings_side_by_side_do_not_undo_each_others_numbers():
    """The first to begin ends first: what it restores is its own."""
    before, seen = kernel_threads(), []
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))

    def first():
        with training_threads(3):
            first_began.set()
            assert second_began.wait(HANG)
            seen.append(kernel_threads())
        first_ended.set()

    def second():
        assert first_began.wait(HANG)
        with training_threads(5):
            second_began.set()
            assert first_ended.wait(HANG)
            seen.append(kernel_threads())

    both = [threading.Thread(target=each) for each in (first, second)]
    for each in both:
        each.start()
    for each in both:
        each.join(HANG)
    assert seen == [3, 5]
    assert kernel_threads() == torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_other_numbers_are_refused(threads):
    with pytest.raises(ValueError, match=r"threads must be a whole number >= 1, or None for torch's own number, got"):
        training_threads(threads).__enter__()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_its_own_threads():
    script = (
        "import os, sys\n"
        "from gatefit.ops.threads import parallel_for, training_threads\n"
        "with training_threads(2):\n"
        "    parallel_for(lambda place: None, 4)\n"
        "    child = os.fork()\n"
        "    seen = []\n"
        "    parallel_for(seen.append, 4)\n"
        "    if child:\n"
        "        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    os._exit(0 if sorted(seen) == [0, 1, 2, 3] else 1)\n"
    )
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=HANG, check=False).returncode == 0


def _step(x, wirings, coefficients):
    soft_stack(x, Stack(wirings, 10), coefficients, implementation=NUMBA).sum().backward()


def _time_of_step(repeats):
    generator = torch.Generator().manual_seed(0)
    x = pack((torch.rand(512, 64, generator=generator) < 0.5).numpy())
    wirings = [torch.randint(n, (2, 1000), generator=generator, dtype=torch.int32) for n in (64, 1000, 1000)]
    coefficients = [torch.rand(1000, 4, generator=generator).requires_grad_() for _ in wirings]
    best = float("inf")
    with training_threads(2):
        _step(x, wirings, coefficients)
        for _ in range(repeats):
            begin = time.perf_counter()
            for _ in range(10):
                _step(x, wirings, coefficients)
            best = min(best, time.perf_counter() - begin)
    return best


@pytest.mark.slow
def test_a_process_that_loads_one_core_slows_a_step_by_less_than_twice():
    alone = _time_of_step(20)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.5)
        beside = _time_of_step(20)
    finally:
        busy.kill()
        busy.wait()
    assert beside < 2 * alone, f"{1e3 * alone:.1f} ms alone, {1e3 * beside:.1f} ms beside a busy process"
