"""``gatefit verify`` and ``gatefit explain``: questions to a circuit, answered with proofs; and proofs checked."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gatefit.cli import output
from gatefit.cli.circuits import counting, load_circuit, working
from gatefit.cli.errors import REFUSED, UserError, check_choice, user_input
from gatefit.cli.options import AsJson, SampleFile
from gatefit.cli.reasons import json_safe, said

if TYPE_CHECKING:
    from gatefit.circuit.ir import Circuit
    from gatefit.circuit.verify import Answer, Batch, Counterexample, Domain
    from gatefit.cli.reasons import Reader

VERIFY_EXAMPLE = (
    "gatefit verify robust model.gate people.csv --row 0 --changes 2 --certificate proof",
    "gatefit verify never-matters model.gate --feature sex --margin 2",
    "gatefit verify --check proof model.gate",
)
EXPLAIN_EXAMPLE = (
    "gatefit explain model.gate people.csv --row 0",
    "gatefit explain model.gate people.csv --rows 100 --summary --figure why.png",
)

QUESTIONS: Final = ("robust", "closest", "never-matters", "monotone", "agree", "reachable", "bounds", "share")
_EXIT: Final = {"proved": 0, "counterexample": 1, "undecided": REFUSED}
MANY: Final = 40
"""Features of an example that are listed."""
TIMEOUT: Final = 10.0
"""What `gatefit.verify` spends by default, written out: the command line starts without loading it."""

Row = Annotated[
    int | None, typer.Option(min=0, help="this line of the data, from 0 (default: every line)", show_default=False)
]
Rows = Annotated[int | None, typer.Option(min=1, help="the first so many lines alone", show_default=False)]
Bits = Annotated[bool, typer.Option("--bits", help="the file holds the circuit's input bits, not features")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="the first line is a sample: columns by order")]
Timeout = Annotated[float, typer.Option(help="seconds for each question")]
Tolerance = Annotated[
    float | None, typer.Option(help="of a regression: by how much its value may move", show_default=False)
]
CertificateFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="write the proof into this new folder", show_default=False)
]
Seed = Annotated[int, typer.Option(help="of the search: it affects speed, not what is true")]


def verify(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION MODEL.gate [DATA.csv | OTHER.gate]", help=f"the question: {', '.join(QUESTIONS)}"
        ),
    ] = None,
    row: Row = None,
    rows: Rows = None,
    changes: Annotated[
        int | None, typer.Option(help="robust: so many features may become anything", show_default=False)
    ] = None,
    levels: Annotated[
        int | None, typer.Option(help="robust: every number may move by so many thresholds", show_default=False)
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="FEATURE=AMOUNT", help="robust: this number may move by so much", show_default=False),
    ] = None,
    feature: Annotated[
        str | None, typer.Option(help="never-matters, monotone: which feature", show_default=False)
    ] = None,
    margin: Annotated[float, typer.Option(help="never-matters: by which answers must lead, at both of a pair")] = 0,
    target: Annotated[
        str | None, typer.Option(help="closest, monotone, reachable, share: which class", show_default=False)
    ] = None,
    lowering: Annotated[bool, typer.Option("--lowering", help="monotone: lower the number instead")] = False,
    region: Annotated[
        list[str] | None,
        typer.Option(metavar="FEATURE=LOW:HIGH", help="only there; or FEATURE=a,b for some values", show_default=False),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="share: inputs to draw")] = 1_000_000,
    tolerance: Tolerance = None,
    timeout: Timeout = TIMEOUT,
    certificate: CertificateFolder = None,
    check: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="check this certificate, of the circuits given", show_default=False),
    ] = None,
    seed: Seed = 0,
    bits: Bits = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Ask a circuit, and be answered with a proof. Exit code 0: proved, 1: a counterexample, 2: undecided."""
    words = what or []
    if check is not None:
        _check(check, words, as_json)
        return
    if len(words) < 2:
        raise UserError(f"say what to ask of which circuit: gatefit verify QUESTION MODEL.gate; {', '.join(QUESTIONS)}")
    question, model, *more = words
    check_choice("question", question, QUESTIONS)
    if len(more) > 1:
        raise UserError(f"one file at most follows the circuit, got {', '.join(more)}")
    if certificate is not None and certificate.exists():
        raise UserError(f"{certificate} exists; choose another folder for the certificate")
    circuit = load_circuit(Path(model))
    from gatefit.circuit import verify as asked

    with user_input():
        domain = asked.Domain.of(circuit)
        common: dict[str, Any] = {"timeout": timeout, "seed": seed, "domain": domain}
        proof: dict[str, Any] = {} if certificate is None else {"certificate": certificate}
        area = _region(domain, region or [])
        one = None if target is None else _target(circuit, target)
        if question in ("robust", "closest"):
            table = _table(circuit, _file(more, question), bits, no_header)
            if question == "robust":
                amounts = None if not within else {n: _number(v, n) for n, v in map(_pair, within)}
                options = {"changes": changes, "levels": levels, "within": amounts, "tolerance": tolerance, **common}
                outcome = _ask(
                    circuit, table, row, rows, asked.robust, asked.robust_each, {**options, **proof}, as_json
                )
            else:
                if proof:
                    raise UserError("closest proves that fewer changes do not do: ask robust for a certificate of that")
                options = {"target": one, "tolerance": tolerance, **common}
                outcome = _ask(circuit, table, row, rows, asked.closest, asked.closest_each, options, as_json)
            _answered_rows(outcome, circuit, as_json)
            return
        if more and question != "agree":
            raise UserError(f"{question} is about all inputs and reads no file, got {more[0]}; use --region")
        named = _named(feature, question)
        with working(question, as_json):
            if question == "never-matters":
                whole: Any = margin if circuit.readout.gives_value else _whole(margin)
                answer = asked.never_matters(circuit, named, margin=whole, region=area, **common, **proof)
            elif question == "monotone":
                answer = asked.monotone(
                    circuit, named, target=one, increasing=not lowering, region=area, **common, **proof
                )
            elif question == "agree":
                answer = asked.agree(
                    circuit, load_circuit(Path(_file(more, "agree"))), area, timeout=timeout, seed=seed, **proof
                )
            elif question == "reachable":
                _no_proof(proof, question)
                answer = asked.reachable(circuit, area, **common)
            elif question == "bounds":
                answer = asked.bounds(circuit, area, **common, **proof)
            else:
                _no_proof(proof, question)
                if one is None:
                    raise UserError("share needs --target, the class whose share is wanted")
                answer = asked.share(circuit, one, area, domain=domain, samples=samples, seed=seed)
    _answered(answer, as_json)


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL.gate", help="circuit file")],
    data: SampleFile,
    row: Row = None,
    rows: Rows = None,
    no_widen: Annotated[
        bool, typer.Option("--no-widen", help="features as they are, not widened to intervals")
    ] = False,
    no_why_not: Annotated[bool, typer.Option("--no-why-not", help="leave out the smallest change")] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="how often each feature is in the reasons, not the reasons themselves")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="draw how often features are in the reasons (.png, .svg, .pdf)", show_default=False
        ),
    ] = None,
    tolerance: Tolerance = None,
    timeout: Timeout = TIMEOUT,
    certificate: CertificateFolder = None,
    seed: Seed = 0,
    bits: Bits = False,
    no_header: NoHeader = False,
    as_json: AsJson = False,
) -> None:
    """Say which features force the answer to a row, whatever the others are, and the smallest change that turns it."""
    from gatefit.cli.reasons import Reader, refuse_figure

    if certificate is not None and certificate.exists():
        raise UserError(f"{certificate} exists; choose another folder for the certificate")
    if row is not None and (summary or figure is not None or rows is not None):
        raise UserError("--row explains one line; --summary, --figure and --rows are about many: leave it or them out")
    if figure is not None:
        refuse_figure(figure)
    circuit = load_circuit(model)
    from gatefit.circuit import verify as asked

    with user_input():
        table = _table(circuit, str(data), bits, no_header)
        options: dict[str, Any] = {"widen": not no_widen, "why_not": not no_why_not, "tolerance": tolerance}
        options |= {"timeout": timeout, "seed": seed}
        options |= {} if certificate is None else {"certificate": certificate}
        if (summary or figure is not None) and row is None:
            options["why_not"] = False  # what is summed up is the reasons
        outcome = _ask(circuit, table, row, rows, asked.explain, asked.explain_each, options, as_json, summary)
    reader = Reader(circuit, tolerance)
    if isinstance(outcome, asked.Batch):
        if figure is not None:
            reader.save_figure(outcome, figure)
        reader.print_batch(outcome, as_json, only_summary=summary)
        _exit_if_stopped(outcome)
    else:
        _answered(outcome[1], as_json, outcome[0], reader)


