"""Learned gates in words: what a gate reads, and for which classes it is true.

"x12 > 6 and not x35 > 4"    true for 96 % of class 7 and 2 % of class 0
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.gates import Gate


class GateStory(NamedTuple):
    """One gate that reads two inputs, and how often it is true for the classes that it tells apart best."""

    text: str
    most: str
    most_share: float
    least: str
    least_share: float


def in_words(gate: "Gate", a: str, b: str) -> str:
    """A gate of two named inputs: A_AND_NOT_B as "a and not b"."""
    words = gate.name.split("_")
    if "A" not in words and "B" not in words:
        words = ["A", *words, "B"]
    return " ".join({"A": a, "B": b}.get(word, word.lower()) for word in words)


def telling_gates(
    circuit: "Circuit", bits: "np.ndarray", classes: "np.ndarray", names: tuple[str, ...], count: int = 3
) -> list[GateStory]:
    """The gates over two inputs that tell two classes apart best, no two of them about the same class."""
    import numpy as np

    from gatefit.gates import DEPENDS_ON_A, DEPENDS_ON_B, TRUTH_TABLES, Gate

    reads_inputs = (circuit.operands < circuit.inputs).all(axis=0)
    both = DEPENDS_ON_A[circuit.gates] & DEPENDS_ON_B[circuit.gates]
    chosen = np.flatnonzero(reads_inputs & both)
    if not chosen.size:
        return []
    a, b = (bits[:, circuit.operands[side, chosen]].astype(np.int64) for side in (0, 1))
    true = TRUTH_TABLES[circuit.gates[chosen], 2 * a + b]
    shares = np.stack([true[classes == k].mean(axis=0) for k in np.unique(classes)])
    spread = shares.max(axis=0) - shares.min(axis=0)
    stories: dict[int, GateStory] = {}
    for i in np.argsort(-spread, kind="stable").tolist():
        most, least = int(shares[:, i].argmax()), int(shares[:, i].argmin())
        if most in stories:
            continue
        left, right = (names[node] for node in circuit.operands[:, chosen[i]].tolist())
        text = in_words(Gate(circuit.gates[chosen[i]]), left, right)
        labels = circuit.class_names[most], circuit.class_names[least]
        stories[most] = GateStory(text, labels[0], float(shares[most, i]), labels[1], float(shares[least, i]))
        if len(stories) == count:
            break
    return list(stories.values())
