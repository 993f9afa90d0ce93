"""Sweeps of training runs: a store of what is known of them, and a runner that trains what is missing."""
