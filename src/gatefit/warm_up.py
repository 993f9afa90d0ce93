"""Every kernel compiled once, by small examples of what each part of gatefit does, so that nobody waits for it later.

    run        circuits that predict
    prove      circuits that are optimised and proven
    verify     questions to circuits
    train      networks of every method, with fixed and learned wiring; moved images

Machine code is kept as ``compiled`` says. It serves the processor that it was made for: NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES name another, for an image that is made on one machine and run on many.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from gatefit.compiled import Compilations, compilations


@dataclass(frozen=True)
class WarmedUp:
    """What a part took."""

    part: str
    functions: dict[str, list[float]]
    """By name: the processor's seconds, one number for each set of types."""
    folders: frozenset[str]
    """Where they are kept."""
    skipped: str = ""
    """Why nothing was done, if so."""

    @property
    def seconds(self) -> float:
        """Of the processor, in all."""
        return sum(map(sum, self.functions.values()))


def _run() -> None:
    from gatefit.bench.engine import layered
    from gatefit.bits import pack
    from gatefit.circuit.engine import Engine
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.readout import Affine, Linear

    grouped = layered(70, 40, 2)
    outputs, rng = grouped.outputs, np.random.default_rng(0)
    linear = Linear(rng.normal(size=(3, len(outputs))).astype(np.float32), np.zeros(3, np.float32))
    for readout in (grouped.readout, Affine(len(outputs)), linear):
        circuit = Circuit(grouped.inputs, grouped.gates, grouped.operands, outputs, readout)
        engine = Engine(circuit, threads=1)
        assert engine.evaluated_gates  # prepared: from here on its kernels answer, and not numpy
        for samples in (1, 600):
            bits = rng.random((samples, 70)) < 0.5
            engine.outputs(bits)
            engine.scores(bits)
            engine.scores_packed(pack(bits).words, samples)
            if not readout.gives_value:
                engine.predict(bits)


def _prove() -> None:
    from gatefit.bench.engine import layered
    from gatefit.circuit.optimise import optimise
    from gatefit.circuit.prove import prove

    circuit = layered(60, 200, 4, range(16))
    smaller, _ = optimise(circuit)
    prove(circuit, smaller)


def simple_circuits() -> None:
    """What the first circuit needs: simplified, proven and run. Not the deeper levels of ``optimise``."""
    from gatefit.bench.engine import layered
    from gatefit.circuit.optimise import optimise
    from gatefit.circuit.prove import prove

    circuit = layered(60, 200, 4, range(16))
    smaller, _ = optimise(circuit, 1)
    prove(circuit, smaller)
    _run()


def _verify() -> None:
    from gatefit import verify
    from gatefit.bench.engine import layered

    circuit = layered(12, 60, 3, range(16))
    row = np.zeros(12, bool)
    verify.robust(circuit, row, changes=2)
    verify.closest(circuit, row)
    verify.explain(circuit, row)
    verify.never_matters(circuit, 0)
    wide = layered(200, 60, 3, range(16))
    verify.robust(wide, np.zeros(200, bool), changes=2)


def _train() -> None:
    import torch

    from gatefit.encoders import Thermometer
    from gatefit.methods import METHODS
    from gatefit.network import LogicNetwork
    from gatefit.training.augmentation import Augmentation, AugmentedImages
    from gatefit.training.config import RunConfig
    from gatefit.training.data import TrainingData, bit_source
    from gatefit.training.loop import train

    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(200, 64), dtype=np.uint8)
    encoder = Thermometer(3, low=0, high=255).fit(images)
    targets = torch.from_numpy(rng.integers(0, 10, 200))
    source = bit_source(images, encoder)
    data = TrainingData(source, targets, source, targets)
    moved = AugmentedImages(images, (8, 8, 1), encoder, Augmentation(shift=1, rotate=5.0))
    config = RunConfig(dataset="digits", width=200, depth=2, steps=6, batch_size=128)
    narrow: dict[str, Any] = {"width": 200, "depth": 2}
    # Kernels are compiled for how layers read: along trails in the first, row by row in the third, both in the last.
    ways: list[dict[str, Any]] = [
        narrow,
        {**narrow, "wiring": "learned"},
        {**narrow, "votes": "all"},
        {"width": (200, 200, 100)},
    ]
    cases = [({**way, "method": name}, data) for name in METHODS for way in ways]
    halves: dict[str, Any] = {**narrow, "precision": "half"}
    on_bits = next(name for name, kind in METHODS.items() if kind.boolean_forward)
    cases += [
        ({**halves, "method": name, "wiring": wiring}, data)
        for name in (config.method, on_bits)
        for wiring in ("unique", "learned")
    ]
    cases += [({**narrow, "method": config.method}, TrainingData(moved, targets, source, targets))]
    for fields, own in cases:
        train(config, LogicNetwork(encoder.bits, 10, **fields), own)


PARTS: Final[dict[str, tuple[Callable[[], None], str | None]]] = {
    "run": (_run, None),
    "prove": (_prove, None),
    "verify": (_verify, None),
    "train": (_train, "torch"),
}
"""By name: an example of each part, and what must be installed for it."""


def warm_up(parts: tuple[str, ...] = tuple(PARTS)) -> Iterator[WarmedUp]:
    """Compile what these parts need and is not there yet, one after another."""
    for part in parts:
        example, needs = PARTS[part]
        if needs is not None and find_spec(needs) is None:
            yield WarmedUp(part, {}, frozenset(), f"{needs} is not installed")
            continue
        found: Compilations
        with compilations() as found, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of examples as small as these
            example()
        yield WarmedUp(part, found.seconds, frozenset(found.folders))


def as_content(done: WarmedUp) -> dict[str, Any]:
    """For JSON."""
    return {
        "part": done.part,
        "compiled": sum(map(len, done.functions.values())),
        "processor_seconds": round(done.seconds, 3),
        "functions": {name: [round(value, 3) for value in times] for name, times in done.functions.items()},
        "folders": sorted(done.folders),
        "skipped": done.skipped,
    }
