"""The README tells the truth: its examples run, its commands exist, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

import pytest

from gatefit import models
from gatefit.frontier.page import published
from gatefit.frontier.results import read_results

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


def test_pictures_are_there_in_the_light_and_in_the_dark():
    found = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert len(found) == 2
    assert all((ROOT / path).is_file() for path in found)


def test_it_can_be_read_in_a_minute_or_two():
    assert len(README.splitlines()) <= 120


ROWS = re.findall(r"^\| `([a-z0-9-]+)` \| ([\d,]+) \| ([\d.]+) % \| (\d+) min \| (.+) \|$", README, re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_frontier_is_what_was_measured(row):
    name, gates, accuracy, minutes, other = row
    seeds = read_results(ROOT / "results/frontier")[name].seeds
    assert int(gates.replace(",", "")) == pytest.approx(mean(each["live_gates"] for each in seeds), abs=0.5)
    assert float(accuracy) == pytest.approx(100 * mean(each["test_accuracy"] for each in seeds), abs=0.0051)
    # Of all threads together; where there were two, the text says how long they took.
    if any(each["threads"] != 1 for each in seeds):
        assert all(each["threads"] == 2 for each in seeds)
        clock = round(mean(each["seconds"] for each in seeds) / 60)
        assert f"`{name}`: {clock} minutes on two" in " ".join(README.split())
    assert int(minutes) == pytest.approx(mean(each["processor_seconds"] for each in seeds) / 60, abs=0.5)
    theirs = {
        f"{each['accuracy']:g} % with {each['count']:,} ({each['model']})" for each in published() if each["count"]
    }
    assert other in theirs


def test_the_frontier_is_shown():
    assert len(ROWS) == len(re.findall(r"^\| `(?:mnist|cifar10)-", README, re.MULTILINE)) >= 4


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_model_in_the_picture_is_the_one_that_ships(page):
    card = models.card("mnist-1k")
    text = " ".join((ROOT / page).read_text().split())
    assert re.search(rf"`mnist-1k`(?: at work)?[,:] {card['live_gates']} gates", text)


def test_the_home_page_says_what_4000_gates_can():
    accuracy = mean(each["test_accuracy"] for each in read_results(ROOT / "results/frontier")["mnist-4k"].seeds)
    assert f"MNIST at {100 * accuracy:.1f} % in 4,000 gates" in (ROOT / "docs/index.md").read_text()
