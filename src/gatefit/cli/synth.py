"""``gatefit synth``: what a circuit costs on an FPGA, from tools that placed, routed and simulated it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gatefit
from gatefit.cli import output
from gatefit.cli.circuits import load_circuit
from gatefit.cli.datasets import load
from gatefit.cli.errors import FAILED, UserError, check_choice, explain, user_input
from gatefit.cli.evaluate import dataset_of
from gatefit.cli.options import AsJson, DataDir

if TYPE_CHECKING:
    import numpy as np

    from gatefit.circuit.ir import Circuit
    from gatefit.hardware.targets import Device, Target

EXAMPLE = (
    "gatefit synth digits.gate --target ice40,ecp5,xilinx --out digits-hardware",
    "gatefit synth runs/mnist --target ecp5 --device 85k --pipeline 0,6 --out mnist-hardware",
)


def synth(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.gate|RUN|NAME", help="circuit file, folder of a compiled run, or name of a model"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="folder for the report and every tool's files (default: NAME-hardware)",
            show_default=False,
        ),
    ] = None,
    target: Annotated[str, typer.Option(help="ice40, ecp5, xilinx, lut4, lut6; several with commas")] = "ice40",
    device: Annotated[
        str | None, typer.Option(help="devices of the targets (default: ice40 hx8k, ecp5 25k)", show_default=False)
    ] = None,
    pipeline: Annotated[str, typer.Option(help="numbers of pipeline stages; auto for one per few levels")] = "0,auto",
    inputs: Annotated[str, typer.Option(help="bits, or raw: compare features inside the circuit")] = "bits",
    feature_bits: Annotated[int, typer.Option(min=1, max=64, help="--inputs raw: bits of a feature")] = 8,
    no_scores: Annotated[bool, typer.Option("--no-scores", help="the class number is the only output")] = False,
    no_route: Annotated[bool, typer.Option("--no-route", help="count only; do not place and route")] = False,
    vectors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="simulate these samples, a .csv, .parquet, .npz or .npy file or images (default: the test set)",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="samples to simulate, at most")] = 200,
    router: Annotated[
        str, typer.Option(help="nextpnr's router1 (faster paths) or router2 (for crowded devices)")
    ] = "router1",
    seed: Annotated[int, typer.Option(help="seed of the placement, and of random vectors")] = 1,
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for one step of one tool")] = 1800.0,
    data_dir: DataDir = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="write into a folder that is there")] = False,
    as_json: AsJson = False,
) -> None:
    """Export, simulate, prove, synthesise, place and route a circuit; report LUTs, levels, frequency and latency.

    Exit code 0: every comparison agrees, 1: one differs or could not be made (the report says which).
    """
    from gatefit.hardware.build import Settings
    from gatefit.hardware.flow import check_circuit, resolve_stages, synthesise
    from gatefit.hardware.route import ROUTERS
    from gatefit.hardware.tools import MissingToolError

    check_choice("--inputs", inputs, ("bits", "raw"))
    check_choice("--router", router, ROUTERS)
    chosen = _targets(target, device)
    circuit = load_circuit(model)
    out = out or Path(f"{model.resolve().stem}-hardware")
    with user_input():
        check_circuit(circuit)
        stages = resolve_stages(circuit, _stages(pipeline))
    if out.exists() and not overwrite and (out.is_file() or any(out.iterdir())):
        raise UserError(f"{out} exists; choose another --out, or write into it with --overwrite")
    about: dict[str, Any] = {"gatefit": gatefit.__version__, "model": str(model)}
    raw_bits = feature_bits if inputs == "raw" else 0
    bits, stimulus, found = _vectors(circuit, model, vectors, samples, seed, data_dir, raw_bits)
    out.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        bits,
        stimulus,
        raw_bits,
        not no_scores,
        timeout,
        seed,
        not no_route,
        router,
        lambda text: typer.echo(text, err=True) if not as_json else None,
    )
    try:
        with user_input():
            report = synthesise(circuit, chosen, stages, out, settings, about | found, lambda r: _save(r, out))
    except MissingToolError as error:
        raise UserError(str(error)) from None
    if as_json:
        output.print_json(report)
    else:
        from gatefit.hardware.report import text_report

        typer.echo(text_report(report), nl=False)
        typer.echo(f"\nwritten  {out / 'report.html'}, report.json, report.txt")
    if report["verdict"]["status"] != "agrees":
        raise typer.Exit(FAILED)


def _save(report: dict[str, Any], out: Path) -> None:
    from gatefit.circuit.file import write_atomically
    from gatefit.hardware.report import html_report, text_report

    write_atomically(out / "report.json", (output.json_text(report) + "\n").encode())
    write_atomically(out / "report.txt", text_report(report).encode())
    write_atomically(out / "report.html", html_report(report).encode())


def _targets(names: str, devices: str | None) -> list[tuple["Target", "Device | None"]]:
    from gatefit.hardware.targets import TARGETS

    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        check_choice("target", name, TARGETS)
    picked: dict[str, str] = {}
    known = {d.name: name for name in chosen for d in TARGETS[name].devices}
    for device in filter(None, (devices or "").split(",")):
        if not known:
            raise UserError(f"--device {device} is for ice40 and ecp5, got --target {names}; leave it out")
        check_choice("device", device.strip(), known)
        picked[known[device.strip()]] = device.strip()
    found: list[tuple[Target, Device | None]] = []
    for name in dict.fromkeys(chosen):
        target = TARGETS[name]
        found.append((target, target.device(picked.get(name, target.default)) if target.routable else None))
    return found


def _stages(text: str) -> list[int | None]:
    stages: list[int | None] = []
    for word in (part.strip() for part in text.split(",")):
        if word != "auto" and not (word.isascii() and word.isdigit()):
            raise UserError(f"--pipeline takes numbers of stages or auto, with commas, got {text!r}; e.g. 0,auto")
        stages.append(None if word == "auto" else int(word))
    return stages


def _vectors(
    circuit: "Circuit",
    model: Path,
    file: Path | None,
    samples: int,
    seed: int,
    data_dir: Path | None,
    feature_bits: int,
) -> tuple["np.ndarray", tuple[int, ...] | None, dict[str, Any]]:
    """Input bits to simulate, the input port's values where it takes features, and where they come from."""
    import numpy as np

    from gatefit.cli.tables import read_bits, read_features
    from gatefit.datasets.own_files import read_table
    from gatefit.hardware.vectors import edge_features, feature_matrix, pack_features

    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    x: Any = None
    encoder = circuit.encoder
    if feature_bits:
        from gatefit.backends.comparators import require_carried

        if encoder is None:
            raise UserError("--inputs raw needs the circuit's encoder, and it was saved without one; use --inputs bits")
        with user_input():
            require_carried(encoder, feature_bits)
    if file is not None:
        with user_input():
            table = read_table(file)
            x = read_bits(table, circuit) if encoder is None else read_features(table, encoder)
        source = str(file)
    else:
        try:
            name, options = dataset_of(
                circuit, model, None, "give samples with --vectors FILE.csv", "give it with --vectors FILE"
            )
            data = load(name, data_dir, options, quiet=True)
            encoder = encoder or data.encoder
            x, source = data.x_test, f"test set of {name}"
            found["accuracy"] = _accuracy(circuit, encoder.transform(x), data.y_test)
        except Exception as error:
            reason = explain(error)
            if reason is None:
                raise
            source = f"random, because there is no data set: {reason[0]}"
    with user_input():
        if feature_bits:
            assert circuit.encoder is not None
            features = edge_features(circuit.encoder, feature_bits, rng, samples if x is None else 0)
            source += "; with values on both sides of every threshold"
            if x is not None:
                given = feature_matrix(x, circuit.encoder, feature_bits)[:samples]
                features = np.concatenate([given.astype(features.dtype), features])
            found["vectors"] = {"count": len(features), "source": source}
            return circuit.encoder.transform(features), pack_features(features, feature_bits), found
        bits = (
            rng.random((samples, circuit.inputs)) < 0.5 if x is None else x if encoder is None else encoder.transform(x)
        )
    bits = np.asarray(bits, dtype=np.bool_)[:samples]
    found["vectors"] = {"count": len(bits), "source": source}
    return bits, None, found


def _accuracy(circuit: "Circuit", bits: "np.ndarray", classes: "np.ndarray") -> float:
    from gatefit.circuit.engine import Engine

    return float((Engine(circuit).predict(bits) == classes).mean())
