"""Finding, checking and downloading the raw files of data sets, and keeping what takes long to decode.

looked for in     data_dir, $GATEFIT_DATA, the user's cache, the package itself; then downloaded to the cache
in each place     <place>/<folder>/<file> or <place>/<file>, plain or with .gz
checked           every file, against its SHA-256, or the MD5 its authors published, before it is parsed

A decoded array is kept in the cache under the digest of the files it came from, beside its own SHA-256; both are
written to temporary files and renamed. What does not match is decoded again; a cache that cannot be written is no
error.
"""

import contextlib
import gzip
import hashlib
import logging
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Shaped

from gatefit._requires import require

EMBEDDED: Final = Path(__file__).parent / "embedded"
"""Small files that are part of the package."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a file's name, the bytes downloaded so far and the bytes there are (0 if the server does not say)."""


class DatasetError(ValueError):
    """A data set's files are missing, damaged or not what they should be."""


@dataclass(frozen=True)
class RawFile:
    """One file of a data set as its authors publish it.

    ``checksums`` are "sha256:…" or "md5:…" of the file, and of its plain content if it is distributed compressed; one
    must match. Without any, the file only marks a folder. ``download`` is (address, checksum of what is there).
    """

    name: str
    checksums: tuple[str, ...]
    folders: tuple[str, ...]
    download: tuple[str, str] | None = None


Layout: TypeAlias = tuple[RawFile, ...]
"""Files that together hold a data set, all in one place."""


def checksum(data: bytes | memoryview, algorithm: str) -> str:
    """``"sha256:…"`` or ``"md5:…"`` of some bytes."""
    return f"{algorithm}:{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}"


