"""``gatefit compile``, ``optimise`` and ``prove``: from a trained run to a circuit that is proven equal to it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gatefit._requires import require
from gatefit.cli import output
from gatefit.cli.circuits import (
    CONFLICTS,
    bit_string,
    optimise_and_prove,
    print_optimisation,
    refuse_existing,
    timed_proof,
    true_inputs,
)
from gatefit.cli.errors import REFUSED, UserError, user_input
from gatefit.cli.evaluate import file_rows
from gatefit.cli.options import AsJson, Overwrite, OwnFile, OwnTarget
from gatefit.cli.own_data import measure_bits, measured_words

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit

COMPILE_EXAMPLE = ("gatefit compile runs/monks --out monks.gate",)
OPTIMISE_EXAMPLE = ("gatefit optimise monks.gate --out smaller.gate --level 3",)
PROVE_EXAMPLE = ("gatefit prove monks.gate smaller.gate --certificate proof", "gatefit prove runs/monks")

Level = Annotated[int, typer.Option(min=0, max=3, help="0 nothing, 1 structure, 2 and rewriting, 3 and SAT merging")]
NoProve = Annotated[bool, typer.Option("--no-prove", help="save without a proof that nothing has changed")]
Conflicts = Annotated[int, typer.Option(min=1, help="solver conflicts for the proof: the same bound on every machine")]
Timeout = Annotated[
    float | None, typer.Option(help="seconds for the proof too (default: as many as it takes)", show_default=False)
]
CertificateFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="write the proof into this new folder", show_default=False)
]


def compile_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a finished run")],
    out: Annotated[Path | None, typer.Option(help="circuit file (default: RUN/model.gate)", show_default=False)] = None,
    level: Level = 3,
    no_optimise: Annotated[bool, typer.Option("--no-optimise", help="keep every gate that was trained")] = False,
    no_prove: NoProve = False,
    conflicts: Conflicts = CONFLICTS,
    timeout: Timeout = None,
    certificate: CertificateFolder = None,
    data: OwnFile = None,
    target: OwnTarget = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Harden a trained run, optimise its circuit, prove the result equal to what was trained, and save it.

    With --data the network that was trained and the circuit answer every row of a file of yours too, and are scored.
    """
    require("torch", "train", "compiling a run")
    from gatefit.training.folder import read_config
    from gatefit.training.harden_run import harden_run

    read_config(run)  # What is no run's folder is refused before anything else is said of it.
    out = out or run / "model.gate"
    refuse_existing(out, overwrite)
    if data is None and target is not None:
        raise UserError("--target is about --data; give the file too, or leave it out")
    trained = harden_run(run)
    rows = None if data is None else file_rows(trained, run, data, target)
    circuit, content = optimise_and_prove(
        trained,
        level=0 if no_optimise else level,
        proving=not no_prove,
        conflicts=conflicts,
        timeout=timeout,
        certificate=certificate,
        quiet=as_json,
    )
    circuit.save(out, overwrite=overwrite)
    if certificate is not None:
        # The certificate speaks of two circuits: keep the one that is not the output beside it.
        trained.save(certificate / "spec.gate")
    content |= _written(out, certificate)
    if rows is not None:
        content["check"] = _checked_rows(run, circuit, *rows)
    _report(content, as_json)


def _checked_rows(run: Path, circuit: "Circuit", x: Any, y: Any) -> dict[str, Any]:
    """What the circuit reaches on a file, and on how many rows it answers as the network does in torch."""
    import torch

    from gatefit.circuit.engine import Engine
    from gatefit.training.runs import load_network

    assert circuit.encoder is not None, "file_rows has refused it"
    with user_input():
        bits = circuit.encoder.transform(x)
    engine = Engine(circuit)
    with torch.no_grad():
        scores = load_network(run / "model.safetensors")(torch.from_numpy(bits)).numpy()
    if circuit.readout.gives_value:
        mine, theirs = engine.scores(bits)[:, 0].astype("float32"), scores[:, 0].astype("float32")
        same = abs(mine - theirs) <= 1e-5 * (1 + abs(theirs))
    else:
        same = engine.predict(bits) == scores.argmax(axis=1)
    return {"same_answers": int(same.sum()), **measure_bits(engine, bits, y)}


