"""Training: configuration, data as bits, the loop, checkpoints, run folders.

``training.config`` needs no torch, so that the command line can show every option without loading it; whatever trains
says in one sentence what to install where torch is missing.
"""
