"""Two real processes train what one trains, up to the order of summation; none of them waits for a dead one."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from gatefit.training import parallel
from gatefit.training.checkpoint import checkpoint_name
from gatefit.training.parallel import ParallelError, ProcessGroup, process_group
from parallel_worker import CASES, FINISHED, STOP_AT, run_alone
from patience import HANG, wait_until

pytestmark = pytest.mark.outside

WORKER = Path(__file__).parent.parent / "parallel_worker.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LONG = ["--dataset", "monks-1", "--width", "34", "--depth", "2", "--evaluate-every", "20", "--threads", "1"]


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


def two_processes(*arguments):
    """The same command twice, as any launcher may start it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env=environment(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def wait_for(condition, *processes):
    """Return once the condition holds; the processes have to be alive until then."""

    def met():
        if condition():
            return True
        assert all(process.poll() is None for process in processes), [p.communicate() for p in processes]
        return False

    wait_until(met, "what the processes are to do")


def story(path):
    with safe_open(path, "pt") as file:
        return json.loads(file.metadata()["story"])


@pytest.fixture(scope="module")
def alone():
    """Each case by one process, trained once."""
    return {name: run_alone(name) for name in CASES}


@pytest.fixture(scope="module")
def results(tmp_path_factory, alone):
    """The same by two processes; later, so that kernels in float64 are compiled once and not by both."""
    folder = tmp_path_factory.mktemp("parallel")
    run_alone("gumbel-st", folder / "begun-by-one", STOP_AT)
    done = subprocess.run(
        [*TORCHRUN, str(WORKER), str(folder)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}")


def assert_same_story(found, result):
    """Every accuracy is equal, every loss close."""
    assert (found["step"], found["finished"]) == (result.state.step, result.finished)
    losses = [[row["loss"] for row in metrics] for metrics in (found["metrics"], result.state.metrics)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    for row, expected in zip(found["metrics"], result.state.metrics, strict=True):
        assert {**row, "loss": 0} == {**expected, "loss": 0}


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_what_one_trains(results, alone, name):
    network, result = alone[name]
    assert_close(load_file(results / f"{name}-0.safetensors"), network.state_dict())
    assert_same_story(story(results / f"{name}-0.safetensors"), result)


@pytest.mark.parametrize("name", CASES)
def test_both_processes_hold_the_same_bits(results, name):
    first, second = (load_file(results / f"{name}-{rank}.safetensors") for rank in range(2))
    assert all(torch.equal(value, second[key]) for key, value in first.items())
    assert story(results / f"{name}-0.safetensors") == story(results / f"{name}-1.safetensors")


def test_patience_ends_all_processes_at_the_same_step(alone):
    assert alone["validation"][1].state.step < CASES["validation"].steps


def test_one_wish_to_stop_stops_all_after_the_same_step(results):
    for rank in range(2):
        told = story(results / f"stopped-{rank}.safetensors")
        assert (told["step"], told["finished"]) == (STOP_AT, False)


def test_a_run_stopped_and_resumed_by_two_has_the_bits_of_one_that_was_not(results):
    whole, resumed = (load_file(results / f"{name}-0.safetensors") for name in ("gumbel-st", "resumed"))
    assert all(torch.equal(value, resumed[key]) for key, value in whole.items())
    assert story(results / "gumbel-st-0.safetensors") == story(results / "resumed-0.safetensors")


def test_one_process_goes_on_where_two_stopped(results, alone):
    network, result = run_alone("gumbel-st", results / "left")
    assert_close(network.state_dict(), alone["gumbel-st"][0].state_dict())
    assert_same_story({"step": 30, "finished": True, "metrics": result.state.metrics}, alone["gumbel-st"][1])


def test_two_processes_go_on_where_one_stopped(results, alone):
    for rank in range(2):
        path = results / f"resumed-by-two-{rank}.safetensors"
        assert_close(load_file(path), alone["gumbel-st"][0].state_dict())
        assert_same_story(story(path), alone["gumbel-st"][1])


def test_checkpoints_are_those_of_one_process(results, tmp_path):
    run_alone("gumbel-st", tmp_path)
    name = checkpoint_name(CASES["gumbel-st"].steps)
    assert_close(load_file(results / "stopped" / name), load_file(tmp_path / name))


def test_processes_that_disagree_do_not_begin(results):
    for rank in range(2):
        told = json.loads((results / f"errors-{rank}.json").read_text())["disagree"]
        assert told.startswith("ParallelError: process 1 has another configuration, data set or version of gatefit")


def test_a_loss_that_is_not_finite_in_one_part_ends_all_with_the_same_words(results):
    for rank in range(2):
        told = json.loads((results / f"errors-{rank}.json").read_text())["diverge"]
        assert told.startswith("TrainingDivergedError: the loss is nan at step 1; lower learning_rate")


def test_a_process_that_cannot_begin_tells_the_others(results):
    leader, follower = (json.loads((results / f"errors-{r}.json").read_text())["write_in_all"] for r in range(2))
    assert leader == "ParallelError: process 1 could not begin, see the message there; nothing was trained"
    assert follower == "ValueError: process 1 was given the folder nowhere/1; only the first process writes"


def test_a_finished_run_is_read_by_the_leader_and_the_others_leave(results):
    leader, follower = (json.loads((results / f"errors-{rank}.json").read_text()) for rank in range(2))
    assert (leader["first run"], leader["again run"]) == ("[True]", "[True]")
    assert (follower["first run"], follower["again run"]) == ("[]", "[]")
    written = json.loads((results / "finished" / "result.json").read_text())
    assert (written["config"], written["steps"]) == (FINISHED.identity, FINISHED.steps)


def test_nothing_of_a_group_outlives_it(tmp_path):
    """Threads that do may abort the process when the interpreter ends, and hold the port of the next group."""
    processes = two_processes(WORKER, tmp_path, "twice")
    told = [process.communicate(timeout=HANG)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    for rank in range(2):
        first, second = (load_file(tmp_path / f"{i}-{rank}.safetensors") for i in range(2))
        assert all(torch.equal(value, second[key]) for key, value in first.items())
        for i in range(2):
            left = json.loads((tmp_path / f"threads-{i}-{rank}.json").read_text())
            assert not [name for name in left if "gloo" in name or "tcpstore" in name], left


def test_a_killed_process_ends_the_run_with_one_line(tmp_path):
    folder = tmp_path / "run"
    leader, follower = two_processes("-m", "gatefit.cli", "train", *LONG, "--steps", 10**6, "--out", folder, "--quiet")
    wait_for((folder / "checkpoints" / checkpoint_name(20)).exists, leader, follower)
    follower.kill()
    follower.communicate()
    out, told = leader.communicate(timeout=HANG)
    assert leader.returncode == 1
    assert out == ""
    assert told == (
        "error: process 0 of 2 stops: another one has ended; "
        "the last checkpoint is intact, start all of them again to go on from it\n"
    )
    assert not (folder / "result.json").exists()


@pytest.mark.slow
def test_nobody_waits_for_a_process_that_does_not_answer(tmp_path):
    leader, follower = two_processes(WORKER, tmp_path, "forever")
    try:
        wait_for(lambda: all((tmp_path / f"steps-{rank}").exists() for rank in range(2)), leader, follower)
        follower.send_signal(signal.SIGSTOP)
        _, told = leader.communicate(timeout=HANG)
    finally:
        follower.kill()
        follower.communicate()
    assert leader.returncode == 1
    assert "process 0 of 2 stops: another one did not answer for 15 s" in told
    assert (tmp_path / "checkpoints" / checkpoint_name(10)).exists()


@pytest.mark.slow
def test_torchrun_ends_when_a_process_is_killed_and_the_run_goes_on_with_one(tmp_path):
    folder = tmp_path / "run"
    command = ["-m", "gatefit.cli", "train", *LONG, "--steps", "2000", "--out", str(folder), "--quiet"]
    torchrun = subprocess.Popen([*TORCHRUN, *command], env=environment(), stderr=subprocess.PIPE, text=True)
    wait_for((folder / "checkpoints" / checkpoint_name(20)).exists, torchrun)
    workers = psutil.Process(torchrun.pid).children()
    next(worker for worker in workers if worker.environ()["RANK"] == "1").kill()
    _, told = torchrun.communicate(timeout=HANG)
    assert torchrun.returncode != 0, told
    assert not any(worker.is_running() for worker in workers)
    assert not (folder / "result.json").exists()
    resume = [sys.executable, "-m", "gatefit.cli", "train", "--resume", str(folder), "--threads", "1", "--json"]
    done = subprocess.run(resume, capture_output=True, text=True, timeout=HANG, check=True)
    assert "resumed at step " in done.stderr
    assert json.loads(done.stdout)["finished"]


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]])
def test_a_signal_to_one_process_stops_all_and_the_leader_saves(tmp_path, numbers):
    """Ctrl+C reaches a process twice: from the terminal, and as torchrun's SIGTERM."""
    folder = tmp_path / "run"
    leader, follower = two_processes("-m", "gatefit.cli", "train", *LONG, "--steps", 10**6, "--out", folder, "--json")
    wait_for(lambda: (folder / "metrics.jsonl").exists() and (folder / "metrics.jsonl").read_text(), leader, follower)
    for number in numbers:
        follower.send_signal(number)
    out, _ = leader.communicate(timeout=HANG)
    silent, told = follower.communicate(timeout=HANG)
    assert (leader.returncode, follower.returncode) == (143, 0)
    assert "stopping after this step" in told
    assert silent == ""
    content = json.loads(out)
    assert content["finished"] is False
    assert (folder / "checkpoints" / checkpoint_name(content["step"])).exists()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("batch", [1, 2, 51, 512])
def test_the_parts_of_a_batch_make_the_batch(size, batch):
    def part(rank):
        group = object.__new__(ProcessGroup)
        group.rank, group.size = rank, size
        return list(range(batch))[group.part(batch)]

    parts = [part(rank) for rank in range(size)]
    assert list(itertools.chain(*parts)) == list(range(batch))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("given", [None, "1"])
def test_a_process_by_itself_has_no_group(monkeypatch, given):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if given:
        monkeypatch.setenv("WORLD_SIZE", given)
    with process_group() as group:
        assert group is None


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"WORLD_SIZE": "2"},
            "WORLD_SIZE=2 in the environment, but RANK, MASTER_ADDR, MASTER_PORT not set; use torchrun",
        ),
        (
            {"WORLD_SIZE": "two", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
            "WORLD_SIZE=two in the environment, but this is no number of processes; use torchrun",
        ),
    ],
)
def test_an_environment_without_the_other_processes_is_refused(monkeypatch, variables, words):
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ParallelError, match=words), process_group():
        pass


def test_nobody_else_came(monkeypatch):
    variables = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(ParallelError, match=r"cannot meet the other processes at 127\.0\.0\.1:9 "),
        process_group(timeout=1),
    ):
        pass


def test_cuda_tensors_travel_by_nccl(monkeypatch):
    """Which library serves which device; there is none here to run it on."""
    asked = {}
    for name, value in {
        "WORLD_SIZE": "2",
        "RANK": "1",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "a",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(parallel.dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: asked.update(device=device))

    def refuse(backend, timeout):
        asked.update(backend=backend)
        raise RuntimeError("nobody there")

    monkeypatch.setattr(parallel.dist, "init_process_group", refuse)
    with pytest.raises(ParallelError, match="nobody there"), process_group():
        pass
    assert asked == {"device": 1, "backend": "cpu:gloo,cuda:nccl"}
