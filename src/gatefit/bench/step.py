"""One training step, measured in a process of its own: ``python -m gatefit.bench.step JSON`` prints a line of JSON.

    shape       inputs, width, depth, classes, batch
    method      a gate method; "torch-feature-major" or "torch-naive-mixture", plain torch; "difflogic", "torchlogix"
    threads, repeats, device, and "fields": of a LogicNetwork, such as wiring

A time is the least of its repeats; processor seconds are of all threads, the mean of the steps. Of its own process, so
that its peak of memory is its own.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from gatefit.bench.peers import PEERS, Peer, as_peers_read
from gatefit.bench.plain_torch import FeatureMajor, NaiveMixture
from gatefit.bits import unpack_rows
from gatefit.network import LogicNetwork
from gatefit.ops.adam import Adam
from gatefit.ops.implementations import resolve
from gatefit.ops.threads import training_threads
from gatefit.training.data import BitSource, PackedRows
from gatefit.training.device import DeviceRows
from gatefit.training.loop import loss_of

STANDS_FOR: Final = {"torch-naive-mixture": "soft-mix", "torch-feature-major": "multilinear-covjac"}
"""What plain torch computes."""
_NAIVE_AT_A_TIME: Final = 1e7


def resident(field: str) -> int | None:
    """VmRSS (now) or VmHWM (the most since it was reset) of this process, in bytes; None where Linux does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), None)


def reset_peak() -> None:
    """Forget the peak reached by imports, so that the measured steps have their own."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def least(action: Callable[[], object], repeats: int, seconds: float = 5.0) -> tuple[float, float]:
    """The least time of up to ``repeats`` calls within a budget of ``seconds``, and the processor's of one of them."""
    times: list[float] = []
    begun = time.process_time()
    while len(times) < 2 or (len(times) < repeats and sum(times) < seconds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times), (time.process_time() - begun) / len(times)


def compulsory_bytes(inputs: int, width: int, depth: int, batch: int, **_: int) -> int:
    """Forward: inputs in, outputs out. Backward: inputs and gradients in, gradients out (none for the first layer)."""
    sizes = [inputs] + [width] * depth
    forward = sum(sizes[i] + sizes[i + 1] for i in range(depth))
    backward = sum(sizes[i] + sizes[i + 1] + (sizes[i] if i else 0) for i in range(depth))
    return 4 * batch * (forward + backward)


