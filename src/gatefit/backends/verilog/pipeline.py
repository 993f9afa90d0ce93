"""Where a pipeline's registers go, and the text of wires and registers.

    steps       gate levels, then adder levels of the group sums, then comparison levels of the argmax
    stages      s registers on every path, the last one at the outputs; each stage takes an equal share of the delay

A value of step v lies in stage #{cuts before v}. Whoever reads it from a later stage reads it through registers.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

GATE_DELAY: Final = 1.0
ADDER_DELAY: Final = 1.5
COMPARISON_DELAY: Final = 3.0
"""Rough delays in units of a gate; a comparison is one carry chain and one multiplexer."""


@dataclass(frozen=True)
class Pipeline:
    """After which gate, adder and comparison levels there are registers."""

    gate_levels: int
    adder_levels: int
    comparison_levels: int
    cuts: tuple[int, ...]
    """Steps, counted from 1, that are followed by registers."""

    @property
    def latency(self) -> int:
        """Clock cycles from inputs to outputs."""
        return len(self.cuts)

    @property
    def delay(self) -> float:
        """Of all steps together, in units of a gate."""
        return (
            GATE_DELAY * self.gate_levels + ADDER_DELAY * self.adder_levels + COMPARISON_DELAY * self.comparison_levels
        )

    def stage_of_gate(self, level: int) -> int:
        """Registers on the way from the inputs to a gate of this level."""
        return bisect_left(self.cuts, level)

    @property
    def gate_stages(self) -> int:
        """Registers before the readout."""
        return bisect_left(self.cuts, self.gate_levels + 1)

    @property
    def adder_cuts(self) -> tuple[int, ...]:
        """Adder levels followed by registers, counted from 1."""
        return self._within(self.gate_levels, self.adder_levels)

    @property
    def comparison_cuts(self) -> tuple[int, ...]:
        """Comparison levels followed by registers, counted from 1."""
        return self._within(self.gate_levels + self.adder_levels, self.comparison_levels)

    def _within(self, before: int, count: int) -> tuple[int, ...]:
        return tuple(cut - before for cut in self.cuts if before < cut <= before + count)


def plan_pipeline(stages: int, gate_levels: int, adder_levels: int, comparison_levels: int) -> Pipeline:
    """Spread ``stages`` registers over the steps so that the stages are about equally slow."""
    delays = [GATE_DELAY] * gate_levels + [ADDER_DELAY] * adder_levels + [COMPARISON_DELAY] * comparison_levels
    if not 0 <= stages <= len(delays):
        raise ValueError(
            f"pipeline_stages must be from 0 to {len(delays)} for this circuit ({gate_levels} gate levels, "
            f"{adder_levels} adder levels, {comparison_levels} comparison levels), got {stages}"
        )
    cuts: list[int] = []
    passed, target = 0.0, sum(delays) / max(stages, 1)
    for step, delay in enumerate(delays, start=1):
        passed += delay
        remaining = len(delays) - step
        open_stages = stages - len(cuts)
        # A stage ends when its share is reached; it must end when there is one step left for each later stage.
        share = passed + delay / 2 >= target * (len(cuts) + 1) and remaining >= open_stages - 1
        if open_stages and (step == len(delays) or (open_stages > 1 and share) or remaining == open_stages - 1):
            cuts.append(step)
    return Pipeline(gate_levels, adder_levels, comparison_levels, tuple(cuts))


@dataclass
class Body:
    """The statements of a module: wires as they come, registers collected into one clocked block."""

    lines: list[str] = field(default_factory=list)
    clocked: list[str] = field(default_factory=list)
    _delayed: dict[tuple[str, int], str] = field(default_factory=dict)

    def wire(self, name: str, expression: str, width: int = 1, signed: bool = False) -> str:
        """A named value."""
        self.lines.append(f"    wire {_range(width, signed)}{name} = {expression};")
        return name

    def delayed(self, name: str, cycles: int, width: int = 1, signed: bool = False) -> str:
        """The value ``cycles`` clock cycles ago; constants never change."""
        if cycles == 0 or "'" in name:
            return name
        if (name, cycles) not in self._delayed:
            source = self.delayed(name, cycles - 1, width, signed)
            register = f"{name.replace('[', '_').replace(']', '')}_q{cycles}"
            self.lines.append(f"    reg {_range(width, signed)}{register};")
            self.clocked.append(f"        {register} <= {source};")
            self._delayed[name, cycles] = register
        return self._delayed[name, cycles]

    def text(self) -> str:
        """All statements."""
        block = ["    always @(posedge clk) begin", *self.clocked, "    end"] if self.clocked else []
        return "\n".join([*self.lines, *block])


def _range(width: int, signed: bool) -> str:
    return ("signed " if signed else "") + (f"[{width - 1}:0] " if width > 1 or signed else "")


def number(value: int, width: int) -> str:
    """A sized literal; negative numbers in two's complement."""
    return f"{width}'d{value % 2**width}"
