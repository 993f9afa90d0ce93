"""``gatefit train``: one configuration in, one run folder out; stop it at any moment and go on later."""

import time
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.datasets import load
from gatefit.cli.errors import UserError, check_choice, user_input
from gatefit.cli.options import AsJson, DataDir, command_line, given_options, with_config_options
from gatefit.cli.own_data import OWN, Session, request_of, resume_own, train_own
from gatefit.training.budget import budgeted
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    from gatefit.network import LogicNetwork
    from gatefit.training.parallel import ProcessGroup
    from gatefit.training.runs import Run

EXAMPLE = (
    "gatefit train --data people.csv --target income --out income",
    "gatefit train --data people.csv --target income --column age=thresholds:16 --column name=drop --look",
    "gatefit train --dataset monks-2 --width 136 --depth 6 --steps 10000 --out runs/monks",
    "gatefit train --dataset mnist --thresholds 3 --max-gates 4000",
    "gatefit train --resume runs/monks",
    "gatefit train --resume runs/monks --steps 20000",
    "torchrun --nproc-per-node 2 -m gatefit.cli train --dataset mnist --width 64000",
)


class Task(str, Enum):
    """What a target is."""

    classification = "classification"
    regression = "regression"


@with_config_options
def train(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option(help="folder of the run (default: runs/DATASET-METHOD-ID)", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="go on with the run in this folder, by its own config.json; with --steps, to more", show_default=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="your own data: a .csv, .parquet, .npz or .npy file, or a folder of images with a folder a class",
            rich_help_panel="Own data",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="the column to learn", rich_help_panel="Own data", show_default=False)
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="a file of rows to test on, and not to learn from", rich_help_panel="Own data"),
    ] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            help="the part of the rows that is kept apart to test on (default: 0.2)",
            rich_help_panel="Own data",
            show_default=False,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ENCODING",
            help="how a column is encoded: thresholds:16, category, category:20, bits or drop; any number of times",
            rich_help_panel="Own data",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        Task | None,
        typer.Option(help="what the target is (default: as it looks)", rich_help_panel="Own data", show_default=False),
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header", help="the first line is a sample: columns are x0, x1, ...", rich_help_panel="Own data"
        ),
    ] = False,
    look: Annotated[
        bool, typer.Option("--look", help="only look at the data: train nothing", rich_help_panel="Own data")
    ] = False,
    max_gates: Annotated[
        int | None,
        typer.Option(min=1, help="learned wiring of so many live gates at most, all voting", show_default=False),
    ] = None,
    max_luts: Annotated[
        int | None,
        typer.Option(min=1, help="so many tables of six inputs in all, by an estimate", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    threads: Annotated[int | None, typer.Option(min=1, help="threads (default: all)", show_default=False)] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress, no summary")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="write curves to FOLDER/tensorboard")] = False,
    **options: Any,
) -> None:
    """Train a network. A run that was stopped goes on from its last checkpoint; a finished one is shown.

    --data trains on your own file with the estimators' defaults; --dataset has the paper's.

    With more --steps a run in its folder goes on to them, if its learning rate is constant.

    --max-gates and --max-luts choose the widest network that fits, and how it is trained where no option says.

    Started by torchrun, the processes share the batches of one run.
    """
    require("torch", "train", "training")
    session = Session(out, threads, as_json, quiet, tensorboard, look)
    if data is not None and resume is None:
        train_own(context, request_of(context), session)
        return
    from gatefit.training.own_run import read_own_run

    if resume is not None and (own := read_own_run(resume)) is not None:
        resume_own(context, resume, own, session)
        return
    stray = [name for name in OWN if name in given_options(context)]
    if stray:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in stray)
        raise UserError(f"{names} is about your own data; say which with --data FILE, or leave it out")
    from gatefit.training.folder import default_folder
    from gatefit.training.parallel import process_group

    budget = {"max_gates": max_gates, "max_luts": max_luts}
    config = _chosen_config(context, resume, options, {k: v for k, v in budget.items() if v is not None})
    folder = resume or out or default_folder(config)
    start = time.monotonic()
    with process_group() as group:
        follows = group is not None and not group.writes
        content = None if follows else _finished_run(folder, config)
        if content is not None:
            if not (as_json or quiet):
                typer.echo(f"{folder} is finished already:")
        else:
            quiet, tensorboard = quiet or follows, tensorboard and not follows
            content = _execute(context, config, folder, data_dir, threads, as_json, quiet, tensorboard, group)
            if content is None:
                return
            content["seconds"] = round(time.monotonic() - start, 3)
    if as_json:
        output.print_json(content)
    elif not quiet and content["finished"]:
        output.print_pairs(summary_rows(content))
    if not content["finished"]:
        typer.echo(f"stopped at step {content['step']} of {config.steps}; to go on:", err=as_json)
        typer.echo(f"  {content['resume']}", err=as_json)
        raise typer.Exit(content["exit_code"])


def _chosen_config(
    context: typer.Context, resume: Path | None, options: dict[str, Any], budget: dict[str, int]
) -> RunConfig:
    if resume is not None:
        from gatefit.training.folder import read_config

        given = given_options(context)
        refused = [name for name in given if (name in options and name != "steps") or name in ("out", *budget)]
        if refused:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in refused)
            raise UserError(f"--resume takes the configuration of {resume}, got {names} too; leave it out")
        config = read_config(resume)
        with user_input():
            return replace(config, steps=options["steps"]) if "steps" in given else config
    from gatefit.datasets import DATASETS
    from gatefit.methods import METHODS
    from gatefit.readouts import READOUTS
    from gatefit.wirings import WIRINGS

    if {"widths", "depth"} <= given_options(context).keys():
        raise UserError("--widths says how many layers there are, got --depth too; leave --depth out")
    check_choice("data set", options["dataset"], DATASETS)
    check_choice("method", options["method"], METHODS)
    for name in options["wiring"].split(","):
        check_choice("wiring", name.strip(), WIRINGS)
    check_choice("readout", options["readout"], [name for name in READOUTS if name != "regression"])
    with user_input():
        if budget:
            given = {name: value for name, value in given_options(context).items() if name in options}
            options |= budgeted(given, DATASETS[options["dataset"]].classes, **budget)
        config = RunConfig(**options).resolved()
        config.method_options()
    return config


