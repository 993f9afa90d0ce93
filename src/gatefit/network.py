"""Logic gate networks as torch modules: layers of gates, then a readout.

    layer     z = act(c_0 + c_a a + c_b b + c_ab ab)     train(): c = method.coefficients();  eval(): c = G[gates]
    network   x (batch, inputs) -> layer -> ... -> layer -> readout (batch, classes)

``eval()`` is the deployed Boolean network: what ``harden`` copies into a circuit, to the bit. The soft forward
pass of a trained network is an explicit metric (``soft_scores``), not a third mode. The state_dict holds all there
is: parameters, wiring, encoder, class names and the configuration to build the network again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gatefit._requires import require

require("torch", "train", "training")

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from gatefit.encoders import Encoder, encoder_from_spec
from gatefit.methods import METHODS, Method, resolve_method
from gatefit.ops.coefficients import codebook
from gatefit.ops.gate_layer import gate_layer
from gatefit.ops.implementations import Implementation, Implemented
from gatefit.ops.stack import Batch, eval_scores, train_layer, train_scores
from gatefit.randomness import stream
from gatefit.readouts import (
    READOUTS,
    GroupSum,
    LinearReadout,
    Readout,
    RegressionReadout,
    automatic_temperature,
)
from gatefit.wirings import coverage, make_wiring

if TYPE_CHECKING:
    from typing_extensions import Self


HISTORY: Final = ("seed", "wiring_seed", "wiring", "initialisation", "sigma", "target_range")
"""Fields of a configuration that say how a network began; a state_dict holds what became of it."""


class GateLayer(Implemented):
    """``gates`` two-input gates over ``inputs`` nodes, with fixed wiring and one gate method."""

    wiring: Tensor

    def __init__(
        self,
        inputs: int,
        gates: int,
        *,
        method: str | type[Method] = "multilinear-covjac",
        wiring: str | Int[Tensor, "2 gates"] = "unique",
        generator: torch.Generator,
        wiring_generator: torch.Generator | None = None,
        implementation: str | Implementation = "auto",
        **method_options: Any,
    ) -> None:
        super().__init__()
        self.inputs, self.gates = inputs, gates
        wired = make_wiring(wiring, inputs, gates, generator=wiring_generator or generator)
        self.register_buffer("wiring", wired)
        self.method = resolve_method(method)(gates, generator=generator, **method_options)
        self.implementation = implementation

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch gates"]:
        """Soft or straight-through in training, Boolean in eval."""
        if self.training:
            return train_layer(x, self, self.implementation)
        return gate_layer(x, self.wiring, self.coefficients(), implementation=self.implementation)

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """The method's in training; the deployed gates' in eval."""
        if self.training:
            return self.method.coefficients()
        latent = self.method.latent
        return codebook(latent.dtype, latent.device)[self.method.gates().long()]

    @property
    def coverage(self) -> float:
        """The fraction of inputs that some gate reads."""
        return coverage(self.wiring, self.inputs)

    def extra_repr(self) -> str:
        """Shown by ``print(network)``."""
        return f"inputs={self.inputs}, gates={self.gates}"


class LogicNetwork(Implemented):
    """``depth`` layers of ``width`` gates and a readout.

    ``seed`` draws the parameters, ``wiring_seed`` the wiring: the paper fixes one and varies the other.
    ``wiring`` is a name, or one explicit tensor (2, width) a layer. ``method`` is a name, or a class of your own.
    Regression: ``readout="regression"``, classes=1.
    """

    def __init__(
        self,
        inputs: int,
        classes: int,
        width: int,
        depth: int,
        *,
        method: str | type[Method] = "multilinear-covjac",
        wiring: str | Sequence[Int[Tensor, "2 gates"]] = "unique",
        readout: str = "group-sum",
        readout_temperature: float | str = "auto",
        target_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
        wiring_seed: int = 0,
        implementation: str | Implementation = "auto",
        dtype: torch.dtype = torch.float32,
        encoder: Encoder | None = None,
        class_names: Sequence[str] = (),
        **method_options: Any,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"a network needs at least one layer, got depth={depth}")
        if encoder is not None and encoder.bits != inputs:
            raise ValueError(
                f"the encoder makes {encoder.bits} bits, the network reads {inputs}; use inputs={encoder.bits}"
            )
        explicit = not isinstance(wiring, str)
        if explicit and len(wiring) != depth:
            raise ValueError(f"an explicit wiring needs one tensor a layer: got {len(wiring)} for depth={depth}")
        # First the readout: its error about widths should not wait for the layers to be built.
        self.readout = _make_readout(readout, width, classes, readout_temperature, target_range)
        self.inputs, self.classes, self.width, self.depth = inputs, classes, width, depth
        self.encoder, self.class_names = encoder, tuple(class_names)
        kind = resolve_method(method)
        self.layers = nn.ModuleList(
            GateLayer(
                inputs if i == 0 else width,
                width,
                method=kind,
                wiring=wiring[i] if explicit else wiring,  # type: ignore[arg-type]
                generator=stream(seed, f"parameters/{i}"),
                wiring_generator=stream(wiring_seed, f"wiring/{i}"),
                implementation=implementation,
                dtype=dtype,
                **method_options,
            )
            for i in range(depth)
        )
        self.readout.to(dtype)
        self.implementation = implementation
        self.configuration: dict[str, Any] = {
            "inputs": inputs,
            "classes": classes,
            "width": width,
            "depth": depth,
            "method": kind.name,
            "wiring": "explicit" if explicit else wiring,
            "readout": readout,
            "readout_temperature": readout_temperature,
            "target_range": list(target_range),
            "seed": seed,
            "wiring_seed": wiring_seed,
            **method_options,
        }

    @property
    def gate_layers(self) -> list[GateLayer]:
        """The layers, typed."""
        return [layer for layer in self.layers if isinstance(layer, GateLayer)]

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' floating type."""
        return self.gate_layers[0].method.latent.dtype

    def forward(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores: as trained in ``train()``, of the deployed Boolean network in ``eval()``.

        ``x`` is 0/1: a Boolean, uint8 or floating tensor (batch, inputs), or packed bits (``bits.PackedBatch``).
        """
        return train_scores(self, x) if self.training else eval_scores(self, x)

    def soft_scores(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores of the network as it is trained, without gradients, whatever the mode."""
        with torch.no_grad():
            return train_scores(self, x)

    def gates(self) -> list[UInt8[Tensor, "gates"]]:
        """The deployed gate numbers of every layer."""
        return [layer.method.gates() for layer in self.gate_layers]

    def get_extra_state(self) -> Tensor:
        """Configuration, encoder and class names as JSON bytes: a state_dict says everything about its network."""
        state = {
            "format": 1,
            "configuration": self.configuration,
            "encoder": None if self.encoder is None else self.encoder.to_spec(),
            "class_names": list(self.class_names),
        }
        return torch.frombuffer(bytearray(json.dumps(state, sort_keys=True).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Take encoder and class names from a state_dict; a network of another configuration is refused."""
        content = _parse_extra_state(state)
        self._refuse_other(content["configuration"])
        self.configuration = content["configuration"]
        self.encoder = None if content["encoder"] is None else encoder_from_spec(content["encoder"])
        self.class_names = tuple(content["class_names"])

    def _refuse_other(self, configuration: Mapping[str, Any]) -> None:
        """Refuse a state that this network would run in another way than the one that saved it."""
        mine, theirs = self._meaning(self.configuration), self._meaning(configuration)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if names:
            listed = "; ".join(f"{name} {theirs.get(name)!r} there, {mine.get(name)!r} here" for name in names)
            raise ValueError(
                f"this state_dict is of a network of another configuration: {listed}; "
                "LogicNetwork.from_state_dict(state) makes the network that it describes"
            )

    def _meaning(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """What a configuration means: defaults written out, and without what the state itself holds."""
        own = self.gate_layers[0].method
        meaning = {**(own.options() if configuration.get("method") == own.name else {}), **configuration}
        if meaning.get("readout_temperature") == "auto":
            meaning["readout_temperature"] = automatic_temperature(configuration["width"] // configuration["classes"])
        # Wiring and parameters are loaded, and so is the range of a regression: how they began is their history.
        return {name: value for name, value in meaning.items() if name not in HISTORY}

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, Any],
        *,
        implementation: str | Implementation = "auto",
        method: type[Method] | None = None,
    ) -> "Self":
        """The network that a state_dict describes: no configuration has to be remembered beside it.

        A state names its method; for one of your own give the class too, as ``method``.
        """
        if "_extra_state" not in state:
            raise ValueError(
                "this state_dict is not of a LogicNetwork: it has no _extra_state; save network.state_dict()"
            )
        content = _parse_extra_state(state["_extra_state"])
        configuration = dict(content["configuration"])
        configuration["method"] = _saved_method(configuration["method"], method)
        configuration["wiring"] = [state[f"layers.{i}.wiring"] for i in range(configuration["depth"])]
        configuration["target_range"] = tuple(configuration["target_range"])
        network = cls(**configuration, dtype=state["layers.0.method.latent"].dtype, implementation=implementation)
        network.load_state_dict(state)
        return network


def _saved_method(name: str, own: type[Method] | None) -> str | type[Method]:
    """The method of a saved network: registered, or the class that the user gives for it."""
    if own is not None and own.name != name:
        raise ValueError(
            f"this state_dict is of the method {name!r}, got method={own.__name__}, whose name is {own.name!r}"
        )
    if own is None and name not in METHODS:
        raise ValueError(
            f"this state_dict is of the method {name!r}, which is not one of {', '.join(METHODS)}; "
            "give its class: LogicNetwork.from_state_dict(state, method=YourMethod)"
        )
    return own or name


def _parse_extra_state(state: Tensor) -> dict[str, Any]:
    content = json.loads(bytes(state.cpu().numpy().tobytes()))
    if not isinstance(content, dict) or content.get("format") != 1:
        raise ValueError(f"unknown network format {content.get('format')!r}; this version of gatefit reads format 1")
    return content


def _make_readout(
    kind: str, gates: int, classes: int, temperature: float | str, target_range: tuple[float, float]
) -> Readout:
    if kind == "group-sum":
        return GroupSum(gates, classes, temperature=temperature)
    if kind == "linear":
        return LinearReadout(gates, classes, temperature=temperature)
    if kind == "regression":
        return RegressionReadout(gates, low=target_range[0], high=target_range[1])
    raise ValueError(f"unknown readout {kind!r}; choose one of {', '.join(READOUTS)}")
