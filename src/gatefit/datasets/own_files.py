"""Files of users, each read by what its name says it is, and refused where its content is something else.

.csv .tsv .txt .data   text: a line a sample (``delimited``)
.parquet .pq           by polars or pyarrow, whichever is there
.npy                   a matrix, samples by features
.npz                   a matrix and arrays beside it, one of them the target; or arrays that are a column each
folder                 images of one size, a folder a class (Pillow)
"""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Shaped, UInt8

from gatefit._requires import require
from gatefit.datasets.delimited import Csv
from gatefit.datasets.files import DatasetError
from gatefit.datasets.raw_table import RawTable, nearest

IMAGES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
CLASS: Final = "class"
"""What the folders of images say, as a column."""
_TEXT: Final = (".csv", ".tsv", ".tab", ".txt", ".data", "")

_CONTENT: Final = (
    (b"PAR1", "a Parquet file", ".parquet"),
    (b"\x93NUMPY", "a NumPy array", ".npy"),
    (b"\x89PNG", "an image", ""),
    (b"\xff\xd8\xff", "an image", ""),
    (b"\x1f\x8b", "a gzip archive", ""),
    (b"SQLite format 3", "an SQLite database", ""),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", ""),
)
"""How files begin that are not text, what they are, and the suffix that says so."""


def read_table(path: Path, *, header: bool = True, target: str | None = None) -> RawTable:
    """The file or folder as columns; ``target`` chooses among the arrays of an .npz file."""
    if path.is_dir():
        return _images(path)
    _check_there(path)
    suffix = path.suffix.lower()
    readers: dict[str, Callable[[], RawTable]] = {
        **dict.fromkeys(_TEXT, lambda: Csv(path, header=header)),
        **dict.fromkeys((".parquet", ".pq"), lambda: _parquet(path)),
        ".npy": lambda: _npy(path),
        ".npz": lambda: _npz(path, target),
    }
    if suffix not in readers:
        raise DatasetError(
            f"{path} is of a kind that is not read here; give a table as .csv, .parquet, .npz or .npy, or a folder of "
            f"images with a folder a class{_hint(suffix)}"
        )
    _check_content(path, suffix)
    return readers[suffix]()


def content_digest(path: Path) -> str:
    """What identifies the content: SHA-256 of a file, or of the images of a folder with their names."""
    _check_there(path)
    result = hashlib.sha256()
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in IMAGES and file.is_file():
                result.update(f"{file.relative_to(path).as_posix()}\n".encode())
                result.update(hashlib.sha256(file.read_bytes()).digest())
    else:
        with path.open("rb") as stream:
            while part := stream.read(1 << 20):
                result.update(part)
    return f"sha256:{result.hexdigest()}"


def _check_there(path: Path) -> None:
    if not path.exists():
        raise DatasetError(f"there is no file {path}{_neighbour(path)}")


