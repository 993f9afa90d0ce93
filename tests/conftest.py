"""Settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# numba colours its messages through colorama, which complains at exit when first loaded under captured output.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

# Compilation on first use makes single examples slow; a run is bounded by its number of examples instead.
settings.register_profile("gatefit", deadline=None, derandomize=True)
settings.register_profile("shapes", settings.get_profile("gatefit"), max_examples=20)
"""For `make shapes`, whose tests have run with all their examples before: shapes differ little from one to the next."""
settings.load_profile("gatefit")

LONGEST = (
    "docs/test_pages_run.py", "experiments/test_ray_jobs.py", "training/test_parallel.py", "ops/test_boolean_stack.py",
    "paper/test_catalogue.py", "test_estimators_hard_tables.py", "cli/test_bench.py", "experiments/test_killed_runs.py",
    "test_compiled.py", "cli/test_own_data.py", "hardware/test_build.py", "circuit/verify/test_brute_force.py",
    "training/test_longer.py", "circuit/test_passes.py", "test_estimators.py", "ops/test_implementations.py",
    "docs/test_guides.py", "docs/test_examples.py", "training/test_kill_resume.py", "circuit/test_file_sizes.py",
    "experiments/test_runner.py", "training/test_device.py", "cli/test_cli_stop.py", "circuit/test_prove.py",
    "hardware/test_budget_luts.py", "training/test_processors.py", "circuit/test_optimise.py", "browser/test_site.py",
    "backends/test_c_memory.py", "backends/test_verilog_lint.py",
)  # fmt: skip
"""Files whose tests take most processor time, as far as they were measured, in that order."""


def pytest_configure(config: pytest.Config) -> None:
    """Kernels for GPUs run on the CPU, by Triton's interpreter; `pytest -m gpu` runs the same tests on the device.

    Triton asks when it is imported, which is after this.
    """
    if "gpu" not in config.getoption("markexpr"):
        os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: workers that are given a file at a time then end together."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    gone = [str(path) for path in places if not path.is_file()]
    if gone:
        raise pytest.UsageError(f"LONGEST in {__file__} names files that are not there: {', '.join(gone)}")
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = os.environ.get("GATEFIT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds mnist/, adult/, ...")
    return Path(folder)
