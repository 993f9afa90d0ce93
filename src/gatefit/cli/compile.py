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
from gatefit.cli.options import AsJson, Overwrite

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit

COMPILE_EXAMPLE = ("gatefit compile runs/monks --out monks.gate",)
OPTIMISE_EXAMPLE = ("gatefit optimise monks.gate --out smaller.gate --level 3",)
PROVE_EXAMPLE = ("gatefit prove monks.gate smaller.gate --certificate proof",)

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
    date: Annotated[
        bool, typer.Option("--date", help="say today's date in the file too: its bytes then differ from day to day")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Harden a trained run, optimise its circuit, prove the result equal to what was trained, and save it."""
    require("torch", "train", "compiling a run")
    from gatefit.training.folder import read_config
    from gatefit.training.harden_run import harden_run

    read_config(run)  # What is no run's folder is refused before anything else is said of it.
    out = out or run / "model.gate"
    refuse_existing(out, overwrite)
    trained = harden_run(run)
    circuit, content = optimise_and_prove(
        trained,
        level=0 if no_optimise else level,
        proving=not no_prove,
        conflicts=conflicts,
        timeout=timeout,
        certificate=certificate,
        quiet=as_json,
    )
    if date:
        from gatefit.circuit.provenance import stamped

        circuit = stamped(circuit, {}, dated=True)
    circuit.save(out, overwrite=overwrite)
    if certificate is not None:
        # The certificate speaks of two circuits: keep the one that is not the output beside it.
        trained.save(certificate / "spec.gate")
    _report(content | _written(out, certificate), as_json)


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
    spec: Annotated[Path, typer.Argument(metavar="A.gate", help="what the scores should be")],
    impl: Annotated[Path, typer.Argument(metavar="B.gate", help="what is to be proven equal")],
    conflicts: Conflicts = CONFLICTS,
    timeout: Timeout = None,
    certificate: CertificateFolder = None,
    check: Annotated[
        Path | None, typer.Option(metavar="DIR", help="check this certificate instead of proving", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that two circuits have the same scores on every input. Exit code 0: they do, 1: they do not, 2: unknown."""
    one, two = _load(spec), _load(impl)
    if check is not None:
        _check(one, two, check, as_json)
        return
    from gatefit.circuit.prove import Counterexample, Equivalent

    if certificate is not None and certificate.exists():
        raise UserError(f"{certificate} exists; choose another folder for the certificate")
    verdict, seconds = timed_proof(one, two, conflicts, timeout, certificate, as_json)
    content: dict[str, Any] = {"spec": str(spec), "impl": str(impl), "seconds": seconds}
    if isinstance(verdict, Equivalent):
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
    print_optimisation(content, *written)
