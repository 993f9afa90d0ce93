"""Layers of two-input gates.

    z = act(c_0 + c_a a + c_b b + c_ab ab)       train(): c = method.coefficients();   eval(): c = G[method.gates()]

a and b are the two nodes that the wiring gives the gate. With ``owners``, gate i has the parameters of row owners[i]:
many places share one gate, as in a convolution.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from gatefit.circuit.builder import CircuitBuilder
from gatefit.layers.base import Layer
from gatefit.methods import METHODS, Method, resolve_method
from gatefit.ops.coefficients import codebook
from gatefit.ops.gate_layer import gate_layer
from gatefit.ops.implementations import Implementation
from gatefit.ops.stacks import at_places
from gatefit.ops.straight_through import straight_through
from gatefit.randomness import stream
from gatefit.wirings import FixedWiring, WiringChoice, WiringContext, coverage, make_wiring

KIND: Final = "gates"
"""What a saved network calls a ``GateLayer``; a subclass, which is the user's own, goes by its class's name."""


class GateLayer(Layer):
    """``gates`` two-input gates over ``inputs`` nodes, with one wiring and one gate method.

    ``owners`` names for each gate the row of the method's parameters that it has; without it, each has its own.
    ``wiring_context`` is the layer's place in a network, for wirings that ask for it.
    """

    owners: Tensor | None
    note: Callable[[Tensor, Tensor, Tensor], None] | None = None
    """Told, in a step that its wiring watches, what the layer could read and what its gates read of it."""

    def __init__(
        self,
        inputs: int,
        gates: int,
        *,
        method: str | type[Method] = "multilinear-covjac",
        wiring: WiringChoice = "unique",
        owners: Int[Tensor, " gates"] | None = None,
        generator: torch.Generator,
        wiring_context: WiringContext | None = None,
        implementation: str | Implementation = "auto",
        dtype: torch.dtype = torch.float32,
        **method_options: Any,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, gates
        self.wiring = make_wiring(wiring, wiring_context or WiringContext(inputs, gates, generator)).to(dtype)
        self.register_buffer("owners", None if owners is None else _checked_owners(owners, gates))
        rows = gates if self.owners is None else int(self.owners.max()) + 1
        self.method = resolve_method(method)(rows, generator=generator, dtype=dtype, **method_options)
        self.method_options = method_options
        self.implementation = implementation

    @property
    def gates(self) -> int:
        """How many gates there are, shared ones counted at each place."""
        return self.outputs

    def forward(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch gates"]:
        """Soft or straight-through in training, Boolean in eval."""
        if not self.training:
            committed, c = self.wiring.committed(), self.coefficients()
            return gate_layer(x, committed, c, implementation=self.implementation)
        pairs = self.wiring.committed()
        if self.wiring.learns:
            first, second = self.wiring.read(x)
            if self.note is not None:
                self.note(x, first, second)
            # The gates' own inputs side by side: gate i reads nodes i and gates + i.
            x = torch.cat([first.T, second.T]).T
            pairs = torch.arange(2 * self.gates, dtype=torch.int32, device=x.device).view(2, self.gates)
        z = trained_output(x, pairs, self.method, owners=self.owners, implementation=self.implementation)
        if self.wiring.learns and x.requires_grad and not z.requires_grad:
            raise ValueError(no_gradient_to_inputs(self.method))
        return z

    def coefficients(self) -> Float[Tensor, "gates 4"]:
        """The method's in training; the deployed gates' in eval."""
        if self.training:
            return self.at_places(self.method.coefficients())
        latent = self.method.latent
        return codebook(latent.dtype, latent.device)[self.at_places(self.method.gates()).long()]

    def at_places(self, rows: Shaped[Tensor, "rows ..."]) -> Shaped[Tensor, "gates ..."]:
        """What belongs to each gate, from what belongs to each row of the method's parameters."""
        return at_places(rows, self.owners)

    def lower(self, builder: CircuitBuilder, inputs: Int[np.ndarray, " inputs"]) -> Int[np.ndarray, " gates"]:
        """Gate for gate."""
        kinds = self.at_places(self.method.gates()).cpu().numpy()
        return builder.gates(kinds, inputs[self.wiring.committed().cpu().numpy()])

    def configuration(self) -> dict[str, Any]:
        """Sizes, the method and its options; parameters, wiring and owners are in the state itself."""
        return {
            "kind": KIND if type(self) is GateLayer else type(self).__name__,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "method": self.method.name,
            **self.method_options,
        }

    @classmethod
    def from_configuration(
        cls,
        configuration: Mapping[str, Any],
        state: Mapping[str, Tensor],
        *,
        method: type[Method] | None = None,
    ) -> "GateLayer":
        """A layer of this configuration that the state fits; ``state`` is the part of a state_dict that is its own.

        ``method`` is a class of the user's own, for the layers that name it.
        """
        name = configuration["method"]
        options = {k: v for k, v in configuration.items() if k not in ("kind", "inputs", "outputs", "method")}
        pairs = saved_pairs(state)
        if pairs is None:
            raise ValueError(
                "this state_dict is of a wiring of your own; give the layers: "
                "LogicNetwork.from_state_dict(state, layers=[...])"
            )
        return cls(
            configuration["inputs"],
            configuration["outputs"],
            method=saved_method(name, method if method is not None and method.name == name else None),
            wiring=pairs,
            owners=state.get("owners"),
            generator=stream(0, "overwritten by the state"),
            dtype=state["method.latent"].dtype,
            **options,
        )

    @property
    def coverage(self) -> float:
        """The fraction of inputs that some gate reads."""
        return coverage(self.wiring.committed(), self.inputs)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Before wirings were modules, a layer's state held the pairs themselves.
        if isinstance(self.wiring, FixedWiring) and f"{prefix}wiring" in state_dict:
            state_dict[f"{prefix}wiring.pairs"] = state_dict.pop(f"{prefix}wiring")
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Shown by ``print(network)``."""
        return f"inputs={self.inputs}, gates={self.gates}"


def no_gradient_to_inputs(method: Method) -> str:
    """What to say where a wiring that learns has nothing to learn from."""
    return (
        f"the method {method.name!r} gives no gradient to the inputs of its gates, so a wiring that learns cannot: "
        "use a fixed one (wiring='unique'), or a method whose output is differentiable in what its gates read"
    )


def trained_output(
    x: Float[Tensor, "batch inputs"],
    pairs: Int[Tensor, "2 gates"],
    method: Method,
    *,
    owners: Int[Tensor, " gates"] | None = None,
    implementation: Implementation,
) -> Float[Tensor, "batch gates"]:
    """What gates give as they are trained: the polynomial of this step's coefficients, or a gate committed to.

    With a continuous surrogate the gates' value, and the gradient of the surrogate's polynomial.
    """
    if not method.continuous_backward:
        c = at_places(method.coefficients(), owners)
        return method.activation(gate_layer(x, pairs, c, implementation=implementation))
    gates, c = (at_places(part, owners) for part in method.sample())
    # Not z + (ĉ·ψ - z).detach(): that sum rounds, and a 1 must stay a 1.
    z = gate_layer(x, pairs, c, implementation=implementation)
    snapped = codebook(c.dtype, c.device)[gates.long()]
    return straight_through(z, gate_layer(x.detach(), pairs, snapped, implementation=implementation))


def saved_method(name: str, own: type[Method] | None) -> str | type[Method]:
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


def saved_pairs(state: Mapping[str, Tensor]) -> Tensor | None:
    """The fixed wiring in the state of a gate layer, of this version or an earlier one; None: there is none."""
    return state.get("wiring.pairs", state.get("wiring"))


def _checked_owners(owners: Tensor, gates: int) -> Int[Tensor, " gates"]:
    if owners.is_floating_point() or owners.dtype == torch.bool:
        raise TypeError(f"owners must hold integers, got {owners.dtype}")
    if owners.shape != (gates,):
        raise ValueError(f"owners must have shape (gates,) = ({gates},), got {tuple(owners.shape)}")
    if int(owners.min()) < 0:
        raise ValueError(f"owners are rows of parameters, numbered from 0; got {int(owners.min())}")
    return owners.to(torch.int32).contiguous()
