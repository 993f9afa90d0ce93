"""Runners and workers that are killed, told to end or die by themselves: nothing is lost, the same rows come out."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gatefit.experiments import processes
from gatefit.experiments.runner import NETWORKS, run_all
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderInUseError, checkpoints, locked, read_metrics
from patience import HANG, wait_until
from runner_cases import BASE, LONG, facts

pytestmark = pytest.mark.outside

HOLD = Path(__file__).parent.parent / "hold.py"
RUNNER = """
import json
import sys
import time
from pathlib import Path
from gatefit.experiments.runner import NETWORKS, run_all
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
if __name__ == "__main__":
    configs = [RunConfig.from_dict(json.loads(text)) for text in sys.argv[4:]]
    def tell(event):
        print(event.identity, event.kind, event.step, flush=True)
        while event.kind == "evaluated" and event.step >= float(sys.argv[3]):
            time.sleep(1)  # It comes no further, however late it is killed.
    with Store.open(Path(sys.argv[1])) as store:
        run_all(configs, store, jobs=int(sys.argv[2]), threads=1, progress=tell)
"""


def start(folder: Path, jobs: int, *configs: RunConfig, hold: float = float("inf")) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RUNNER, str(folder), str(jobs), str(hold)]
    return subprocess.Popen([*command, *(config.to_json() for config in configs)], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def held_at_80(monkeypatch, tmp_path):
    """Workers do not get past step 80 of the long run before something happens to them."""
    init = processes._WorkerProcess.__init__
    held = json.dumps({"steps": {LONG.identity: 80}, "folder": str(tmp_path)})

    def init_held(hand, command, *rest):
        init(hand, [sys.executable, str(HOLD), command[-1], held], *rest)

    monkeypatch.setattr(processes._WorkerProcess, "__init__", init_held)


def until(process: "subprocess.Popen[str]", kind: str, step: int) -> None:
    for line in process.stdout:
        _, said, at = line.split()
        if said == kind and int(at) >= step:
            return
    raise AssertionError(f"the runner ended before {kind} {step}")


def test_a_killed_run_goes_on_to_the_same_rows(tmp_path, whole):
    with start(tmp_path, 1, LONG, hold=80) as process:
        until(process, "evaluated", 80)
        os.kill(process.pid, signal.SIGKILL)
    with Store.open(tmp_path) as store:
        store.check()
        record = store.find(LONG.identity)
        assert record.status == "running"
        assert 4 <= len(record.metrics) < 10
        assert record.metrics == whole.metrics[: len(record.metrics)]
        events = []
        (record,) = run_all([LONG], store, progress=events.append)
        assert events[0].kind == "started"
        assert events[0].step >= 60
        assert read_metrics(store.run_folder(LONG.identity)) == list(whole.metrics)
    assert facts(record) == facts(whole)


def test_two_runners_share_the_work(tmp_path):
    configs = [replace(BASE, seed=s, readout="linear") for s in range(4)]
    runners = [start(tmp_path, 1, *configs) for _ in range(2)]
    lines = []
    for process in runners:
        out, _ = process.communicate(timeout=HANG)
        assert process.returncode == 0
        lines += out.splitlines()
    for config in configs:
        assert lines.count(f"{config.identity} started 0") == 1
        assert lines.count(f"{config.identity} evaluated 60") == 1
    with Store.open(tmp_path) as store:
        store.check()
        records = store.records(rows=True)
    assert [(record.status, len(record.metrics)) for record in records] == [("finished", 3)] * 4


@pytest.mark.usefixtures("held_at_80")
def test_a_killed_worker_is_reported_and_the_others_go_on(tmp_path, monkeypatch, whole):
    others = [replace(BASE, seed=s, method="iwp-ste") for s in range(2)]
    workers = {}
    give = processes._WorkerProcess.give

    def spy(hand, unit):
        workers.update({config.identity: hand.process.pid for config in unit})
        give(hand, unit)

    monkeypatch.setattr(processes._WorkerProcess, "give", spy)

    def kill(event):
        if event.identity == LONG.identity and event.kind == "evaluated" and event.step == 80:
            os.kill(workers[LONG.identity], signal.SIGKILL)

    with Store.open(tmp_path) as store:
        killed, *rest = run_all([LONG, *others], store, jobs=2, threads=2, progress=kill)
        assert killed.status == "failed"
        assert killed.error == (
            "its process was killed by SIGKILL; it goes on from its last checkpoint when it is run again"
        )
        assert len(killed.metrics) >= 4
        assert [record.status for record in rest] == ["finished", "finished"]
        # Here, in one process and side by side: the same rows as in workers.
        (record, *_) = run_all([LONG, *others], store)
        assert (facts(record), record.error) == (facts(whole), "")
    with Store.open(tmp_path / "here") as store:
        assert [facts(each) for each in run_all(others, store)] == [facts(each) for each in rest]


def test_workers_that_die_at_once_leave_nothing_open_and_say_why(tmp_path):
    configs = [replace(BASE, seed=seed) for seed in range(12)]
    held, events = [], []

    def tell(event):
        events.append(event)
        held.append(psutil.Process().num_fds())

    with Store.open(tmp_path) as store:
        store.plan(configs)
        store.fail(configs[0].identity, "the download failed")  # earlier, and no longer the reason
        team = processes.WorkerProcesses(store, 2, build=NETWORKS)
        team._command = [sys.executable, "-c", "raise SystemExit('no memory')"]
        team.work([[config] for config in configs], tell=tell)
        reasons = {store.find(config.identity).error for config in configs}
    text = "its process ended with exit code 1 (no memory); it goes on from its last checkpoint when it is run again"
    assert reasons == {text}
    assert [(event.kind, event.text) for event in events] == [("failed", text)] * len(configs)
    assert max(held) < min(held) + 12  # three a worker that is alive


@pytest.mark.usefixtures("held_at_80")
def test_workers_that_are_told_to_end_save_and_leave(tmp_path, whole):
    """A batch system ends a job with SIGTERM to every process of it."""

    def end(event):
        if event.kind == "evaluated" and event.step == 80:
            for worker in psutil.Process().children():
                worker.terminate()

    with Store.open(tmp_path) as store:
        (stopped,) = run_all([LONG], store, jobs=2, threads=1, progress=end)
        assert (stopped.status, stopped.error) == ("planned", "")
        assert 80 <= stopped.step < 200
        (record,) = run_all([LONG], store)
    assert facts(record) == facts(whole)


@pytest.mark.slow
def test_workers_of_a_killed_runner_save_and_leave(tmp_path):
    endless = replace(BASE, steps=1_000_000, evaluate_every=50, seed=9)
    with start(tmp_path, 2, endless) as process:
        until(process, "evaluated", 50)
        os.kill(process.pid, signal.SIGKILL)
    with Store.open(tmp_path) as store:
        folder = store.run_folder(endless.identity)

        def free() -> bool:
            with contextlib.suppress(RunFolderInUseError), locked(folder):
                return True
            return False

        wait_until(free, "the worker of a killed runner leaves the folder")
        wait_until(lambda: store.status(endless.identity) == "planned", "it says that the run was stopped")
        record = store.find(endless.identity)
        assert record.status == "planned"
        assert checkpoints(folder / "checkpoints")[-1].name == f"checkpoint-{record.step:09d}.safetensors"
