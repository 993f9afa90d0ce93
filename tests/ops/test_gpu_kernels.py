"""Every GPU kernel is compiled for the targets that are promised, and fits into registers; the page says so."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gpu_cost, gpu_kernels

ROOT = Path(gpu_kernels.__file__).parents[1]


def compiled(program: str) -> str:
    """What a program prints for which kernels are compiled, not interpreted."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    ).stdout


def test_nothing_in_the_table_spills():
    rows = list(csv.DictReader(gpu_kernels.TABLE.read_text().splitlines()))
    assert {row["target"] for row in rows} == set(gpu_kernels.TARGETS)
    assert not [row for row in rows if int(row["stack_bytes"]) or int(row["local_bytes"])]
    assert max(int(row["registers"]) for row in rows) < 255
    assert max(int(row["shared_bytes"]) for row in rows) <= 48 * 1024


def test_the_page_is_made_from_the_table_and_the_model():
    assert gpu_cost.page(gpu_cost.PAGE.read_text()) == gpu_cost.PAGE.read_text()


@pytest.mark.outside
def test_every_kernel_that_is_launched_anywhere_is_compiled():
    pytest.importorskip("triton")
    folder = ROOT / "src" / "gatefit" / "ops"
    launched = {
        f"{file.stem if file.parent == folder else file.parent.name}.{kernel}"
        for file in (*folder.glob("triton_*.py"), *folder.glob("*/triton.py"))
        for kernel in re.findall(r"launch\(\s*_(\w+),", file.read_text())
    }
    program = "import json; from benchmarks.gpu_kernels import forms; print(json.dumps(list(forms())))"
    listed = json.loads(compiled(program))
    assert len(launched) > 15
    assert {kernel for kernel, _ in listed} == launched


@pytest.mark.outside
def test_the_table_is_what_the_kernels_compile_to():
    """Those that Triton compiled before are in its cache."""
    pytest.importorskip("triton")
    program = (
        "import json; from benchmarks.gpu_kernels import compiled_table; print(json.dumps(list(compiled_table())))"
    )
    found = json.loads(compiled(program))
    assert not [row for row in found if row["stack_bytes"] or row["local_bytes"]]
    kept = list(csv.DictReader(gpu_kernels.TABLE.read_text().splitlines()))
    assert [{name: str(value) for name, value in row.items()} for row in found] == [
        {name: row[name] for name in found[0]} for row in kept
    ]
