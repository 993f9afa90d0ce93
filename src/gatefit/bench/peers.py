"""The same network in other libraries, where they are installed: random wiring, sixteen logits a gate, group sums.

    difflogic     LogicLayer, its own kernels on CUDA (``implementation="cuda"``), plain torch on the CPU
    torchlogix    LogicDense with its default parameters: "raw", soft

Only their public layers are used, with the arguments that all their versions have; a library that is installed and
cannot be imported, as difflogic where its kernels were not built, is a reason and not an error.
"""

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

import torch
from torch import Tensor, nn

MakeLayer = Callable[[int, int, str], nn.Module]


def _difflogic() -> MakeLayer:
    from difflogic import LogicLayer

    return lambda inputs, gates, device: LogicLayer(inputs, gates, device=device)


def _torchlogix() -> MakeLayer:
    from torchlogix.layers import LogicDense

    return lambda inputs, gates, device: LogicDense(inputs, gates, device=device)


PEERS: Final[dict[str, Callable[[], MakeLayer]]] = {"difflogic": _difflogic, "torchlogix": _torchlogix}
"""By name: what imports the library, and returns how one of its layers is made."""


class PeerMissingError(RuntimeError):
    """A library that is not installed, or cannot be imported here; says which and why."""


def is_installed(name: str) -> bool:
    """Whether there is such a library at all."""
    return find_spec(name) is not None


class Peer(nn.Module):
    """Layers of a library, and group sums over a temperature."""

    def __init__(
        self, name: str, inputs: int, width: int, depth: int, classes: int, temperature: float, device: str
    ) -> None:
        super().__init__()
        try:
            make = PEERS[name]()
        except Exception as error:  # whatever its import does
            raise PeerMissingError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
        sizes = [inputs, *[width] * depth]
        self.layers = nn.Sequential(*(make(*pair, device) for pair in itertools.pairwise(sizes)))
        self.classes, self.temperature = classes, temperature

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        votes: Tensor = self.layers(x)
        return votes.reshape(len(x), self.classes, -1).sum(-1) / self.temperature


def version_of(name: str) -> str:
    """The installed version, as far as it says one."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def as_peers_read(bits: Tensor, device: torch.device | str) -> Tensor:
    """Numbers 0 and 1, a row a sample."""
    return bits.to(device=device, dtype=torch.float32)
