"""The data sets by name."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final

from gatefit.datasets.adult import load_adult
from gatefit.datasets.breast_cancer import load_breast_cancer
from gatefit.datasets.cifar import load_cifar10, load_cifar100
from gatefit.datasets.dataset import Dataset
from gatefit.datasets.digits import load_digits
from gatefit.datasets.files import Locator, Progress
from gatefit.datasets.iris import load_iris
from gatefit.datasets.mnist import load_mnist
from gatefit.datasets.monks import load_monks
from gatefit.datasets.splice import load_splice
from gatefit.datasets.svhn import load_svhn
from gatefit.datasets.tiny_imagenet import load_tiny_imagenet


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is loaded; sizes are those of its default options."""

    title: str
    train: int
    test: int
    features: int
    bits: int
    classes: int
    source: str
    terms: str
    load: Callable[..., Dataset]
    options: tuple[str, ...] = ()
    download: bool = True
    task: str = "classification"
    width: int = 2000
    """Gates a layer where a run does not say how many: the paper's, or the nearest multiple of the classes."""


_UCI: Final = "UCI Machine Learning Repository"
_IMAGES: Final = ("thresholds", "threshold_rule")
_CC_BY: Final = "CC BY 4.0 (as listed by UCI)"

DATASETS: Final[dict[str, DatasetInfo]] = {
    "monks-1": DatasetInfo(
        "MONK's problem 1", 124, 432, 17, 17, 2, f"{_UCI}; part of this package", _CC_BY,
        partial(load_monks, problem=1), width=136,
    ),
    "monks-2": DatasetInfo(
        "MONK's problem 2", 169, 432, 17, 17, 2, f"{_UCI}; part of this package", _CC_BY,
        partial(load_monks, problem=2), width=136,
    ),
    "monks-3": DatasetInfo(
        "MONK's problem 3", 122, 432, 17, 17, 2, f"{_UCI}; part of this package", _CC_BY,
        partial(load_monks, problem=3), width=136,
    ),
    "adult": DatasetInfo(
        "Adult (census income)", 30_162, 15_060, 116, 116, 2, _UCI, _CC_BY, load_adult, ("encoding",), width=4096
    ),
    "splice": DatasetInfo(
        "Splice-junction gene sequences", 2_552, 638, 240, 240, 3, _UCI, _CC_BY, load_splice,
        ("split_seed",), width=4095,
    ),
    "breast-cancer": DatasetInfo(
        "Breast cancer (Ljubljana)", 222, 55, 51, 51, 2, f"{_UCI}; M. Zwitter and M. Soklic", _CC_BY,
        load_breast_cancer, ("split",), width=500,
    ),
    "iris": DatasetInfo("Iris", 120, 30, 4, 32, 3, _UCI, _CC_BY, load_iris, ("thresholds",), width=300),
    "digits": DatasetInfo(
        "Handwritten digits, 8 x 8", 1_438, 359, 64, 448, 10, "scikit-learn (from UCI)", _CC_BY, load_digits,
        _IMAGES, download=False,
    ),
    "mnist": DatasetInfo(
        "MNIST handwritten digits, 28 x 28", 60_000, 10_000, 784, 784, 10, "Y. LeCun, C. Cortes, C. Burges",
        "none stated; often given as CC BY-SA 3.0", partial(load_mnist, name="mnist"), _IMAGES, width=8000,
    ),
    "fashion-mnist": DatasetInfo(
        "Fashion-MNIST, 28 x 28", 60_000, 10_000, 784, 784, 10, "Zalando Research", "MIT",
        partial(load_mnist, name="fashion-mnist"), _IMAGES, width=8000,
    ),
    "cifar10": DatasetInfo(
        "CIFAR-10, 32 x 32 colour", 50_000, 10_000, 3_072, 95_232, 10, "A. Krizhevsky, University of Toronto",
        "none stated; cite Krizhevsky 2009", load_cifar10, _IMAGES, width=12_000,
    ),
    "cifar100": DatasetInfo(
        "CIFAR-100, 32 x 32 colour", 50_000, 10_000, 3_072, 95_232, 100, "A. Krizhevsky, University of Toronto",
        "none stated; cite Krizhevsky 2009", load_cifar100, (*_IMAGES, "labels"), width=12_000,
    ),
    "svhn": DatasetInfo(
        "Street view house numbers, 32 x 32 colour", 73_257, 26_032, 3_072, 95_232, 10,
        "Y. Netzer and others, Stanford University", "non-commercial use only", load_svhn, _IMAGES,
        width=12_000,
    ),
    "tiny-imagenet": DatasetInfo(
        "Tiny-ImageNet, 64 x 64 colour", 100_000, 10_000, 12_288, 380_928, 200, "Stanford CS231n",
        "those of ImageNet: research and education", load_tiny_imagenet, _IMAGES, width=12_000,
    ),
}  # fmt: skip


def default_width(name: str) -> int:
    """Gates a layer of a network for the data set ``name``, where nothing else is said."""
    return DATASETS[name].width if name in DATASETS else DatasetInfo.width


def load_dataset(
    name: str,
    *,
    data_dir: str | PathLike[str] | None = None,
    download: bool = True,
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """The data set ``name`` with the encoder for its bits.

    Files are looked for in ``data_dir``, in the directory named by the environment variable GATEFIT_DATA, in the
    user's cache and in the package; what is not there is downloaded to the cache if ``download`` allows it, and
    ``progress`` is then called with (file name, bytes so far, bytes in all). Options are those of the data set, see
    ``DATASETS[name].options``: for example ``thresholds=3`` for images, ``encoding="difflogic"`` for adult.
    """
    if name not in DATASETS:
        near = difflib.get_close_matches(str(name), DATASETS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown data set {name!r}; {hint}choose one of {', '.join(DATASETS)}")
    info = DATASETS[name]
    if unknown := [option for option in options if option not in info.options]:
        raise ValueError(
            f"{name} has no option {', '.join(unknown)}; its options are: {', '.join(info.options) or 'none'}"
        )
    source = Locator(name, None if data_dir is None else Path(data_dir), download, progress)
    return info.load(source, **options)
