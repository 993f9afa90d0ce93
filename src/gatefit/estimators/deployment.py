"""From a trained network to what is deployed: hardened when first predicted with, optimised when first asked for.

scores(bits)          by the engine, on the hardened or the optimised circuit: both compute what network.eval() does
probabilities(bits)   those of the circuit: softmax of the same scores, over the temperature that was calibrated
circuit               optimised; the scores of every input are the same
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Counterexample, Equivalent, Undecided, prove
from gatefit.circuit.provenance import stamped
from gatefit.harden import harden
from gatefit.network import LogicNetwork


class Deployment:
    """A network's circuit and engine, each made once."""

    def __init__(
        self,
        network: LogicNetwork,
        threads: int | None,
        *,
        labels: Shaped[np.ndarray, " classes"] | None = None,
        proof_seconds: float | None = None,
        said: Mapping[str, str] | None = None,
    ) -> None:
        self._network, self._threads = network, threads
        self._labels, self._proof_seconds = labels, proof_seconds
        self._said = dict(said or {})
        self._hardened: Circuit | None = None
        self._optimised: Circuit | None = None
        self._engine: Engine | None = None

    @property
    def circuit(self) -> Circuit:
        """The optimised and proven circuit, with encoder, names and readout."""
        if self._optimised is None:
            self._optimised = _proven(self._harden(), self._proof_seconds)
            self._engine = None
        return self._optimised

    @property
    def made(self) -> Circuit | None:
        """The optimised circuit, if it was asked for already."""
        return self._optimised

    def scores(self, bits: Bool[np.ndarray, "samples bits"]) -> Float64[np.ndarray, "samples classes"]:
        """The readout's scores, divided by the temperature that they were trained with."""
        engine = self._made_engine()
        trained = self._network.readout.trained_temperature
        return engine.scores(bits).astype(np.float64) / (
            engine.circuit.readout.temperature if trained is None else trained
        )

    def probabilities(self, bits: Bool[np.ndarray, "samples bits"]) -> Float64[np.ndarray, "samples classes"]:
        """Class probabilities, to the bit those of ``circuit``."""
        engine = self._made_engine()
        return engine.circuit.readout.probabilities(engine.scores(bits))

    def _made_engine(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._optimised or self._harden(), threads=self._threads)
        return self._engine

    def _harden(self) -> Circuit:
        if self._hardened is None:
            self._hardened = stamped(harden(self._network, self._labels), self._said)
        return self._hardened

    def __getstate__(self) -> dict[str, Any]:
        # An engine is made of buffers and plans: it is made again where it is needed.
        return {**self.__dict__, "_engine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What was saved before there was a limit, or before circuits said where they are from, has none.
        self.__dict__.update({"_proof_seconds": None, "_said": {}, **state})


def _proven(spec: Circuit, seconds: float | None) -> Circuit:
    """The circuit optimised, where that is proven to change nothing; else as it is.

    Without ``seconds`` only the solver's conflicts are counted, so that the same network gives the same circuit.
    """
    impl, _ = optimise(spec)
    match prove(spec, impl, timeout=seconds):
        case Equivalent():
            return impl
        case Counterexample(bits):
            shown = "".join(map(str, bits.astype(int)))
            raise RuntimeError(
                f"the optimised circuit differs from the network on the input {shown}; please report this"
            )
        case Undecided(reason):
            warnings.warn(
                f"circuit_ is not optimised, because that could not be proven to change nothing: {reason} "
                f"(proof_seconds, or the limits of gatefit.prove for gatefit.optimise(model.circuit_))",
                stacklevel=4,
            )
            return spec
