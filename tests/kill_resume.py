"""Kill training runs with SIGKILL at random moments, resume them, and compare every bit with an undisturbed run.

    python tests/kill_resume.py --runs 50

Prints the number of mismatches: parameters, optimiser state and metric log must be identical in SHA-256.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safetensors.numpy import load_file

from gatefit.training.config import RunConfig
from gatefit.training.runs import execute

METHODS = ("multilinear-covjac", "gumbel-st", "multilinear-ste", "soft-mix")
LEARNED = ("multilinear-covjac/learned", "multilinear-ste/learned")
"""With a wiring that learns and regrows every few steps."""
EVERY = 25
WORKER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from kill_resume import train
train(*sys.argv[1:])
"""


def train(folder: str, method: str, steps: str, threads: str, schedule: str) -> None:
    """One run, whole or from its last checkpoint on."""
    name, _, wiring = method.partition("/")
    options = {"wiring": wiring, "votes": "all", "regrow_every": 3, "regrow_pool": 20} if wiring else {}
    config = RunConfig(
        dataset="monks-1",
        method=name,
        width=100,
        depth=4,
        steps=int(steps),
        batch_size=32,
        evaluate_every=EVERY,
        seed=3,
        schedule=schedule,
        validation_fraction=0.25,
        **options,
    )
    execute(config, folder=Path(folder), threads=int(threads))


def start(folder: Path, method: str, steps: int, threads: int = 1, schedule: str = "cosine") -> subprocess.Popen:
    words = [str(folder), method, str(steps), str(threads), schedule]
    return subprocess.Popen([sys.executable, "-c", WORKER, *words], start_new_session=True)


def fingerprint(folder: Path) -> dict[str, str]:
    """SHA-256 of the final parameters, the optimiser's state and the metric log."""
    digests = fingerprint_of_checkpoint(folder / "checkpoints")
    for name in ("metrics.jsonl", "model.safetensors"):
        digests[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return digests


def fingerprint_of_checkpoint(folder: Path) -> dict[str, str]:
    """SHA-256 of each part of the newest checkpoint."""
    newest = sorted(folder.glob("checkpoint-*.safetensors"))[-1]
    tensors = load_file(newest)
    digests = {}
    for part in ("network", "optimiser", "best"):
        digest = hashlib.sha256()
        for name in sorted(tensors):
            if name.startswith(part + "/"):
                digest.update(name.encode() + tensors[name].tobytes())
        digests[part] = digest.hexdigest()
    return digests


def complete(folder: Path, method: str, steps: int, threads: int = 1, schedule: str = "cosine") -> None:
    """Train to the end, in this process: only those that are killed need one of their own."""
    train(str(folder), method, str(steps), str(threads), schedule)


def evaluations(folder: Path) -> int:
    """How many rows the log has so far."""
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_at_random(folder: Path, method: str, steps: int, rng: random.Random) -> bool:
    """Start a run, kill it somewhere between its first step and its end; whether it was still running."""
    # By what it has done, not by the clock: so it hits a run on a slow machine and on a fast one.
    seen, most = evaluations(folder), steps // EVERY - 4
    target = rng.randint(min(seen + 1, most), most)
    process = start(folder, method, steps)
    last, pace = None, 0.0
    while process.poll() is None and seen < target:
        time.sleep(0.002)
        if evaluations(folder) > seen:
            seen, now = evaluations(folder), time.perf_counter()
            last, pace = now, 0.0 if last is None else now - last
    # Within the next evaluation, as far as one can tell from the last.
    time.sleep(rng.uniform(0, pace))
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def kill_after(folder: Path, method: str, steps: int, step: int, schedule: str = "cosine") -> None:
    """Start a run and kill it as soon as it has evaluated ``step``."""
    process, log = start(folder, method, steps, schedule=schedule), folder / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and f'"step": {step},' in log.read_text()):
        time.sleep(0.005)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def trial(workplace: Path, runs: int, seed: int, steps: int, methods: tuple[str, ...] = METHODS) -> tuple[int, int]:
    """(kills that hit a running process, runs that ended differently)."""
    rng = random.Random(seed)
    expected = {}
    for method in methods[: max(1, min(len(methods), runs))]:
        folder = workplace / f"whole-{method.replace('/', '-')}"
        complete(folder, method, steps)
        expected[method] = fingerprint(folder)
    kills = mismatches = 0
    for run in range(runs):
        method = list(expected)[run % len(expected)]
        folder = workplace / f"killed-{run}"
        for _ in range(rng.choice((1, 1, 2))):
            kills += kill_at_random(folder, method, steps, rng)
        complete(folder, method, steps)
        if fingerprint(folder) != expected[method]:
            mismatches += 1
            print(f"run {run} ({method}) differs", file=sys.stderr)
    return kills, mismatches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--learned", action="store_true", help="with a wiring that learns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as workplace:
        methods = LEARNED if options.learned else METHODS
        kills, mismatches = trial(Path(workplace), options.runs, options.seed, options.steps, methods)
    print(f"{options.runs} runs, {kills} killed while running, {mismatches} mismatches")
    sys.exit(bool(mismatches))


if __name__ == "__main__":
    main()
