"""One run trained by several processes, started by torchrun: each has its part of every batch.

    process r of R   rows [r B/R, (r+1) B/R) of the batch, in the order that one process reads
    gradient         ∂L = Σ_r (W_r / W) ∂L_r        W_r: the samples (or weights) in part r;  one all-reduce a step
    step             the same Adam step in every process, on the same parameters, with the same noise
    regrowth         from all parts' notes, which every process is given: the same candidates everywhere

So the result is that of one process up to the order in which a batch is summed. The first process, the leader,
evaluates and writes; the others hold the same network and wait. A checkpoint says nothing of how many processes wrote
it: a run may go on with another number, or with one. What is sent is numbers and safetensors, never pickled objects.

    with process_group() as group:                      # None where the process was started by itself
        runs = execute_together([config], strategy=group)    # the leader's run; none in the others
"""

import contextlib
import hashlib
import importlib
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Int64
from torch import Tensor

from gatefit.bits import PackedBatch
from gatefit.network import LogicNetwork
from gatefit.ops.batches import as_float
from gatefit.ops.learned_stack import Watch
from gatefit.training.checkpoint import checkpoint_name
from gatefit.training.data import TrainingData
from gatefit.training.loop import Learner, NothingToTrainError, Strategy, batch_loss, evaluation, record

TIMEOUT: Final = 600.0
"""Seconds without an answer after which a process gives up: longer than the leader's longest evaluation."""

_FAILED, _READY, _NOTHING_TO_DO = range(3)


class ParallelError(RuntimeError):
    """The processes of a run cannot work together, or no longer."""


