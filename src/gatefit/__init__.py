"""gatefit: fit logic gate networks, deploy them as proven combinational circuits."""

__version__ = "0.1.0"