def _check(folder: Path, models: list[str], as_json: bool) -> None:
    from gatefit.circuit.verify import check

    circuits = [load_circuit(Path(model)) for model in models] or None
    with working("checking", as_json):
        checked = check(folder, circuits)
    content: dict[str, Any] = {"verdict": "proved", "meaning": checked.meaning, "methods": list(checked.methods)}
    content |= {"clauses": checked.clauses, "steps": checked.steps, "circuit_given": bool(models)}
    if as_json:
        output.print_json(content)
        return
    typer.echo(output.printable(f"{folder} proves it: {checked.meaning}"))
    if not models:
        typer.echo("of the circuit that lies in the folder; name the circuit to check that it is about yours")


def _table(circuit: "Circuit", path: str, bits: bool, no_header: bool) -> Any:
    from gatefit.cli.tables import read_bits, read_features
    from gatefit.datasets.own_files import read_table

    table = read_table(Path(path), header=not no_header)
    if bits and circuit.encoder is not None:
        raise UserError("questions are about the features that the circuit's encoder reads; leave out --bits")
    return read_bits(table, circuit) if circuit.encoder is None else read_features(table, circuit.encoder)


def _ask(
    circuit: "Circuit",
    table: Any,
    row: int | None,
    rows: int | None,
    ask: Callable[..., "Answer"],
    ask_each: Callable[..., "Batch"],
    options: dict[str, Any],
    as_json: bool,
    every: bool = False,
) -> "tuple[int, Answer] | Batch":
    """One row asked about by itself, with its number, or each of several; ``every``: also of a file of one."""
    from gatefit.circuit.verify.rows import read_rows

    found, _ = read_rows(circuit, table)
    if not found:
        raise UserError("the file has no line to ask about, only a header")
    if row is not None and row >= len(found):
        raise UserError(f"there is no line {row}: the file has {len(found)}, numbered from 0")
    if row is None and len(found) == 1 and not every:
        row = 0
    if row is not None:
        if options.get("certificate") is not None and json_safe(found[row]) != list(found[row]):
            raise UserError("a certificate holds finite numbers; give one beyond the last threshold instead of inf")
        with working("asking", as_json):
            return row, ask(circuit, found[row], **options)
    if options.get("certificate") is not None:
        raise UserError("a certificate is about one row; choose it with --row")
    part = found[:rows]
    if circuit.encoder is None:
        data: Any = _matrix(part)
    else:
        data = {name: list(column) for name, column in zip(_names(circuit), zip(*part, strict=True), strict=True)}
    with counting("asking", as_json) as progress:
        return ask_each(circuit, data, progress=progress, keep=True, **options)


