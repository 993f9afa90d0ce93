"""How fast this machine is: a training step, a circuit that runs, and the same by others; see ``gatefit bench``."""
