"""``gatefit demo``: the whole story on handwritten digits, from pixels to a proven circuit in C and Verilog."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.circuits import optimise_and_prove, print_optimisation, working
from gatefit.cli.compile_notice import compilation
from gatefit.cli.errors import UserError
from gatefit.cli.gate_stories import telling_gates
from gatefit.training.config import RunConfig

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.datasets import Dataset
    from gatefit.encoders import Encoder
    from gatefit.network import LogicNetwork
    from gatefit.training.runs import Run

EXAMPLE = ("gatefit demo --out demo-output",)
_TIMED_SAMPLES = 200_000


def demo(
    out: Annotated[
        Path, typer.Option(help="folder for what is written; what an earlier demo wrote is replaced")
    ] = Path("demo-output"),
    steps: Annotated[int, typer.Option(min=1, help="training steps")] = 600,
    threads: Annotated[int | None, typer.Option(min=1, help="threads (default: all)", show_default=False)] = None,
) -> None:
    """Train on handwritten digits, harden, optimise, prove, predict, and write C and Verilog: half a minute in all."""
    require("torch", "train", "the demo")
    require("sklearn", "train", "the demo")
    start = time.perf_counter()
    with _circuits_meanwhile(), compilation(speak=True) as compiled:
        _tell_the_story(out, steps, threads)
    work = time.perf_counter() - start - compiled.seconds
    typer.echo(f"\n{output.duration(compiled.seconds)} of compilation, once; {output.duration(work)} of work")


@contextmanager
def _circuits_meanwhile() -> Iterator[None]:
    """What circuits need is compiled by a process of its own while a network is trained, where a processor is free.

    It writes what every process reads: who is first at a kernel compiles it.
    """
    if (os.cpu_count() or 1) < 2:
        yield
        return
    words = [sys.executable, "-c", "from gatefit.warm_up import simple_circuits; simple_circuits()"]
    silent = subprocess.DEVNULL
    helper = subprocess.Popen(words, stdin=silent, stdout=silent, stderr=silent)
    try:
        yield
    finally:
        helper.kill()
        helper.wait()


def _tell_the_story(out: Path, steps: int, threads: int | None) -> None:
    from gatefit.datasets import load_dataset
    from gatefit.harden import harden

    run_folder = _fresh(out)
    dataset = load_dataset("digits")
    config = RunConfig(dataset="digits", width=2000, depth=4, steps=steps, evaluate_every=100)

    _title(f"1. Train {config.depth} layers of {config.width:,} gates on {len(dataset.y_train):,} images of digits")
    run = _train(config, run_folder, dataset, threads)
    results = run.result.summary
    gap = output.points(results["discretisation_gap_test"])
    typer.echo(f"test accuracy {output.percent(results['test_accuracy'])}, discretisation gap {gap}")

    _title("2. Harden, optimise, prove")
    trained = harden(_network(run))
    # The deeper levels find next to nothing more in this circuit, and their kernels take seconds to compile.
    circuit, content = optimise_and_prove(trained, level=1, proving=True, certificate=None, quiet=False)
    print_optimisation(content)

    _title("3. Predict without torch")
    bits = dataset.encoder.transform(dataset.x_test)
    classes = _predict(circuit, bits, dataset, run)

    _title("4. Write files")
    _write(circuit, out)
    _compare_c(circuit, bits, classes)

    _title("5. Three learned gates in words: pixel(row, column), brightness 0 to 16")
    _tell(circuit, dataset)


def _title(text: str) -> None:
    typer.echo(f"\n{text}")


def _fresh(out: Path) -> Path:
    """The run's folder, emptied of an earlier demo's run and of nothing else."""
    out.mkdir(parents=True, exist_ok=True)
    folder = out / "run"
    if folder.exists():
        if not (folder / "config.json").exists():
            raise UserError(f"{folder} is not from an earlier demo; choose another --out")
        shutil.rmtree(folder)
    return folder


def _train(config: RunConfig, folder: Path, dataset: "Dataset", threads: int | None) -> "Run":
    from gatefit.cli.progress import shown
    from gatefit.cli.stop import StopSignals
    from gatefit.training.runs import execute

    with StopSignals() as stop, shown(output.console(), quiet=False) as observers:
        run = execute(
            config, folder=folder, observers=[stop, *observers], should_stop=stop, threads=threads, dataset=dataset
        )
    if not run.result.finished:
        raise typer.Exit(stop.exit_code)
    return run


def _network(run: "Run") -> "LogicNetwork":
    from gatefit.network import LogicNetwork

    assert isinstance(run.network, LogicNetwork)
    return run.network


def _predict(circuit: "Circuit", bits: "np.ndarray", dataset: "Dataset", run: "Run") -> "np.ndarray":
    import numpy as np
    import torch

    from gatefit.circuit.engine import Engine

    engine = Engine(circuit)
    classes = engine.predict(bits)
    with torch.no_grad():
        expected = run.network(torch.from_numpy(bits)).argmax(1).numpy()
    many = np.tile(bits, (-(-_TIMED_SAMPLES // len(bits)), 1))[:_TIMED_SAMPLES]
    seconds = min(_seconds(engine, many) for _ in range(3))
    gates = circuit.gates.size * len(many) / seconds
    output.print_pairs(
        [
            ("test accuracy", output.percent(float((classes == dataset.y_test).mean()))),
            ("same as in torch", f"{int((classes == expected).sum())} of {len(expected)} predictions"),
            ("speed", f"{len(many) / seconds:,.0f} samples/s, {gates:.2g} gates/s, {engine.threads} threads"),
        ]
    )
    return classes


def _seconds(engine: Any, bits: "np.ndarray") -> float:
    start = time.perf_counter()
    engine.predict(bits)
    return time.perf_counter() - start


def _write(circuit: "Circuit", out: Path) -> None:
    from gatefit.backends.c import to_c
    from gatefit.backends.verilog import to_verilog
    from gatefit.circuit.file import write_atomically

    circuit.save(out / "digits.gate", overwrite=True)
    write_atomically(out / "digits.h", to_c(circuit, "digits").encode())
    write_atomically(out / "digits.v", to_verilog(circuit, "digits").encode())
    kinds = {"digits.gate": "the circuit", "digits.h": "C99, one header", "digits.v": "Verilog"}
    rows = [(str(out / name), kind, f"{(out / name).stat().st_size:,} bytes") for name, kind in kinds.items()]
    output.print_table(("file", "what", "size"), rows)


def _compare_c(circuit: "Circuit", bits: "np.ndarray", classes: "np.ndarray") -> None:
    """The C, compiled and run on the same images, where a compiler is at hand."""
    from gatefit.backends.c.native import NativeModel

    if shutil.which("cc") is None:
        typer.echo("no C compiler here: the C was not run")
        return
    start = time.perf_counter()
    with working("compiling the C"):
        native = NativeModel(circuit)
    seconds = time.perf_counter() - start
    same = int((native.predict(bits) == classes).sum())
    typer.echo(f"compiled C gives the same class for {same} of {len(classes)} images (compiled in {seconds:.1f} s)")


def _tell(circuit: "Circuit", dataset: "Dataset") -> None:
    names = pixel_names(dataset.encoder, 8)
    bits = dataset.encoder.transform(dataset.x_train)
    for story in telling_gates(circuit, bits, dataset.y_train, names):
        typer.echo(
            f"  {story.text}\n      true for {story.most_share:.0%} of the images of a {story.most}, "
            f"{story.least_share:.0%} of a {story.least}"
        )


def pixel_names(encoder: "Encoder", columns: int) -> tuple[str, ...]:
    """The encoder's bits by row and column of the image, counted from 1."""
    names = []
    for rule in encoder.rules:
        row, column = divmod(rule.feature, columns)
        names.append(f"pixel({row + 1}, {column + 1}) {rule.test} {rule.value:g}")
    return tuple(names)
