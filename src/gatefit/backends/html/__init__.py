"""A page that runs the circuit in a browser: ``page`` writes it, ``inputs`` says how its inputs are shown and set."""

from gatefit.backends.html.inputs import Samples
from gatefit.backends.html.page import to_html

__all__ = ["Samples", "to_html"]
