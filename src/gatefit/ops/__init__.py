"""The one polynomial that every method evaluates, and its implementations."""

from gatefit._requires import require

require("torch", "train", "training")
