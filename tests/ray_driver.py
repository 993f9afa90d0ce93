"""The driver of tests/experiments/test_ray_jobs.py: a Ray of this machine, runs in it, and what may happen to them.

    python tests/ray_driver.py FOLDER quick|slow

A process of its own, so that Ray's threads and warnings end with it. Stores are FOLDER/NAME; what was told goes to
FOLDER/story.json.
"""

import contextlib
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil

import gatefit
from gatefit.experiments import ray_jobs
from gatefit.experiments.ray_jobs import RayError, connected, run_on_ray, train_unit
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
from hold import holding
from patience import HANG

BASE = RunConfig(dataset="monks-1", width=34, depth=2, steps=300, evaluate_every=50, batch_size=32)
KILLED = replace(BASE, method="gumbel-st", steps=1500, evaluate_every=100)
CONFIGS = [KILLED, *(replace(BASE, method="multilinear-ste", seed=seed) for seed in range(3))]
STOPPED = replace(KILLED, seed=1)
APART = replace(BASE, method="soft-mix")
IMPOSSIBLE = replace(BASE, width=33)
UNLUCKY = replace(KILLED, seed=2)
HELD = {KILLED.identity: 300, STOPPED.identity: 100, UNLUCKY.identity: 100}
"""How far these come before something happens to them, however late that is."""


def train_held(clerk, configs, options):
    """The task, in which such a run waits for what the driver will do."""
    with holding(HELD, Path(options["folder"])):
        train_unit(clerk, configs, options)


def kill(identity):
    """Kill the process that trains a run, of those that this one started; Ray names it after its task."""
    killed = 0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if f"ray::gatefit {identity}" in " ".join(process.cmdline()):
                process.kill()
                killed += 1
    return killed


class Story:
    """Remembers what is told, and does something to one run at one moment."""

    def __init__(self, config=None, step=0, action=lambda identity: None):
        self.identity = config and config.identity
        self.step, self.action, self.outcome, self.events = step, action, None, []

    def __call__(self, event):
        self.events.append(asdict(event))
        if event.identity == self.identity and event.step >= self.step and self.outcome is None:
            self.outcome = self.action(event.identity)


class Session:
    """Runs on one Ray, each call with a story of its own."""

    def __init__(self, folder):
        self.folder, self.story = folder, {}

    def run(self, name, store, configs, told, **options):
        with Store.open(self.folder / store) as opened:
            records = run_on_ray(configs, opened, address="local", progress=told, side_by_side=False, **options)
        self.story[name] = {
            "records": [(record.identity, record.status, record.error) for record in records],
            "events": told.events,
            "outcome": told.outcome,
        }

    def quick(self):
        self.run("killed", "killed", [*CONFIGS, IMPOSSIBLE], Story(KILLED, 300, kill))
        self.run("apart", "apart", [APART], Story(), shared=False)
        self.refused("size", threads=1000)

    def slow(self):
        asked = []
        told = Story(STOPPED, 100, lambda identity: asked.append(identity) or "asked")
        self.run("stopped", "stopped", [STOPPED, *CONFIGS[1:]], told, should_stop=lambda: bool(asked))
        self.run("resumed", "stopped", [STOPPED], Story())
        self.run("unlucky", "unlucky", [UNLUCKY], Story(UNLUCKY, 100, kill), retries=0)
        gatefit.__version__ = "0.0.0"
        self.refused("version")

    def refused(self, name, **options):
        try:
            self.run(name, name, [BASE], Story(), **options)
        except RayError as error:
            self.story[name] = str(error)


if __name__ == "__main__":
    workplace, kind = Path(sys.argv[1]), sys.argv[2]
    ray_jobs.train_unit = train_held
    os.environ.update(RAY_worker_niceness="0")  # Ray's 15 leaves its workers next to nothing beside other work.
    with connected("local") as processors:
        session = Session(workplace)
        getattr(session, kind)()
        family = psutil.Process().children(recursive=True)
    _, alive = psutil.wait_procs(family, timeout=HANG)
    left_over = [process.pid for process in alive]
    content = {**session.story, "processors": processors, "processes": len(family), "left over": left_over}
    (workplace / "story.json").write_text(json.dumps(content))