def _answered_rows(outcome: "tuple[int, Answer] | Batch", circuit: "Circuit", as_json: bool) -> None:
    from gatefit.circuit.verify import Batch
    from gatefit.cli.reasons import Reader

    if isinstance(outcome, Batch):
        Reader(circuit).print_batch(outcome, as_json)
        _exit_if_stopped(outcome)
    else:
        _answered(outcome[1], as_json, outcome[0])


def _exit_if_stopped(batch: "Batch") -> None:
    """What was answered before Ctrl+C is printed; the exit code says that it is not all."""
    if batch.asked is not None:
        raise typer.Exit(130)


def _names(circuit: "Circuit") -> tuple[str, ...]:
    assert circuit.encoder is not None
    return circuit.encoder.feature_names


def _matrix(rows: Any) -> Any:
    import numpy as np

    return np.array(rows, bool)


def _answered(answer: "Answer", as_json: bool, row: int | None = None, reader: "Reader | None" = None) -> None:
    """Print an answer; end with its exit code."""
    from gatefit.circuit.verify import Counterexample, Explanation, Proved

    if as_json:
        content = answer.to_json() if reader is None else reader.json(answer)
        output.print_json(json_safe(({} if row is None else {"row": row}) | content))
    elif isinstance(answer, Explanation) and reader is not None:
        reader.print_explanation(answer)
    else:
        typer.echo(output.printable(str(answer)))
        if isinstance(answer, Counterexample):
            _print_example(answer)
        if isinstance(answer, Proved) and answer.certificate is not None:
            typer.echo(f"certificate {answer.certificate}; check it with: gatefit verify --check {answer.certificate}")
        typer.echo(f"time {output.duration(answer.seconds)}")
    code = _EXIT.get(answer.verdict, 0)
    if code:
        raise typer.Exit(code)


