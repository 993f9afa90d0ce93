"""Where an outcome's numbers come from: scale, seeds, runs, steps, machine and code version; and what is missing.

Nothing here names a host or a user: a machine is its processor, cores and memory.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from gatefit.experiments.record import RunRecord
from gatefit.paper.outcome import Outcome
from gatefit.paper.report.shown_table import MISSING, joined_ranges
from gatefit.training.config import RunConfig
from gatefit.view.run_page import machine_words

SHOWN_MISSING: Final = 8


def runs_missing(outcome: Outcome) -> str:
    """1 run is missing, or 29 runs are missing."""
    count = len(outcome.missing)
    return "1 run is missing" if count == 1 else f"{count:,} runs are missing"


def provenance(outcome: Outcome) -> list[tuple[str, str]]:
    """Names and values that say how an outcome was made."""
    if not outcome.used and not outcome.missing:
        return [("runs", "none needed: computed")]
    used = outcome.used
    asked = len(used) + len(outcome.missing)
    pairs = [
        ("scale", outcome.scale),
        ("seeds", joined_ranges([record.config.seed for record in used] or list(outcome.seeds))),
        ("runs", f"{len(used):,} of {asked:,}" if outcome.missing else f"{len(used):,}"),
        ("steps", _range([record.config.steps for record in used])),
        ("time", _time(used)),
        ("machine", "; ".join(machines(used))),
        ("code", _versions(used)),
    ]
    return [(name, value) for name, value in pairs if value]


def machines(records: Sequence[RunRecord]) -> list[str]:
    """Every different machine in words, the one with most runs first."""
    counts: dict[str, int] = {}
    for record in records:
        words = machine_words(record.machine)
        if words:
            counts[words] = counts.get(words, 0) + 1
    return sorted(counts, key=lambda words: (-counts[words], words))


def missing_runs(missing: Sequence[RunConfig], most: int = SHOWN_MISSING) -> list[str]:
    """Runs that were asked for and do not exist, seeds together, at most ``most`` lines and a count of the rest."""
    groups: dict[RunConfig, list[int]] = {}
    for config in missing:
        groups.setdefault(replace(config, seed=0), []).append(config.seed)
    lines = [f"{config_words(config)}, seed{_plural(seeds)} {joined_ranges(seeds)}" for config, seeds in groups.items()]
    rest = len(lines) - most
    return lines if rest <= 1 else [*lines[:most], f"and {rest} more configurations"]


def config_words(config: RunConfig) -> str:
    """What a configuration trains, and every option that is not the default."""
    parts = [f"{config.dataset} {config.method}"]
    if config.width is not None:
        parts.append(f"{config.depth} × {config.width:,} gates")
    parts.append(f"{config.steps:,} steps")
    default = asdict(RunConfig())
    said = ("dataset", "method", "width", "depth", "steps", "seed")
    for name, value in asdict(config).items():
        if name not in said and value != default[name]:
            parts.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(parts)


def _range(values: Sequence[int]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}{MISSING}{high:,}"


def _time(records: Sequence[RunRecord]) -> str:
    seconds = sum(record.seconds for record in records if record.seconds is not None)
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else ""
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


def _versions(records: Sequence[RunRecord]) -> str:
    versions = list(dict.fromkeys(record.code_version for record in records if record.code_version))
    return ", ".join(versions if len(versions) <= 3 else [*versions[:2], f"and {len(versions) - 2} more"])


def _plural(items: Sequence[object]) -> str:
    return "" if len(items) == 1 else "s"
