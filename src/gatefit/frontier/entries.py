"""Entries of the frontier, read from one committed file: ``entries.json``, a list.

name      of the row, and of the model that ships: "mnist-1k"
config    fields of ``RunConfig`` that are not at their defaults, without the seed
seeds     one run each; the first is the one that ships
prune     optional: {"outputs": N} and perhaps {"samples": N}, as ``gatefit prune`` has them
synth     optional: targets that count tables, as ``gatefit synth --target`` has them
note      optional: what a reader should know of the row
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from gatefit import models
from gatefit.training.config import RunConfig

ENTRIES: Final = Path(__file__).with_name("entries.json")
COUNTED: Final = ("lut4", "lut6", "xilinx")
"""Targets of ``gatefit synth`` that are counted in tables, without place and route."""


class Prune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left of the outputs, and by how many training samples it is chosen."""

    outputs: int
    samples: int = 20_000


@dataclass(frozen=True)
class Entry:
    """One row: a configuration that is trained once for each seed, and what is made of its circuit."""

    name: str
    config: RunConfig
    seeds: tuple[int, ...] = (0, 1)
    prune: Prune | None = None
    synth: tuple[str, ...] = ()
    note: str = ""

    def runs(self, seeds: Sequence[int] | None = None) -> list[RunConfig]:
        """The configurations that are trained, in the order of the seeds."""
        return [replace(self.config, seed=seed).resolved() for seed in seeds or self.seeds]

    def scaled(self, steps: float) -> "Entry":
        """The same with a part of the steps, at least one: to see that everything works."""
        count = max(1, round(self.config.steps * steps))
        return replace(self, config=replace(self.config, steps=count))

    def commands(self, seed: int) -> list[str]:
        """The commands that make the circuit of one seed, each by itself."""
        run, out = f"runs/{self.name}-{seed}", f"{self.name}.gate"
        compiled = out if self.prune is None else f"{self.name}-whole.gate"
        lines = [
            f"{train_command(replace(self.config, seed=seed))} --out {run}",
            f"gatefit compile {run} --out {compiled}",
        ]
        if self.prune is not None:
            samples = f" --samples {self.prune.samples}" if self.prune.samples != Prune(1).samples else ""
            lines.append(f"gatefit prune {compiled} --outputs {self.prune.outputs}{samples} --out {out}")
        if self.synth:
            lines.append(f"gatefit synth {out} --target {','.join(self.synth)} --pipeline 0 --out {self.name}-hardware")
        return lines


def given_fields(config: RunConfig) -> dict[str, Any]:
    """The fields of a configuration that are not at their defaults; those that name it."""
    return {f.name: getattr(config, f.name) for f in fields(config) if getattr(config, f.name) != f.default}


def train_command(config: RunConfig) -> str:
    """``gatefit train`` with the options of a configuration that are not at their defaults."""
    words = ["gatefit", "train"]
    shown = {"dataset": config.dataset, **given_fields(config), "seed": config.seed}
    if config.widths is not None:
        shown.pop("depth", None)  # which widths say
    for name, value in shown.items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, _word(value)]
    return shlex.join(words)


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_word, value))
    return str(value)  # of a float, the shortest text that is read back as it


def read_entries(path: Path = ENTRIES) -> dict[str, Entry]:
    """The entries of a file by their names; what is wrong is a ValueError that names the entry."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, list):
        raise ValueError(f"{path} must hold a list of entries, got {type(content).__name__}")
    entries: dict[str, Entry] = {}
    for place, each in enumerate(content):
        entry = _entry(each, f"{path.name}, entry {place + 1}")
        if entry.name in entries:
            raise ValueError(f"{path.name} has two entries {entry.name}; rename one")
        entries[entry.name] = entry
    return entries


def _entry(content: Any, where: str) -> Entry:
    known = {f.name: f for f in fields(Entry)}
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be an object with name and config, got {type(content).__name__}")
    if unknown := sorted(set(content) - set(known)):
        raise ValueError(f"{where} has {', '.join(unknown)}, an entry has {', '.join(known)}")
    if lacking := [n for n, f in known.items() if n not in content and f.default is MISSING]:
        raise ValueError(f"{where} lacks {', '.join(lacking)}")
    name = content["name"]
    if not isinstance(name, str) or not models.is_name(name):
        raise ValueError(f"{where}: a name is lower case letters, digits and dashes, as in mnist-1k; got {name!r}")
    where = f"{where} ({name})"
    if isinstance(content["config"], dict) and "seed" in content["config"]:
        raise ValueError(f"{where}: config has a seed; name it in seeds instead")
    try:
        # Read from JSON, then made anew: what is new must pass the checks of what is new.
        config = RunConfig(**given_fields(RunConfig.from_dict(content["config"])))
        rest = {key: msgspec.convert(content[key], kind) for key, kind in _KINDS.items() if key in content}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
    if config.validation_fraction:
        raise ValueError(f"{where}: validation_fraction={config.validation_fraction} keeps training samples apart; a "
                         "row of the table is trained on all of them, leave it out")  # fmt: skip
    for target in rest.get("synth", ()):
        if target not in COUNTED:
            raise ValueError(f"{where}: synth counts tables of {', '.join(COUNTED)}, got {target!r}")
    if not rest.get("seeds", (0,)):
        raise ValueError(f"{where}: seeds is empty; leave it out for 0 and 1")
    return Entry(name, config, **rest)


_KINDS: Final[dict[str, Any]] = {
    "seeds": tuple[int, ...],
    "prune": Prune | None,
    "synth": tuple[str, ...],
    "note": str,
}
