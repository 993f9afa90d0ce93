"""Small runs for the tests of the runner, and what of a run must not depend on how it was made."""

from dataclasses import replace

from gatefit.experiments.record import RunRecord
from gatefit.training.config import RunConfig

BASE = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
LONG = replace(BASE, steps=200, seed=7)
"""A run that is killed in the middle; its evaluations take most of its time."""


def facts(record: RunRecord) -> tuple:
    """What must not depend on how a run was made."""
    return record.identity, record.status, record.step, record.summary, record.metrics, record.diagnostics
