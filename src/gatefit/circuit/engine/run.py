"""The engine: a circuit as a function on bits, fast on any processor without a compiler.

    Engine(circuit).predict(bits)     = simulate.predict_classes(circuit, bits)
    Engine(circuit).scores(bits)      = simulate.scores(circuit, bits)
    Engine(circuit).outputs(bits)     = simulate.simulate(circuit, bits)

The circuit is planned once (``program``); then every block of 512 samples goes through packing, gates and
readout (``kernels``) while its rows stay in the cache. Threads take contiguous ranges of blocks, so results
do not depend on their number. Batches of up to 64 samples take a path with rows of one word, for low latency.

Kernels that were never compiled on this machine take seconds to compile. Until a process has asked for about a second
of work, numpy does it instead (``plain``), to the same bits.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64, Shaped, UInt64

from gatefit.bits import PackedBatch, unpack
from gatefit.circuit.engine import kernels, plain
from gatefit.circuit.engine.program import plan, plan_counting
from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import check_bits
from gatefit.compiled import is_compiled

_WORD: Final = 64
_WIDE: Final = 8
_WORTH_A_THREAD: Final = 100_000
"""Gates times blocks below which a thread costs more than it saves: about 0.2 ms of work."""
_PLAIN_SECONDS: Final = 1.0
"""Of numpy's work in a process, about, before kernels are compiled: their compilation takes several times as long."""
_NO_BYTES: Final = np.empty((0, 0), np.uint8)
_NO_WORDS: Final = np.empty((0, 0), np.uint64)


_NOT_BITS: Final = (
    "the engine reads bits, got bytes other than 0 and 1; encode the features first, or compare them with a threshold"
)


class _PlainWork:
    """What a process has had done by numpy; over where kernels are compiled, or once that would have paid."""

    def __init__(self) -> None:
        self.over, self._spent, self._asked = False, 0.0, False

    def takes(self, seconds: float) -> bool:
        """Whether numpy shall do this too."""
        if not self._asked:
            self._asked, self.over = True, is_compiled(kernels.group_sums)
        self._spent += seconds
        self.over = self.over or self._spent > _PLAIN_SECONDS
        return not self.over


_PLAIN: Final = _PlainWork()


