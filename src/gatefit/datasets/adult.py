"""Adult (census income): does a person earn more than 50,000 a year?

    116 bits = 99 values of eight categorical attributes, then bins, one bit each:
               age 5, capital-gain 3, capital-loss 3, hours-per-week 6;  fnlwgt and education-num are left out

The columns and bins are difflogic's, whose numbers the paper's are compared with. difflogic's code compares where it
should assign, so that its six hours columns are never set: ``encoding="difflogic"`` reproduces that, ``"fixed"`` sets
them. ``"raw"`` keeps the fourteen attributes as they are.
"""

from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Int64

from gatefit.datasets.dataset import Dataset
from gatefit.datasets.files import DatasetError, Layout, Locator, Progress, RawFile, digest
from gatefit.encoders import Identity, Table

ATTRIBUTES: Final = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip
NUMERIC: Final = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CLASS_NAMES: Final = ("<=50K", ">50K")

VALUES: Final[dict[str, str]] = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
    "1st-4th 10th Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland "
    "France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
    "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
"""The values of each categorical attribute, in the order of their bits."""

BINS: Final[dict[str, tuple[tuple[int, str], ...]]] = {
    "age": ((20, "age < 21"), (29, "21 <= age < 30"), (44, "30 <= age < 45"), (59, "45 <= age < 60"),
            (10**9, "age >= 60")),
    "capital-gain": ((0, "capital-gain = 0"), (4999, "0 < capital-gain < 5000"), (10**9, "capital-gain >= 5000")),
    "capital-loss": ((0, "capital-loss = 0"), (4999, "0 < capital-loss < 5000"), (10**9, "capital-loss >= 5000")),
    "hours-per-week": ((0, "hours-per-week = 0"), (12, "0 < hours-per-week <= 12"), (25, "12 < hours-per-week <= 25"),
                       (40, "25 < hours-per-week <= 40"), (59, "40 < hours-per-week < 60"),
                       (10**9, "hours-per-week >= 60")),
}  # fmt: skip
"""The bins of each binned attribute: the last whole number in it, and its name."""

BIT_NAMES: Final = (
    *(f"{attribute} = {value}" for attribute, values in VALUES.items() for value in values.split()),
    *(name for bins in BINS.values() for _, name in bins),
)

_UCI: Final = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
FILES: Final = tuple(
    RawFile(name, (f"sha256:{sha256}", f"md5:{md5}"), ("adult",), (f"{_UCI}{name}", f"sha256:{sha256}"))
    for name, sha256, md5 in (
        ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
         "5d7c39d7b8804f071cdd1f2a7c460872"),
        ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
         "35238206dfdf7f1fe215bbb874adecdc"),
    )
)  # fmt: skip

Columns = dict[str, list[Any]]


def parse_adult(data: bytes, name: str, *, drop_missing: bool) -> tuple[Columns, Int64[np.ndarray, " samples"]]:
    """The attributes as lists (numbers as int, None for ``?``) and the classes."""
    lines = (line.strip().rstrip(".") for line in data.decode("ascii").splitlines() if not line.startswith("|"))
    rows = [[value.strip() for value in line.split(",")] for line in lines if line]
    if any(len(row) != len(ATTRIBUTES) + 1 or row[-1] not in CLASS_NAMES for row in rows):
        raise DatasetError(f"{name} is not an Adult file: every line needs 14 attributes and <=50K or >50K")
    if drop_missing:
        rows = [row for row in rows if "?" not in row]
    columns: Columns = {}
    for i, attribute in enumerate(ATTRIBUTES):
        values = (None if row[i] == "?" else row[i] for row in rows)
        columns[attribute] = (
            [None if value is None else int(value) for value in values] if attribute in NUMERIC else list(values)
        )
    return columns, np.array([CLASS_NAMES.index(row[-1]) for row in rows], dtype=np.int64)


def adult_bits(columns: Columns, *, hours: bool = True) -> Bool[np.ndarray, "samples 116"]:
    """The 116 bits of complete rows; without ``hours`` the last six stay 0."""
    samples = len(columns["age"])
    bits = np.zeros((samples, len(BIT_NAMES)), dtype=np.bool_)
    rows, start = np.arange(samples), 0
    for attribute, values in VALUES.items():
        number = {value: i for i, value in enumerate(values.split())}
        bits[rows, start + np.array([number[value] for value in columns[attribute]], dtype=np.int64)] = True
        start += len(number)
    for attribute, bins in BINS.items():
        if hours or attribute != "hours-per-week":
            ends = [end for end, _ in bins]
            bits[rows, start + np.searchsorted(ends, np.array(columns[attribute]))] = True
        start += len(bins)
    return bits


def load_adult(
    source: Locator, *, encoding: Literal["fixed", "difflogic", "raw"] = "fixed", files: Layout = FILES
) -> Dataset:
    """Adult with 116 bits, rows with missing values dropped; or raw, with every row and a fitted ``Table`` encoder."""
    if encoding not in ("fixed", "difflogic", "raw"):
        raise ValueError(f"encoding must be 'fixed', 'difflogic' or 'raw', got {encoding!r}")
    train, test = (
        parse_adult(content, file.name, drop_missing=encoding != "raw")
        for content, file in zip(source.read(files), files, strict=True)
    )
    if encoding == "raw":
        x_train, x_test = (np.array([*columns.values()], dtype=object).T for columns, _ in (train, test))
        encoder: Table | Identity = Table().fit(x_train, ATTRIBUTES)
        notes = "all rows; missing values are None; numbers and strings as objects"
    else:
        x_train, x_test = (adult_bits(columns, hours=encoding == "fixed") for columns, _ in (train, test))
        encoder = Identity().fit(x_train, BIT_NAMES)
        notes = "rows with missing values dropped; difflogic's columns and bins" + (
            ", its six hours columns never set, as in its code" if encoding == "difflogic" else ""
        )
    return Dataset(
        name="adult",
        x_train=x_train,
        y_train=train[1],
        x_test=x_test,
        y_test=test[1],
        class_names=CLASS_NAMES,
        feature_names=ATTRIBUTES if encoding == "raw" else BIT_NAMES,
        encoder=encoder,
        digest=digest(files),
        notes=notes,
    )


def load_adult_frame(
    *,
    data_dir: str | PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
    files: Layout = FILES,
) -> tuple[Any, Any, Any, Any]:
    """Adult as (train frame, train labels, test frame, test labels): pandas data frames and arrays of strings."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise ImportError(
            "load_adult_frame needs pandas, which is not installed; run: pip install pandas, "
            "or use load_dataset('adult', encoding='raw')"
        ) from None
    source = Locator("adult", None if data_dir is None else Path(data_dir), download, progress)
    parts: list[Any] = []
    for content, file in zip(source.read(files), files, strict=True):
        columns, y = parse_adult(content, file.name, drop_missing=False)
        parts += [DataFrame(columns), np.array(CLASS_NAMES)[y]]
    return parts[0], parts[1], parts[2], parts[3]
