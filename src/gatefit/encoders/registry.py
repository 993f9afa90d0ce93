"""Encoders by kind, and reading one back from its specification.

A file names the kind of its encoder, and only kinds that are in this table are made from it: no file can have code
imported. ``register_encoder`` puts an encoder of your own into the table, in the program that saves and in every one
that loads.
"""

from typing import Any, Final, TypeVar

from gatefit.encoders import specs
from gatefit.encoders.base import Encoder, parameter_names
from gatefit.encoders.identity import Identity
from gatefit.encoders.table import OneHot, Table
from gatefit.encoders.threshold import Thermometer, Threshold

ENCODERS: Final[dict[str, type[Encoder]]] = {
    "threshold": Threshold,
    "thermometer": Thermometer,
    "one-hot": OneHot,
    "identity": Identity,
    "table": Table,
}


EncoderClass = TypeVar("EncoderClass", bound=type[Encoder])


def register_encoder(encoder: EncoderClass) -> EncoderClass:
    """Let files hold encoders of this class, which has a ``kind`` of its own; to be used as a decorator.

    Call it before saving, and before loading in another program.
    """
    if not (isinstance(encoder, type) and issubclass(encoder, Encoder)):
        raise TypeError(f"register_encoder takes a subclass of gatefit.encoders.Encoder, got {encoder!r}")
    kind = vars(encoder).get("kind")
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"{encoder.__name__} needs a kind of its own: a class attribute such as kind = 'my-encoder'")
    if ENCODERS.setdefault(kind, encoder) is not encoder:
        raise ValueError(f"the encoder kind {kind!r} is {ENCODERS[kind].__name__} already; choose another kind")
    return encoder


def check_registered(encoder: Encoder) -> None:
    """Refuse an encoder that no file could give back."""
    if ENCODERS.get(getattr(encoder, "kind", "")) is not type(encoder):
        name = type(encoder).__name__
        raise ValueError(
            f"{name} is not a kind of encoder that can be read back from a file; give it a kind of its own and call "
            f"gatefit.encoders.register_encoder({name}) before saving, and before loading"
        )


def encoder_from_spec(spec: Any) -> Encoder:
    """The encoder that ``to_spec`` wrote; anything malformed is a ``ValueError``, whoever wrote the file."""
    spec = specs.fields(spec, ("kind", "parameters", "state"), "an encoder specification")
    kind = spec["kind"]
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise ValueError(
            f"unknown encoder kind {kind!r:.80}; known are {', '.join(ENCODERS)}; an encoder of your own is made known "
            f"with gatefit.encoders.register_encoder before loading"
        )
    known = [name for name in parameter_names(ENCODERS[kind]) if name not in ENCODERS[kind].fit_parameters]
    parameters = specs.fields(spec["parameters"], known, f"the parameters of {kind}")
    try:
        encoder = ENCODERS[kind](**parameters)
    except TypeError as error:
        raise ValueError(f"bad parameters of encoder kind {kind!r}: {error}") from error
    encoder.load_state(spec["state"])
    return encoder
