"""docs/own-data.md tells the truth: its commands run, one after the other, in a folder with two files of people."""

import re
import shlex
from pathlib import Path

import pytest

from command_line import invoke

pytestmark = pytest.mark.outside

PAGE = (Path(__file__).parent.parent / "docs" / "own-data.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def people(path, rows, first=0):
    lines = ["age,colour,visits,member,buys"]
    for i in range(first, first + rows):
        age, colour = 18 + 37 * i % 53, ("red", "green", "blue", "?")[7 * i // 3 % 4]
        buys = "yes" if (age > 40) == (colour == "red") else "no"
        lines.append(f"{age},{colour},{i * i % 23},{('true', 'false')[i % 2]},{buys}")
    path.write_text("\n".join(lines) + "\n")


def test_the_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(tmp_path / "people.csv", 400)
    people(tmp_path / "newer.csv", 60, first=1000)
    said = {}
    for command in COMMANDS:
        program, *words = shlex.split(command)
        assert program == "gatefit"
        quick = ["--steps", "60"] if words[0] == "train" and "--look" not in words else []
        outcome = invoke(*words, *quick)
        assert outcome.code == 0, (command, outcome.err)
        said[command] = outcome.out
    shown = re.search(r"```\n(data .*?)```", PAGE, re.DOTALL)[1].splitlines()
    look = said["gatefit train --data people.csv --target buys --look"].splitlines()
    assert shown == look[:5]
    assert (tmp_path / "model.h").read_text().count("#include") >= 1
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 60
