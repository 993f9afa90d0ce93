"""Settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# numba colours its messages through colorama, which complains at exit when first loaded under captured output.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

# Compilation on first use makes single examples slow; a run is bounded by its number of examples instead.
settings.register_profile("gatefit", deadline=None, derandomize=True)
settings.load_profile("gatefit")


def pytest_configure(config: pytest.Config) -> None:
    """Kernels for GPUs run on the CPU, by Triton's interpreter; `pytest -m gpu` runs the same tests on the device.

    Triton asks when it is imported, which is after this.
    """
    if "gpu" not in config.getoption("markexpr"):
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = os.environ.get("GATEFIT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds mnist/, adult/, ...")
    return Path(folder)
