"""Splice junctions: is the middle of 60 nucleotides an exon/intron border (EI), an intron/exon border (IE), or neither?

240 bits = 60 positions × (A, C, G, T);  a letter for several nucleotides sets the bit of each of them
"""

from typing import Final

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.datasets.dataset import Dataset
from gatefit.datasets.files import DatasetError, Layout, Locator, RawFile, digest
from gatefit.datasets.splits import stratified_split
from gatefit.encoders import Identity

CLASS_NAMES: Final = ("EI", "IE", "N")
NUCLEOTIDES: Final[dict[str, str]] = {
    "A": "A", "C": "C", "G": "G", "T": "T", "D": "AGT", "N": "ACGT", "S": "CG", "R": "AG",
}  # fmt: skip
POSITIONS: Final = (*range(-30, 0), *range(1, 31))
BIT_NAMES: Final = tuple(f"position {position:+d} = {letter}" for position in POSITIONS for letter in "ACGT")

_SHA256: Final = "sha256:ebbae10c85d3c285e2a2489a37e42bc2ee8d91d15005e391a9962fa3389a114f"
_URL: Final = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/molecular-biology/"
    "splice-junction-gene-sequences/splice.data"
)
FILES: Final = (RawFile("splice.data", (_SHA256,), ("splice",), (_URL, _SHA256)),)


def parse_splice(data: bytes, name: str) -> tuple[Bool[np.ndarray, "samples 240"], Int64[np.ndarray, " samples"]]:
    """Bits and classes of lines ``class, name, sequence``."""
    table = np.zeros((128, 4), dtype=np.bool_)
    for letter, stands_for in NUCLEOTIDES.items():
        table[ord(letter)] = [nucleotide in stands_for for nucleotide in "ACGT"]
    rows = [[value.strip() for value in line.split(",")] for line in data.decode("ascii").splitlines() if line.strip()]
    for row in rows:
        if len(row) != 3 or row[0] not in CLASS_NAMES or len(row[2]) != 60 or not set(row[2]) <= NUCLEOTIDES.keys():
            raise DatasetError(
                f"{name} is not a splice file: {','.join(row)[:80]!r} is not class, name, 60 nucleotides"
            )
    letters = np.frombuffer("".join(row[2] for row in rows).encode("ascii"), dtype=np.uint8).reshape(len(rows), 60)
    classes = np.array([CLASS_NAMES.index(row[0]) for row in rows], dtype=np.int64)
    return table[letters].reshape(len(rows), 240), classes


def load_splice(source: Locator, *, split_seed: int = 0, files: Layout = FILES) -> Dataset:
    """Splice, split 80/20 within each class; ``split_seed`` says which split."""
    if isinstance(split_seed, bool) or not isinstance(split_seed, int) or split_seed < 0:
        raise ValueError(f"split_seed must be a whole number >= 0, got {split_seed!r}")
    (content,) = source.read(files)
    bits, classes = parse_splice(content, files[0].name)
    train, test = stratified_split(classes, seed=split_seed)
    return Dataset(
        name="splice",
        x_train=bits[train],
        y_train=classes[train],
        x_test=bits[test],
        y_test=classes[test],
        class_names=CLASS_NAMES,
        feature_names=BIT_NAMES,
        encoder=Identity().fit(bits, BIT_NAMES),
        digest=digest(files),
        notes=f"the paper states no split; here 80/20, stratified, seed {split_seed}",
    )
