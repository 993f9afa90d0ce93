"""Every command that a page shows is one: its verb and all of its options exist, and options have their values."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from gatefit.cli import app
from pages import blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(text):
    """The gatefit command lines of a page's shell blocks and of its prose, continued lines joined."""
    shell = [block.code for block in blocks(text) if block.language == "sh"]
    lines = [line for code in shell for line in code.replace("\\\n", " ").splitlines()]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    inline = [code.replace("\n", " ") for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose)]
    for line in lines + inline:
        found = re.match(r"\s*(?:torchrun .*?-m gatefit\.cli|gatefit) +(\S.*)", line)
        if found and re.fullmatch(r"[a-z][a-z-]*|--\w+", shlex.split(found[1], comments=True)[0]):
            yield shlex.split(found[1], comments=True)


def check_command(arguments):
    """Parse a command line as the program does, up to the values' types and files."""
    command = get_command(app)
    context = command.context_class(command, info_name="gatefit")
    while hasattr(command, "get_command") and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        found = command.get_command(context, name)
        assert found is not None, f"{name} is no verb of {context.command_path}"
        command, context = found, found.context_class(found, info_name=name, parent=context)
    command.make_parser(context).parse_args(list(arguments))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_page_exist(page):
    for arguments in commands(page.read_text()):
        try:
            check_command(arguments)
        except Exception as error:
            raise AssertionError(f"{page}: gatefit {shlex.join(arguments)}: {error}") from error


@pytest.mark.parametrize("line", ["trian --dataset mnist", "train --dateset mnist", "export x.gate --to", "runs lost"])
def test_a_wrong_command_is_found(line):
    with pytest.raises(Exception, match=r"trian|dateset|requires|lost"):
        check_command(shlex.split(line))


def test_commands_are_found_in_blocks_and_in_prose():
    page = "Say `gatefit info a.gate`.\n\n```sh\ngatefit train \\\n  --out x  # a run\nls\n```\n`gatefit.verify`\n"
    assert list(commands(page)) == [["train", "--out", "x"], ["info", "a.gate"]]
