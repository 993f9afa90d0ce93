"""Methods answer for themselves: no module outside ``gatefit.methods`` tests a method's class or name.

The registry may be asked for a name, and a name may be a default. The paper's catalogue names what it compares.
"""

import ast
from pathlib import Path

import pytest

import gatefit
from gatefit import methods
from gatefit.methods import METHODS, Method

SOURCE = Path(gatefit.__file__).parent
PAPER = {"catalogue", "paper", "report", "scales.py", "table_one.py", "paper_values.py", "paper_text.py"}
FILES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if "methods" not in path.parts and not PAPER & {*path.relative_to(SOURCE).parts}
]


def subclasses(kind):
    return {kind, *(found for each in kind.__subclasses__() for found in subclasses(each))}


CLASSES = {kind.__name__ for kind in subclasses(Method) if kind.__module__.startswith(methods.__name__)} - {"Method"}


def defaults(tree):
    """Constants that are the default of an argument or of a field."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            yield from (each for each in [*node.defaults, *node.kw_defaults] if each is not None)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from ast.walk(node.value)


def questions(text):
    """Where the source asks for a method's class or name, in words."""
    tree = ast.parse(text)
    allowed = {id(node) for node in defaults(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in METHODS and id(node) not in allowed:
            yield f"{node.lineno}: {node.value!r}"
        if isinstance(node, ast.Name | ast.Attribute | ast.alias):
            name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
            if name in CLASSES:
                yield f"{node.lineno}: {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whose, asked = ast.unparse(node.func.value), node.func.attr
            if asked in ("endswith", "startswith", "partition", "split") and "method" in whose.lower():
                yield f"{node.lineno}: {whose}.{asked}"


def test_no_module_asks_for_a_methods_class_or_name():
    assert len(FILES) > 100
    asked = [f"{path.relative_to(SOURCE)}:{found}" for path in FILES for found in questions(path.read_text())]
    assert not asked


@pytest.mark.parametrize(
    "source",
    [
        "from gatefit.methods import GumbelST",
        "isinstance(layer.method, methods.SingleGateForward)",
        "fast = config.method == 'multilinear-ste'",
        "cost = {'soft-mix': 1.3}[config.method]",
        "free = config.method.endswith('-free')",
        "train(method='iwp')",
    ],
)
def test_a_question_is_found(source):
    assert list(questions(source))


@pytest.mark.parametrize(
    "source",
    ["def train(method: str = 'iwp'): ...", "method: str = option('iwp', 'help')", "method_class(name).step_cost"],
)
def test_defaults_and_the_registry_are_no_questions(source):
    assert not list(questions(source))