def _print_example(answer: "Counterexample") -> None:
    """A line for every feature: what it is at the example, and what it was, or is at the other one of a pair."""
    row, changed = answer.example.row, answer.changed
    # Of many features, such as pixels, those that differ are said already; of the rest the ones that are not 0.
    names = list(row) if len(row) <= MANY else [name for name in row if name in changed or row[name]][:MANY]
    if answer.other is None:
        titles = ("feature", "value", "instead of")
        rows = [(name, said(row[name]), said(changed[name][0]) if name in changed else "") for name in names]
        rows.append(("answer", said(answer.example.answer), ""))
    else:
        other = answer.other.row
        titles = ("feature", "one", "other")
        rows = [(name, said(row[name]), said(other[name]) if other[name] != row[name] else "") for name in names]
        rows.append(("answer", said(answer.example.answer), said(answer.other.answer)))
    output.print_table(titles, rows)


def _file(more: list[str], question: str) -> str:
    if not more:
        needed = "another circuit" if question == "agree" else "a CSV file with the rows"
        raise UserError(f"{question} needs {needed}: gatefit verify {question} MODEL.gate FILE")
    return more[0]


def _named(feature: str | None, question: str) -> str:
    if question in ("never-matters", "monotone") and feature is None:
        raise UserError(f"{question} needs --feature, the feature that it is about")
    return feature or ""


def _no_proof(proof: dict[str, Any], question: str) -> None:
    if proof:
        raise UserError(f"{question} writes no certificate; leave out --certificate")


def _target(circuit: "Circuit", text: str) -> Any:
    """A class by what it is called in print."""
    from gatefit.circuit.verify.pose import class_of, name_of

    names = {str(name_of(circuit, k)): name_of(circuit, k) for k in range(circuit.readout.classes)}
    return names[text] if text in names else name_of(circuit, class_of(circuit, text))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise UserError(f"expected FEATURE=VALUE, got {text!r}")
    return name, value


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"feature {name!r} needs a number, got {text!r}") from None


def _whole(value: float) -> int:
    if value != int(value):
        raise UserError(f"--margin counts votes: a whole number, got {value:g}")
    return int(value)


def _region(domain: "Domain", texts: list[str]) -> dict[str, Any] | None:
    """``age=20:40`` as a range, ``job=clerk,baker`` as a set, each value as the feature has it."""
    region: dict[str, Any] = {}
    for name, value in map(_pair, texts):
        feature = domain.features[domain.find(name)]
        if feature.kind == "number" and ":" in value:
            low, _, high = value.partition(":")
            region[name] = (_number(low, name) if low else None, _number(high, name) if high else None)
        elif feature.kind == "number":
            region[name] = {_number(part, name) for part in value.split(",")}
        else:
            known = {str(category): category for v in feature.values for category in v.categories}
            region[name] = {known.get(part, part) for part in value.split(",")}
    return region or None
