"""What a network in training does with its gates: gradients, commitment, entropy, census, survival, coverage.

Each is a function of the network and a few batches that leaves no trace in either; ``probe`` computes all of them.
"""