def optimise_file(
    model: Annotated[Path, typer.Argument(metavar="MODEL.gate|NAME", help="circuit to make smaller")],
    out: Annotated[Path, typer.Option(help="circuit file to write")],
    level: Level = 3,
    no_prove: NoProve = False,
    conflicts: Conflicts = CONFLICTS,
    timeout: Timeout = None,
    certificate: CertificateFolder = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make a circuit smaller, prove that its scores are the same on every input, and save it."""
    refuse_existing(out, overwrite)
    circuit, content = optimise_and_prove(
        _load(model),
        level=level,
        proving=not no_prove,
        conflicts=conflicts,
        timeout=timeout,
        certificate=certificate,
        quiet=as_json,
    )
    circuit.save(out, overwrite=overwrite)
    _report(content | _written(out, certificate), as_json)


def prove_files(
    spec: Annotated[Path, typer.Argument(metavar="A.gate|RUN", help="what the scores should be: a circuit, or a run")],
    impl: Annotated[
        Path | None,
        typer.Argument(
            metavar="[B.gate]", help="what is to be proven equal (of a run: its model.gate)", show_default=False
        ),
    ] = None,
    conflicts: Conflicts = CONFLICTS,
    timeout: Timeout = None,
    certificate: CertificateFolder = None,
    check: Annotated[
        Path | None, typer.Option(metavar="DIR", help="check this certificate instead of proving", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that two circuits have the same scores on every input. Exit code 0: they do, 1: they do not, 2: unknown.

    Of a run's folder: that its circuit has those of the network as it was trained, gate by gate.
    """
    one, impl = _spec_and_impl(spec, impl)
    two = _load(impl)
    if check is not None:
        _check(one, two, check, as_json)
        return
    from gatefit.circuit.prove import Counterexample, Equivalent

    if certificate is not None and certificate.exists():
        raise UserError(f"{certificate} exists; choose another folder for the certificate")
    verdict, seconds = timed_proof(one, two, conflicts, timeout, certificate, as_json)
    content: dict[str, Any] = {"spec": str(spec), "impl": str(impl), "seconds": seconds}
    if isinstance(verdict, Equivalent):
        if certificate is not None and spec.is_dir():
            one.save(certificate / "spec.gate")  # what is proven about is in no other file
        content |= {"verdict": "equivalent", "method": verdict.method, "queries": verdict.queries}
        content["certificate"] = None if certificate is None else str(certificate)
        words, code = f"equivalent: every input gives the same scores ({verdict.method})", 0
    elif isinstance(verdict, Counterexample):
        scores = verdict.spec_scores.tolist(), verdict.impl_scores.tolist()
        content |= {"verdict": "counterexample", "bits": bit_string(verdict)}
        content |= {"spec_scores": scores[0], "impl_scores": scores[1]}
        words = (
            f"different: {spec} gives scores {scores[0]}, {impl} gives {scores[1]}\n"
            f"for the input bits {bit_string(verdict)}\nwhere these are one: {true_inputs(one, verdict)}"
        )
        code = 1
    else:
        content |= {"verdict": "undecided", "reason": verdict.reason}
        words, code = f"undecided: {verdict.reason}", REFUSED
    if as_json:
        output.print_json(content)
    else:
        typer.echo(f"{words}\ntime {output.duration(seconds)}")
    if code:
        raise typer.Exit(code)


def _spec_and_impl(spec: Path, impl: Path | None) -> tuple["Circuit", Path]:
    """What the scores should be, and the file that is to be proven equal."""
    if not spec.is_dir():
        if impl is None:
            raise UserError(f"prove {spec} equal to what? Name another .gate file, or the folder of a run alone")
        return _load(spec), impl
    require("torch", "train", "reading a run")
    from gatefit.training.folder import read_config
    from gatefit.training.harden_run import harden_run

    read_config(spec)
    impl = impl or spec / "model.gate"
    if not impl.exists():
        raise UserError(f"{spec} holds no circuit yet; run: gatefit compile {spec}")
    return harden_run(spec), impl


def _check(spec: "Circuit", impl: "Circuit", folder: Path, as_json: bool) -> None:
    from gatefit.circuit.prove.certificate import check_certificate

    checked = asdict(check_certificate(folder, spec, impl))
    if as_json:
        output.print_json({"verdict": "equivalent", **{name: _plain(value) for name, value in checked.items()}})
    else:
        typer.echo(f"{folder} proves it: every input gives the same scores ({checked['method']})")


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _load(path: Path) -> "Circuit":
    from gatefit.circuit.ir import Circuit

    with user_input():
        return Circuit.load(path)


def _written(out: Path, certificate: Path | None) -> dict[str, Any]:
    written = {"out": str(out), "bytes": out.stat().st_size}
    return written if certificate is None else {**written, "certificate": str(certificate)}


def _report(content: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(content)
        return
    written = [("written", f"{content['out']} ({content['bytes']:,} bytes)")]
    if "certificate" in content:
        written.append(("certificate", content["certificate"]))
    if "check" in content:
        check = content["check"]
        same = f"the network's answer on {check['same_answers']:,} of {check['samples']:,} rows"
        written.append(("on the data", f"{measured_words(check)}; {same}"))
    print_optimisation(content, *written)
