"""The verbs, put together; heavy libraries are imported by a verb when it runs, never by ``--help``."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

import gatefit
from gatefit.cli import (
    compile,
    datasets,
    demo,
    evaluate,
    export,
    info,
    predict,
    prune,
    report,
    reproduce,
    runs,
    synth,
    train,
    view,
)
from gatefit.cli.compile_notice import announced
from gatefit.cli.errors import explain, one_line


class Verbs(TyperGroup):
    """Turns errors that a user can mend into one line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; in standalone mode, end the process with its exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            explained = None if os.environ.get("GATEFIT_TRACEBACK") else explain(error)
            if explained is None:
                raise
            message, code = explained
            typer.echo(f"error: {one_line(message)}", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    typer.echo(f"warning: {one_line(str(message))}", err=True)


app = typer.Typer(
    cls=Verbs,
    name="gatefit",
    help="Fit logic gate networks; deploy them as proven combinational circuits.",
    epilog="Example: gatefit train --dataset monks-2 --steps 2000. The whole story in a minute: gatefit demo. "
    "Set GATEFIT_TRACEBACK=1 to see where an error came from.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gatefit {gatefit.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(name: str, verb: Callable[..., None], examples: tuple[str, ...], *, kernels: bool = True) -> None:
    # Paragraphs, so that every example is a line of its own.
    app.command(name, epilog="\n\n".join(("Example:", *examples)))(announced(verb) if kernels else verb)


_add("train", train.train, train.EXAMPLE)
_add("evaluate", evaluate.evaluate, evaluate.EXAMPLE)
_add("compile", compile.compile_run, compile.COMPILE_EXAMPLE)
_add("optimise", compile.optimise_file, compile.OPTIMISE_EXAMPLE)
_add("prove", compile.prove_files, compile.PROVE_EXAMPLE)
_add("predict", predict.predict, predict.EXAMPLE)
_add("export", export.export, export.EXAMPLE, kernels=False)
_add("info", info.info, info.EXAMPLE, kernels=False)
_add("datasets", datasets.datasets, datasets.EXAMPLE, kernels=False)
app.add_typer(runs.app, name="runs")
_add("reproduce", reproduce.reproduce, reproduce.EXAMPLE)
_add("report", report.report, report.EXAMPLE, kernels=False)
_add("view", view.view, view.EXAMPLE, kernels=False)
_add("synth", synth.synth, synth.EXAMPLE)
_add("prune", prune.prune, prune.EXAMPLE)
_add("demo", demo.demo, demo.EXAMPLE, kernels=False)


def main() -> None:
    """The entry point of the ``gatefit`` command."""
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows takes its old code page: a question mark for a √ is better than no help at all.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
