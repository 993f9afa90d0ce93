"""Fewer outputs a class: the popcount, often the largest part on an FPGA, shrinks with what it counts.

    score_k = offset_k + Σ_i y_i     ->     score_k = offset_k + b_k + Σ_kept y_i

A dropped output is replaced by its mean over the training set; b_k is the sum of these means, balanced between the
classes by Newton steps and rounded. It costs nothing. Which outputs to drop is decided in
rounds, by the second-order change of the cross-entropy L of softmax(score / τ):

    ΔL_i = Σ_s  -g_s d_si + h_s d_si² / 2         d = (y - ȳ) / τ      g = p_k - [label = k]      h = p_k (1 - p_k)

Fewer outputs spread less: as in training (``readouts``), where τ = 0.36 √(gates a class), the temperature follows the
root of their number. The circuit keeps the last one, so that probabilities are as sharp as before:

    τ' = τ √(outputs kept / outputs before)

The function changes: this is a choice to be measured, not an optimisation to be proven.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, Int64

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import unmeasured
from gatefit.circuit.readout import GroupSum, Readout

ROUND: Final = 0.05
NEWTON_STEPS: Final = 2
"""Part of the outputs dropped before probabilities are computed again, and steps that balance the classes then."""


def prune_readout(
    circuit: Circuit,
    bits: Bool[np.ndarray, "samples inputs"],
    labels: Int64[np.ndarray, " samples"],
    outputs: int,
) -> Circuit:
    """The circuit with ``outputs`` of its output bits, those that the training samples miss least.

    Gates that nobody reads any more are still there: run ``circuit.optimise.optimise`` on the result.
    """
    readout = circuit.readout
    sums = readout.sums()
    groups = None if sums is None or readout.gives_value else sums.owners(readout.outputs)
    if sums is None or groups is None:
        raise ValueError(f"only a group-sum readout can be pruned, got {type(readout).__name__}")
    if not readout.classes <= outputs <= circuit.outputs.size:
        raise ValueError(
            f"outputs must be from {readout.classes} (one a class) to the {circuit.outputs.size} that there are, "
            f"got {outputs}"
        )
    if len(bits) != len(labels) or not len(bits):
        raise ValueError(f"pruning needs training samples with labels, got {len(bits)} samples, {len(labels)} labels")
    values = Engine(circuit).outputs(bits)
    kept, biases, temperature = _choose(values, readout, groups, np.asarray(labels), outputs)
    offsets = sums.offsets + np.rint(biases).astype(np.int64)
    # A class is chosen by differences: the smallest offset can be zero, and sums need fewer bits.
    narrower = GroupSum(groups[kept], offsets - offsets.min(), temperature)
    return replace(circuit, outputs=circuit.outputs[kept], readout=narrower, metadata=unmeasured(circuit.metadata))


def _choose(
    values: Bool[np.ndarray, "samples outputs"],
    readout: Readout,
    groups: Int32[np.ndarray, " outputs"],
    labels: Int64[np.ndarray, " samples"],
    target: int,
) -> tuple[Int64[np.ndarray, " kept"], Float64[np.ndarray, " classes"], float]:
    """The outputs to keep, in order, what is added to the classes' scores for the others, and the temperature."""
    means = values.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = values.astype(np.float32) - means
    classes = readout.classes
    wanted = np.eye(classes, dtype=np.float32)[labels]
    scores = readout.scores(values).astype(np.float32)
    kept = np.arange(values.shape[1])
    biases = np.zeros(classes)
    while True:
        temperature = readout.temperature * float(np.sqrt(kept.size / values.shape[1]))
        for _ in range(NEWTON_STEPS):
            slope, curve = _derivatives(scores / temperature, wanted)
            # Half a step, since all classes move at once; bounded where hardly any sample is undecided.
            step = -0.5 * slope.mean(axis=0) / np.maximum(curve.mean(axis=0), 1e-6)
            step = temperature * np.clip(step, -2, 2)
            scores += step
            biases += step
        if kept.size == target:
            return kept, biases, temperature
        change = np.empty(kept.size)
        for k in range(classes):
            own = groups[kept] == k
            d = centred[:, kept[own]] / temperature
            change[own] = -(slope[:, k] @ d) + 0.5 * (curve[:, k] @ (d * d))
        sizes = np.bincount(groups[kept], minlength=classes)
        count = min(kept.size - target, max(1, int(ROUND * kept.size)))
        leaving: list[int] = []
        for i in np.argsort(change, kind="stable").tolist():
            k = groups[kept[i]]
            if sizes[k] > 1:  # a class that nothing counts for could never change its score
                leaving.append(i)
                sizes[k] -= 1
            if len(leaving) == count:
                break
        for i in leaving:
            scores[:, groups[kept[i]]] -= centred[:, kept[i]]
            biases[groups[kept[i]]] += means[kept[i]]
        kept = np.delete(kept, leaving)


def _derivatives(
    logits: Float32[np.ndarray, "samples classes"], wanted: Float32[np.ndarray, "samples classes"]
) -> tuple[Float32[np.ndarray, "samples classes"], Float32[np.ndarray, "samples classes"]]:
    """Of the cross-entropy by each logit: first, and second (its diagonal)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    return probabilities - wanted, probabilities * (1 - probabilities)
