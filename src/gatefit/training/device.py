"""Where a run is trained: the CPU, or a CUDA device that holds the network and the data set while it is.

    network      moved there; its operations resolve to Triton's kernels; back on the CPU when training ends
    data set     rows of bits, 64 a word, copied once; batches are gathered and turned into words on the device
    targets      beside it

A run's name, configuration and checkpoints say nothing of devices: a run that was stopped goes on wherever it is
resumed. Sums are added in another order there, so that its last bits may be others: made.json says on which devices it
was trained.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeGuard

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor, nn

from gatefit.bits import PackedBatch
from gatefit.network import LogicNetwork
from gatefit.ops.gather import gather
from gatefit.ops.implementations import Implementation, resolve
from gatefit.ops.triton_launch import installed, tile
from gatefit.training.data import BitSource, PackedRows, Subset, TrainingData
from gatefit.training.metrics import EVALUATION_BATCH

DEVICES: Final = ("auto", "cpu", "cuda")
LEAST_CAPABILITY: Final = (8, 0)
"""What Triton is made for: Ampere (A100) and later."""
ROOM_TO_SPARE: Final = 1.1
"""What allocators, compiled kernels and temporaries take on top."""


class DeviceError(ValueError):
    """The device that was asked for cannot be used; says why, and what to do."""


def choose_device(asked: str) -> torch.device:
    """ "cpu"; "cuda" or "cuda:1", which must be usable; "auto": CUDA where it is usable, else the CPU."""
    if not isinstance(asked, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", asked):
        raise DeviceError(f"unknown device {asked!r}; choose one of {', '.join(DEVICES)}")
    if asked == "cpu":
        return torch.device("cpu")
    why_not = _why_not_cuda(asked)
    if asked == "auto":
        return torch.device("cpu" if why_not else "cuda")
    if why_not:
        raise DeviceError(f"device {asked!r} cannot be used: {why_not}, or use device cpu")
    return torch.device(asked)


def _why_not_cuda(asked: str) -> str | None:
    """What is missing and what to do about it; None: nothing."""
    if torch.version.cuda is None:
        return "this torch is built for the CPU alone; install a build for CUDA"
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        return f"{str(error).splitlines()[0].rstrip('.')}; update the NVIDIA driver"
    number = int(asked.partition(":")[2] or 0)
    if number >= count:
        return f"there are {count} CUDA devices, numbered from 0; name one of them"
    capability = torch.cuda.get_device_capability(number)
    if capability < LEAST_CAPABILITY:
        needed, found = (".".join(map(str, each)) for each in (LEAST_CAPABILITY, capability))
        return f"it has compute capability {found}, and the kernels need {needed}; use a newer device"
    if not installed():
        return "the kernels need Triton; install it with pip install 'gatefit[gpu]'"
    return None


def needed_bytes(network: nn.Module, data: TrainingData, batch: int) -> int:
    """What training takes on a device: parameters with gradients and moments, data, and a step or an evaluation."""
    return int(ROOM_TO_SPARE * (_resident(network, data) + max(batch * _step(network), _evaluation(network))))


def _resident(network: nn.Module, data: TrainingData) -> float:
    parameters = sum(4 * each.numel() * each.element_size() for each in network.parameters())
    fixed = sum(each.numel() * each.element_size() for each in network.buffers())
    return parameters + fixed + sum(source.rows.nbytes for source in _sets(data) if _moves(source))


def _sets(data: TrainingData) -> list[BitSource]:
    """What is read, each once: subsets share what they are of."""

    def whole(source: BitSource) -> BitSource:
        return whole(source.source) if type(source) is Subset else source

    return list({id(each): each for each in map(whole, (data.train, data.test))}.values())


def _moves(source: BitSource) -> TypeGuard[PackedRows]:
    """Whether a source lies on the device; what is made batch by batch, as moved images are, is copied so."""
    return type(source) is PackedRows


def _step(network: nn.Module) -> float:
    """Of a sample: every layer's outputs until the way back, as bits or numbers, and two layers' gradients."""
    if not isinstance(network, LogicNetwork):
        return 0.0
    size = torch.finfo(network.dtype).bits // 8
    if network.reads == tuple((below,) for below in range(network.depth)):
        bits = [getattr(getattr(layer, "method", None), "boolean_forward", False) for layer in network.layers]
        kept = sum((1 / 8 if own else size) * gates for own, gates in zip(bits, network.widths, strict=True))
    else:  # layer by layer, as numbers: what each reads, laid together, and what it gives
        kept = sum(size * (layer.inputs + layer.outputs) for layer, _ in network.wired_layers)
    # Of each tile of samples a part of every coefficient's gradient.
    partial = 4 * size * network.width / tile(1 << 30)[1]
    return kept + 2 * size * network.width + partial


def _evaluation(network: nn.Module) -> float:
    """Of a batch that is evaluated: two layers, and those that vote."""
    if not isinstance(network, LogicNetwork):
        return 0.0
    return EVALUATION_BATCH * (1 + len(network.votes)) * network.width * torch.finfo(network.dtype).bits / 8


def check_room(network: nn.Module, data: TrainingData, batch: int, free: int, device: torch.device | str) -> None:
    """Refuse what does not fit into ``free`` bytes, with what would."""
    needed = needed_bytes(network, data, batch)
    if needed <= free:
        return
    fitting = 0
    if needed_bytes(network, data, 0) <= free:
        fitting = int((free / ROOM_TO_SPARE - _resident(network, data)) / max(1.0, _step(network)))
    advice = f"batch_size={fitting} would fit" if fitting else "use a narrower network, or device cpu"
    raise DeviceError(
        f"training needs about {needed / 1e9:.2f} GB on {device}, which has {free / 1e9:.2f} GB free; {advice}"
    )


def check_free(networks: Sequence[nn.Module], data: TrainingData, device: torch.device, batch: int) -> None:
    """Refuse what does not fit into the memory that a CUDA device has left."""
    free, _ = torch.cuda.mem_get_info(device)
    for network in networks:
        check_room(network, data, batch, free, device)


class DeviceRows(BitSource):
    """A data set as rows of bits on a device; its batches are made there."""

    def __init__(self, source: PackedRows, device: torch.device | str, implementation: Implementation) -> None:
        self.samples, self.bits, self.implementation = source.samples, source.bits, implementation
        self.rows = torch.from_numpy(source.rows.view(np.int64)).to(device)

    def batch(self, indices: Int64[np.ndarray, " batch"]) -> PackedBatch:
        """The bits of these samples."""
        if indices.size and not 0 <= indices.min() <= indices.max() < self.samples:
            raise IndexError(f"indices run from {indices.min()} to {indices.max()}, there are {self.samples} samples")
        wanted = torch.from_numpy(np.ascontiguousarray(indices)).to(self.rows.device)
        words: Tensor = gather(self.rows, wanted, self.bits, implementation=self.implementation)
        return PackedBatch(words, int(indices.size))


def data_on(data: TrainingData, device: torch.device | str, implementation: Implementation) -> TrainingData:
    """The same data on a device; what is encoded batch by batch stays where it is, and is copied batch by batch."""
    there = {id(source): DeviceRows(source, device, implementation) for source in _sets(data) if _moves(source)}

    def moved(source: BitSource) -> BitSource:
        if type(source) is Subset:
            return Subset(moved(source.source), source.rows)
        return there.get(id(source), source)

    weights = data.train_weights
    return replace(
        data,
        train=moved(data.train),
        test=moved(data.test),
        train_targets=data.train_targets.to(device),
        test_targets=data.test_targets.to(device),
        train_weights=None if weights is None else weights.to(device),
    )


@contextmanager
def placed(
    networks: Sequence[nn.Module], data: TrainingData, device: torch.device | str, batch: int
) -> Iterator[TrainingData]:
    """Within, the networks are on the device, with the data that is given; afterwards they are on the CPU again."""
    device = torch.device(device)
    if device.type == "cpu":
        yield data
        return
    check_free(networks, data, device, batch)
    try:
        for network in networks:
            network.to(device)
        yield data_on(data, device, resolve("auto", device, torch.float32))
    finally:
        for network in networks:
            network.to("cpu")
