"""The pipeline: passes, again and again, until they find nothing (or next to nothing, in large circuits).

    level 0    nothing
    level 1    structural passes: constants, wires, inverters, duplicates, dead gates
    level 2    + rewrite_cuts: cones of four leaves by the smallest chain of gates
    level 3    + merge_equivalent: functionally equal nodes, found by simulation and confirmed by SAT

The scores stay the same for every input. ``gatefit.prove`` checks that independently.
"""

import time
from dataclasses import dataclass
from typing import Final

from gatefit.circuit.ir import Circuit
from gatefit.circuit.passes import STRUCTURAL, Pass, merge_equivalent, rewrite_cuts

DEFAULT_LEVEL: Final = 3
MAX_ROUNDS: Final = 20
WORTH_A_ROUND: Final = 5_000
"""Another round is worth its time if the last one removed more than one gate in so many."""

_STAGES: Final[tuple[tuple[Pass, ...], ...]] = ((), (rewrite_cuts,), (rewrite_cuts, merge_equivalent))
"""The deeper passes of each stage, which ends before the next one starts, so that slow passes see small circuits."""


@dataclass(frozen=True)
class Step:
    """One application of one pass."""

    name: str
    gates_before: int
    gates_after: int
    seconds: float


@dataclass(frozen=True)
class Report:
    """What each pass did, in order."""

    gates_before: int
    gates_after: int
    steps: tuple[Step, ...] = ()

    @property
    def seconds(self) -> float:
        """The time of all steps."""
        return sum(step.seconds for step in self.steps)

    def by_pass(self) -> dict[str, tuple[int, float]]:
        """For each pass the gates it removed in all and the seconds it took, in order of first use."""
        totals: dict[str, tuple[int, float]] = {}
        for step in self.steps:
            removed, seconds = totals.get(step.name, (0, 0.0))
            totals[step.name] = (removed + step.gates_before - step.gates_after, seconds + step.seconds)
        return totals

    def __str__(self) -> str:
        lines = [f"{'pass':<18} {'gates removed':>13} {'seconds':>8}"]
        lines += [f"{name:<18} {removed:>13,} {seconds:>8.3f}" for name, (removed, seconds) in self.by_pass().items()]
        lines.append(f"{self.gates_before:,} gates -> {self.gates_after:,} gates in {self.seconds:.3f} s")
        return "\n".join(lines)


def optimise(circuit: Circuit, level: int = DEFAULT_LEVEL) -> tuple[Circuit, Report]:
    """A circuit with the same scores and as few gates as the passes of ``level`` can find, and what they did."""
    if level not in range(len(_STAGES) + 1):
        raise ValueError(f"level must be 0, 1, 2 or 3, got {level!r}")
    before = int(circuit.gates.size)
    steps: list[Step] = []
    found_nothing: dict[Pass, int] = {}  # among how many gates: a pass need not look at the same ones again
    for stage in _STAGES[:level]:
        for _ in range(MAX_ROUNDS):
            gates = circuit.gates.size
            for optimisation in stage:
                if found_nothing.get(optimisation) != circuit.gates.size:
                    circuit = _timed(optimisation, circuit, steps)
                    if steps[-1].gates_before == steps[-1].gates_after:
                        found_nothing[optimisation] = steps[-1].gates_after
            if not stage or circuit.gates.size < gates:
                for optimisation in STRUCTURAL:
                    circuit = _timed(optimisation, circuit, steps)
            if gates - circuit.gates.size <= gates // WORTH_A_ROUND:
                break
    return circuit, Report(before, int(circuit.gates.size), tuple(steps))


def _timed(optimisation: Pass, circuit: Circuit, steps: list[Step]) -> Circuit:
    start = time.perf_counter()
    result = optimisation(circuit)
    seconds = time.perf_counter() - start
    steps.append(Step(optimisation.__name__, int(circuit.gates.size), int(result.gates.size), seconds))
    return result
