"""Circuits: their meaning, their optimisation, their proof and their file."""
