"""What a first use waits for: each case in a process of its own, from an empty cache of kernels and from a full one.

    python -m benchmarks.cold_start                    the table; writes benchmarks/results/cold_start.json
    python -m benchmarks.cold_start --case predict     one case, with the functions that were compiled for it

    predict      a circuit of 986 gates is loaded and classifies one image
    prove        a random circuit of 5,000 gates is optimised and proven
    step         the first step of a training (2 x 2,000 gates, CovJac, batch 128)
    learned      the same with learned wiring
    fit          a short fit of a classifier as its defaults have it, and its circuit

Seconds are of the processor (all threads of the process, from its first instruction on, so that imports count) and of
the clock. A full cache is what the case itself left there. Python's bytecode of every module is there, as pip leaves
it: without (PYTHONDONTWRITEBYTECODE and a fresh installation) imports take one to three seconds more.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

RESULTS: Final = Path(__file__).parent / "results"


def predict() -> None:
    """The first prediction."""
    import numpy as np

    from gatefit import Circuit

    circuit = Circuit.load("mnist-1k")
    circuit.predict(np.zeros((1, 784), dtype=np.uint8))


def prove() -> None:
    """The first optimisation and proof."""
    from gatefit.bench.engine import layered
    from gatefit.circuit.optimise import optimise
    from gatefit.circuit.prove import Equivalent
    from gatefit.circuit.prove import prove as proven

    circuit = layered(784, 1250, 4, range(16))
    smaller, _ = optimise(circuit)
    assert isinstance(proven(circuit, smaller), Equivalent)


def _train(wiring: str) -> None:
    import numpy as np
    import torch

    from gatefit.network import LogicNetwork
    from gatefit.training.config import RunConfig
    from gatefit.training.data import PackedRows, TrainingData
    from gatefit.training.loop import train

    values = np.random.default_rng(0).random((256, 64)) < 0.5
    targets = torch.from_numpy(values[:, :10].argmax(1))
    data = TrainingData(PackedRows(values), targets, PackedRows(values), targets)
    network = LogicNetwork(64, 10, 2000, 2, wiring=wiring)
    config = RunConfig(dataset="digits", width=2000, depth=2, steps=2, evaluate_every=2, batch_size=128)
    train(config, network, data, should_stop=lambda: True)


def step() -> None:
    """The first training step."""
    _train("unique")


def learned() -> None:
    """The first training step of learned wiring."""
    _train("learned")


def fit() -> None:
    """The first fit of a classifier, and its circuit."""
    from sklearn.datasets import load_digits

    from gatefit import LogicGateClassifier

    x, y = load_digits(return_X_y=True)
    model = LogicGateClassifier(steps=50).fit(x, y)
    assert model.circuit_ is not None


CASES: Final[dict[str, Callable[[], None]]] = {
    "predict": predict,
    "prove": prove,
    "step": step,
    "learned": learned,
    "fit": fit,
}


def run_here(name: str) -> dict[str, Any]:
    """One case in this process."""
    from gatefit.compiled import compilations

    begun = time.perf_counter()
    with compilations() as compiled:
        CASES[name]()
    return {
        "processor": time.process_time(),
        "wall": time.perf_counter() - begun,
        "compiled": sum(map(len, compiled.seconds.values())),
        "functions": compiled.seconds,
    }


def run_apart(name: str, cache: str, bytecode: str) -> dict[str, Any]:
    """One case in a fresh process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode, "GATEFIT_CHILD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "benchmarks.cold_start", "--case", name, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append", help="this case (default: all)")
    parser.add_argument("--json", action="store_true", help="of one case in this process, with the cache as it is")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(run_here(options.case[0])))
        return
    rows: dict[str, Any] = {}
    print("| case | empty cache: processor s | wall s | compiled | full cache: processor s | wall s |")
    print("|---|---|---|---|---|---|")
    for name in options.case or CASES:
        with TemporaryDirectory() as one, TemporaryDirectory() as other, TemporaryDirectory() as bytecode:
            run_apart(name, one, bytecode)  # which leaves the bytecode
            full, empty = run_apart(name, one, bytecode), run_apart(name, other, bytecode)
        rows[name] = {"empty": empty, "full": full}
        print(
            f"| {name} | {empty['processor']:.1f} | {empty['wall']:.1f} | {empty['compiled']} "
            f"| {full['processor']:.1f} | {full['wall']:.1f} |",
            flush=True,
        )
        if options.case:
            for function, seconds in sorted(empty["functions"].items(), key=lambda each: -sum(each[1])):
                print(f"{sum(seconds):8.2f} s  {len(seconds)} x  {function}")
    if not options.case:
        (RESULTS / "cold_start.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
