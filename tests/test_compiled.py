"""Kernels need no place to write: not for the cache of their machine code, and not for anything else."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import gatefit
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum

pytestmark = pytest.mark.outside

ROOT = Path(__file__).parent.parent
PACKAGE = Path(gatefit.__file__).parent


def run(code: str, environment: dict[str, str]) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def nowhere_to_write(folder: Path) -> dict[str, str]:
    """A copy of the package, and an environment, in which every folder that a cache could be made in is a file.

    That stops the superuser too, whom permissions do not.
    """
    shutil.copytree(PACKAGE, folder / "gatefit", ignore=shutil.ignore_patterns("__pycache__"))
    for source in [folder / "gatefit", *(p for p in (folder / "gatefit").rglob("*") if p.is_dir())]:
        (source / "__pycache__").touch()
    (folder / "file").touch()
    below = str(folder / "file" / "cache")
    return {"PYTHONPATH": str(folder), "HOME": below, "XDG_CACHE_HOME": below, "LOCALAPPDATA": below}


@pytest.mark.parametrize("variable", ["unset", "unwritable"])
def test_a_circuit_runs_where_nothing_can_be_written(tmp_path, variable):
    circuit = Circuit(3, [6, 1], [[0, 1], [1, 2]], [3, 4], GroupSum([0, 1], [0, 0]))
    circuit.save(tmp_path / "xor.gate")
    x = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    environment = nowhere_to_write(tmp_path)
    environment["NUMBA_CACHE_DIR"] = "" if variable == "unset" else environment["HOME"]
    code = f"""
    import gatefit
    print(gatefit.__file__)
    print(gatefit.Circuit.load({str(tmp_path / "xor.gate")!r}).predict({x.tolist()}).tolist())
    """
    where, predictions = run(code, environment).splitlines()
    assert where == str(tmp_path / "gatefit" / "__init__.py")
    assert predictions == str(circuit.predict(x).tolist())


KERNEL = """
from gatefit.compiled import njit

@njit(cache=True)
def add(a, b):
    return a + b
"""


def test_machine_code_is_kept_where_the_variable_says(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code = "import kernel; print(kernel.add(1, 2), sum(kernel.add.stats.cache_hits.values()))"
    assert run(code, environment) == "3 0\n"
    assert [path.suffix for path in sorted((tmp_path / "cache").rglob("*add*"))] == [".nbc", ".nbi"]
    assert run(code, environment) == "3 1\n"


def test_a_full_disk_costs_the_cache_and_nothing_else(tmp_path):
    pytest.importorskip("resource")
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # files can be made, but no byte written
    import kernel
    print(kernel.add(1, 2))
    """
    assert run(code, environment) == "3\n"
    assert list((tmp_path / "cache").rglob("*.nb?")) == []


def test_every_kernel_is_defined_through_one_place():
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if "numba.njit" in path.read_text() or "numba import njit" in path.read_text()
    ]
    assert found == ["src/gatefit/compiled.py"]
