"""Encoders by kind, and reading one back from its specification."""

from typing import Any, Final

from gatefit.encoders import specs
from gatefit.encoders.base import Encoder, parameter_names
from gatefit.encoders.identity import Identity
from gatefit.encoders.onehot import OneHot
from gatefit.encoders.table import Table
from gatefit.encoders.threshold import Thermometer, Threshold

ENCODERS: Final[dict[str, type[Encoder]]] = {
    "threshold": Threshold,
    "thermometer": Thermometer,
    "one-hot": OneHot,
    "identity": Identity,
    "table": Table,
}


def encoder_from_spec(spec: Any) -> Encoder:
    """The encoder that ``to_spec`` wrote; anything malformed is a ``ValueError``, whoever wrote the file."""
    spec = specs.fields(spec, ("kind", "parameters", "state"), "an encoder specification")
    kind = spec["kind"]
    if not isinstance(kind, str) or kind not in ENCODERS:
        raise ValueError(f"unknown encoder kind {kind!r}; choose one of {', '.join(ENCODERS)}")
    parameters = specs.fields(spec["parameters"], parameter_names(ENCODERS[kind]), f"the parameters of {kind}")
    try:
        encoder = ENCODERS[kind](**parameters)
    except TypeError as error:
        raise ValueError(f"bad parameters of encoder kind {kind!r}: {error}") from error
    encoder.load_state(spec["state"])
    return encoder
