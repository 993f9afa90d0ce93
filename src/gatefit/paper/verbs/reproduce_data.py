"""Which data sets can be had, before anything is trained on them."""

from collections.abc import Iterable
from pathlib import Path

from gatefit.cli.datasets import load, locate
from gatefit.cli.errors import UserError


def availability(names: Iterable[str], data_dir: Path | None, *, download: bool, quiet: bool = False) -> dict[str, str]:
    """The data sets that cannot be had, with the reason; where ``download`` says so, fetching them is tried."""
    from gatefit.datasets import DATASETS, DatasetError

    absent = {}
    for name in sorted(names):
        info = DATASETS[name]
        found, _ = locate(name, info, data_dir)
        if found:
            continue
        if not download:
            absent[name] = "not here; downloaded when first used" if info.download else "not here; see --data-dir"
            continue
        try:
            load(name, data_dir, {}, quiet=quiet)
        except (DatasetError, UserError, ImportError, OSError) as error:
            absent[name] = str(error)
    return absent
