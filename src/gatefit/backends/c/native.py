"""Exported C, compiled and called: for tests and measurements where a C compiler is at hand.

    NativeModel(circuit).predict(bits) = simulate.predict_classes(circuit, bits)

Predicting needs none of this: ``engine`` is faster and needs no compiler.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64, Num, Shaped

from gatefit.backends.c.export import Style, to_c
from gatefit.backends.comparators import FeatureType
from gatefit.circuit.ir import Circuit
from gatefit.circuit.simulate import check_bits

_FEATURES = {"float": np.float32, "double": np.float64}
_NAME = "model"


def compile_c(text: str, name: str, library: Path, flags: Sequence[str] = ("-O2",), compiler: str = "cc") -> None:
    """Compile exported C text into a shared library; what the compiler says is in the error."""
    program = shutil.which(compiler)
    if program is None:
        raise FileNotFoundError(f"no C compiler {compiler!r} found; install one, or use gatefit.circuit.engine")
    source = library.with_suffix(".c")
    source.write_text(text, encoding="ascii")
    command = [program, "-std=c99", f"-D{name.upper()}_IMPLEMENTATION", "-shared", "-fPIC", *flags, "-o", str(library)]
    run = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{compiler} failed on the exported C:\n{run.stderr[-2000:]}")


class NativeModel:
    """A circuit compiled from its exported C and loaded into this process."""

    def __init__(
        self,
        circuit: Circuit,
        style: Style = "auto",
        flags: Sequence[str] = ("-O2",),
        compiler: str = "cc",
        feature_type: FeatureType = "float",
    ) -> None:
        self.circuit = circuit
        self._score, self._feature = circuit.readout.dtype, _FEATURES[feature_type]
        # The library may be unlinked once it is loaded; where it may not be, the folder outlives the model.
        with tempfile.TemporaryDirectory(prefix="gatefit-", ignore_cleanup_errors=True) as folder:
            library = Path(folder) / f"{_NAME}.so"
            compile_c(to_c(circuit, _NAME, style, feature_type=feature_type), _NAME, library, flags, compiler)
            self._library = ctypes.CDLL(str(library))

    def scores(self, bits: Bool[np.ndarray, "samples inputs"]) -> Shaped[np.ndarray, "samples classes"]:
        """Scores by the batch function."""
        words, samples = self._pack(bits)
        scores = np.empty((64 * words.shape[1], self.circuit.readout.classes), self._score)
        self._call("scores_batch", words, ctypes.c_size_t(words.shape[1]), scores)
        return scores[:samples]

    def predict(self, bits: Bool[np.ndarray, "samples inputs"]) -> Int64[np.ndarray, " samples"]:
        """Classes by the batch function."""
        words, samples = self._pack(bits)
        classes = np.empty(64 * words.shape[1], np.int32)
        self._call("predict_batch", words, ctypes.c_size_t(words.shape[1]), classes)
        return classes[:samples].astype(np.int64)

    def scores_one_by_one(self, bits: Bool[np.ndarray, "samples inputs"]) -> Shaped[np.ndarray, "samples classes"]:
        """Scores by the function for a single sample."""
        lines = check_bits(self.circuit, bits).astype(np.uint8)
        scores = np.empty((len(lines), self.circuit.readout.classes), self._score)
        for line, score in zip(lines, scores, strict=True):
            self._call("scores", line, score)
        return scores

    def predict_one_by_one(self, bits: Bool[np.ndarray, "samples inputs"]) -> Num[np.ndarray, " samples"]:
        """Classes (of a regression: values) by the function for a single sample."""
        lines = check_bits(self.circuit, bits).astype(np.uint8)
        return np.array([self._answer("predict", "value", line) for line in lines])

    def predict_features(self, features: Num[np.ndarray, "samples features"]) -> Num[np.ndarray, " samples"]:
        """Classes (of a regression: values) from raw features, one sample at a time."""
        lines = np.ascontiguousarray(features, dtype=self._feature)
        return np.array([self._answer("predict_features", "value_features", line) for line in lines])

    def self_test(self) -> int:
        """How many of the embedded answers differ."""
        return int(self._library[f"{_NAME}_self_test"]())

    def _answer(self, classifier: str, regressor: str, line: np.ndarray) -> float:
        regression = self.circuit.readout.gives_value
        function = self._library[f"{_NAME}_{regressor if regression else classifier}"]
        function.restype = ctypes.c_double if regression else ctypes.c_int
        return function(ctypes.c_void_p(line.ctypes.data))  # type: ignore[no-any-return]

    def _call(self, function: str, *arguments: Any) -> None:
        pointers = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        self._library[f"{_NAME}_{function}"](*pointers)

    def _pack(self, bits: np.ndarray) -> tuple[np.ndarray, int]:
        bits = check_bits(self.circuit, bits)
        padded = np.zeros((self.circuit.inputs, -(-len(bits) // 64) * 64), np.uint8)
        padded[:, : len(bits)] = bits.T
        return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64), len(bits)
