"""What may import what, and what a user without torch can do."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Makes `import torch` fail as it does where torch is not installed.
NO_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Absent())
"""


def python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_gatefit_is_light():
    loaded = python("import gatefit, sys; print([m for m in ('torch', 'numba', 'numpy') if m in sys.modules])")
    assert loaded == "[]\n"


def test_a_circuit_is_loaded_and_run_without_torch(tmp_path):
    code = f"""
    import numpy as np
    from gatefit import Circuit, prove, optimise
    from gatefit.circuit.readout import GroupSum
    circuit = Circuit(2, [6, 8], [[0, 0], [1, 1]], [2, 3], GroupSum([0, 1], [0, 0]))
    circuit.save({str(tmp_path / "xor.gate")!r})
    circuit = Circuit.load({str(tmp_path / "xor.gate")!r})
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    print(circuit.predict(x).tolist())
    smaller, _ = optimise(circuit)
    print(type(prove(circuit, smaller)).__name__)
    import sys; assert 'torch' not in sys.modules
    """
    assert python(NO_TORCH + textwrap.dedent(code)) == "[1, 0, 0, 0]\nEquivalent\n"


@pytest.mark.parametrize(
    "use",
    [
        "from gatefit import LogicGateClassifier",
        "import gatefit.network",
        "import gatefit.methods",
        "import gatefit.training.loop",
    ],
)
def test_training_without_torch_says_what_to_install(use):
    code = f"""
    try:
        {use}
    except ImportError as error:
        print(error)
    """
    message = python(NO_TORCH + textwrap.dedent(code))
    assert message.endswith(" torch, which is not installed; run: pip install 'gatefit[train]'\n"), message


def test_unknown_names_are_attribute_errors():
    import gatefit

    with pytest.raises(AttributeError, match="no attribute 'LogicGateCluster'"):
        gatefit.LogicGateCluster
    assert "Circuit" in dir(gatefit)


def test_a_readout_is_asked_and_never_told_by_its_class():
    """A kind of the user's own must go wherever gatefit's go: nothing but circuit/readout.py may ask for a class."""
    tree = {path: ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py")}
    # Seeds side by side are one network of counts by construction; anything else is trained one by one.
    known = ("circuit/readout.py", "readouts.py", "training/side_by_side.py")
    homes = {ROOT / "src/gatefit" / name for name in known}
    found = []
    for path, module in tree.items():
        imported = {
            alias.asname or alias.name
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom) and node.module in ("gatefit.circuit.readout", "gatefit.readouts")
            for alias in node.names
            if alias.name != "Readout"  # that it is one at all may be asked
        }
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
                named = {each.id for part in node.args for each in ast.walk(part) if isinstance(each, ast.Name)}
                if named & imported and path not in homes:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
            if isinstance(node, ast.MatchClass) and getattr(node.cls, "id", "") in imported:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


def test_no_module_is_imported_upward_by_its_name():
    """``import_module`` hides an import from the contract on layers; only names that are looked up below may use it."""
    lazily = {"__init__.py", "_requires.py", "estimators/export.py", "cli/compile_notice.py", "training/parallel.py"}
    lazily |= {"experiments/worker.py"}  # a builder that a job names, as "module:name"
    lazily |= {"ops/triton_launch.py"}  # an operation's triton.py, in its own folder of ops
    package = ROOT / "src/gatefit"
    found = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if "import_module" in path.read_text()
    }
    assert found <= lazily


def test_gates_are_listed_once():
    listings = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if "0b1110" in path.read_text() or path.read_text().count("XNOR =") > 0
    ]
    assert listings == ["src/gatefit/gates.py"]


def test_nothing_unsafe_is_loaded():
    forbidden = ("pickle.load", "torch.load(", "allow_pickle=True", "shell=True", "joblib.load", "yaml.load(")
    found = [
        (path.name, word) for path in (ROOT / "src").rglob("*.py") for word in forbidden if word in path.read_text()
    ]
    assert found == []
