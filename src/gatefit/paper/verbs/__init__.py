"""The commands ``gatefit reproduce``, ``gatefit report`` and ``gatefit runs missing``."""
