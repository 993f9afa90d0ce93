"""Training: configuration, loop, checkpoints, metrics."""