def digest(files: Sequence[RawFile]) -> str:
    """One SHA-256 over the files' names and first checksums: what the verified files hold, however compressed."""
    lines = "".join(f"{file.checksums[0]}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def cache_dir() -> Path:
    """Where downloads are kept: the operating system's place for caches, or $XDG_CACHE_HOME."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "gatefit"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "gatefit" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "gatefit"
    return Path.home() / ".cache" / "gatefit"


@dataclass(frozen=True)
class Locator:
    """Where to look for the files of one data set, and whether they may be downloaded."""

    dataset: str
    data_dir: Path | None = None
    download: bool = False
    progress: Progress | None = None

    def places(self) -> list[tuple[Path, str]]:
        """The directories looked in, first to last, each with the reason."""
        places = [(self.data_dir, "data_dir")] if self.data_dir is not None else []
        if chosen := os.environ.get("GATEFIT_DATA"):
            places.append((Path(chosen), "$GATEFIT_DATA"))
        places.append((cache_dir(), "the cache"))
        return places

    def find(self, *layouts: Layout) -> tuple[int, list[Path]]:
        """The number of the first layout of which some place has every file, and the files' paths."""
        if self.data_dir is not None and not self.data_dir.is_dir():
            raise DatasetError(f"data_dir is not a directory: {self.data_dir}")
        for place in (*(place for place, _ in self.places()), EMBEDDED):
            for number, layout in enumerate(layouts):
                paths = [path for file in layout if (path := _present(place, file)) is not None]
                if len(paths) == len(layout):
                    return number, paths
        if self.download:
            for number, layout in enumerate(layouts):
                if all(file.download for file in layout):
                    return number, [self._fetch(file) for file in layout]
        raise DatasetError(self._not_found(layouts))

    def read(self, layout: Layout) -> list[bytes]:
        """The plain, verified contents of the files of one layout."""
        _, paths = self.find(layout)
        return [read_verified(path, file) for path, file in zip(paths, layout, strict=True)]

    def _fetch(self, file: RawFile) -> Path:
        assert file.download is not None
        url, known = file.download
        pooch = require("pooch", "train", f"downloading {self.dataset}")
        target, name = cache_dir() / file.folders[0], url.rpartition("/")[2]
        bar = _ProgressBar(name, self.progress) if self.progress else False
        try:
            with _quiet(pooch.get_logger()):
                downloader = pooch.HTTPDownloader(progressbar=bar)
                return Path(pooch.retrieve(url, known_hash=known, fname=name, path=target, downloader=downloader))
        except (OSError, ValueError) as error:
            raise DatasetError(
                f"downloading {self.dataset} from {url} (expected {known}) failed: {error}\n"
                f"Get {name} another way and put it into {target}, or where data_dir or $GATEFIT_DATA points"
            ) from error

    def _not_found(self, layouts: Sequence[Layout]) -> str:
        needed = "\n  or ".join(", ".join(file.name for file in layout) for layout in layouts)
        folders = dict.fromkeys(folder for layout in layouts for file in layout for folder in file.folders)
        places = "\n  ".join(f"{place} ({reason})" for place, reason in self.places())
        can_download = any(all(file.download for file in layout) for layout in layouts)
        advice = (
            "Allow the download (download=True), or put"
            if can_download
            else "No address to download from is known: get the files from their authors and put"
        )
        return (
            f"the files of {self.dataset} were not found\nneeded:\n  {needed}\nlooked in:\n  {places}\n"
            f"and there in the folders {', '.join(folders)}. {advice} the files, as they are or with .gz, into one of "
            f"these, or name their directory by data_dir or the environment variable GATEFIT_DATA"
        )


def read_verified(path: Path, file: RawFile) -> bytes:
    """The plain content of a file, after its checksum was found to be one of those expected."""
    data = path.read_bytes()
    compressed = path.name == f"{file.name}.gz"
    verified = not file.checksums or _matches(data, file)
    content: bytes | None = data
    if compressed:
        try:
            content = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            content = None
    if content is not None and (verified or (compressed and _matches(content, file))):
        return content
    algorithm = file.checksums[0].partition(":")[0]
    raise DatasetError(
        f"{path} is damaged or is not the file it should be: expected {' or '.join(file.checksums)}, "
        f"found {checksum(data, algorithm)} ({len(data)} bytes); replace it by the original {file.name}"
    )


def _matches(data: bytes, file: RawFile) -> bool:
    algorithms = {known.partition(":")[0] for known in file.checksums}
    return any(checksum(data, algorithm) in file.checksums for algorithm in algorithms)


def _present(place: Path, file: RawFile) -> Path | None:
    for folder in (*file.folders, ""):
        for name in (file.name, f"{file.name}.gz"):
            path = place / folder / name
            if path.is_file():
                return path
    return None


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep a library that logs to the terminal from doing so."""
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


class _ProgressBar:
    """pooch's idea of a progress bar, told on to a callback."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.progress = name, progress
        self.total = self.done = 0

    def update(self, amount: int) -> None:
        """More bytes have come; pooch counts whole chunks, so the last may reach beyond the end."""
        self.done = min(self.done + amount, self.total) if self.total else self.done + amount
        self.progress(self.name, self.done, self.total)

    def reset(self) -> None:
        """Start again, which pooch does before it fills the bar."""
        self.done = 0

    def close(self) -> None:
        """Nothing is left to do."""


def cached_array(name: str, source: str, decode: Callable[[], np.ndarray]) -> Shaped[np.ndarray, "..."]:
    """``decode()``, or what it returned when it was last called for the same ``name`` and ``source`` digest."""
    path = cache_dir() / "decoded" / f"{name}-{source[:32]}.npy"
    seal = path.with_suffix(".sha256")
    with contextlib.suppress(OSError, ValueError, EOFError):
        array = np.load(path, allow_pickle=False)
        if seal.read_text() == _array_digest(array):
            return array  # type: ignore[no-any-return]
    array = decode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, lambda temporary: np.save(temporary, array, allow_pickle=False))
        _replace(seal, lambda temporary: Path(temporary).write_text(_array_digest(array)))
    return array


def _array_digest(array: np.ndarray) -> str:
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
