"""What mkdocs adds to the pages of docs/ when it builds the site.

live/mnist-1k.html    the circuit at work, as `gatefit export mnist-1k --to html` writes it; linked from the home page
commands.md           every verb with its options, from the command line itself
"""

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

from gatefit.backends.html import to_html
from gatefit.circuit.ir import Circuit
from gatefit.cli import app

MODEL = "mnist-1k"
LIVE = f"live/{MODEL}.html"
PLACE = "<!-- live circuit -->"
LINK = f"[Draw a digit: the circuit runs in your browser]({LIVE}){{ .md-button .md-button--primary }}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made from the package."""
    page = to_html(Circuit.load(MODEL), title="MNIST handwritten digits")
    files.append(File.generated(config, LIVE, content=page))
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link the live circuit from the home page, in the site alone: elsewhere that page does not exist."""
    if PLACE in markdown:
        page.meta["hide"] = ["navigation", "toc"]
    return markdown.replace(PLACE, LINK)


def commands() -> str:
    """The page of all commands."""
    group = get_command(app)
    context = group.context_class(group, info_name="gatefit")
    parts = ["# Commands\n\nAs `gatefit VERB --help` says it; every verb has an example there.\n"]
    parts.extend(_verb(group.get_command(context, name), context, name) for name in group.list_commands(context))
    return "\n".join(parts)


def _verb(command: Any, parent: Any, name: str) -> str:
    context = command.context_class(command, info_name=name, parent=parent)
    if hasattr(command, "list_commands"):
        inner = [_verb(command.get_command(context, each), context, each) for each in command.list_commands(context)]
        return "\n".join([f"## {context.command_path}\n\n{_text(command.help)}\n", *inner])
    depth = "##" if parent.parent is None else "###"
    usage = " ".join(["gatefit", *context.command_path.split()[1:], *command.collect_usage_pieces(context)])
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and getattr(parameter, "name", "") != "help" and not getattr(parameter, "hidden", False):
            rows.append(f"| `{_cell(record[0])}` | {_cell(_text(record[1]))} |")
    table = ["| | |", "|---|---|", *rows] if rows else []
    return "\n".join(
        [f"{depth} {context.command_path}\n", f"{_text(command.help)}\n", f"`{_cell(usage)}`\n", *table, ""]
    )


def _text(text: str | None) -> str:
    return (
        " ".join((text or "").replace("\b", "").split()).replace("<", "&lt;").replace("*", "\\*").replace("$", "&#36;")
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
