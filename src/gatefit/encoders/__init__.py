"""Encoders: raw features in, bits out. See ``base`` for what they share and ``registry`` for their kinds."""

from gatefit.encoders.base import Encoder, Rule
from gatefit.encoders.identity import Identity
from gatefit.encoders.registry import ENCODERS, check_registered, encoder_from_spec, register_encoder
from gatefit.encoders.table import OneHot, Table
from gatefit.encoders.threshold import Thermometer, Threshold

__all__ = [
    "ENCODERS",
    "Encoder",
    "Identity",
    "OneHot",
    "Rule",
    "Table",
    "Thermometer",
    "Threshold",
    "check_registered",
    "encoder_from_spec",
    "register_encoder",
]
