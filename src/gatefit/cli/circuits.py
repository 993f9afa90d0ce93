"""What the verbs on circuits share: outputs that are refused or written whole, and a proof before every save."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatefit.cli import output
from gatefit.cli.errors import FAILED, UserError, user_input

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.prove import Counterexample, Verdict

_SHOWN_BITS = 20
CONFLICTS = 10_000_000
"""What `gatefit.prove` spends by default, written out: the command line starts without loading it."""


def load_circuit(model: Path) -> "Circuit":
    """The circuit of a file, of a run's folder that holds one, or of a model's name."""
    from gatefit.circuit.ir import Circuit

    if model.is_dir():
        if not (model / "model.gate").is_file():
            raise UserError(f"{model} holds no circuit yet; run: gatefit compile {model}")
        model = model / "model.gate"
    with user_input():
        return Circuit.load(model)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Say before any work that the output is there already, or can never be."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file to write")
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists; choose another --out, or replace it with --overwrite")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent} to write {path.name} into; make it first")


@contextlib.contextmanager
def working(what: str, quiet: bool = False) -> Iterator[None]:
    """A spinner on a terminal, nothing elsewhere."""
    console = output.console(stderr=True)
    if quiet or not console.is_terminal:
        yield
    else:
        with console.status(what):
            yield


@contextlib.contextmanager
def counting(what: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere; gives what is to be told how many are done, of how many."""
    console = output.console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def optimise_and_prove(
    circuit: "Circuit",
    *,
    level: int,
    proving: bool,
    conflicts: int = CONFLICTS,
    timeout: float | None = None,
    certificate: Path | None,
    quiet: bool,
) -> tuple["Circuit", dict[str, Any]]:
    """A smaller circuit and what was done; a circuit that is not proven is an error, not a result."""
    from gatefit.circuit.optimise import optimise
    from gatefit.circuit.prove import Equivalent, Undecided

    if certificate is not None and not proving:
        raise UserError("--certificate needs a proof; leave out --no-prove")
    if certificate is not None and certificate.exists():
        raise UserError(f"{certificate} exists; choose another folder for the certificate")
    with user_input(), working("optimising", quiet):
        smaller, report = optimise(circuit, level)
    content: dict[str, Any] = {
        "gates_before": report.gates_before,
        "gates_after": report.gates_after,
        "passes": [
            {"pass": step.name, "before": step.gates_before, "after": step.gates_after, "seconds": step.seconds}
            for step in report.steps
        ],
        "optimise_seconds": report.seconds,
    }
    if not proving:
        return smaller, content | {"verdict": "not proven"}
    verdict, seconds = timed_proof(circuit, smaller, conflicts, timeout, certificate, quiet)
    if isinstance(verdict, Undecided):
        raise UserError(
            f"not saved, because it is not proven: {verdict.reason}; or give the proof more (--conflicts, --timeout), "
            f"keep every gate (--level 0), or save without a proof (--no-prove)",
            FAILED,
        )
    if not isinstance(verdict, Equivalent):
        raise UserError(
            f"not saved: the optimised circuit differs from the original; this is a bug in gatefit, please report it "
            f"with the input bits {bit_string(verdict)}; until then, use --level 0",
            FAILED,
        )
    return smaller, content | {"verdict": "equivalent", "method": verdict.method, "prove_seconds": seconds}


def timed_proof(
    spec: "Circuit", impl: "Circuit", conflicts: int, timeout: float | None, certificate: Path | None, quiet: bool
) -> tuple["Verdict", float]:
    """The verdict and the seconds it took."""
    from gatefit.circuit.prove import prove

    start = time.monotonic()
    with user_input(), working("proving", quiet):
        verdict = prove(spec, impl, certificate=certificate, conflicts=conflicts, timeout=timeout)
    return verdict, time.monotonic() - start


def bit_string(verdict: "Counterexample") -> str:
    """The input of a counterexample as zeros and ones."""
    return "".join("01"[int(bit)] for bit in verdict.bits)


def true_inputs(circuit: "Circuit", verdict: "Counterexample") -> str:
    """The inputs that are one in a counterexample, by name; the first few of many."""
    names = circuit.input_names or tuple(f"x{i}" for i in range(circuit.inputs))
    true = [output.printable(name) for name, bit in zip(names, verdict.bits, strict=True) if bit]
    more = f" and {len(true) - _SHOWN_BITS} more" if len(true) > _SHOWN_BITS else ""
    return (", ".join(true[:_SHOWN_BITS]) + more) or "none"


def print_optimisation(content: dict[str, Any], *more: tuple[str, str]) -> None:
    """Gates before and after each pass that did something, then the proof, then ``more``."""
    shown = [step for step in content["passes"] if step["before"] != step["after"]]
    if shown:
        rows = [(s["pass"], f"{s['before']:,}", f"{s['after']:,}", output.duration(s["seconds"])) for s in shown]
        output.print_table(("pass", "gates before", "after", "time"), rows)
    pairs = [
        ("gates", f"{content['gates_before']:,} -> {content['gates_after']:,}"),
        ("optimised in", output.duration(content["optimise_seconds"])),
    ]
    if content["verdict"] == "equivalent":
        how = {"sat": "by SAT, refutation checked", "exhaustive": "every input tried"}[content["method"]]
        pairs.append(("proof", f"equivalent ({how}) in {output.duration(content['prove_seconds'])}"))
    else:
        pairs.append(("proof", "none: --no-prove"))
    output.print_pairs([*pairs, *more])
