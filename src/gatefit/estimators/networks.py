"""The network that an estimator's configuration describes, new or continued.

wiring "auto"    unique pairs; where a layer has more gates than pairs, every pair once before any a second time;
                 of a single bit both operands are that bit; of some bits that are preferred, three quarters of the
                 first layer's gates read only them
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Int32, Int64
from torch import Tensor

from gatefit.encoders import Encoder
from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.training.config import RunConfig
from gatefit.wirings import unique_wiring

PREFERRED_SHARE: Final = 0.75
"""The share of the first layer's gates that read only preferred bits, where there are such."""


def every_pair_wiring(inputs: int, gates: int, *, generator: torch.Generator) -> Int32[Tensor, "2 gates"]:
    """Unique pairs, as often as there are gates for them; the one input twice where there is no pair."""
    pairs = inputs * (inputs - 1) // 2
    if pairs == 0:
        return torch.zeros((2, gates), dtype=torch.int32)
    whole, rest = divmod(gates, pairs)
    counts = [pairs] * whole + [rest] * (rest > 0)
    return torch.cat([unique_wiring(inputs, count, generator=generator) for count in counts], dim=1)


def new_network(
    config: RunConfig,
    encoder: Encoder,
    classes: int,
    class_names: tuple[str, ...],
    target_range: tuple[float, float],
    preferred: Int64[np.ndarray, " preferred"] | None = None,
) -> LogicNetwork:
    """An untrained network; a method that has no circuit is refused here, before the work.

    ``preferred`` are bits that most gates of the first layer read, where the wiring is "auto".
    """
    assert config.width is not None, "resolved by the estimator"
    network = LogicNetwork(
        encoder.bits,
        classes,
        config.width,
        config.depth,
        method=config.method,
        wiring=_wiring(config, encoder.bits, config.width, preferred) if config.wiring == "auto" else config.wiring,
        readout=config.readout,
        readout_temperature="auto" if config.readout_temperature is None else config.readout_temperature,
        target_range=target_range,
        seed=config.seed,
        wiring_seed=config.wiring_seed,
        encoder=encoder,
        class_names=class_names,
        **config.method_options(),
    )
    network.gates()
    return network


def _wiring(config: RunConfig, bits: int, width: int, preferred: Int64[np.ndarray, " preferred"] | None) -> Any:
    sizes = [bits, *[width] * (config.depth - 1)]
    if preferred is None and all(inputs * (inputs - 1) // 2 >= width for inputs in sizes):
        return "unique"
    layers = [
        every_pair_wiring(inputs, width, generator=stream(config.wiring_seed, f"wiring/{i}"))
        for i, inputs in enumerate(sizes)
    ]
    if preferred is not None:
        generator = stream(config.wiring_seed, "wiring/preferred")
        among = every_pair_wiring(len(preferred), int(PREFERRED_SHARE * width), generator=generator)
        nodes = torch.as_tensor(preferred, dtype=torch.int32)[among.long()]
        both = torch.cat([nodes, layers[0][:, nodes.shape[1] :]], dim=1)
        layers[0] = both[:, torch.randperm(width, generator=generator)]
    return layers


CONFIGURED: Final = (
    "method",
    "width",
    "depth",
    "readout",
    "readout_temperature",
    "temperature",
    "wiring",
    "initialisation",
)
"""The fields of a configuration that a network is made from, seeds aside."""


def made_from(config: RunConfig, encoder: Encoder | str, thresholds: int) -> dict[str, Any]:
    """The parameters of an estimator that its network was made from; an encoder as it reads in print."""
    fields = {name: getattr(config, name) for name in CONFIGURED}
    described = encoder if isinstance(encoder, str) else f"{type(encoder).__name__}({encoder.parameters()})"
    return fields | {"encoder": described} | ({"thresholds": thresholds} if encoder == "auto" else {})


def refuse_changes(made: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A warm start goes on with the network that is there: what it was made from cannot be another thing now."""
    for name, there in made.items():
        given = now.get(name, there)
        if there != given:
            raise ValueError(
                f"warm_start=True continues a network with {name}={there!r}, got {name}={given!r}; "
                f"set {name} back, or warm_start=False to start anew"
            )
