"""The engine on one core: gate evaluations a second, packing and readout included, beside straight-line C by gcc.

    python -m benchmarks.engine

The 48,000-gate network has MNIST's shape, 784 -> 6 x 8,000, not optimised; its gates are the ten that depend on both
inputs, so that none folds away. A second row draws all sixteen gates and counts those that are really evaluated.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from gatefit.backends.c.native import NativeModel
from gatefit.bench.engine import LOGIC, layered, least
from gatefit.circuit.engine import Engine
from gatefit.training.machine import machine


def main() -> None:
    rng = np.random.default_rng(0)
    bits = rng.random((65536, 784)) < 0.3
    rows: dict[str, object] = {"processor": machine()["cpu"]}
    for name, gates in (("two-input gates", LOGIC), ("all sixteen gates", list(range(16)))):
        circuit = layered(784, 8000, 6, gates)
        for threads in (1, 2):
            engine = Engine(circuit, threads=threads)
            engine.predict(bits[:512])
            seconds = least(lambda e=engine: e.predict(bits))
            rows[f"48,000 {name}, {threads} threads"] = {
                "images_per_second": len(bits) / seconds,
                "gate_evaluations_per_second": engine.evaluated_gates * len(bits) / seconds,
                "evaluated_gates": engine.evaluated_gates,
            }
    engine = Engine(layered(784, 8000, 6, LOGIC), threads=1)
    engine.predict(bits[:1])
    rows["one sample, 48,000 gates, microseconds"] = 1e6 * least(lambda: engine.predict(bits[:1]), 200)
    if shutil.which("gcc"):
        small = layered(784, 200, 5, LOGIC)
        native = NativeModel(small, style="straight", flags=("-O3", "-march=native"), compiler="gcc")
        native.predict(bits[:64])
        seconds = least(lambda: native.predict(bits), 5)
        rows["gcc -O3, 1,000 gates, straight-line C, gate evaluations per second"] = 1000 * len(bits) / seconds
        own = Engine(small, threads=1)
        own.predict(bits[:512])
        seconds = least(lambda: own.predict(bits))
        rows["engine, the same 1,000 gates, gate evaluations per second"] = own.evaluated_gates * len(bits) / seconds
    million = layered(784, 102_000, 10, LOGIC)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.gate"
        million.save(path, overwrite=True)
        code = f"""
begun = time.perf_counter()
import numpy as np
from gatefit import Circuit
circuit = Circuit.load({str(path)!r})
circuit.predict(np.zeros((1, 784), dtype=bool))
print(time.perf_counter() - begun)
"""
        runs = [
            float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
            for _ in range(3)
        ]
    rows["1,020,000 gates, new process: import, load, prepare, first prediction, seconds"] = min(runs)
    for name, value in rows.items():
        print(f"{name}: {value}")
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "engine.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
