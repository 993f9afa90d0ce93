"""Fewer outputs a class: the popcount, often the largest part on an FPGA, shrinks with what it counts.

    score_k = offset_k + Σ_i y_i     ->     score_k = offset_k + round(Σ_dropped ȳ_i) + Σ_kept y_i

A dropped output is replaced by its mean over the training set, so that classes stay balanced. Which to drop is
decided in rounds, by the second-order change of the cross-entropy L of softmax(score / τ):

    ΔL_i = Σ_s  -g_s d_si + h_s d_si² / 2         d = (y - ȳ) / τ      g = p_k - [label = k]      h = p_k (1 - p_k)

The function changes: this is a choice to be measured, not an optimisation to be proven.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Int64

from gatefit.backends.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum

ROUND: Final = 0.05
"""Part of the outputs dropped before probabilities are computed again."""


def prune_readout(
    circuit: Circuit,
    bits: Bool[np.ndarray, "samples inputs"],
    labels: Int64[np.ndarray, "samples"],
    outputs: int,
) -> Circuit:
    """The circuit with ``outputs`` of its output bits, those that the training samples miss least.

    Gates that nobody reads any more are still there: run ``circuit.optimise.optimise`` on the result.
    """
    readout = circuit.readout
    if not isinstance(readout, GroupSum):
        raise ValueError(f"only a group-sum readout can be pruned, got {type(readout).__name__}")
    if not readout.classes <= outputs <= circuit.outputs.size:
        raise ValueError(
            f"outputs must be from {readout.classes} (one a class) to the {circuit.outputs.size} that there are, "
            f"got {outputs}"
        )
    if len(bits) != len(labels) or not len(bits):
        raise ValueError(f"pruning needs training samples with labels, got {len(bits)} samples, {len(labels)} labels")
    values = Engine(circuit).outputs(bits)
    kept, means = _choose(values, readout, np.asarray(labels), outputs)
    dropped = np.setdiff1d(np.arange(circuit.outputs.size), kept)
    moved = np.bincount(readout.groups[dropped], means[dropped], minlength=readout.classes)
    narrower = GroupSum(readout.groups[kept], readout.offsets + np.rint(moved).astype(np.int64), readout.temperature)
    return replace(circuit, outputs=circuit.outputs[kept], readout=narrower)


def _choose(
    values: Bool[np.ndarray, "samples outputs"], readout: GroupSum, labels: Int64[np.ndarray, "samples"], target: int
) -> tuple[Int64[np.ndarray, "kept"], Float32[np.ndarray, "outputs"]]:
    """The outputs to keep, in order, and every output's mean."""
    means = values.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = values.astype(np.float32) - means
    groups = readout.groups
    rows = np.arange(len(labels))
    scores = readout.scores(values).astype(np.float32)
    kept = np.arange(values.shape[1])
    while kept.size > target:
        # Fewer outputs spread less: the temperature shrinks with their root, as it grew with it in training.
        temperature = readout.temperature * np.sqrt(kept.size / values.shape[1])
        logits = scores / temperature
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = powers / powers.sum(axis=1, keepdims=True)
        slope, curve = probabilities.copy(), probabilities * (1 - probabilities)
        slope[rows, labels] -= 1
        change = np.empty(kept.size)
        for k in range(readout.classes):
            own = groups[kept] == k
            d = centred[:, kept[own]] / temperature
            change[own] = -(slope[:, k] @ d) + 0.5 * (curve[:, k] @ (d * d))
        sizes = np.bincount(groups[kept], minlength=readout.classes)
        count = min(kept.size - target, max(1, int(ROUND * kept.size)))
        leaving = []
        for i in np.argsort(change, kind="stable").tolist():
            k = groups[kept[i]]
            if sizes[k] > 1:  # a class that nothing counts for could never change its score
                leaving.append(i)
                sizes[k] -= 1
            if len(leaving) == count:
                break
        for i in leaving:
            scores[:, groups[kept[i]]] -= centred[:, kept[i]]
        kept = np.delete(kept, leaving)
    return kept, means
