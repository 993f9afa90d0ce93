"""All diagnostics of a network at one moment, as numbers that can be written as JSON.

name             what it holds                                                                        reads
gradient_norms   {c_0, c_a, c_b, c_ab, ratio, l1_ratio, by_layer: [{c_0, ...}], effective: {...}}      batches
commitment       {std_c_ab, max_abs_c_ab, by_layer: [{std_c_ab, max_abs_c_ab}]}; None without c       parameters
entropy          {mean, by_layer: [nats]}; None for the free variants                                 parameters
census           {constant, separable, weak, strong, gates: [16], by_layer: [{...}]}; None if free    parameters
distance         {mean, median, by_layer: [{mean, median}]}; None without c                           parameters
survival         {mean, by_layer: [s_l]}; None for the free variants                                  first batch
coverage         {mean, by_layer: [fraction]}                                                         first batch

A probe leaves no trace: parameters, .grad, mode and noise are as before. The same network and batches give the same
bits, whatever the number of threads and whichever diagnostics are asked for together.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from torch import nn

from gatefit.diagnostics.batch import ProbeBatch
from gatefit.diagnostics.gradients import gradient_norms
from gatefit.diagnostics.parameters import census, commitment, distance, entropy
from gatefit.diagnostics.survival import coverage, survival
from gatefit.network import LogicNetwork
from gatefit.ops.threads import training_threads

Diagnostic = Callable[[LogicNetwork, Sequence[ProbeBatch]], dict[str, Any] | None]

DIAGNOSTICS: Final[dict[str, Diagnostic]] = {
    "gradient_norms": gradient_norms,
    "commitment": lambda network, batches: commitment(network),
    "entropy": lambda network, batches: entropy(network),
    "census": lambda network, batches: census(network),
    "distance": lambda network, batches: distance(network),
    "survival": lambda network, batches: survival(network, batches[0].x),
    "coverage": lambda network, batches: coverage(network, batches[0].x),
}


def probe(
    network: nn.Module, batches: Sequence[ProbeBatch], *, names: Sequence[str] | None = None
) -> dict[str, dict[str, Any] | None]:
    """The diagnostics called ``names`` (None: all) of ``network``; a network without gates has none."""
    chosen = tuple(DIAGNOSTICS) if names is None else tuple(names)
    for name in chosen:
        if name not in DIAGNOSTICS:
            raise ValueError(f"unknown diagnostic {name!r}; choose from {', '.join(DIAGNOSTICS)}")
    if not batches:
        raise ValueError("a probe needs at least one batch; see gatefit.training.diagnostics_observer.probe_batches")
    if not isinstance(network, LogicNetwork):
        return {}
    found = {}
    # One thread for torch: its sums would round differently with another number.
    with training_threads():
        for name in chosen:
            found[name] = DIAGNOSTICS[name](network, batches)
    return found
