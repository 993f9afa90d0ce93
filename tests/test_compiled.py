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
    circuit = gatefit.Circuit.load({str(tmp_path / "xor.gate")!r})
    print(circuit.predict({x.tolist()}).tolist())
    from gatefit.circuit.engine import Engine
    engine = Engine(circuit)
    print(engine.evaluated_gates)  # prepared for its kernels, which answer from here on
    print(engine.predict({x.tolist()}).tolist())
    """
    where, predictions, gates, compiled = run(code, environment).splitlines()
    assert where == str(tmp_path / "gatefit" / "__init__.py")
    assert predictions == compiled == str(circuit.predict(x).tolist())
    assert gates == "2"


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
    assert [path.suffix for path in sorted((tmp_path / "cache").rglob("*add*.nb?"))] == [".nbc", ".nbi"]
    assert run(code, environment) == "3 1\n"


READ_ONLY = """
import os
able = os.access
os.access = lambda path, mode, **options: able(path, mode, **options) and not (
    mode & os.W_OK and os.fspath(path).startswith({folder!r})
)
import tempfile
made = tempfile.TemporaryFile
def refused(*arguments, **options):
    if str(options.get("dir", "")).startswith({folder!r}):
        raise PermissionError("read-only")
    return made(*arguments, **options)
tempfile.TemporaryFile = refused
"""
"""What a read-only file system answers; it cannot be made without the superuser, whom permissions do not stop."""


@pytest.mark.parametrize("where", ["variable", "beside the source"])
def test_machine_code_that_somebody_left_is_read_where_it_cannot_be_written(tmp_path, where):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "kernel.py").write_text(KERNEL)
    kept = tmp_path / ("kept" if where == "variable" else "package")
    environment = {"PYTHONPATH": str(tmp_path / "package"), "XDG_CACHE_HOME": str(tmp_path / "own")}
    environment["NUMBA_CACHE_DIR"] = str(kept) if where == "variable" else ""
    code = """
    import kernel
    from gatefit.compiled import is_compiled
    print(is_compiled(kernel.add), kernel.add(1, 2), sum(kernel.add.stats.cache_hits.values()))
    """
    assert run(code, environment) == "False 3 0\n"
    there = sorted(path for path in kept.rglob("*") if path.suffix in (".nbi", ".nbc"))
    assert len(there) == 2
    read_only = textwrap.dedent(READ_ONLY.format(folder=str(kept))) + textwrap.dedent(code)
    assert run(read_only, environment) == "True 3 1\n"
    # What is not there is compiled, and kept in the next place that can be written.
    other = read_only + "print(kernel.add(1.5, 2.5), sum(kernel.add.stats.cache_hits.values()))\n"
    assert run(other, environment).splitlines()[-1] == "4.0 1"
    assert sorted(path for path in kept.rglob("*") if path.suffix in (".nbi", ".nbc")) == there
    if where == "variable":
        assert [path.suffix for path in sorted((tmp_path / "package").rglob("*add*.nb?"))] == [".nbc", ".nbi"]


def test_a_damaged_index_is_compiled_anew(tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code = "import kernel; from gatefit.compiled import is_compiled; print(is_compiled(kernel.add))"
    run(code + "; kernel.add(1, 2)", environment)
    assert run(code, environment) == "True\n"
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    index.write_bytes(b"not an index")
    assert run(code, environment) == "False\n"


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


PARTS = """
import numpy as np
from gatefit.compiled import njit

@njit(inner=True)
def twice(values):
    return (values + values)[0]

@njit(inner=True)
def tail(values):
    return values[1:], 1

@njit(inner=True, views=True)
def rest(values):
    return values[1:]

@njit(inner=True)
def first(values):
    return values[0]

@njit(cache=True)
def through_a_view(values):
    return rest(values)[0] + first(values)

@njit(cache=True)
def through_nobodys(values):
    return tail(values)[0][0]

@njit(cache=True)
def through_a_sum(values):
    return twice(values)

@njit(cache=True, plain=True)
def places(values, found):
    count = 0
    for i in range(values.size):
        if first(values) < values[i]:
            found[count] = i
            count += 1
    return count
"""


def test_what_kernels_call_is_kept_with_them_and_python_can_call_it_too(tmp_path):
    (tmp_path / "parts.py").write_text(PARTS)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code = """
    import gc
    import numpy as np
    import parts
    values, found = np.array([3, 5, 1, 7]), np.zeros(4, np.int64)
    for _ in range(1000):
        assert parts.through_a_view(values) == 8
    print(parts.places(values, found), found.tolist(), parts.first(values), gc.isenabled())
    print([sum(kernel.stats.cache_hits.values()) for kernel in (parts.through_a_view, parts.places)])
    """
    shown = "2 [1, 3, 0, 0] 3 True\n"
    assert run(code, environment) == shown + "[0, 0]\n"
    kept = {path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nbi")}
    assert kept == {"parts.through_a_view", "parts.places"}
    assert run(code, environment) == shown + "[1, 1]\n"


@pytest.mark.parametrize(("kernel", "said"), [("through_nobodys", "tail returns an array"), ("through_a_sum", "NRT")])
def test_inner_functions_that_make_or_return_arrays_are_refused(tmp_path, kernel, said):
    (tmp_path / "parts.py").write_text(PARTS)
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    code = f"""
    import gc, re
    import numpy as np
    import parts
    try:
        parts.{kernel}(np.arange(3))
    except Exception as error:
        print(bool(re.search({said!r}, str(error))), gc.isenabled())
    """
    assert run(code, environment) == "True True\n"


def test_every_kernel_is_defined_through_one_place():
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if "numba.njit" in path.read_text() or "numba import njit" in path.read_text()
    ]
    assert found == ["src/gatefit/compiled.py"]


def test_kernels_do_not_import_linear_algebra_and_those_of_others_find_it(tmp_path):
    code = """
    import sys
    import numba, numpy as np
    from gatefit.bits import gather
    gather(np.zeros((1, 1), np.uint64), np.zeros(1, np.int64), 64)
    assert "scipy.linalg" not in sys.modules
    square = numba.njit(lambda x: (np.cov(x), np.dot(x, x)))(np.eye(2))
    print(square[0].tolist(), square[1].tolist())
    """
    said = run(code, {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert said.strip() == "[[0.5, -0.5], [-0.5, 0.5]] [[1.0, 0.0], [0.0, 1.0]]"
