"""Networks that route: every gate reads neighbours, so that wires are short on a chip.

    python -m benchmarks.local_wiring --out mnist-local.gate [--width 1600] [--depth 6] [--steps 15000] [--reach 40]

    position    layer gates lie on a line, inputs along a curve through the image that keeps neighbours together
    hidden      gate i reads two nodes of the layer below at most ``reach`` places from its own position
    last        the gates of a class are spread over the whole line, so that every class sees the whole image

Trains on MNIST with the configuration's defaults, hardens and optimises; prints the accuracy of the circuit.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from gatefit.backends.engine import Engine
from gatefit.circuit.optimise import optimise
from gatefit.datasets import load_dataset
from gatefit.harden import harden
from gatefit.network import LogicNetwork
from gatefit.training.config import RunConfig
from gatefit.training.loop import train
from gatefit.training.runs import training_data


def hilbert(side: int) -> np.ndarray:
    """The pixels of an image of ``side`` x ``side`` in the order of a Hilbert curve over the next power of two."""
    size = 1 << (side - 1).bit_length()
    order = []
    for d in range(size * size):
        x = y = 0
        t, s = d, 1
        while s < size:
            rx = 1 & (t // 2)
            ry = 1 & (t ^ rx)
            if ry == 0:
                if rx == 1:
                    x, y = s - 1 - x, s - 1 - y
                x, y = y, x
            x, y = x + s * rx, y + s * ry
            t //= 4
            s *= 2
        if x < side and y < side:
            order.append(y * side + x)
    return np.array(order)


def near(positions: np.ndarray, nodes: int, reach: int, rng: np.random.Generator) -> np.ndarray:
    """Two different nodes of a line of ``nodes`` near each position in [0, 1), at most ``reach`` places away."""
    centre = (positions * nodes).astype(int)
    low = np.clip(centre - reach, 0, max(0, nodes - 2 * reach - 1))
    span = min(nodes, 2 * reach + 1)
    first = rng.integers(0, span, centre.size)
    second = (first + rng.integers(1, span, centre.size)) % span
    return np.stack([low + first, low + second])


def local_wirings(side: int, width: int, depth: int, classes: int, reach: int, seed: int) -> list[torch.Tensor]:
    """One wiring a layer."""
    rng = np.random.default_rng(seed)
    line = (np.arange(width) + 0.5) / width
    across = np.tile((np.arange(width // classes) + 0.5) / (width // classes), classes)
    wirings = []
    for layer in range(depth):
        positions = across if layer == depth - 1 else line
        nodes = side * side if layer == 0 else width
        pairs = near(positions, nodes, max(2, reach * nodes // width), rng)
        wirings.append(hilbert(side)[pairs] if layer == 0 else pairs)
    return [torch.as_tensor(pairs, dtype=torch.int32) for pairs in wirings]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--reach", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = load_dataset("mnist")
    config = RunConfig(
        dataset="mnist", width=arguments.width, depth=arguments.depth, steps=arguments.steps, schedule="cosine"
    )
    network = LogicNetwork(
        data.encoder.bits,
        10,
        arguments.width,
        arguments.depth,
        wiring=local_wirings(28, arguments.width, arguments.depth, 10, arguments.reach, arguments.seed),
        seed=arguments.seed,
        encoder=data.encoder,
        class_names=data.class_names,
        **config.method_options(),
    )
    train(config, network, training_data(config, data), threads=1)
    circuit, _ = optimise(harden(network), 3)
    metadata = {**circuit.metadata, "dataset": "mnist", "dataset_options": "{}"}
    replace(circuit, metadata=metadata).save(arguments.out)
    right = Engine(circuit).predict(data.encoder.transform(data.x_test)) == data.y_test
    print(f"{arguments.out}: {circuit.gates.size:,} gates, test accuracy {100 * right.mean():.2f} %")


if __name__ == "__main__":
    main()
