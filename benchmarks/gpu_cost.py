"""A step on a GPU, on paper: bytes, operations, and the time of a kernel that does nothing but move those bytes.

    python -m benchmarks.gpu_cost             print the tables of docs/gpu.md
    python -m benchmarks.gpu_cost --write     and put them into it

Counted are main memory's bytes: every row of activations and gradients that a kernel reads or writes, once for every
time it does, as if nothing were found in a cache. What is the same for all samples (coefficients, wiring, optimiser) is
counted by the gate. Bandwidths are the makers' figures; nothing here was measured.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.gpu_kernels import TABLE

PAGE: Final = Path(__file__).parents[1] / "docs" / "gpu.md"
FLOAT, INDEX, WORD = 4, 4, 8
BATCH: Final = 128
"""Samples of a step: a tile."""
SIZES: Final = ((64_000, 6), (1_280_000, 6))
DEVICES: Final = {"A100 (80 GB, SXM)": (2.039e12, 19.5e12), "H100 (80 GB, SXM)": (3.35e12, 66.9e12)}
"""Bytes a second of main memory and float32 operations a second, from NVIDIA's data sheets."""


@dataclass(frozen=True)
class Cost:
    """Of a step: bytes by the sample and gate, by the gate alone, and operations by the sample and gate."""

    first: float
    """Bytes of a gate of the first layer, for a sample."""
    between: float
    last: float
    parameters: float
    """Bytes of a gate, whatever the batch."""
    operations: float

    def bytes(self, width: int, depth: int, batch: int) -> float:
        """Of a whole step."""
        return width * (batch * (self.first + (depth - 2) * self.between + self.last) + depth * self.parameters)

    def work(self, width: int, depth: int, batch: int) -> float:
        """Operations of a whole step."""
        return width * depth * batch * self.operations


BIT: Final = 1 / 8
ADAM: Final = 7 * FLOAT
"""Of one parameter: itself, its moments and its gradient read, itself and its moments written."""
PART: Final = 2 * 4 * FLOAT / BATCH
"""A tile's part of four sums, written and read once more."""


def ours(parameters: int, boolean: bool) -> Cost:
    """The kernels of ``ops.triton_tiles``; inputs of the first layer are bits, and get no gradient.

    forward    two inputs read, one output written
    backward   of each use of an input the other input and δ, of the input its own value, and its gradient written;
               the last layer's δ is its class's, ten rows that stay in the cache
    """
    value = BIT if boolean else FLOAT
    forward = 3 * value
    backward = 2 * (value + FLOAT) + value + FLOAT
    first = (2 * BIT + value) + (2 * BIT + FLOAT)
    # Votes read the last layer's outputs once more.
    last = forward + value + backward - 2 * FLOAT
    # Both inputs; of both uses the gate and its other input; where an input's uses begin, change sides and end.
    wiring = (2 + 2 * 2 + 3) * INDEX
    # Parameters for both ways and their gradient; four coefficients made, read forward and by two uses, and their own.
    coefficients = (3 * parameters + 4 + 4 + 2 * 4 + 4) * FLOAT + boolean
    return Cost(
        first + PART,
        forward + backward + PART,
        last + PART,
        wiring + coefficients + parameters * ADAM,
        # The polynomial; four sums; of both uses the slope and its product.
        operations=(0 if boolean else 6) + 7 + 2 * 4,
    )


def difflogic() -> Cost:
    """difflogic's CUDA kernels as published (difflogic_kernel.cu), float32, sixteen logits a gate.

    forward       two inputs read, one output written, for each sample sixteen products
    backward_w    two inputs and δ read, 32 times four partial sums a gate, which torch adds up
    backward_x    of each use of an input the other input and δ, and the gradient written; not asked of the first layer
    inputs        numbers, not bits; the last layer's outputs are summed, and δ spread, by torch
    wiring        64-bit indices
    """
    forward, weights, inputs = 3 * FLOAT, 3 * FLOAT, 2 * 2 * FLOAT + FLOAT
    partial = (2 * 32 * 4 + 4) * FLOAT
    # Softmax both ways, its result read forward and by two uses, and sixteen gradients made from four.
    logits = (2 * 16 + 3 * 16 + 3 * 16 + 16) * FLOAT
    wiring = (2 + 2 + 2 * 3 + 2) * 8
    return Cost(
        forward + weights,
        forward + weights + inputs,
        forward + weights + inputs + 2 * FLOAT,
        partial + logits + wiring + 16 * ADAM,
        operations=50 + 8 + 2 * 35,
    )


COSTS: Final = {
    "Soft-Mix, 16 logits": ours(16, boolean=False),
    "CovJac, 4 coefficients": ours(4, boolean=False),
    "STE, 4 coefficients, bits forward": ours(4, boolean=True),
    "difflogic, 16 logits": difflogic(),
}


def cost_table() -> list[str]:
    """Rows of Markdown."""
    names = " | ".join(f"{name}, ms" for name in DEVICES)
    lines = [f"| gates | kernels | GB a step | GFLOP a step | {names} |", "|---|---|---|---|" + "---|" * len(DEVICES)]
    for width, depth in SIZES:
        for name, cost in COSTS.items():
            moved, work = cost.bytes(width, depth, BATCH), cost.work(width, depth, BATCH)
            times = " | ".join(f"{1e3 * max(moved / speed, work / flops):.2f}" for speed, flops in DEVICES.values())
            lines.append(f"| {depth} x {width:,} | {name} | {moved / 1e9:.2f} | {work / 1e9:.1f} | {times} |")
    return lines


def kernel_table() -> list[str]:
    """Rows of Markdown: of each kernel the form that takes most registers."""
    import csv

    rows = list(csv.DictReader(TABLE.read_text().splitlines()))
    lines = [
        "| kernel | forms | registers, sm_80 | sm_90 | shared memory, bytes | spilled |",
        "|---|---|---|---|---|---|",
    ]
    for kernel in sorted({row["kernel"] for row in rows}):
        own = [row for row in rows if row["kernel"] == kernel]
        most = [max(int(row["registers"]) for row in own if row["target"] == target) for target in ("sm_80", "sm_90")]
        shared = max(int(row["shared_bytes"]) for row in own)
        spilled = sum(int(row["stack_bytes"]) + int(row["local_bytes"]) for row in own)
        forms = len({row["form"] for row in own})
        lines.append(f"| `{kernel}` | {forms} | {most[0]} | {most[1]} | {shared:,} | {spilled} |")
    return lines


def page(text: str) -> str:
    """The page with its tables made anew, between their marks."""
    for name, lines in (("cost", cost_table()), ("kernels", kernel_table())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1]
    return text


def main() -> None:
    """Print the tables, or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text()))
        return
    sys.stdout.write("\n".join([*cost_table(), "", *kernel_table(), ""]))


if __name__ == "__main__":
    main()