class Engine:
    """A circuit, ready to run on batches of any size; it may be called from several threads at once."""

    def __init__(self, circuit: Circuit, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}; leave it out to use every processor")
        self.circuit = circuit
        self.threads = _processors() if threads is None else threads
        self._prepared: _Prepared | None = None
        self._stretches: Int64[np.ndarray, " stretches_1"] | None = None
        self._idle: dict[int, list[_Workspace]] = {1: [], _WIDE: []}

    def __getstate__(self) -> dict[str, Any]:
        # Working memory holds views of itself, which copies would tear apart; a copy makes its own.
        return self.__dict__ | {"_idle": {1: [], _WIDE: []}}

    @property
    def evaluated_gates(self) -> int:
        """Gates that are evaluated for each block: not constants, wires, inverters or gates that nobody reads."""
        return len(self._plan().program.code)

    def _plan(self) -> "_Prepared":
        """The circuit as the kernels read it, made when they are first needed; twice by threads that ask at once."""
        if self._prepared is None:
            self._prepared = _Prepared(self.circuit)
        return self._prepared

    def _is_plain(self, bits: Any) -> bool:
        """Whether numpy is to do it, for want of compiled kernels."""
        if _PLAIN.over or self._prepared is not None:
            return False
        if self._stretches is None:
            self._stretches = plain.stretches(self.circuit, int(_PLAIN_SECONDS / plain.SECONDS_A_STRETCH))
        if self._stretches is None:
            return False
        return _PLAIN.takes(plain.cost(self.circuit, self._stretches, len(bits) if np.ndim(bits) else 1))

    def _plain_outputs(self, bits: Any) -> Bool[np.ndarray, "samples outputs"]:
        array = np.asarray(bits)
        if array.dtype == np.uint8 and array.max(initial=0) > 1:
            raise ValueError(_NOT_BITS)
        assert self._stretches is not None
        return plain.outputs(self.circuit, self._stretches, check_bits(self.circuit, array))

    def predict(self, bits: Bool[np.ndarray, "samples inputs"]) -> Int64[np.ndarray, " samples"]:
        """The class number of every sample: of equal scores the first wins."""
        readout = self.circuit.readout
        if readout.gives_value:
            raise TypeError(f"{readout.described} gives a value, not a class; use scores(bits)")
        if self._is_plain(bits):
            return np.asarray(readout.scores(self._plain_outputs(bits)).argmax(axis=1))
        if self._plan().counting is None or readout.dtype is not np.int64:
            return np.asarray(self.scores(bits).argmax(axis=1))
        source = self._bytes(bits)
        classes = np.empty(len(source[0]), np.int64)
        self._sums(source, classes.size, True, np.empty((0, 0), np.int64), classes)
        return classes

    def scores(self, bits: Bool[np.ndarray, "samples inputs"]) -> Shaped[np.ndarray, "samples classes"]:
        """The readout's scores: int64 (GroupSum), float64 (Affine, one column), float32 (Linear)."""
        if self._is_plain(bits):
            return self.circuit.readout.scores(self._plain_outputs(bits))
        if not self._plan().sums_itself:  # neither integer nor ordered sums: as the readout does it
            return self.circuit.readout.scores(self.outputs(bits))
        source = self._bytes(bits)
        return self._scores(source, len(source[0]))

    def scores_packed(
        self, words: UInt64[np.ndarray, "words inputs"], samples: int | None = None
    ) -> Shaped[np.ndarray, "samples classes"]:
        """Scores of samples that are packed already, as ``gatefit.bits.pack`` does.

        Sample s of input i is bit s % 64 of ``words[s // 64, i]``.
        """
        words, inputs = np.asarray(words), self.circuit.inputs
        if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != inputs:
            raise ValueError(
                f"the engine reads packed samples as uint64 (words, {inputs}), got {words.dtype} {words.shape}; "
                f"pack a Boolean (samples, {inputs}) matrix with gatefit.bits.pack"
            )
        capacity = _WORD * len(words)
        samples = capacity if samples is None else samples
        if not 0 <= samples <= capacity:
            raise ValueError(f"{len(words)} words hold 0 to {capacity} samples, got samples={samples}")
        if not self._plan().sums_itself:
            return self.scores(unpack(PackedBatch(np.ascontiguousarray(words[: -(-samples // _WORD)]), samples)))
        return self._scores((_read_only(_NO_BYTES), _read_only(words)), samples)

    def outputs(self, bits: Bool[np.ndarray, "samples inputs"]) -> Bool[np.ndarray, "samples outputs"]:
        """The circuit's output bits, in readout order."""
        if self._is_plain(bits):
            return self._plain_outputs(bits)
        source, plan = self._bytes(bits), self._plan()
        out = np.empty((len(source[0]), self.circuit.outputs.size), np.uint8)

        def work(begin: int, end: int, space: "_Workspace") -> None:
            kernels.output_bits(source, begin, end, plan.gates, plan.outputs, space.memory, space.unpacking, out)

        self._run(work, len(out))
        return out.view(np.bool_)

    def _scores(self, source: Any, samples: int) -> np.ndarray:
        readout = self.circuit.readout
        if self._plan().weights is not None:
            scores = np.empty((samples, readout.classes), np.float32)
            self._linear(source, samples, scores)
            return scores
        sums = np.empty((samples, readout.classes), np.int64)
        self._sums(source, samples, False, sums, np.empty(0, np.int64))
        return readout.from_totals(sums)

    def _sums(self, source: Any, samples: int, best: bool, scores: np.ndarray, classes: np.ndarray) -> None:
        plan = self._plan()

        def work(begin: int, end: int, space: "_Workspace") -> None:
            kernels.group_sums(
                source, begin, end, plan.gates, plan.counting, space.memory, space.counters, best, scores, classes
            )

        self._run(work, samples)

    def _linear(self, source: Any, samples: int, scores: np.ndarray) -> None:
        plan = self._plan()

        def work(begin: int, end: int, space: "_Workspace") -> None:
            kernels.linear_scores(
                source, begin, end, plan.gates, plan.outputs, plan.weights, space.memory, space.totals, scores
            )

        self._run(work, samples)

    def _run(self, work: Callable[[int, int, "_Workspace"], None], samples: int) -> None:
        """Do the work on contiguous ranges of blocks, one range per thread."""
        width = 1 if samples <= _WORD else _WIDE
        blocks = -(-samples // (_WORD * width))
        workers = max(1, min(self.threads, blocks, blocks * self.evaluated_gates // _WORTH_A_THREAD))
        edges = [min(samples, blocks * k // workers * _WORD * width) for k in range(workers)] + [samples]

        def part(k: int) -> None:
            with self._workspace(width) as space:
                work(edges[k], edges[k + 1], space)
                space.check()

        if workers == 1:
            part(0)
            return
        # Threads live as long as the call: nothing is left that a fork of the process would break.
        with ThreadPoolExecutor(workers - 1) as pool:
            others = [pool.submit(part, k) for k in range(1, workers)]
            part(0)
            for other in others:
                other.result()

    def _bytes(self, bits: Any) -> tuple[np.ndarray, np.ndarray]:
        array = np.asarray(bits)
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != self.circuit.inputs:
            array = check_bits(self.circuit, array)
        return _read_only(array.view(np.uint8)), _read_only(_NO_WORDS)

    @contextmanager
    def _workspace(self, width: int) -> Iterator["_Workspace"]:
        """Working memory, kept for the next call: fresh pages cost as much as the gates."""
        idle = self._idle[width]
        try:
            space = idle.pop()
        except IndexError:
            space = _Workspace(self.circuit, self._plan().program.slots, self._plan().planes, width)
        try:
            yield space
        finally:
            idle.append(space)


class _Prepared:
    """A circuit as the kernels read it."""

    def __init__(self, circuit: Circuit) -> None:
        self.program = program = plan(circuit)
        self.gates = (program.code, program.run_operations, program.run_ends)
        self.outputs = (program.output_slots, program.output_flips)
        self.counting: Any = None
        self.planes, self.weights = 0, None
        readout = circuit.readout
        floats, sums = readout.float_terms(), readout.sums()
        if floats is not None:
            self.weights = np.ascontiguousarray(floats.weights.T), floats.bias.copy()
        elif sums is not None:
            counting = plan_counting(program, sums)
            self.counting = (
                counting.rows, counting.flips, counting.ends, counting.multipliers, counting.segment_ends, counting.base
            )  # fmt: skip
            self.planes = counting.planes

    @property
    def sums_itself(self) -> bool:
        """Whether the kernels make scores too."""
        return self.counting is not None or self.weights is not None


class _Workspace:
    """What one thread writes while it runs: rows of ``width`` words, and the buffers of packing and readout."""

    def __init__(self, circuit: Circuit, slots: int, planes: int, width: int) -> None:
        samples = _WORD * width
        self.seen = np.zeros(kernels.LANES, np.uint8)
        self.memory = (_aligned_rows(slots, width), _staging(circuit.inputs), self.seen)
        self.unpacking = _staging(circuit.outputs.size)
        plane_rows = np.zeros((planes, width), np.uint64)
        counts = np.zeros(samples, np.uint8)
        self.counters = (
            (plane_rows, plane_rows.view(np.uint8), counts, counts.view(np.uint64), np.zeros(samples, np.int64)),
            np.zeros(samples, np.int64),
            np.zeros(samples, np.int64),
        )
        self.totals = (np.zeros(samples, np.float32), np.zeros((circuit.readout.classes, samples), np.float32))

    def check(self) -> None:
        """Refuse what packing noticed: bytes that are neither 0 nor 1."""
        if self.seen.max() > 1:
            self.seen[:] = 0
            raise ValueError(_NOT_BITS)


def _aligned_rows(slots: int, width: int) -> UInt64[np.ndarray, "slots width"]:
    """Rows of zeros that start at a cache line."""
    words = np.zeros(slots * width + 8, np.uint64)
    start = -(words.ctypes.data // 8) % 8
    return words[start : start + slots * width].reshape(slots, width)


def _staging(columns: int) -> tuple[np.ndarray, np.ndarray]:
    lines = np.zeros((8, 8 * -(-columns // 8)), np.uint8)
    return lines, lines.view(np.uint64)


def _read_only(array: np.ndarray) -> np.ndarray:
    """A C-ordered view that is always read-only, so that the kernels are compiled for one type only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
