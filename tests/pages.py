"""A page of Markdown as a session: its blocks of code are run in order, in one folder, and answer as the page says.

    ```sh            run by bash, which stops at the first command that fails
    ```python        run in one namespace a page
    ```python title="name.py"      written to that file; so is any other language that has a title
    ```text          directly after a block: what that block printed

A comment directly above a block says what else is done with it:

    <!-- tests run: COMMANDS -->            a small version of what takes long; the page must say so to its readers
    <!-- tests do not run: REASON -->
    <!-- ends with code 1 -->

Printed numbers may be a fifth off, since other versions train other networks; ``...`` stands for anything.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(
    r"(?:<!--(?P<comment>(?:(?!-->).)*)-->[ \t]*\n)?^(?P<indent> *)```(?P<language>[a-z]+)?(?P<rest>[^\n]*)\n"
    r"(?P<code>.*?)^(?P=indent)```[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_TIME = re.compile(r"\d[\d,.]* ?(?:ns|µs|ms|s|min|h)\b")
_DIGEST = re.compile(r"\b[0-9a-f]{12,64}\b")
_TOLERANCE, _SLACK = 0.2, 2.0
NEVER = "(?!)"
"""A pattern that nothing holds."""

DRIVER = """
import contextlib, io, json, pathlib, subprocess, sys
steps, space, printed = json.loads(pathlib.Path(sys.argv[1]).read_text()), {"__name__": "page"}, []
for step in steps:
    if step["kind"] == "file":
        pathlib.Path(step["title"]).write_text(step["code"])
        printed.append("")
    elif step["kind"] == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(step["code"], step["where"], "exec"), space)
        printed.append(out.getvalue())
    else:
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["code"]], capture_output=True, text=True)
        if done.returncode != step["code_expected"]:
            sys.exit(f"{step['where']}: code {done.returncode}\\n{step['code']}\\n{done.stdout}\\n{done.stderr}")
        printed.append(done.stdout)
pathlib.Path(sys.argv[1]).write_text(json.dumps(printed))
"""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    line: int
    language: str
    title: str | None
    code: str
    comment: str
    says: str | None
    """What the page says that the block prints."""

    @property
    def run(self) -> str | None:
        """What tests run of it; None where it is not run."""
        if "tests do not run:" in self.comment:
            return None
        instead = re.search(r"tests run:(.*)", self.comment, re.DOTALL)
        return instead[1].strip() if instead else self.code

    @property
    def ends_with(self) -> int:
        """The exit code that a shell block has."""
        code = re.search(r"ends with code (\d+)", self.comment)
        return int(code[1]) if code else 0


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page that have a language; a ``text`` block belongs to the one directly before it."""
    found: list[Block] = []
    end = -1
    for match in _FENCE.finditer(text):
        language, code = match["language"], _dedent(match["code"], len(match["indent"]))
        if language == "text" and found and not text[end : match.start()].strip():
            last = found[-1]
            found[-1] = Block(last.line, last.language, last.title, last.code, last.comment, code)
        elif language:
            title = re.search(r'title="([^"]+)"', match["rest"])
            line = text.count("\n", 0, match.start("indent")) + 1
            found.append(Block(line, language, title[1] if title else None, code, match["comment"] or "", None))
        end = match.end()
    return found


def _dedent(code: str, by: int) -> str:
    return "".join(line[by:] if line[:by].isspace() else line for line in code.splitlines(keepends=True))


def run_page(
    path: Path, folder: Path, first: str = "", languages: tuple[str, ...] = ("sh", "python"), skip: str = NEVER
) -> list[tuple[Block, str]]:
    """Run a page's blocks in a folder; what each printed.

    ``first`` is Python that a reader has run before; blocks that hold the pattern ``skip`` are left out.
    """
    steps, run = [], []
    if first:
        steps.append({"kind": "python", "code": first, "where": "before the page"})
    for block in blocks(path.read_text(encoding="utf-8")):
        where = f"{path.name}:{block.line}"
        if block.title is not None:
            steps.append({"kind": "file", "code": block.code, "title": block.title, "where": where})
        elif block.language in languages and block.run is not None and not re.search(skip, block.code):
            kind = "python" if block.language == "python" else "sh"
            steps.append({"kind": kind, "code": block.run, "where": where, "code_expected": block.ends_with})
        else:
            continue
        run.append(block)
    script = folder.parent / f"{folder.name}-steps.json"
    script.write_text(json.dumps(steps))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{path}\n{done.stderr[-4000:]}"
    return list(zip(run, json.loads(script.read_text())[bool(first) :], strict=True))


def agrees(says: str, printed: str) -> bool:
    """Whether what was printed is what the page says, up to times, digests and a fifth of every number."""
    for pattern in (_TIME, _DIGEST):
        says, printed = pattern.sub("~", says), pattern.sub("~", printed)
    parts = [re.escape(part) for part in re.split(r"\s+", _NUMBER.sub("\0", says).strip())]
    words = r"\s+".join(parts).replace(re.escape("..."), ".*?").replace(re.escape("\0"), f"({_NUMBER.pattern})")
    match = re.fullmatch(words, printed.strip(), re.DOTALL)
    if match is None:
        return False
    pairs = zip(_NUMBER.findall(says), match.groups(), strict=True)
    return all(_near(_value(said), _value(found)) for said, found in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _near(said: float, found: float) -> bool:
    return abs(said - found) <= max(_TOLERANCE * abs(said), _SLACK if said > _SLACK else 0.0)
