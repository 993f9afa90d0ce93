"""Checkpoints: one safetensors file that holds all a run needs to go on as if it had never stopped.

    write    temporary file in the same folder -> fsync -> rename -> fsync of the folder
    content  parameters, wiring, optimiser state, generators (in the state_dict); step, metrics, configuration (JSON)

A reader sees the old file or the new one, never a part. The last two are kept. No pickle.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from gatefit.training.config import RunConfig
from gatefit.training.folder import checkpoints

FORMAT = "gatefit-checkpoint-1"
KEPT = 2


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: damaged, foreign, or of another configuration."""


@dataclass
class TrainingState:
    """Where a run stands."""

    step: int = 0
    metrics: list[dict[str, Any]] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_count: int = 0
    best_score: float = float("-inf")
    best: dict[str, Tensor] | None = None
    """The network at its best evaluation, where that is what will be kept."""


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace ``path`` by ``content``, or leave it as it was; ``sync``: so that it survives a power failure too."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The new name reaches the disk too, where a folder can be opened; Windows writes it with the file."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoint_name(step: int) -> str:
    """The file of the state after ``step`` steps."""
    return f"checkpoint-{step:09d}.safetensors"


def save_checkpoint(
    folder: Path, config: RunConfig, network: torch.nn.Module, optimiser: torch.optim.Optimizer, state: TrainingState
) -> Path:
    """Write the run's state after ``state.step`` steps, then forget all but the last two."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {f"network/{name}": value for name, value in network.state_dict().items()}
    for index, moments in optimiser.state_dict()["state"].items():
        for name, value in moments.items():
            tensors[f"optimiser/{index}/{name}"] = torch.as_tensor(value)
    tensors |= {f"best/{name}": value for name, value in (state.best or {}).items()}
    numbers = {name: getattr(state, name) for name in ("step", "metrics", "loss_sum", "loss_count")}
    if state.best is not None:
        numbers["best_score"] = state.best_score
    metadata = {"format": FORMAT, "config": config.to_json(), "state": json.dumps(numbers)}
    path = folder / checkpoint_name(state.step)
    write_atomically(path, serialise(tensors, metadata))
    for old in checkpoints(folder)[:-KEPT]:
        old.unlink()
    return path


def serialise(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Safetensors bytes, the same for the same content; tensors may share storage or be views."""
    contiguous = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    content = safetensors.torch.save(contiguous, dict(metadata))
    # The library writes metadata in the order of a hash table that is another one in every process.
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(metadata.items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, memoryview(content)[end:]])


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file, with one clear error.

    The tensors are copies: those of safetensors are views of the file, which Windows then would not let be replaced.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return tensors, dict(file.metadata() or {})
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is damaged or not a safetensors file ({error}); delete it") from error


def load_checkpoint(
    folder: Path, config: RunConfig, network: torch.nn.Module, optimiser: torch.optim.Optimizer
) -> TrainingState | None:
    """Restore the newest readable checkpoint into ``network`` and ``optimiser``; None if there is none.

    A checkpoint of another configuration is refused, with the differing fields named. A damaged newest file (a disk
    that lost power) falls back to the one before it.
    """
    found = checkpoints(folder)
    error: CheckpointError | None = None
    for path in reversed(found):
        try:
            return _restore(path, *read_tensors(path), config, network, optimiser)
        except CheckpointError as damaged:
            if "another configuration" in str(damaged):
                raise
            error = error or damaged
    if error is not None:
        raise error
    return None


def _restore(
    path: Path,
    tensors: dict[str, Tensor],
    metadata: dict[str, str],
    config: RunConfig,
    network: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
) -> TrainingState:
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this version: format {metadata.get('format')!r}")
    try:
        saved = RunConfig.from_dict(json.loads(metadata["config"]))
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: its configuration cannot be read ({error}); delete it") from error
    if saved != config:
        differences = "; ".join(config.differences(saved))
        raise CheckpointError(f"{path} belongs to another configuration ({differences}); use another --out folder")
    try:
        return _filled(tensors, metadata, network, optimiser)
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path} does not fit its configuration ({error}); delete it") from error


def _filled(
    tensors: dict[str, Tensor], metadata: dict[str, str], network: torch.nn.Module, optimiser: torch.optim.Optimizer
) -> TrainingState:
    network.load_state_dict(_part(tensors, "network/"))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser/"):
            _, index, key = name.split("/")
            moments.setdefault(int(index), {})[key] = value
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": moments, "param_groups": groups})
    return TrainingState(**json.loads(metadata["state"]), best=_part(tensors, "best/") or None)


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
