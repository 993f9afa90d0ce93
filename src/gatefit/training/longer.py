"""A run given more steps: what it has trained is the beginning of the longer run, which goes on from there.

    checkpoints of N steps   ->   those that a run of more steps passes through too, under that run's name

Only with a constant learning rate (after its warm-up): a schedule depends on the last step, and nothing else does. A
run evaluates after its last step, a longer one only at multiples of evaluate_every: a state that has seen another
evaluation is dropped, and the steps since the state before it are trained again. So every bit is that of a run that was
started with more steps.
"""

import json
from dataclasses import asdict
from pathlib import Path

import safetensors

from gatefit.training.checkpoint import read_tensors, serialise, write_atomically
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderError, check_config, checkpoints, read_config


def take_folder(folder: Path, config: RunConfig) -> None:
    """Refuse a folder of another configuration; make that of a shorter run the folder of ``config``, the longer one.

    Killed in between, the same call goes on. The caller holds the folder's lock.
    """
    if not (folder / "config.json").exists():
        return
    shorter = read_config(folder)
    if not _same_but_steps(shorter, config) or shorter.steps >= config.steps:
        check_config(folder, config)
        return
    if config.schedule != "constant":
        raise RunFolderError(
            f"{folder} holds a run of {shorter.steps} steps whose {config.schedule} schedule ends there, so it cannot "
            f"go on to {config.steps}; use another --out folder"
        )
    states = checkpoints(folder / "checkpoints")
    passed = [path for path in states if _is_passed(path, config)]
    if not passed and shorter.steps >= config.evaluate_every and (folder / "result.json").exists():
        raise RunFolderError(
            f"{folder} holds a finished run of {shorter.steps} steps without a checkpoint to go on from; put its "
            f"checkpoints folder back, or train {config.steps} steps from the beginning in another --out folder"
        )
    for name in ("result.json", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)
    for path in states:
        if path in passed:
            tensors, metadata = read_tensors(path)
            write_atomically(path, serialise(tensors, {**metadata, "config": config.to_json()}))
        else:
            path.unlink()
    write_atomically(folder / "config.json", config.to_json().encode())


def _same_but_steps(one: RunConfig, other: RunConfig) -> bool:
    return {**asdict(one), "steps": other.steps} == asdict(other)


def _is_passed(path: Path, config: RunConfig) -> bool:
    """Whether this is a state of ``config`` too: of the same run but for its end, and evaluated as that would be."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        saved, state = RunConfig.from_dict(json.loads(metadata["config"])), json.loads(metadata["state"])
        rows = [row["step"] for row in state["metrics"]]
    except (safetensors.SafetensorError, ValueError, LookupError, TypeError):
        return False  # Damaged: there may be another.
    return _same_but_steps(saved, config) and all(step % config.evaluate_every == 0 for step in rows)
