"""The network that an estimator's configuration describes, new or continued.

wiring "auto"    unique pairs; where a layer has more gates than pairs, every pair once before any a second time
"""

from typing import Any

import torch
from jaxtyping import Int32
from torch import Tensor

from gatefit.encoders import Encoder
from gatefit.network import LogicNetwork
from gatefit.randomness import stream
from gatefit.training.config import RunConfig
from gatefit.wirings import unique_wiring


def every_pair_wiring(inputs: int, gates: int, *, generator: torch.Generator) -> Int32[Tensor, "2 gates"]:
    """Unique pairs, as often as there are gates for them."""
    pairs = inputs * (inputs - 1) // 2
    whole, rest = divmod(gates, max(1, pairs))
    counts = [pairs] * whole + [rest] * (rest > 0)
    return torch.cat([unique_wiring(inputs, count, generator=generator) for count in counts], dim=1)


def new_network(
    config: RunConfig, encoder: Encoder, classes: int, class_names: tuple[str, ...], target_range: tuple[float, float]
) -> LogicNetwork:
    """An untrained network; a method that has no circuit is refused here, before the work."""
    assert config.width is not None, "resolved by the estimator"
    network = LogicNetwork(
        encoder.bits,
        classes,
        config.width,
        config.depth,
        method=config.method,
        wiring=_wiring(config, encoder.bits, config.width) if config.wiring == "auto" else config.wiring,
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


def _wiring(config: RunConfig, bits: int, width: int) -> Any:
    sizes = [bits, *[width] * (config.depth - 1)]
    if all(inputs * (inputs - 1) // 2 >= width for inputs in sizes):
        return "unique"
    return [
        every_pair_wiring(inputs, width, generator=stream(config.wiring_seed, f"wiring/{i}"))
        for i, inputs in enumerate(sizes)
    ]


def refuse_changes(network: LogicNetwork, config: RunConfig) -> None:
    """A warm start goes on with the network that is there."""
    for name in ("method", "width", "depth", "readout"):
        there, given = network.configuration[name], getattr(config, name)
        if there != given:
            raise ValueError(
                f"warm_start=True continues a network with {name}={there!r}, got {name}={given!r}; "
                f"set {name} back, or warm_start=False to start anew"
            )