class ProcessGroup(Strategy):
    """This process among those that train one run; made by ``process_group``."""

    alone = False

    def __init__(self, timeout: float) -> None:
        self.rank, self.size, self.timeout = dist.get_rank(), dist.get_world_size(), timeout
        self.writes = self.rank == 0
        self._met = False
        self._wants_to_stop: Callable[[], bool] = lambda: False
        self._stopping = False

    def agreed(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """``should_stop`` of all processes: one that is asked to stop stops them all, after the same step."""
        self._wants_to_stop, self._stopping = should_stop, False
        return lambda: self._stopping

    def part(self, batch: int) -> slice:
        """The rows of a batch that are this process's own."""
        return slice(self.rank * batch // self.size, (self.rank + 1) * batch // self.size)

    def begin(self, learners: Sequence[Learner], data: TrainingData) -> torch.optim.Optimizer:
        """All begin with what the leader has: its newest checkpoint, or else its first parameters."""
        (learner,) = learners
        if learner.folder is not None and not self.writes:
            raise ValueError(
                f"process {self.rank} was given the folder {learner.folder}; only the first process writes"
            )
        restored = learner.restore(learner.folder)
        self._meet(_READY, _subject(learner, data))
        content = b""
        if restored and learner.folder is not None:
            content = (learner.folder / checkpoint_name(learner.state.step)).read_bytes()
        content = self._send(content)
        if not content:
            self._copy_from_leader([*learner.network.parameters(), *learner.network.buffers()])
        elif not self.writes:
            with tempfile.TemporaryDirectory() as copy:
                (Path(copy) / checkpoint_name(0)).write_bytes(content)
                learner.restore(Path(copy))
        return learner.optimiser

    def backward(
        self, learners: Sequence[Learner], data: TrainingData, batches: Sequence[Int64[np.ndarray, " batch"]]
    ) -> list[float]:
        """The whole batch's mean loss, and its gradient in the parameters: the sum of all processes' parts."""
        network, indices = learners[0].network, batches[0]
        part = self.part(len(indices))
        own, first = indices[part], part.start
        share = _share(data, own, indices)
        if not len(own):
            # More processes than samples: one sample that counts nothing, so that noise is drawn everywhere alike.
            own, first = indices[:1], 0
        loss = batch_loss(learners[0], data, own, first=first, share=share)
        loss.backward()
        gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        # The loss and the wish to stop travel with the gradients. A loss that is not finite anywhere is so everywhere.
        words = torch.stack([loss.detach(), torch.full_like(loss, float(self._wants_to_stop()))])
        bucket = torch.cat([*(gradient.reshape(-1) for gradient in gradients), words])
        self._collective(dist.all_reduce, bucket)
        parts = bucket[:-2].split([gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        self._stopping = bool(bucket[-1] > 0)
        if isinstance(network, LogicNetwork) and network.watch is not None:
            self._gather_watched(network.watch, len(indices))
        return [float(bucket[-2])]

    def _gather_watched(self, watch: Watch, batch: int) -> None:
        """Of all samples what was written down of a part, in the order of the batch: all regrow the same candidates."""
        places = [slice(rank * batch // self.size, (rank + 1) * batch // self.size) for rank in range(self.size)]
        # A process without samples has noted one that counts nothing, and whose gradient is 0.
        sizes = [max(1, place.stop - place.start) for place in places]
        for layer, gradients in sorted(watch.gradients.items()):
            pool = watch.pools[layer]
            values = as_float(pool, gradients.dtype).T if isinstance(pool, PackedBatch) else pool
            own = torch.cat([gradients, values])
            own = torch.nn.functional.pad(own, (0, max(sizes) - own.shape[1])).contiguous()
            everyone = [torch.empty_like(own) for _ in sizes]
            self._collective(dist.all_gather, everyone, own)
            whole = torch.cat([part[:, :size] for part, size in zip(everyone, sizes, strict=True)], dim=1)
            watch.gradients[layer], watch.pools[layer] = whole.split([len(gradients), len(values)])

    def evaluate(self, learner: Learner, data: TrainingData) -> dict[str, Any]:
        """The leader evaluates and tells the others, who take over its parameters.

        Processors of one kind have the same bits anyway; where they differ, nothing drifts apart.
        """
        network, moments = learner.network, learner.optimiser.state
        own = [moments[p][name] for p in network.parameters() for name in sorted(moments[p])]
        self._copy_from_leader([*network.parameters(), *network.buffers(), *own])
        if self.writes:
            row = evaluation(network, data, learner.state)
            self._send(json.dumps(row).encode())
            return row
        return record(json.loads(self._send(b"")), network, data, learner.state)

    @contextlib.contextmanager
    def announced(self) -> Iterator[None]:
        """A run begins in here (``begin``); where it does not, the others are told, and do not wait for it."""
        self._met = False
        try:
            yield
        except Exception:
            if not self._met:
                with contextlib.suppress(ParallelError, NothingToTrainError):
                    self._meet(_FAILED)
            raise
        if not self._met:
            with contextlib.suppress(NothingToTrainError):
                self._meet(_NOTHING_TO_DO)

    def wait_for_all(self) -> None:
        """Nobody leaves before the leader has written."""
        self._collective(dist.all_reduce, torch.zeros(1))

    def _meet(self, status: int, subject: str = "") -> None:
        """Wait for all to have something to begin with, and refuse to begin with different things."""
        self._met = True
        own = torch.tensor([status, *hashlib.sha256(subject.encode()).digest()], dtype=torch.uint8)
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        self._collective(dist.all_gather, everyone, own)
        failed = [rank for rank, each in enumerate(everyone) if each[0] == _FAILED]
        if failed:
            raise ParallelError(f"process {_names(failed)} could not begin, see the message there; nothing was trained")
        if everyone[0][0] == _NOTHING_TO_DO:
            raise NothingToTrainError("process 0 has nothing to train")
        others = [rank for rank, each in enumerate(everyone) if not torch.equal(each[1:], everyone[0][1:])]
        if others:
            raise ParallelError(
                f"process {_names(others)} has another configuration, data set or version of gatefit or torch than "
                "process 0; give all of them the same command, files and environment"
            )

    def _copy_from_leader(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            self._collective(dist.broadcast, tensor.detach(), 0)

    def _send(self, content: bytes) -> bytes:
        """The leader's ``content``, everywhere."""
        length = torch.tensor(len(content))
        self._collective(dist.broadcast, length, 0)
        if not self.writes:
            content = bytes(int(length))
        if content:
            words = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            self._collective(dist.broadcast, words, 0)
            content = words.numpy().tobytes()
        return content

    def _collective(self, operation: Callable[..., Any], *arguments: Any) -> None:
        try:
            operation(*arguments)
        except RuntimeError as error:
            # The frames of what failed hold the group, and with it its threads, for as long as the error is known.
            traceback.clear_frames(error.__traceback__)
            silent = "timed out" in str(error).lower()
            reason = f"did not answer for {self.timeout:g} s" if silent else "has ended"
            raise ParallelError(
                f"process {self.rank} of {self.size} stops: another one {reason}; "
                "the last checkpoint is intact, start all of them again to go on from it"
            ) from error


@contextlib.contextmanager
def process_group(*, timeout: float = TIMEOUT) -> Iterator[ProcessGroup | None]:
    """The processes that torchrun started this one with; None where it was started by itself.

    A process that fails before the first step tells the others. On the CPU they talk by gloo, on CUDA by NCCL.
    """
    if not _is_one_of_several():
        yield None
        return
    # Its functions keep the group that there is at their import as a default, for ever. That group's threads would
    # outlive it, and can abort the process when the interpreter ends. So it is imported before there is one.
    importlib.import_module("torch.distributed.nn.functional")
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise ParallelError(f"cannot meet the other processes at {address} ({error}); start them together") from error
    try:
        group = ProcessGroup(timeout)
        with group.announced():
            yield group
        group.wait_for_all()
    finally:
        dist.destroy_process_group()


def _is_one_of_several() -> bool:
    given = os.environ.get("WORLD_SIZE", "1")
    if given == "1":
        return False
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if not given.isdecimal() or missing:
        wrong = f"{', '.join(missing)} not set" if missing else "this is no number of processes"
        raise ParallelError(f"WORLD_SIZE={given} in the environment, but {wrong}; use torchrun, or unset WORLD_SIZE")
    return True


def _subject(learner: Learner, data: TrainingData) -> str:
    """What all must agree on before they begin."""
    return f"{learner.config.to_json()} {data.digest} gatefit {version('gatefit')} torch {torch.__version__}"


def _share(data: TrainingData, own: Int64[np.ndarray, " part"], indices: Int64[np.ndarray, " batch"]) -> float | Tensor:
    """W_r / W: how much of the batch's mean is the mean of this part."""
    if data.train_weights is None or not len(own):
        return len(own) / len(indices)
    # As in loss_of, which divides by the first of these.
    part, whole = (data.train_weights[rows].sum().clamp_min(1e-12) for rows in (own, indices))
    return part / whole


def _names(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
