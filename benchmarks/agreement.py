"""One trained network, seven ways to run it: are all predictions on the test set the same, bit for bit?

    python -m benchmarks.agreement RUN [--data-dir DIR]

Compares torch's eval, simulate, the engine, gcc-compiled C, Icarus Verilog on the exported Verilog, and the AIGER and
BLIF that ABC has read and written back, on every test sample; prints gates, the proof, and the number of mismatches.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from gatefit import optimise, prove
from gatefit.backends.aiger import from_aiger, to_aiger
from gatefit.backends.blif import from_blif, to_blif
from gatefit.backends.c.native import NativeModel
from gatefit.backends.verilog import to_verilog
from gatefit.backends.verilog.testbench import to_testbench
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import scores as simulated_scores
from gatefit.datasets import load_dataset
from gatefit.harden import harden
from gatefit.training.runs import load_network, read_config


def by_iverilog(circuit: Circuit, bits: np.ndarray, folder: Path) -> str:
    """The testbench's own verdict: every score and class of every vector, compared with simulate."""
    (folder / "model.v").write_text(to_verilog(circuit))
    (folder / "bench.v").write_text(to_testbench(circuit, bits))
    subprocess.run(["iverilog", "-o", "bench", "model.v", "bench.v"], cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[-1]


def by_abc(circuit: Circuit, folder: Path, kind: str) -> Circuit:
    """The circuit after ABC has read it, written it, and found both equivalent."""
    if kind == "aiger":
        (folder / "ours.aig").write_bytes(to_aiger(circuit, binary=True))
        script = "read_aiger ours.aig; strash; write_aiger -s theirs.aig; cec ours.aig theirs.aig"
    else:
        (folder / "ours.blif").write_text(to_blif(circuit))
        script = "read_blif ours.blif; write_blif theirs.blif; cec ours.blif theirs.blif"
    done = subprocess.run(["berkeley-abc", "-c", script], cwd=folder, check=True, capture_output=True, text=True)
    if "Networks are equivalent" not in done.stdout:
        raise RuntimeError(f"ABC does not find its own copy equivalent: {done.stdout[-500:]}")
    if kind == "aiger":
        return from_aiger((folder / "theirs.aig").read_bytes(), like=circuit)
    return from_blif((folder / "theirs.blif").read_text(), like=circuit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    config = read_config(options.run)
    dataset = load_dataset(config.dataset, data_dir=options.data_dir, **config.dataset_options())
    network = load_network(options.run / "model.safetensors")
    bits = dataset.encoder.transform(dataset.x_test)
    with torch.no_grad():
        expected = (network(torch.from_numpy(bits)) * network.readout.temperature).round().long().numpy()
    classes = expected.argmax(1)
    print(f"{config.method} {config.depth} x {config.width}: {np.mean(classes == dataset.y_test):.2%} of {len(bits)}")
    raw = harden(network)
    circuit, report = optimise(raw)
    begun = time.perf_counter()
    verdict = prove(raw, circuit)
    print(f"gates {len(raw.gates)} -> {len(circuit.gates)} in {report.seconds:.2f} s")
    print(f"proof: {type(verdict).__name__} in {time.perf_counter() - begun:.2f} s")
    mismatches = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {
            "simulate, before optimisation": lambda: simulated_scores(raw, bits),
            "simulate": lambda: simulated_scores(circuit, bits),
            "engine, before optimisation": lambda: Engine(raw).scores(bits),
            "engine": lambda: Engine(circuit).scores(bits),
            "C compiled by gcc": lambda: NativeModel(circuit, compiler="gcc").scores(bits),
            "AIGER through ABC": lambda: Engine(by_abc(circuit, folder, "aiger")).scores(bits),
            "BLIF through ABC": lambda: Engine(by_abc(circuit, folder, "blif")).scores(bits),
        }
        for way, run in ways.items():
            begun = time.perf_counter()
            differ = int((run() != expected).any(1).sum())
            mismatches += differ
            print(f"{way}: {differ} of {len(bits)} differ from torch ({time.perf_counter() - begun:.1f} s)", flush=True)
        begun = time.perf_counter()
        answer = by_iverilog(circuit, bits, folder)
        mismatches += not answer.startswith("PASS")
        print(f"Verilog by iverilog: {answer} ({time.perf_counter() - begun:.1f} s)")
    print(f"{mismatches} mismatches")
    sys.exit(bool(mismatches))


if __name__ == "__main__":
    main()