def _neighbour(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f": there is no folder {folder}"
    import difflib

    near = difflib.get_close_matches(path.name, [each.name for each in folder.iterdir()], 1)
    return f"; did you mean {folder / near[0]}?" if near else ""


def _hint(suffix: str) -> str:
    if suffix in (".xlsx", ".xls", ".ods"):
        return "; save the sheet as CSV first"
    if suffix in (".gz", ".zip", ".bz2", ".xz"):
        return "; unpack it first"
    return "; a single image is no table" if suffix in IMAGES else ""


def _check_content(path: Path, suffix: str) -> None:
    """Refuse a file that begins as one of another kind does."""
    with path.open("rb") as file:
        start = file.read(4096)
    found = next(((what, right) for magic, what, right in _CONTENT if start.startswith(magic)), None)
    if start.startswith(b"PK\x03\x04"):
        workbook = b"[Content_Types].xml" in start or b"xl/" in start
        found = ("an Excel workbook", "") if workbook else ("an .npz or zip archive", ".npz")
    elif found is None and b"\x00" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        found = ("a binary file", "")
    kind = {".pq": ".parquet"}.get(suffix, suffix)
    if found is None:
        if kind in _TEXT:
            return
        what = "empty" if not start else "text" if _is_text(start) else "none"
        raise DatasetError(
            f"{path} is not what its suffix says: {_expected(kind)}, and its content is {what}"
            + ("; if it is a table, call it .csv" if what == "text" else "")
        )
    what, right = found
    if right != kind:
        advice = f"call it {path.with_suffix(right).name}" if right else "save it as CSV in UTF-8"
        raise DatasetError(f"{path} is not what its suffix says: its content is {what}; {advice}")


def _is_text(start: bytes) -> bool:
    try:
        start[:1000].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > 990
    return b"\x00" not in start


def _expected(suffix: str) -> str:
    return {".parquet": "a Parquet file begins with PAR1", ".npy": "a NumPy array begins with its name"}.get(
        suffix, "an .npz file is a zip archive"
    )


def _parquet(path: Path) -> RawTable:
    from importlib.util import find_spec

    if find_spec("polars") is not None:
        import polars

        try:
            frame = polars.read_parquet(path)
        except (polars.exceptions.PolarsError, OSError) as error:
            raise DatasetError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error
        return RawTable(path, list(frame.columns), list(frame.iter_columns()))
    if find_spec("pyarrow") is not None:
        from pyarrow import ArrowException, parquet

        try:
            arrow = parquet.read_table(path)
        except (ArrowException, OSError) as error:
            raise DatasetError(f"{path} cannot be read as Parquet: {_first_line(error)}") from error
        return RawTable(path, list(arrow.column_names), [column.to_pylist() for column in arrow.columns])
    require("polars", "parquet", "reading Parquet files")
    raise AssertionError("polars was not found a moment ago")


def _npy(path: Path) -> RawTable:
    return _matrix(path, _array(path, lambda: np.load(path, allow_pickle=False)))


def _npz(path: Path, target: str | None) -> RawTable:
    archive = _array(path, lambda: np.load(path, allow_pickle=False))
    with archive:
        arrays = {name: _array(path, lambda name=name: archive[name], name) for name in archive.files}  # type: ignore[misc]
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    flat = {name: array for name, array in arrays.items() if array.ndim == 1}
    large = {name: array for name, array in arrays.items() if array.ndim > 1}
    if target is not None and target not in flat:
        raise DatasetError(
            f"{path} has no array {target!r} of one value a sample{nearest(target, flat)}; it holds {shapes}"
        )
    if target is not None and len(large) > 1:
        large = {name: array for name, array in large.items() if len(array) == len(flat[target])}
    if len(large) == 1:
        ((name, matrix),) = large.items()
        beside = {each: array for each, array in flat.items() if len(array) == len(matrix)}
        if target is not None and target not in beside:
            raise DatasetError(f"{path}: {target} has {len(flat[target])} values, {name} has {len(matrix)} samples")
        return _matrix(path, matrix, beside)
    if large or not flat:
        raise DatasetError(
            f"{path} needs one array of samples by features, or arrays of one value a sample; got {shapes}"
        )
    if len({len(array) for array in flat.values()}) > 1:
        raise DatasetError(f"{path}: all arrays need the same length, got {shapes}")
    return RawTable(path, list(flat), list(flat.values()))


def _array(path: Path, load: Callable[[], Any], name: str = "") -> Any:
    try:
        array = load()
    except (ValueError, OSError, EOFError) as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            which = f" {name}" if name else ""
            raise DatasetError(
                f"{path}: the array{which} holds Python objects, which only pickle can read; save numbers or strings"
            ) from error
        raise DatasetError(f"{path} is damaged: {_first_line(error)}") from error
    return array


def _matrix(path: Path, array: Shaped[np.ndarray, "samples ..."], beside: dict[str, Any] | None = None) -> RawTable:
    """Samples by features; images, which have more axes, are flattened in (channel, row, column) order."""
    if array.dtype.kind not in "biufU":
        raise DatasetError(f"{path} holds values of type {array.dtype}; save numbers, Booleans or strings")
    if array.ndim == 2:
        return RawTable(path, None, list(array.T), beside=beside)
    if array.ndim not in (3, 4):
        raise DatasetError(f"{path} needs samples by features, or images; got an array of shape {array.shape}")
    images = array if array.ndim == 4 else array[..., None]
    shape = (images.shape[1], images.shape[2], images.shape[3])
    flat = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)
    return RawTable(path, None, list(flat.T), beside=beside, image_shape=shape)


def _images(folder: Path) -> RawTable:
    """Every image of every class's folder, sorted by name; grey where all are grey."""
    classes = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    found = [
        file
        for each in classes
        for file in sorted(each.rglob("*"))
        if file.is_file() and file.suffix.lower() in IMAGES and not file.name.startswith(".")
    ]
    if not found:
        loose = any(file.suffix.lower() in IMAGES for file in folder.iterdir())
        raise DatasetError(
            f"{folder} holds no images in folders; it needs a folder for each class, with "
            f"{', '.join(IMAGES[:3])} ... files in it" + (": put the images into such folders" if loose else "")
        )
    empty = [each.name for each in classes if not any(file.is_relative_to(each) for file in found)]
    if empty:
        raise DatasetError(f"{folder / empty[0]} holds no images; put some into it, or remove the folder")
    others = sum(file.is_file() and file not in set(found) for file in folder.rglob("*"))
    remarks = (f"{others} files left out: their names do not say that they are images",) if others else ()
    pixels = _decoded(found)
    flat = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)).reshape(len(pixels), -1)
    labels = np.array([file.relative_to(folder).parts[0] for file in found], dtype=object)
    return RawTable(
        folder,
        None,
        list(flat.T),
        beside={CLASS: labels},
        image_shape=(pixels.shape[1], pixels.shape[2], pixels.shape[3]),
        files=[str(file) for file in found],
        remarks=remarks,
    )


def _decoded(files: list[Path]) -> UInt8[np.ndarray, "samples rows columns channels"]:
    require("PIL", "images", "reading images")
    from PIL import Image

    def decode(file: Path) -> tuple[UInt8[np.ndarray, "rows columns 3"], bool]:
        try:
            with Image.open(file) as image:
                grey = image.mode in ("1", "L", "LA", "I", "I;16", "F")
                return np.asarray(image.convert("RGB")), grey
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DatasetError(f"{file} is not an image that can be read: {_first_line(error)}") from error

    with ThreadPoolExecutor() as pool:  # decoding works outside the interpreter's lock
        decoded = list(pool.map(decode, files))
    first = decoded[0][0].shape
    for file, (pixels, _) in zip(files, decoded, strict=True):
        if pixels.shape != first:
            raise DatasetError(
                f"{file} has {pixels.shape[1]} x {pixels.shape[0]} pixels, {files[0]} has {first[1]} x {first[0]}; "
                f"bring all images to one size first"
            )
    images = np.stack([pixels for pixels, _ in decoded])
    return images[..., :1] if all(grey for _, grey in decoded) else images


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