def _execute(
    context: typer.Context,
    config: RunConfig,
    folder: Path,
    data_dir: Path | None,
    threads: int | None,
    as_json: bool,
    quiet: bool,
    tensorboard: bool,
    group: "ProcessGroup | None",
) -> dict[str, Any] | None:
    """What the run came to; None in a process that only shares the leader's batches."""
    from gatefit.cli.progress import TensorBoard, shown
    from gatefit.cli.stop import StopSignals
    from gatefit.training.runs import execute_together

    console = output.console(stderr=as_json)
    curves = [TensorBoard(folder / "tensorboard")] if tensorboard else []
    with StopSignals() as stop:
        dataset = load(config.dataset, data_dir, config.dataset_options(), quiet=quiet)
        try:
            with shown(console, quiet=quiet) as observers:
                runs = execute_together(
                    [config],
                    folders=[folder],
                    dataset=dataset,
                    threads=threads,
                    observers=[[stop, *observers, *curves]],
                    should_stop=stop,
                    strategy=group,
                )
        except (ValueError, TypeError) as error:
            # Until the first step, what fails is what the configuration asks for; later, it is our bug.
            if stop.training:
                raise
            raise UserError(str(error)) from error
    if not runs:
        return None
    run = runs[0]
    content = run_content(run)
    if not run.result.finished:
        content |= {"resume": command_line(context), "exit_code": stop.exit_code}
    return content


def run_content(run: "Run") -> dict[str, Any]:
    """A run's configuration, state and figures, fit for JSON."""
    from gatefit.network import LogicNetwork

    state = run.result.state
    assert isinstance(run.network, LogicNetwork)
    return _content(run.folder, run.config, run.network, run.result.summary, run.result.finished, state.step)


def _finished_run(folder: Path, config: RunConfig) -> dict[str, Any] | None:
    """The same of a run that is finished: its data are not needed to show it."""
    from gatefit.training.folder import read_config, read_finished
    from gatefit.training.metrics import summary
    from gatefit.training.runs import load_network

    if not (folder / "result.json").exists() or read_config(folder) != config:
        return None
    figures = summary(read_finished(folder), validated=bool(config.validation_fraction))
    return _content(folder, config, load_network(folder / "model.safetensors"), figures, True, figures["steps"])


def _content(
    folder: Path, config: RunConfig, network: "LogicNetwork", results: dict[str, Any], finished: bool, step: int
) -> dict[str, Any]:
    from gatefit.training.temperature import read_search

    search = read_search(folder) if config.readout_temperature == "search" else None
    return {
        "folder": str(folder),
        "config": asdict(config),
        "finished": finished,
        "step": step,
        "network": network_content(network),
        "results": results,
        **({} if search is None else {"temperature_search": asdict(search)}),
    }


def network_content(network: "LogicNetwork") -> dict[str, Any]:
    """The sizes of a network."""
    return {
        "inputs": network.inputs,
        "classes": network.classes,
        "width": network.width,
        "depth": network.depth,
        "widths": list(network.widths),
        "gates": sum(network.widths),
        "coverage": network.gate_layers[0].coverage,
        "readout_temperature": getattr(network.readout, "temperature", None),
    }


def _layers(network: dict[str, Any]) -> str:
    if network["gates"] == network["depth"] * network["width"]:
        return f"{network['depth']} layers of {network['width']:,}"
    return "layers of " + " + ".join(f"{width:,}" for width in network["widths"])


def summary_rows(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The end of a run in words."""
    results, network = content["results"], content["network"]
    held_out = "validation" if content["config"]["validation_fraction"] else "test"
    kind = "" if results["boolean"] else "  (soft: this method has no gates to deploy)"
    rows = [
        (f"{held_out} accuracy", f"{output.percent(results[f'{held_out}_accuracy'])}{kind}"),
        ("last 10 evaluations", output.percent(results["last_10_accuracy"])),
        ("best evaluation", f"{output.percent(results['best_accuracy'])}  at step {results['best_step']}"),
        ("train accuracy", output.percent(results["train_accuracy"])),
        (f"discretisation gap, {held_out}", output.points(results[f"discretisation_gap_{held_out}"])),
        ("discretisation gap, train", output.points(results["discretisation_gap_train"])),
        ("generalisation gap", output.points(results["generalisation_gap"])),
        ("gates", f"{network['gates']:,}  ({_layers(network)})"),
        ("inputs read", f"{output.percent(network['coverage'])} of {network['inputs']:,}"),
    ]
    if network["readout_temperature"] is not None:
        search = content.get("temperature_search")
        tried = [] if search is None else [f"{each['temperature']:.3g}" for each in search["trials"]]
        how = f"  (searched, tried {', '.join(tried)})" if tried else ""
        rows.append(("readout temperature", f"{network['readout_temperature']:.4g}{how}"))
    if "seconds" in content:
        rows.append(("wall time", output.duration(content["seconds"])))
    return [*rows, ("folder", content["folder"])]
