"""The version, where every module can read it: ``gatefit.__version__`` is the same."""

VERSION = "0.2.0"
