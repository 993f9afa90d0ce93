"""docs/questions.md tells the truth: every snippet and command in it runs, in order, and prints what the page says.

Where answers have changed for a reason, GATEFIT_WRITE_PAGE=1 writes what is printed into the page; then read its prose.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from command_line import invoke

PAGE = Path(__file__).parent.parent / "docs" / "questions.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(TEXT)


def plain(text: str) -> str:
    """Without what is another number on every machine: seconds."""
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    return "\n".join(re.sub(r"\d+(\.\d+)?(e-\d+)? s\b", "… s", line) for line in lines)


def test_every_block_is_of_a_kind_that_is_run():
    kinds = [kind for kind, _ in BLOCKS]
    assert set(kinds) == {"python", "sh", "text"}
    assert kinds.count("text") >= 7
    for (kind, _), (before, _) in zip(BLOCKS[1:], BLOCKS, strict=False):
        assert kind != "text" or before in ("python", "sh")  # what is printed stands below what prints it


@pytest.mark.outside
@pytest.mark.data
def test_the_page_from_fit_to_an_audited_statement(tmp_path, monkeypatch):
    if not os.environ.get("GATEFIT_DATA"):
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds adult/")
    pytest.importorskip("dratify")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    names: dict[str, object] = {}
    printed, outputs = "", []
    writing = bool(os.environ.get("GATEFIT_WRITE_PAGE"))
    for kind, content in BLOCKS:
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(content, str(PAGE), "exec"), names)
            printed = output.getvalue()
        elif kind == "sh":
            printed = ""
            for line in content.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "gatefit"
                done = invoke(*arguments)
                assert done.code in (0, 1), (line, done.err)  # 1: a counterexample
                printed += done.out
        elif not writing:
            assert plain(printed) == plain(content)
        outputs.append(printed)
    assert {path.name for path in tmp_path.iterdir()} == {"adult.gate", "people.csv", "why.svg", "sex", "race"}
    if writing:
        shown = iter(outputs)
        shutil.copy("why.svg", PAGE.parent / "images" / "questions-why.svg")
        PAGE.write_text(BLOCK.sub(lambda block: _filled(block, next(shown)), TEXT), encoding="utf-8")


def _filled(block: re.Match[str], printed: str) -> str:
    if block[1] != "text":
        return block[0]
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return f"```text\n{lines}\n```"
