"""The verbs, put together; heavy libraries are imported by a verb when it runs, never by ``--help``.

The paper's verbs are no part of this package: their modules are imported when one of them is asked for or listed.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from typing import Annotated, Any, ClassVar, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command

import gatefit
from gatefit.cli import (
    bench,
    compile,
    datasets,
    demo,
    evaluate,
    export,
    frontier,
    info,
    models,
    predict,
    prune,
    runs,
    synth,
    train,
    verify,
    view,
    warm_up,
)
from gatefit.cli.compile_notice import announced
from gatefit.cli.errors import explain, one_line


class LaterVerbs(TyperGroup):
    """A group that knows some verbs by their name alone, until they are asked for or listed."""

    later: ClassVar[Mapping[str, Callable[[], typer.Typer]]] = {}
    """By name: what imports the verb, and returns it as the only command of an app."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        return get_command(self.later[cmd_name]()) if cmd_name in self.later else super().get_command(ctx, cmd_name)


class Verbs(LaterVerbs):
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


def _add(
    name: str,
    verb: Callable[..., None],
    examples: tuple[str, ...],
    *,
    kernels: bool = True,
    to: typer.Typer = app,
) -> None:
    # Paragraphs, so that every example is a line of its own.
    to.command(name, epilog="\n\n".join(("Example:", *examples)))(announced(verb) if kernels else verb)


def _reproduce() -> typer.Typer:
    from gatefit.paper.verbs import reproduce

    return _alone("reproduce", reproduce.reproduce, reproduce.EXAMPLE)


def _report() -> typer.Typer:
    from gatefit.paper.verbs import report

    return _alone("report", report.report, report.EXAMPLE, kernels=False)


def _missing() -> typer.Typer:
    from gatefit.paper.verbs import missing

    return _alone("missing", missing.missing, missing.EXAMPLE, kernels=False)


def _alone(name: str, verb: Callable[..., None], examples: tuple[str, ...], *, kernels: bool = True) -> typer.Typer:
    app_of_one = typer.Typer(add_completion=False)
    _add(name, verb, examples, kernels=kernels, to=app_of_one)
    return app_of_one


def _in_its_place() -> None:
    """What stands in the order of the verbs for one that is imported later; it is never called."""


class RunsVerbs(LaterVerbs):
    """The verbs on the runs of a store, and the paper's list of what is missing there."""

    later: ClassVar = {"missing": _missing}


Verbs.later = {"reproduce": _reproduce, "report": _report}


_add("train", train.train, train.EXAMPLE)
_add("evaluate", evaluate.evaluate, evaluate.EXAMPLE)
_add("compile", compile.compile_run, compile.COMPILE_EXAMPLE)
_add("optimise", compile.optimise_file, compile.OPTIMISE_EXAMPLE)
_add("prove", compile.prove_files, compile.PROVE_EXAMPLE)
_add("verify", verify.verify, verify.VERIFY_EXAMPLE)
_add("explain", verify.explain, verify.EXPLAIN_EXAMPLE)
_add("predict", predict.predict, predict.EXAMPLE)
_add("export", export.export, export.EXAMPLE, kernels=False)
_add("info", info.info, info.EXAMPLE, kernels=False)
_add("datasets", datasets.datasets, datasets.EXAMPLE, kernels=False)
_add("models", models.models, models.EXAMPLE, kernels=False)
_add("frontier", frontier.frontier, frontier.EXAMPLE)
runs.app.command("missing")(_in_its_place)
app.add_typer(runs.app, name="runs", cls=RunsVerbs)
app.command("reproduce")(_in_its_place)
app.command("report")(_in_its_place)
_add("view", view.view, view.EXAMPLE, kernels=False)
_add("synth", synth.synth, synth.EXAMPLE)
_add("prune", prune.prune, prune.EXAMPLE)
_add("bench", bench.bench, bench.EXAMPLE, kernels=False)
_add("warm-up", warm_up.warm_up, warm_up.EXAMPLE, kernels=False)
_add("demo", demo.demo, demo.EXAMPLE, kernels=False)


def main() -> None:
    """The entry point of the ``gatefit`` command."""
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows takes its old code page: a question mark for a √ is better than no help at all.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
