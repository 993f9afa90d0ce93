"""Worker processes on one machine: each takes one unit of runs at a time and tells what happens, line by line.

    runner  -> worker    {"configs": [...]}                   one unit; the end of its input asks it to stop
    worker  -> runner    {"event": {...}} ... {"busy": [...]}

Workers write to the store themselves. One that is killed takes nothing with it but the steps since its last
checkpoint: its runs are marked as failed, another takes its place. Where the runner is killed its workers' input ends:
they finish their step, save, and leave; so they do on SIGTERM, which a batch system sends to every process.

Not a ProcessPoolExecutor: that pickles, gives up all of its work when one process is killed, and tells nothing before a
task's end.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final, TextIO

from gatefit.experiments.events import RunEvent, Tell
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
from gatefit.training.machine import machine

PAUSE: Final = 0.5

Unit = list[RunConfig]
Inbox = queue.SimpleQueue[tuple["_WorkerProcess", bytes | None]]
"""Lines that workers said, in the order in which they came; None is the end of one's life."""


class WorkerProcesses:
    """A number of worker processes on one store."""

    def __init__(
        self,
        store: Store,
        jobs: int,
        *,
        build: str,
        threads: int | None = None,
        data_dir: Path | None = None,
        diagnostics: bool = True,
    ) -> None:
        self.store, self.jobs = store, jobs
        share = max(1, (threads or int(machine()["cores"])) // jobs)
        options = {
            "store": str(store.folder),
            "threads": share,
            "data_dir": None if data_dir is None else str(data_dir),
            "diagnostics": diagnostics,
            "build": build,
        }
        self._command = [sys.executable, "-m", "gatefit.experiments.processes", json.dumps(options)]
        # Waiting OpenMP threads sleep instead of spinning: the processes share the cores.
        self._environment = os.environ | {"OMP_NUM_THREADS": str(share), "OMP_WAIT_POLICY": "PASSIVE"}

    def work(self, units: list[Unit], *, tell: Tell, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Have every unit done by some worker; returns when all are, or when all have stopped."""
        open_units, waiting = deque(units), _Waiting(tell)
        inbox: Inbox = queue.SimpleQueue()
        with contextlib.ExitStack() as stack:
            workers: list[_WorkerProcess] = []
            while True:
                stopping = should_stop()
                open_units.extend(waiting.due())
                for worker in [worker for worker in workers if worker.unit is None]:
                    if open_units and not stopping:
                        worker.give(open_units.popleft())
                while open_units and len(workers) < self.jobs and not stopping:
                    worker = _WorkerProcess(self._command, self._environment, inbox)
                    stack.callback(worker.close)
                    workers.append(worker)
                    worker.give(open_units.popleft())
                if stopping:
                    waiting.clear()
                    for worker in workers:
                        worker.dismiss()
                if all(worker.unit is None for worker in workers) and (stopping or not (open_units or waiting)):
                    return
                try:
                    worker, line = inbox.get(timeout=PAUSE / 2)
                except queue.Empty:
                    continue
                if line is not None:
                    self._handle(worker, json.loads(line), waiting, tell)
                else:
                    self._account_for(worker, tell)
                    workers.remove(worker)
                    worker.close()

    def _handle(self, worker: "_WorkerProcess", message: dict[str, Any], waiting: "_Waiting", tell: Tell) -> None:
        """What a worker has said."""
        if "event" in message:
            event = RunEvent(**message["event"])
            if event.kind == "failed":
                worker.failed.add(event.identity)
            tell(event)
        elif worker.unit is not None:
            busy = set(message["busy"])
            waiting.add([config for config in worker.unit if config.identity in busy])
            worker.unit = None

    def _account_for(self, worker: "_WorkerProcess", tell: Tell) -> None:
        """What a worker leaves behind that has said its last."""
        for config in () if worker.left_as_asked else worker.unit or ():
            # One that failed in an earlier life is still marked so, for another reason.
            if self.store.status(config.identity) != "finished" and config.identity not in worker.failed:
                text = f"its process {worker.ending()}; it goes on from its last checkpoint when it is run again"
                self.store.fail(config.identity, text)
                tell(RunEvent(config.identity, "failed", 0, config.steps, text))
        worker.unit = None


class _WorkerProcess:
    """One worker process and the unit it works on.

    In a session or process group of its own: Ctrl+C reaches the runner alone, which asks its workers to stop. A thread
    reads what it says: Windows can wait for several sockets at once, but not for several pipes.
    """

    def __init__(self, command: list[str], environment: dict[str, str], inbox: Inbox) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by close()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout
        self.unit: Unit | None = None
        self.failed = set[str]()
        """Runs of the unit that it told the failure of."""
        self._reader = threading.Thread(target=self._read, args=(inbox,), daemon=True)
        self._reader.start()

    def give(self, unit: Unit) -> None:
        """Ask for a unit; a worker that has just died will be found out by its silence."""
        self.unit, self.failed = unit, set()
        line = json.dumps({"configs": [asdict(config) for config in unit]})
        with contextlib.suppress(OSError):  # Of a pipe without a reader; Windows has another name for it.
            self._input.write(f"{line}\n".encode())
            self._input.flush()

    def dismiss(self) -> None:
        """Ask it to finish its step, save, and leave."""
        with contextlib.suppress(OSError):
            self._input.close()

    def close(self) -> None:
        """Wait until it has left; it is asked to, where it was not."""
        self.dismiss()
        self.process.wait()
        self._reader.join()
        self._output.close()
        self._errors.close()

    def _read(self, inbox: Inbox) -> None:
        for line in self._output:
            if line.endswith(b"\n"):  # Not what a killed worker had no time to finish.
                inbox.put((self, line))
        inbox.put((self, None))

    def ending(self) -> str:
        """How the process ended."""
        code = self.process.wait()
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        last = _last_line(self._errors)
        return f"ended with exit code {code}{f' ({last})' if last else ''}"

    @property
    def left_as_asked(self) -> bool:
        """Whether it ended because it was asked to, by the runner or by a signal."""
        return self.process.wait() == 0


class _Waiting:
    """Runs that another process works on, looked at again after a pause."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._told = tell, set[str]()
        self._units: list[tuple[float, Unit]] = []

    def add(self, configs: Unit) -> None:
        for config in configs:
            if config.identity not in self._told:
                self._told.add(config.identity)
                self._tell(RunEvent(config.identity, "waiting", 0, config.steps))
            self._units.append((time.monotonic() + PAUSE, [config]))

    def due(self) -> list[Unit]:
        now = time.monotonic()
        ready = [unit for moment, unit in self._units if moment <= now]
        self._units = [(moment, unit) for moment, unit in self._units if moment > now]
        return ready

    def clear(self) -> None:
        self._units.clear()

    def __bool__(self) -> bool:
        return bool(self._units)


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read()[-4000:].decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def main() -> None:
    """A worker process: units of runs on its input, what happens to them on its output, until the input ends."""
    options = json.loads(sys.argv[1])
    # Nothing but messages goes to the runner, whatever a library may print.
    messages = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    stop, units = threading.Event(), queue.SimpleQueue[list[RunConfig] | None]()

    def leave(*_: object) -> None:
        stop.set()
        units.put(None)

    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=_listen, args=(stop, units), daemon=True).start()

    def tell(event: RunEvent) -> None:
        _say(messages, {"event": asdict(event)}, stop)

    from gatefit.experiments.worker import Worker, builder

    with Store.open(Path(options["store"]), create=False) as store:
        worker = Worker(
            store,
            threads=options["threads"],
            data_dir=None if options["data_dir"] is None else Path(options["data_dir"]),
            diagnostics=options["diagnostics"],
            build=builder(options["build"]),
            tell=tell,
            should_stop=stop.is_set,
        )
        while (unit := units.get()) is not None and not stop.is_set():
            busy = worker.do(unit)
            _say(messages, {"busy": [config.identity for config in busy]}, stop)


def _listen(stop: threading.Event, units: "queue.SimpleQueue[list[RunConfig] | None]") -> None:
    """Units as they come; at the end of the input the worker stops after its step."""
    for line in sys.stdin:
        units.put([RunConfig.from_dict(content) for content in json.loads(line)["configs"]])
    stop.set()
    units.put(None)


def _say(messages: TextIO, content: dict[str, Any], stop: threading.Event) -> None:
    try:
        messages.write(f"{json.dumps(content)}\n")
    except OSError:
        stop.set()  # A pipe without a reader: the runner is gone. Save and leave.


if __name__ == "__main__":
    main()
