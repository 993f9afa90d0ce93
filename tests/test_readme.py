"""The README tells the truth: its examples run, its commands exist, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.outside

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.strip().splitlines()[0])
def test_example_runs(code, tmp_path):
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if "digits.gate" in code:
        accuracy, of_the_circuit = map(float, done.stdout.splitlines())
        assert accuracy > 0.93
        assert of_the_circuit == accuracy
        assert {path.name for path in tmp_path.iterdir()} == {"digits.gate", "digits.v"}
        assert (tmp_path / "digits.v").read_text().startswith("// A logic gate network")
        assert code.count("overwrite=True") == 2  # so that it runs again


def test_every_verb_named_is_one():
    from gatefit.cli import app

    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    shell = "".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    named = set(re.findall(r"^gatefit ([a-z]+)", shell, re.MULTILINE)) | set(re.findall(r"`gatefit ([a-z]+)", README))
    assert {"train", "compile", "export"} <= named
    assert named <= verbs, named - verbs


def test_make_targets_named_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/index.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), target
