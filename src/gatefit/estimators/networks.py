"""The network that an estimator's configuration describes, new or continued."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from jaxtyping import Int64

from gatefit.encoders import Encoder
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout
from gatefit.training.config import RunConfig
from gatefit.wirings import WiringOptions

MakeNetwork: TypeAlias = Callable[[int, int, int], LogicNetwork]
"""(bits, classes, seed) -> the untrained network."""


def new_network(
    config: RunConfig,
    encoder: Encoder,
    classes: int,
    class_names: tuple[str, ...],
    target_range: tuple[float, float],
    preferred: Int64[np.ndarray, " preferred"] | None = None,
    *,
    readout: str | Readout,
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
        wiring=config.wiring,
        wiring_options=WiringOptions(preferred=preferred, reach=config.reach, **config.wiring_options()),
        votes=config.votes or "last",
        readout=readout,
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


def own_network(
    make: MakeNetwork, encoder: Encoder, classes: int, class_names: tuple[str, ...], seed: int
) -> LogicNetwork:
    """The untrained network that the user's function makes, checked against the data."""
    network = make(encoder.bits, classes, seed)
    if not isinstance(network, LogicNetwork):
        raise TypeError(f"network must be a function that makes a LogicNetwork, got one that makes {network!r:.80}")
    if (network.inputs, network.classes) != (encoder.bits, classes):
        raise ValueError(
            f"network({encoder.bits}, {classes}, {seed}) must make a network of so many inputs and classes, "
            f"got {network.inputs} and {network.classes}"
        )
    network.encoder, network.class_names = encoder, class_names
    network.gates()
    return network


CONFIGURED: Final = (
    "wiring",
    "method",
    "width",
    "depth",
    "votes",
    "readout",
    "readout_temperature",
    "temperature",
    "candidates",
    "initialisation",
)
"""The fields of a configuration that a network is made from, seeds aside."""


def made_from(
    config: RunConfig, encoder: Encoder | str, thresholds: int | str, network: MakeNetwork | None
) -> dict[str, Any]:
    """The parameters of an estimator that its network was made from; an encoder as it reads in print."""
    fields = {name: getattr(config, name) for name in CONFIGURED} if network is None else {"network": network}
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
