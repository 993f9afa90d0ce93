"""Readouts: from the last layer's gates to class scores or a value (paper §2.1, app. binarization).

    GroupSum    score_k = (1/τ) Σ_{i in group k} y_i                  groups of consecutive gates, equal in size;
                deployed with whole numbers added, where it was calibrated
    Linear      score_k = b_k + Σ_i w_ki y_i                          starts as GroupSum, then learns
    Regression  value   = low + (high - low) · (1/n) Σ_i y_i          one group scaled to the target's range

``deployed(y)`` is what the circuit computes, to the bit; ``forward`` is what is trained.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, Final

from gatefit._requires import require

require("torch", "train", "training")

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gatefit.circuit import readout as deployed_readouts
from gatefit.ops.stacks import group_sums


def automatic_temperature(gates_per_class: int) -> float:
    """τ = 0.36 √(gates per class): 10 at 8,000 gates and 10 classes, 29 at 64,000, as the field uses."""
    return 0.36 * math.sqrt(gates_per_class)


class Readout(nn.Module, ABC):
    """From (batch, gates) to (batch, classes). One of your own is given to a network as the module that it is."""

    gates: int
    """How many gates it reads."""
    classes: int
    groups: int | None
    """Into how many equal groups the gates are summed; None where each gate is read by itself."""

    @abstractmethod
    def from_sums(self, sums: Float[Tensor, "batch groups"]) -> Float[Tensor, "batch classes"]:
        """Scores that are trained, from the sums over groups (or the gates themselves, without groups)."""

    def forward(self, y: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch classes"]:
        """Scores that are trained."""
        return self.from_sums(y if self.groups is None else group_sums(y, self.groups))

    @abstractmethod
    def harden(self) -> deployed_readouts.Readout:
        """What the circuit computes."""

    def calibrate(self, shifts: Float[Tensor, " classes"]) -> None:
        """Add ``shifts`` to the deployed scores, where the readout can; what was added before is forgotten."""

    def calibrate_probabilities(self, temperature: float | None) -> None:
        """Divide the circuit's scores by ``temperature`` for probabilities, where the readout can; None: as trained.

        Scores, classes and training stay what they are.
        """

    @property
    def trained_temperature(self) -> float | None:
        """What training divides by, where probabilities are computed with another temperature; None: the same."""
        return None

    @property
    def divisor(self) -> float | None:
        """What ``from_sums`` divides by, where that is all that it does: training is faster for knowing it."""
        return None

    def deployed(self, y: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch classes"]:
        """The circuit's scores of Boolean ``y``, to the bit."""
        return self.deployed_from_sums(y if self.groups is None else group_sums(y, self.groups))

    def deployed_from_sums(self, sums: Float[Tensor, "batch groups"]) -> Float[Tensor, "batch classes"]:
        """The same from sums; sums of ones are exact, so what is trained is what is deployed."""
        return self.from_sums(sums)


