"""A run's folder, as far as it can be read without torch.

config.json        the resolved configuration
metrics.jsonl      one row an evaluation; no times, so that a resumed run writes the same bytes
temperature.json   where the temperature was searched for: what was found and what was tried (``temperature``)
checkpoints/       the last two states (``checkpoint``)
model.safetensors  the trained network's state_dict, written when the run is finished
result.json        last-10, best-checkpoint and gap figures, written last: its presence says "finished"
made.json          version, machine, threads, seconds (``made``): the one file that differs from training to training
lock               held while a process works in the folder
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gatefit.training.config import RunConfig

MADE: Final = "made.json"
TEMPERATURE: Final = "temperature.json"


class RunFolderError(ValueError):
    """A run folder that cannot be used: in use, or of another configuration."""


class RunFolderInUseError(RunFolderError):
    """Another process works in the folder."""


def default_folder(config: RunConfig) -> Path:
    """runs/DATASET-METHOD-IDENTITY."""
    return Path("runs") / f"{config.dataset}-{config.method}-{config.identity}"


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a run's ``checkpoints`` folder, oldest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run's log."""
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_finished(folder: Path) -> list[dict[str, Any]]:
    """The log of a finished run, whole: as far as its result.json says that it went."""
    try:
        steps = json.loads((folder / "result.json").read_text())["steps"]
        rows = read_metrics(folder)
        ends = rows[-1]["step"] if rows else None
    except (ValueError, LookupError, TypeError) as error:
        raise RunFolderError(f"result.json or metrics.jsonl in {folder} is damaged: {error}") from error
    if ends != steps:
        until = "is empty or missing" if ends is None else f"ends at step {ends}"
        raise RunFolderError(
            f"{folder} is finished at step {steps}, but its metrics.jsonl {until}; put it back, or delete result.json "
            "to go on from the last checkpoint"
        )
    return rows


def read_made(folder: Path) -> dict[str, Any]:
    """code_version, machine, seconds (processor_seconds too) and threads, as far as the folder says."""
    try:
        made = json.loads((folder / MADE).read_text())
    except (OSError, ValueError):
        return {}
    kinds = {
        "code_version": str,
        "machine": dict,
        "seconds": int | float,
        "processor_seconds": int | float,
        "threads": int,
    }
    known = made if isinstance(made, dict) else {}
    return {name: known[name] for name, kind in kinds.items() if isinstance(known.get(name), kind)}


def read_config(folder: Path) -> RunConfig:
    """The configuration of the run in ``folder``."""
    path = folder / "config.json"
    if not path.exists():
        raise RunFolderError(f"{folder} holds no run: there is no config.json; name a folder made by `gatefit train`")
    try:
        return RunConfig.from_dict(json.loads(path.read_text()))
    except ValueError as error:
        raise RunFolderError(f"{path} is damaged: {error}") from error


def check_config(folder: Path, config: RunConfig) -> None:
    """Refuse a folder that another configuration has been trained in."""
    if (folder / "config.json").exists():
        differences = config.differences(read_config(folder))
        if differences:
            raise RunFolderError(
                f"{folder} belongs to another configuration ({'; '.join(differences)}); use another --out folder"
            )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system releases however the process ends.

    The lock is the operating system's, on the open file (flock; on Windows LockFileEx); that the file is there says
    nothing. Only where a file system knows no such lock does the file hold its owner's process number instead.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise RunFolderInUseError(
            f"{folder} is in use by another process; wait for it, or use another --out folder"
        ) from None
    try:
        yield
    finally:
        lock.release()
