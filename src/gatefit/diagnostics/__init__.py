"""Observers of a network in training."""
