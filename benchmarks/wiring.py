"""Steps with learned wiring against steps with fixed wiring of the same size, through the training loop itself.

    python -m benchmarks.wiring                   2 x 4,000 gates, one and two threads; 2 x 16,000 and 2 x 32,000
    python -m benchmarks.wiring --quick           2 x 4,000 gates on one thread

Every kind of step trains by turns with the others in one process; a time is the least of the turns, its ratio to fixed
wiring that of the same run. Time is the processor's, of all threads and not of other processes, and the wall's. A step
that regrows is the mean over whole periods of regrowth. The rows are written by ``benchmarks.training`` beside its own.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch

from gatefit.bench.step import reset_peak, resident
from gatefit.network import LogicNetwork
from gatefit.ops.workspace import workspace
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import Observer, train
from gatefit.wirings import WiringOptions

SHAPE = {"inputs": 2352, "width": 4000, "depth": 2, "classes": 10, "batch": 256}
"""MNIST with three thresholds a pixel."""
KINDS = {
    "fixed": None,
    "learned, never regrown": WiringOptions(regrow_every=0),
    "learned, regrown all the time": WiringOptions(regrow_until=1.0),
}
MEAN = "learned, mean of a run"
"""By default candidates are regrown in the first part of a run alone."""
METHODS = ("multilinear-covjac", "multilinear-ste")
WARM = 20


class Clock(Observer):
    """The processor's and the wall's time from step ``WARM`` on."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []

    def stepped(self, state, network, loss) -> None:
        if state.step >= WARM:
            self.marks.append((time.process_time(), time.perf_counter()))

    def times(self) -> tuple[float, float]:
        """Of a step, on average."""
        (first, begun), (last, ended) = self.marks[0], self.marks[-1]
        steps = len(self.marks) - 1
        return (last - first) / steps, (ended - begun) / steps


def measure(shape: dict, method: str, threads: int, turns: int, steps: int) -> dict:
    """Seconds a step of every kind."""
    config, data = run_of(shape, WARM + steps)
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(turns):
        for kind, options in KINDS.items():
            clock = Clock()
            train(config, network_of(shape, method, options), data, observers=[clock], threads=threads)
            times[kind].append(clock.times())
    least = {kind: [min(column) for column in zip(*own, strict=True)] for kind, own in times.items()}
    _, never, always = least.values()
    part = WiringOptions().regrow_until
    least[MEAN] = [part * one + (1 - part) * other for one, other in zip(always, never, strict=True)]
    return {
        "method": method,
        "threads": threads,
        "shape": shape,
        "processor": {kind: own[0] for kind, own in least.items()},
        "wall": {kind: own[1] for kind, own in least.items()},
    }


def run_of(shape: dict, steps: int) -> tuple[RunConfig, TrainingData]:
    """Random bits, and the run that reads them."""
    rng = np.random.default_rng(0)
    x = rng.random((4 * shape["batch"], shape["inputs"]), dtype=np.float32) < 0.2
    y = torch.from_numpy(rng.integers(0, shape["classes"], len(x)))
    config = RunConfig(
        dataset="custom", batch_size=shape["batch"], steps=steps, evaluate_every=10**9, learning_rate=0.02
    )
    return config, TrainingData(PackedRows(x), y, PackedRows(x[:10]), y[:10])


def network_of(shape: dict, method: str, options: WiringOptions | None) -> LogicNetwork:
    """A network of one kind."""
    wiring = {"wiring": "unique"} if options is None else {"wiring": "learned", "wiring_options": options}
    sizes = (shape["inputs"], shape["classes"], shape["width"], shape["depth"])
    return LogicNetwork(*sizes, method=method, votes="all", **wiring)


def peak(shape: dict, method: str, threads: int, kind: str) -> int:
    """Bytes that network, moments and training take beside the data, in a process that has done nothing else."""
    for each in ({**shape, "width": 100}, shape):
        # First a small one: it compiles.
        config, data = run_of(each, 12)
        # What was freed and not given back to the system would hide as much of what follows.
        workspace.clear()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        reset_peak()
        before = resident("VmRSS")
        train(config, network_of(each, method, KINDS[kind]), data, threads=threads)
    return resident("VmHWM") - before


def run_case(shape: dict, method: str, threads: int, turns: int, steps: int = 40) -> dict:
    """One case: its times in a fresh process, the memory of every kind in one each."""
    peaks = {kind: _apart("peak", shape, method, threads, kind) for kind in KINDS}
    return {**_apart("measure", shape, method, threads, turns, steps), "peak_bytes": peaks}


def _apart(what: str, *arguments: object) -> Any:
    request = json.dumps([what, *arguments])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.wiring", "--case", request], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{request}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows(*, quick: bool = False) -> list[dict]:
    """All cases, each told as it ends."""
    cases = [(SHAPE, method, threads, 5) for method in METHODS for threads in (1, 2)]
    cases += [({**SHAPE, "width": width}, METHODS[0], 1, 2) for width in (16_000, 32_000)]
    found = []
    for shape, method, threads, turns in cases[:1] if quick else cases:
        row = run_case(shape, method, threads, turns)
        found.append(row)
        print(f"{shape['width']} {threads} {method}: {json.dumps(row['processor'])}", flush=True)
    return found


def table(found: list[dict]) -> str:
    """The results as Markdown."""
    lines = [
        "| gates | threads | method | wiring | processor ms | × fixed | wall ms | × fixed | peak MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        gates = f"{row['shape']['depth']} x {row['shape']['width']:,}"
        for kind in (*KINDS, MEAN):
            times = [
                f"{row[clock][kind] * 1e3:.2f} | {row[clock][kind] / row[clock]['fixed']:.2f}"
                for clock in ("processor", "wall")
            ]
            memory = f"{row['peak_bytes'][kind] / 1e6:.0f}" if kind in KINDS else ""
            lines.append(f"| {gates} | {row['threads']} | {row['method']} | {kind} | {' | '.join(times)} | {memory} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one case")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        what, *arguments = json.loads(options.case)
        print(json.dumps({"measure": measure, "peak": peak}[what](*arguments)))
        return
    print(table(rows(quick=options.quick)))


if __name__ == "__main__":
    main()
