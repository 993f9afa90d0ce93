"""What makes a model small and fast on an FPGA: accuracy against LUTs against nanoseconds, one choice at a time.

    python -m benchmarks.hardware [--target ice40] [--work DIR]

Trains digits models, prunes and pipelines them, places and routes each, and writes
benchmarks/results/hardware/tradeoff.json and .md. Rows that are there already are kept; delete the file to measure
them again.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.datasets import load_dataset
from gatefit.harden import harden
from gatefit.hardware.build import Build, Settings
from gatefit.hardware.flow import resolve_stages, verdict
from gatefit.hardware.prune import prune_readout
from gatefit.hardware.targets import TARGETS
from gatefit.training.config import RunConfig
from gatefit.training.runs import execute

RESULTS = Path(__file__).parent / "results" / "hardware"
BASE = RunConfig(dataset="digits", width=600, depth=3, steps=3000)


@dataclass(frozen=True)
class Choice:
    """One row: how the model is trained, how many outputs are kept, and how many registers a path has."""

    name: str
    config: RunConfig = BASE
    outputs: int | None = None
    stages: int | None = 0


CHOICES = (
    Choice("600 gates x 3 layers"),
    Choice("pipelined, 2 stages", stages=2),
    Choice("pipelined, 4 stages", stages=4),
    Choice("pipelined, 8 stages", stages=8),
    Choice("pruned to 400 outputs", outputs=400),
    Choice("pruned to 200 outputs", outputs=200),
    Choice("pruned to 200, 4 stages", outputs=200, stages=4),
    Choice("trained with 300 x 3", replace(BASE, width=300)),
    Choice("trained with 200 x 6", replace(BASE, width=200, depth=6)),
    Choice("stride wiring, 600 x 3", replace(BASE, wiring="stride")),
    Choice("stride wiring, pruned to 200", replace(BASE, wiring="stride"), outputs=200),
    Choice("local wiring, 600 x 3", replace(BASE, wiring="local")),
    Choice("local wiring, pruned to 200", replace(BASE, wiring="local"), outputs=200),
)


def circuit_of(choice: Choice, work: Path) -> tuple[Circuit, float, np.ndarray]:
    """The model as a circuit, its test accuracy, and the test set's bits."""
    data = load_dataset(choice.config.dataset)
    run = execute(choice.config, folder=work / choice.config.identity, threads=1)
    circuit, _ = optimise(harden(run.network), 3)
    if choice.outputs is not None:
        pruned = prune_readout(circuit, data.encoder.transform(data.x_train), data.y_train, choice.outputs)
        circuit, _ = optimise(pruned, 3)
    bits = data.encoder.transform(data.x_test)
    return circuit, float((Engine(circuit).predict(bits) == data.y_test).mean()), bits


def measure(choice: Choice, target: str, work: Path) -> dict[str, Any]:
    circuit, accuracy, bits = circuit_of(choice, work)
    (stages,) = resolve_stages(circuit, [choice.stages])
    chosen = TARGETS[target]
    folder = work / f"{target}-{choice.name.replace(' ', '-').replace(',', '')}"
    content = Build(circuit, chosen, chosen.device(chosen.default), stages, folder, Settings(bits[:100])).run()
    content |= {
        "choice": choice.name,
        "accuracy": accuracy,
        "gates": int(circuit.gates.size),
        "outputs": int(circuit.outputs.size),
        "verdict": verdict([content])["status"],
    }
    return content


def markdown(rows: list[dict[str, Any]]) -> str:
    columns: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("choice", lambda row: row["choice"]),
        ("accuracy", lambda row: f"{100 * row['accuracy']:.2f} %"),
        ("gates", lambda row: f"{row['gates']:,}"),
        ("outputs", lambda row: f"{row['outputs']:,}"),
        ("LUTs", lambda row: f"{row['core']['tables']:,}"),
        ("gates / popcount / argmax", lambda row: " / ".join(f"{p['tables']:,}" for p in row["parts"].values())),
        ("flip-flops", lambda row: f"{row['core']['flip_flops']:,}"),
        ("levels", lambda row: str(row["levels"])),
        ("MHz", lambda row: f"{row['routed']['megahertz']:.1f}"),
        ("latency", lambda row: f"{row['routed']['latency_ns']:.1f} ns"),
        ("verdict", lambda row: row["verdict"]),
    ]
    lines = ["| " + " | ".join(title for title, _ in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row) for _, cell in columns) + " |" for row in rows]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="ice40", choices=[name for name in TARGETS if TARGETS[name].routable])
    parser.add_argument("--work", type=Path, default=Path("runs/hardware"))
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "tradeoff.json"
    rows = {row["choice"]: row for row in json.loads(path.read_text())} if path.exists() else {}
    for choice in CHOICES:
        if choice.name in rows:
            continue
        rows[choice.name] = measure(choice, arguments.target, arguments.work)
        ordered = [rows[c.name] for c in CHOICES if c.name in rows]
        path.write_text(json.dumps(ordered, indent=1) + "\n")
        (RESULTS / "tradeoff.md").write_text(markdown([row for row in ordered if "routed" in row]))
        row = rows[choice.name]
        print(markdown([row]).splitlines()[-1] if "routed" in row else row, flush=True)


if __name__ == "__main__":
    main()
