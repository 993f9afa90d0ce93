"""Data set tests see no cache and no data directory but their own; real data comes by the ``data_dir`` fixture."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gatefit.datasets.files import checksum

REAL_DATA = os.environ.get("GATEFIT_DATA")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache, and no GATEFIT_DATA."""
    monkeypatch.delenv("GATEFIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "gatefit"


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    if not REAL_DATA or not Path(REAL_DATA).is_dir():
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds mnist/, adult/, ...")
    return Path(REAL_DATA)


@pytest.fixture
def sealed():
    """A function that gives files the checksums of some contents."""

    def seal(files, contents):
        return tuple(replace(f, checksums=(checksum(c, "md5"),)) for f, c in zip(files, contents, strict=True))

    return seal