class Step:
    """A network, its data, and one step of its training."""

    def __init__(self, request: dict[str, Any]) -> None:
        whole, method = request["shape"], request["method"]
        self.device = torch.device(request.get("device", "cpu"))
        # The naive mixture keeps some forty arrays a layer: 35 GB at 64,000 gates and batch 512. An eighth of the batch
        # is measured and multiplied by eight; its time is that of arithmetic on arrays, which grows with their size.
        large = method == "torch-naive-mixture" and whole["width"] * whole["batch"] > _NAIVE_AT_A_TIME
        self.scale = 8 if large else 1
        self.shape = shape = {**whole, "batch": whole["batch"] // self.scale}
        rng = np.random.default_rng(0)
        rows = PackedRows(rng.random((4 * shape["batch"], shape["inputs"]), dtype=np.float32) < 0.5)
        targets = torch.from_numpy(rng.integers(0, shape["classes"], 4 * shape["batch"]))
        self.order = rng.permutation(4 * shape["batch"])[: shape["batch"]]
        self.model = self._model(method, request.get("fields", {}))
        self.dense: Tensor | None = None
        self.rows: BitSource = rows
        if isinstance(self.model, LogicNetwork):
            self.optimiser: torch.optim.Optimizer = Adam(self.model.parameters(), lr=0.01)
            if self.device.type != "cpu":
                self.rows = DeviceRows(rows, self.device, resolve("auto", self.device, torch.float32))
        else:
            self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.01)
            bits = torch.from_numpy(unpack_rows(rows.rows[self.order], rows.bits))
            self.dense = as_peers_read(bits, self.device)
        self.targets = targets[self.order].to(self.device)

    def _model(self, method: str, fields: dict[str, Any]) -> nn.Module:
        shape = self.shape
        sizes = shape["inputs"], shape["classes"], shape["width"], shape["depth"]
        if method in PEERS:
            temperature = max(1.0, (shape["width"] / shape["classes"]) ** 0.5)
            inputs, classes, width, depth = sizes
            return Peer(method, inputs, width, depth, classes, temperature, self.device.type).to(self.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the CIFAR shape reads part of its inputs, as it must
            network = LogicNetwork(*sizes, method=STANDS_FOR.get(method, method), **fields)
        if method not in STANDS_FOR:
            return network.to(self.device)
        kind = NaiveMixture if method == "torch-naive-mixture" else FeatureMajor
        wirings = [layer.wiring.committed() for layer in network.gate_layers]
        latents: list[Tensor] = [layer.method.get_parameter("latent") for layer in network.gate_layers]
        temperature = float(network.readout.temperature)  # type: ignore[arg-type]
        return kind(wirings, latents, shape["classes"], temperature).to(self.device)

    def forward(self) -> Tensor:
        """The loss of the batch."""
        batch = self.rows.batch(self.order) if self.dense is None else self.dense
        way = self.model.implementation if isinstance(self.model, LogicNetwork) else None
        return loss_of(self.model(batch), self.targets, None, way)

    def step(self) -> None:
        """Forward, backward, Adam."""
        self.optimiser.zero_grad(set_to_none=True)
        if not isinstance(self.model, LogicNetwork) or not self._learnt(self.model):
            self.forward().backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.wait()

    def _learnt(self, network: LogicNetwork) -> bool:
        """Whether gradients are there without autograd, as training does it where it can."""
        losses = network.learn(self.rows.batch(self.order), self.targets)
        if losses is None:
            network.expect([self.targets], [None])
            return False
        float(losses.mean())  # which training looks at
        return True

    def backward(self) -> float:
        """The time of the way back alone."""
        loss = self.forward()
        self.wait()
        begun = time.perf_counter()
        loss.backward()  # type: ignore[no-untyped-call]
        self.wait()
        return time.perf_counter() - begun

    def wait(self) -> None:
        """Until the device has done what it was asked for."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def measure(self, repeats: int) -> dict[str, float]:
        """Seconds of a step and its parts."""
        self.step()  # compile, allocate, warm up
        step, processor = least(self.step, repeats)

        def forward() -> None:
            self.forward()
            self.wait()

        times = {"step": step, "processor": processor, "forward": least(forward, repeats)[0]}
        times["backward"] = min(self.backward() for _ in range(max(2, min(repeats, 5))))
        return {name: self.scale * value for name, value in times.items()}


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """What a request asks for, in this process."""
    threads = request["threads"]
    torch.set_num_threads(threads)
    step = Step(request)
    on_device = step.device.type == "cuda"
    reset_peak()
    before = resident("VmRSS")
    if isinstance(step.model, LogicNetwork):
        with training_threads(threads), step.model.laid_out():
            times = step.measure(request["repeats"])
    else:
        times = step.measure(request["repeats"])
    most = resident("VmHWM")
    peak = None if most is None or before is None else step.scale * (most - before)
    if on_device:
        peak = torch.cuda.max_memory_allocated(step.device)
    moved = compulsory_bytes(**request["shape"])
    return {
        "method": request["method"],
        "threads": threads,
        "device": torch.cuda.get_device_name(step.device) if on_device else "cpu",
        "shape": request["shape"],
        "scaled_from_batch": step.shape["batch"],
        **times,
        "peak_bytes": peak,
        "bytes_moved": moved,
        "bandwidth": moved / times["step"],
    }


class StepError(RuntimeError):
    """A case that did not come to its end; says what it said last."""


def measured_apart(request: dict[str, Any]) -> dict[str, Any]:
    """The same in a fresh process."""
    command = [sys.executable, "-m", "gatefit.bench.step", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise StepError(said[-1] if said else f"the process ended with {done.returncode}")
    content: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return content


if __name__ == "__main__":
    print(json.dumps(measured(json.loads(sys.argv[1]))))