class GroupSum(Readout):
    """Class scores by counting; nothing is learned.

    ``offsets`` are added to the counts of the deployed network alone: gates that are snapped one by one may together
    favour a class that they did not favour in training (``calibrate``). ``probability_temperature`` is the one that the
    circuit's probabilities are computed with, where it is not the one of training (``calibrate_probabilities``).
    """

    offsets: Tensor | None
    probability_temperature: Tensor | None

    def __init__(self, gates: int, classes: int, *, temperature: float | str = "auto") -> None:
        super().__init__()
        check_groups(gates, classes)
        self.gates, self.classes, self.groups = gates, classes, classes
        self.temperature = readout_temperature(temperature, gates // classes)
        self.register_buffer("offsets", None)
        self.register_buffer("probability_temperature", None)

    def calibrate(self, shifts: Float[Tensor, " classes"]) -> None:
        """Add ``shifts`` to the deployed scores, as whole numbers of votes, none of them negative."""
        votes = (shifts.double() * self.temperature).round().to(torch.int64)
        votes = votes - votes.min()
        self.offsets = votes if bool(votes.any()) else None

    def calibrate_probabilities(self, temperature: float | None) -> None:
        """Compute the circuit's probabilities with ``temperature``."""
        found = None if temperature is None else torch.tensor(temperature, dtype=torch.float64)
        self.register_buffer("probability_temperature", found)  # one that an earlier version pickled has no such buffer

    @property
    def trained_temperature(self) -> float | None:
        """The temperature of training, where probabilities have their own."""
        return None if self._own_temperature() is None else self.temperature

    def _own_temperature(self) -> float | None:
        own = self._buffers.get("probability_temperature")
        return None if own is None else float(own)

    @property
    def divisor(self) -> float | None:
        """The temperature."""
        return self.temperature

    def from_sums(self, sums: Float[Tensor, "batch groups"]) -> Float[Tensor, "batch classes"]:
        """Group sums over the temperature."""
        return sums / self.temperature

    def deployed_from_sums(self, sums: Float[Tensor, "batch groups"]) -> Float[Tensor, "batch classes"]:
        """The same with the offsets added."""
        return self.from_sums(sums if self.offsets is None else sums + self.offsets.to(sums.dtype))

    def harden(self) -> deployed_readouts.GroupSum:
        """Integer group sums."""
        groups = torch.arange(self.classes).repeat_interleave(self.gates // self.classes)
        offsets = torch.zeros(self.classes, dtype=torch.int64) if self.offsets is None else self.offsets.cpu()
        return deployed_readouts.GroupSum(groups.numpy(), offsets.numpy(), self._own_temperature() or self.temperature)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # A state without them is of a network that was not calibrated.
        for name in ("offsets", "probability_temperature"):
            saved = state_dict.get(f"{prefix}{name}")
            self.register_buffer(name, None if saved is None else saved.clone())
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """Shown by ``print(network)``."""
        return f"gates={self.gates}, classes={self.classes}, temperature={self.temperature:.4g}"


class LinearReadout(Readout):
    """A learned linear layer on the gates: the cheapest arithmetic a network can keep."""

    def __init__(self, gates: int, classes: int, *, temperature: float | str = "auto") -> None:
        super().__init__()
        check_groups(gates, classes)
        self.gates, self.classes, self.groups = gates, classes, None
        self.temperature = readout_temperature(temperature, gates // classes)
        groups = torch.arange(classes).repeat_interleave(gates // classes)
        self.weight = nn.Parameter((groups == torch.arange(classes)[:, None]).float() / self.temperature)
        self.bias = nn.Parameter(torch.zeros(classes))

    def from_sums(self, sums: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch classes"]:
        """b + W y."""
        return sums @ self.weight.T + self.bias

    def harden(self) -> deployed_readouts.Linear:
        """Weights on a grid of powers of two, so coarse that float32 sums are exact in any order."""
        weight, bias = self.weight.detach().double(), self.bias.detach().double()
        largest = float((weight.abs().sum(1) + bias.abs()).max())
        if not math.isfinite(largest):
            raise ValueError("the linear readout holds non-finite weights; lower the learning rate")
        # Every partial sum is a multiple of 1/scale below 2^23/scale: 24 bits of mantissa hold it exactly.
        scale = 2.0 ** (22 - math.ceil(math.log2(max(largest, 2.0**-60))))
        return deployed_readouts.Linear(
            ((weight * scale).round() / scale).float().numpy(), ((bias * scale).round() / scale).float().numpy()
        )

    def deployed_from_sums(self, sums: Float[Tensor, "batch gates"]) -> Float[Tensor, "batch classes"]:
        """b + W y with the deployed weights: exact, so the order of summation does not matter."""
        hardened = self.harden()
        return sums.float() @ torch.tensor(hardened.weights).T + torch.tensor(hardened.bias)


class RegressionReadout(Readout):
    """One group, scaled to the range of the target."""

    def __init__(self, gates: int, *, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__()
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"the regression range needs finite low < high, got {low} and {high}")
        self.gates, self.classes, self.groups = gates, 1, 1
        self.register_buffer("range", torch.tensor([low, high], dtype=torch.float64))
        self.range: Tensor

    def from_sums(self, sums: Float[Tensor, "batch 1"]) -> Float[Tensor, "batch 1"]:
        """low + (high - low) · mean."""
        low, high = float(self.range[0]), float(self.range[1])
        return low + (high - low) * (sums / self.gates)

    def harden(self) -> deployed_readouts.Affine:
        """The same line over the number of ones."""
        low, high = self.range.tolist()
        return deployed_readouts.Affine(self.gates, 0, (high - low) / self.gates, low)

    def deployed_from_sums(self, sums: Float[Tensor, "batch 1"]) -> Float[Tensor, "batch 1"]:
        """The circuit's value, in float64."""
        hardened = self.harden()
        return hardened.intercept + hardened.scale * sums.double()


READOUTS: Final = ("group-sum", "linear", "regression")


def readout_temperature(temperature: float | str, gates_per_class: int) -> float:
    """The number given, or the automatic one."""
    if temperature == "auto":
        return automatic_temperature(gates_per_class)
    if temperature == "search":
        raise ValueError(
            "readout_temperature='search' is found by trainings: `gatefit train`, or "
            "gatefit.training.temperature.search_temperature; a network takes the number that they find"
        )
    if isinstance(temperature, str) or not 0 < float(temperature) < math.inf:
        raise ValueError(f"readout_temperature must be 'auto' or a finite number > 0, got {temperature!r}")
    return float(temperature)


def check_groups(gates: int, classes: int) -> None:
    """Refuse a last layer that does not divide into equal groups."""
    if classes < 2:
        raise ValueError(f"a classifier needs at least two classes, got {classes}; for one value use regression")
    if gates % classes or gates < classes:
        below, above = gates - gates % classes, gates + classes - gates % classes
        choices = f"{below} or {above}" if below else f"{above}"
        raise ValueError(f"the last width must be a multiple of {classes} classes, got {gates}; use width={choices}")
