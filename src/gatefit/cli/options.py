"""Options of the command line made from a configuration, and a command line made from options.

RunConfig.readout_temperature: float | None = None   ->   --readout-temperature FLOAT
the options that were given                          ->   gatefit train --readout-temperature 3.0
"""

import inspect
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from gatefit.training.config import Option, RunConfig, option_of

DataDir = Annotated[
    Path | None, typer.Option(help="folder with the data sets' files, looked in first", show_default=False)
]
OwnFile = Annotated[
    Path | None,
    typer.Option(help="your own data: a .csv, .parquet, .npz or .npy file, or a folder of images", show_default=False),
]
SampleFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA.csv", help="one sample a line; columns are found by name; or .parquet, .npz, .npy, images"
    ),
]
OwnTarget = Annotated[
    str | None, typer.Option(help="--data: the column that was learned (default: as in training)", show_default=False)
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="--data: the first line is a sample: columns by order")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object and nothing else")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace a file that is there")]


def config_parameters() -> list[inspect.Parameter]:
    """One keyword parameter for every field of ``RunConfig``."""
    return [_parameter(option, option.kind) for option in map(option_of, fields(RunConfig))]


def with_config_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command(**options)`` the fields of ``RunConfig`` in front of its own parameters."""
    own = [p for p in inspect.signature(command).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    context, rest = own[:1], [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own[1:]]
    signature = inspect.Signature([*context, *config_parameters(), *rest])
    command.__signature__ = signature  # type: ignore[attr-defined]
    return command


def given_options(context: typer.Context) -> dict[str, Any]:
    """The values of the options that the user wrote, by parameter name."""
    given = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in context.params and source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT"):
            given[parameter.name] = context.params[parameter.name]
    return given


def command_line(context: typer.Context) -> str:
    """The command that runs this verb again with the same options, quoted for a shell."""
    words = [*_program(), context.info_name or ""]
    given = given_options(context)
    for parameter in context.command.params:
        if parameter.name not in given:
            continue
        value = given[parameter.name]
        if isinstance(value, bool):
            words += [parameter.opts[0]] if value else []
        elif isinstance(value, list | tuple):
            for each in value:
                words += [parameter.opts[0], str(each)]
        elif parameter.param_type_name == "argument":
            words.append(str(value))
        else:
            words += [parameter.opts[0], str(value)]
    return shlex.join(words)


def _program() -> list[str]:
    script = Path(sys.argv[0])
    if script.name != "gatefit":
        return [sys.executable, "-m", "gatefit.cli"]
    found = shutil.which("gatefit")
    return ["gatefit"] if found is not None and Path(found).resolve() == script.resolve() else [sys.argv[0]]


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _parameter(option: Option, kind: Any) -> inspect.Parameter:
    parser: dict[str, Any] = {}
    if {float, str} <= set(get_args(kind)):
        # Typer knows no choice of types.
        kind, parser = float | None, {"parser": _number_or_word, "metavar": "NUMBER|WORD"}
    shown = typer.Option(
        f"--{option.name.replace('_', '-')}", help=option.help, rich_help_panel=option.section, **parser
    )
    annotation = Annotated[kind, shown]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=annotation)
