"""A digits model on microcontrollers: bytes of flash and RAM, and instructions for one image.

    python -m benchmarks.microcontroller

Sizes are those of the model's object file, by ``size``. Instructions are those of one prediction from raw pixels: on
this machine counted by valgrind, on ARM by qemu-user, which runs the Thumb code of the Cortex-M build one instruction
at a time. Tools that are not installed are left out.
"""

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from gatefit.backends.c.arduino import TARGETS, measured_sizes, to_arduino
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Equivalent, prove
from gatefit.datasets import Dataset, load_dataset

NAME = "digits"
SHAPES = ((500, 3), (1000, 4))
"""Width and depth of the networks."""
STEPS = 1500
REPEATS = 20

# Ends by a Linux system call, so that it needs no library; qemu-user and valgrind both run it or its twin.
HARNESS = """
#include "digits_model.h"
static const uint8_t images[COUNT][DIGITS_FEATURES] = {IMAGES};
int run(int repeats) {
    int i, sum = 0;
    for (i = 0; i < repeats; i++)
        sum += digits_predict_features(images[i % COUNT]);
    return sum;
}
#ifdef __arm__
void _start(void) {
    register int r0 __asm__("r0") = run(REPEATS);
    register int r7 __asm__("r7") = 1;
    __asm__ volatile("svc 0" :: "r"(r0), "r"(r7));
    for (;;) {}
}
#else
int main(void) { return run(REPEATS) & 1; }
#endif
"""


def trained(dataset: Dataset, width: int, depth: int, folder: Path) -> Circuit:
    """A trained network's circuit, optimised and proven equal."""
    from gatefit.harden import harden
    from gatefit.training.config import RunConfig
    from gatefit.training.runs import execute

    config = RunConfig(dataset="digits", width=width, depth=depth, steps=STEPS, evaluate_every=STEPS)
    circuit = harden(execute(config, folder=folder, dataset=dataset, threads=1).network)
    smaller, _ = optimise(circuit, 3)
    assert isinstance(prove(circuit, smaller), Equivalent)
    return replace(smaller, metadata={})


def instructions(folder: Path, target: str, flags: str) -> float | None:
    """Instructions of one prediction: the difference between many and none, divided; None without the tools."""
    compiler, options = TARGETS[target]
    arm = compiler.startswith("arm")
    counter = "qemu-arm" if arm else "valgrind"
    if not (shutil.which(compiler) and shutil.which(counter)):
        return None
    counts = []
    for repeats in (0, REPEATS):
        program = folder / "program"
        extra = ["-nostdlib", "-static", "-ffreestanding"] if arm else []
        sources = [str(folder / "harness.c"), str(folder / f"{NAME}_model.c")]
        command = [compiler, flags, *options, *extra, f"-DREPEATS={repeats}", *sources, "-lgcc", "-o", str(program)]
        subprocess.run(command, check=True)
        counts.append(_count_arm(program, folder) if arm else _count_here(program))
    return (counts[1] - counts[0]) / REPEATS


def _count_arm(program: Path, folder: Path) -> int:
    log = folder / "trace"
    command = ["qemu-arm", "-singlestep", "-d", "exec,nochain", "-D", str(log), str(program)]
    subprocess.run(command, check=False)  # the exit code is the answer
    with log.open() as lines:
        return sum(line.startswith("Trace") for line in lines)


def _count_here(program: Path) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found is not None, run.stderr
    return int(found[1])


def measure(circuit: Circuit, dataset: Dataset, folder: Path) -> dict[str, object]:
    """Everything about one circuit."""
    files = to_arduino(circuit, NAME)
    for name, content in files.items():
        (folder / name).write_text(content)
    images = dataset.x_test[:REPEATS]
    rows = ",".join("{" + ",".join(map(str, row)) + "}" for row in images.tolist())
    harness = HARNESS.replace("IMAGES", rows).replace("COUNT", str(len(images)))
    (folder / "harness.c").write_text(harness)
    predictions = circuit.predict(dataset.x_test)
    expected = np.array(dataset.class_names, dtype=object)[dataset.y_test]
    return {
        "gates": int(circuit.gates.size),
        "accuracy": float((predictions == expected).mean()),
        "sizes": [size._asdict() for size in measured_sizes(files)],
        "instructions": {
            f"{target}, {flags}": instructions(folder, target, flags)
            for target in ("cortex-m0", "cortex-m4", "this machine")
            for flags in ("-Os", "-O2")
        },
    }


def report(rows: list[dict]) -> str:
    """The results as a page."""
    lines = [
        "# A digits model on microcontrollers",
        "",
        "One image of 8 x 8 pixels at a time, encoder and readout included; written by `gatefit export --to arduino`,",
        "measured by `python -m benchmarks.microcontroller`. Sizes are of the model's object file (`-Os`),",
        "instructions of one prediction from raw pixels, counted by qemu-user (Cortex-M) and valgrind (x86-64).",
        "",
    ]
    for row in rows:
        lines += [f"## {row['gates']:,} gates, test accuracy {100 * row['accuracy']:.2f} %", ""]
        lines += [
            "| target | flash bytes | RAM bytes | instructions, -Os | instructions, -O2 |",
            "|---|---|---|---|---|",
        ]
        for size in row["sizes"]:
            counts = [row["instructions"].get(f"{size['target']}, {flags}") for flags in ("-Os", "-O2")]
            shown = " | ".join("not counted" if count is None else f"{count:,.0f}" for count in counts)
            target = "x86-64" if size["target"] == "this machine" else size["target"]
            lines.append(f"| {target} | {size['flash']:,} | {size['ram']:,} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    dataset = load_dataset("digits")
    rows = []
    for width, depth in SHAPES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            circuit = trained(dataset, width, depth, folder / "run")
            rows.append({"width": width, "depth": depth, **measure(circuit, dataset, folder)})
    text = report(rows)
    print(text)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "microcontroller.json").write_text(json.dumps(rows, indent=1) + "\n")
    (results / "microcontroller.md").write_text(text)


if __name__ == "__main__":
    main()
