"""One benchmark case in its own process: ``python -m benchmarks.case JSON`` prints one line of JSON."""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.rivals import FeatureMajor, NaiveMixture
from gatefit.bits import unpack_rows
from gatefit.network import LogicNetwork
from gatefit.ops.adam import Adam
from gatefit.ops.threads import training_threads
from gatefit.training.data import PackedRows
from gatefit.training.loop import loss_of


def resident(field: str) -> int:
    """VmRSS (now) or VmHWM (the most since it was reset) of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak() -> None:
    """Forget the peak reached by imports, so that the measured steps have their own."""
    Path("/proc/self/clear_refs").write_text("5")


def least(action: Callable[[], object], repeats: int, seconds: float = 5.0) -> float:
    """The least time of up to ``repeats`` calls, within a budget of ``seconds``."""
    times: list[float] = []
    while len(times) < 2 or (len(times) < repeats and sum(times) < seconds):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return min(times)


def compulsory_bytes(inputs: int, width: int, depth: int, batch: int, **_: int) -> int:
    """Forward: inputs in, outputs out. Backward: inputs and gradients in, gradients out (none for the first layer)."""
    sizes = [inputs] + [width] * depth
    forward = sum(sizes[i] + sizes[i + 1] for i in range(depth))
    backward = sum(sizes[i] + sizes[i + 1] + (sizes[i] if i else 0) for i in range(depth))
    return 4 * batch * (forward + backward)


def main() -> None:
    request = json.loads(sys.argv[1])
    whole, method, threads = request["shape"], request["method"], request["threads"]
    # The naive mixture keeps some forty arrays a layer: 35 GB at 64,000 gates and batch 512. An eighth of the batch is
    # measured and multiplied by eight; its time is that of arithmetic on arrays, which grows with their size.
    scale = 8 if method == "torch-naive-mixture" and whole["width"] * whole["batch"] > 1e7 else 1
    shape = {**whole, "batch": whole["batch"] // scale}
    rng = np.random.default_rng(0)
    rows = PackedRows(rng.random((4 * shape["batch"], shape["inputs"]), dtype=np.float32) < 0.5)
    targets = torch.from_numpy(rng.integers(0, shape["classes"], 4 * shape["batch"]))
    rival = method.startswith("torch-")
    name = {"torch-naive-mixture": "soft-mix", "torch-feature-major": "multilinear-covjac"}.get(method, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the CIFAR shape reads part of its inputs, as it must
        network = LogicNetwork(shape["inputs"], shape["classes"], shape["width"], shape["depth"], method=name)
    model: torch.nn.Module = network
    if rival:
        kind = NaiveMixture if method == "torch-naive-mixture" else FeatureMajor
        layers = network.gate_layers
        model = kind(
            [layer.wiring.committed() for layer in layers],
            [layer.method.latent for layer in layers],
            shape["classes"],
            network.readout.temperature,
        )
    torch.set_num_threads(threads)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01) if rival else Adam(model.parameters(), lr=0.01)
    order = rng.permutation(4 * shape["batch"])[: shape["batch"]]
    dense = torch.from_numpy(unpack_rows(rows.rows[order], rows.bits)).float() if rival else None
    y = targets[order]
    reset_peak()
    before = resident("VmRSS")

    def batch() -> object:
        return dense if rival else rows.batch(order)

    def forward() -> torch.Tensor:
        return loss_of(model(batch()), y, None)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        optimiser.step()

    def backward_only() -> float:
        loss = forward()
        begun = time.perf_counter()
        loss.backward()
        return time.perf_counter() - begun

    def measure() -> dict:
        step()  # compile, allocate, warm up
        repeats = request["repeats"]
        times = {"step": least(step, repeats), "forward": least(forward, repeats)}
        times["backward"] = min(backward_only() for _ in range(max(2, min(repeats, 5))))
        return times

    if rival:
        times = measure()
    else:
        with training_threads(threads):
            times = measure()
    times = {name: scale * value for name, value in times.items()}
    moved = compulsory_bytes(**whole)
    result = {
        "method": method,
        "threads": threads,
        "shape": whole,
        "scaled_from_batch": shape["batch"],
        **times,
        "peak_bytes": scale * (resident("VmHWM") - before),
        "bytes_moved": moved,
        "bandwidth": moved / times["step"],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
