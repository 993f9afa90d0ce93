"""Kill writers of a store with SIGKILL at random moments, and see whether a row that was acknowledged is ever lost.

    python tests/kill_store.py --kills 100

Two writers at a time work on one store; each says on a pipe what it has written, after the store has returned. A
writer that follows a killed one writes the last rows again, as a resumed run does. At the end the file must pass
SQLite's integrity check, and hold every acknowledged row once, with its value, and nothing that nobody wrote.
"""

import argparse
import os
import random
import select
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig

CONFIGS = [RunConfig(dataset="monks-1", width=40, depth=2, steps=1_000_000, seed=seed) for seed in range(4)]


def value(identity: str, step: int) -> float:
    """What the row of this run and step must hold."""
    return random.Random(f"{identity} {step}").random()


def write(folder: Path, place: int, start: int, pipe: int) -> None:
    """One writer's life: rows of metrics and diagnostics of one run, from a step that may be there already."""
    rng = random.Random(start)
    with Store.open(folder) as store:
        identity = store.plan(CONFIGS)[place]
        store.begin(identity, code_version="test", machine={"cpu": "any"})
        for step in range(start, 1_000_000):
            loss = value(identity, step)
            store.write_metrics(identity, [{"step": step, "loss": loss}], seconds=0.5)
            os.write(pipe, f"metrics {identity} {step}\n".encode())
            store.write_diagnostics(identity, step, {"entropy": {"mean": loss}})
            os.write(pipe, f"diagnostics {identity} {step}\n".encode())
            time.sleep(rng.uniform(0, 0.004))  # The other writer's turn.


def start(folder: Path, place: int, first: int) -> tuple[int, int]:
    """(process, pipe) of a forked writer: a fork is alive at once, where an interpreter takes a while to load."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        try:
            write(folder, place, first, writer)
        finally:
            os._exit(1)
    os.close(writer)
    return process, reader


def drain(pipe: int) -> list[tuple[str, str, int]]:
    """What a dead writer has acknowledged; an unfinished line was never said."""
    text = b""
    while part := os.read(pipe, 1 << 16):
        text += part
    os.close(pipe)
    lines = [line.decode().split() for line in text.split(b"\n")[:-1]]
    return [(kind, identity, int(step)) for kind, identity, step in lines]


def trial(folder: Path, kills: int, seed: int) -> tuple[int, set[tuple[str, str, int]]]:
    """Kill so many writers; returns how many were alive, and every acknowledged row."""
    rng = random.Random(seed)
    acknowledged: set[tuple[str, str, int]] = set()
    positions = dict.fromkeys(range(len(CONFIGS)), 0)
    alive = done = 0
    while done < kills:
        places = rng.sample(range(len(CONFIGS)), 2)
        writers = {place: start(folder, place, max(0, positions[place] - 2)) for place in places}
        for place, (process, pipe) in writers.items():
            # Most die while they write, some while they open the store.
            if rng.random() < 0.8:
                select.select([pipe], [], [], 1)
            time.sleep(rng.uniform(0, 0.04))
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            alive += os.WIFSIGNALED(status)
            done += 1
            said = drain(pipe)
            acknowledged |= set(said)
            positions[place] = max([positions[place], *(step for _, _, step in said)])
    return alive, acknowledged


def problems(folder: Path, acknowledged: set[tuple[str, str, int]]) -> list[str]:
    """What is wrong with the store, in words."""
    with Store.open(folder) as store:
        store.check()
        found = []
        kept: list[tuple[str, str, int]] = []
        for record in store.records(rows=True):
            rows = [(row["step"], row["loss"]) for row in record.metrics]
            entropy = record.diagnostics.get("entropy", {})
            measured = [(step, each["mean"]) for step, each in entropy.items()]
            kept += [("metrics", record.identity, step) for step, _ in rows]
            kept += [("diagnostics", record.identity, step) for step, _ in measured]
            for step, loss in rows:
                if loss != value(record.identity, step):
                    found.append(f"metrics of step {step} of {record.identity} hold {loss}")
            for step, loss in measured:
                if abs(loss - value(record.identity, step)) > 1e-6:
                    found.append(f"diagnostics of step {step} of {record.identity} hold {loss}")
    connection = sqlite3.connect(folder / "store.sqlite")
    for table in ("metrics", "diagnostics"):
        total = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if total != sum(kind == table for kind, _, _ in kept):
            found.append(f"{table} has {total} rows, its runs have {sum(kind == table for kind, _, _ in kept)}")
    connection.close()
    if len(kept) != len(set(kept)):
        found.append(f"{len(kept) - len(set(kept))} rows are there twice")
    return found + [f"{row} was acknowledged and is lost" for row in sorted(acknowledged - set(kept))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--within", help="folder for the store (default: the system's for temporary files)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.within) as workplace:
        folder = Path(workplace) / "store"
        with Store.open(folder) as store:
            store.plan(CONFIGS)
        alive, acknowledged = trial(folder, options.kills, options.seed)
        found = problems(folder, acknowledged)
    for text in found:
        print(text, file=sys.stderr)
    print(f"{alive} writers killed, {len(acknowledged)} rows acknowledged, {len(found)} problems")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
