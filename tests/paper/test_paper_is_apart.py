"""What serves the reproduction alone is in gatefit.paper, and nothing else knows of it but the list of verbs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import gatefit

SOURCE = Path(gatefit.__file__).parent
OTHERS = sorted(path for path in SOURCE.rglob("*.py") if not path.is_relative_to(SOURCE / "paper"))
LABEL = re.compile(r"\b(tab|fig|sec|app|eq|thm|prop|extra):[a-z0-9]")
"""How the paper's labels begin, and those of the runs beside it."""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def labels_as_data(source: str) -> list[str]:
    """Strings with a label of the paper, but for those that are documentation."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in strings if id(node) not in documentation and LABEL.search(node.value)]


def paper_imports(source: str) -> list[tuple[str, bool]]:
    """Modules of the paper that are imported, and whether that is when the importing module is."""
    tree = ast.parse(source)
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [f"{node.module}.{each.name}" for each in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if any(name == "gatefit.paper" or name.startswith("gatefit.paper.") for name in names):
            found.append((names[0], id(node) not in later))
    return found


def test_the_checks_find_what_they_look_for():
    assert labels_as_data('"""tab:depth is shown."""\nlabel = "tab:depth"\n') == ["tab:depth"]
    assert labels_as_data('x = {"table": 1, "app": "ab: c"}\n') == []
    assert paper_imports("from gatefit import paper\ndef f():\n    import gatefit.paper.scales\n") == [
        ("gatefit", True),
        ("gatefit.paper.scales", False),
    ]
    assert any(labels_as_data(path.read_text()) for path in (SOURCE / "paper").rglob("*.py"))


def test_no_label_of_the_paper_is_data_elsewhere():
    found = {path.relative_to(SOURCE).as_posix(): labels_as_data(path.read_text()) for path in OTHERS}
    assert {name: labels for name, labels in found.items() if labels} == {}


def test_only_the_list_of_verbs_imports_the_paper_and_does_so_when_asked():
    imports = {path.relative_to(SOURCE).as_posix(): paper_imports(path.read_text()) for path in OTHERS}
    assert {name: found for name, found in imports.items() if found} == {
        "cli/app.py": [("gatefit.paper.verbs", False)] * 3
    }


def test_no_other_package_loads_the_paper():
    modules = [
        ".".join(("gatefit", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in OTHERS
        if path.name != "__main__.py"
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        "print([name for name in sys.modules if name.startswith('gatefit.paper')])\n"
    )
    assert python(code) == "[]\n"


def test_other_verbs_do_not_load_it():
    code = (
        "import sys\n"
        "from gatefit.cli import app\n"
        "try:\n    app(['train', '--help'])\n"
        "except SystemExit:\n    pass\n"
        "sys.stderr.write(str('gatefit.paper' in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "False"
    assert "--steps" in done.stdout


def test_its_verbs_are_in_their_place_and_misspelt_ones_are_guessed(gatefit, refused):
    listed = re.findall(r"│ (\w+)", gatefit("--help").out)
    assert listed[listed.index("datasets") :][:6] == ["datasets", "models", "frontier", "reproduce", "report", "view"]
    assert re.search(r"│ missing +List what tables", gatefit("runs", "--help").out)
    assert refused("reprodce") == "no such command 'reprodce'. Did you mean 'reproduce', 'prove'? (see gatefit --help)"
