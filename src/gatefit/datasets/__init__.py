"""Data sets: raw files found, checked and parsed. ``DATASETS`` lists them, ``load_dataset`` loads one."""

from gatefit.datasets.adult import load_adult_frame
from gatefit.datasets.dataset import Dataset
from gatefit.datasets.files import DatasetError, Locator, RawFile
from gatefit.datasets.registry import DATASETS, DatasetInfo, load_dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Locator",
    "RawFile",
    "load_adult_frame",
    "load_dataset",
]
