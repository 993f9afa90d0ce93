"""Decoded arrays kept in the user's cache, for raw files that take long to decode.

An array is stored under the digest of the files it came from, beside its own SHA-256; both are written to temporary
files and renamed. What does not match is decoded again. A cache that cannot be written is no error.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from gatefit.datasets.files import cache_dir


def cached_array(name: str, source: str, decode: Callable[[], np.ndarray]) -> Shaped[np.ndarray, "..."]:
    """``decode()``, or what it returned when it was last called for the same ``name`` and ``source`` digest."""
    path = cache_dir() / "decoded" / f"{name}-{source[:32]}.npy"
    seal = path.with_suffix(".sha256")
    with contextlib.suppress(OSError, ValueError, EOFError):
        array = np.load(path, allow_pickle=False)
        if seal.read_text() == _sha256(array):
            return array  # type: ignore[no-any-return]
    array = decode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, lambda temporary: np.save(temporary, array, allow_pickle=False))
        _replace(seal, lambda temporary: Path(temporary).write_text(_sha256(array)))
    return array


def _sha256(array: np.ndarray) -> str:
    header = f"{array.dtype.str} {array.shape}\n".encode()
    return hashlib.sha256(header + hashlib.sha256(np.ascontiguousarray(array).data).digest()).hexdigest()


def _replace(path: Path, write: Callable[[str], object]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    try:
        write(temporary)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
