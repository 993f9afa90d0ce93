"""The examples run: scripts and notebooks, each in an empty folder and without a network."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LINES = 60
QUICK = {"fit_and_prove", "first_steps"}
"""Examples that `make test` runs; `make test-slow` runs the others. C is called by two pages of test_pages_run too."""
SAYS = {
    "ask_questions": ["accuracy 1.00", "tie: can never matter, proved", "jacket: matters"],
    "call_from_c": ["0 wrong answers in the self-test", "143 of 143 answers are the engine's"],
    "digits_in_the_browser": ["digits.html: "],
    "fit_and_prove": ["Equivalent: the same scores on every input", "True"],
    "own_method": ["cell-mix: accuracy 0.9", "4 kinds of gates", "Equivalent"],
    "regression_with_bounds": ["R² 0.9", "bounds: the value is", "bounds: the value where x3 <= 0.2"],
}


def cells(notebook):
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def code_of(path):
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8").splitlines()
    return [
        line for cell in cells(path) if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()
    ]


def test_there_are_six_scripts_and_three_notebooks():
    assert (len(SCRIPTS), len(NOTEBOOKS)) == (6, 3)


@pytest.mark.parametrize("path", SCRIPTS + NOTEBOOKS, ids=lambda path: path.name)
def test_an_example_is_short(path):
    assert len(code_of(path)) < LINES


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def chosen(paths):
    return [pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.slow]) for path in paths]


@pytest.mark.outside
@pytest.mark.parametrize("path", chosen(SCRIPTS), ids=lambda path: path.stem)
def test_a_script_runs(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in SAYS[path.stem]:
        assert words in done.stdout, done.stdout


EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=None, resources={"metadata": {"path": "."}}).execute()
nbformat.write(notebook, "done.ipynb")
"""


@pytest.mark.outside
@pytest.mark.parametrize("path", chosen(NOTEBOOKS), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    # In a process of its own: a kernel's client leaves sockets and an event loop behind.
    command = [sys.executable, "-c", EXECUTE, path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code = [cell for cell in cells(tmp_path / "done.ipynb") if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert sum(bool(cell["outputs"]) for cell in code) >= 3
