"""How much of what models say is proved, how fast: robustness, reasons and fairness on tables and images.

    python -m benchmarks.verify [wdbc-m adult-s adult-m adult-l digits mnist] [--timeout 60]
    python -m benchmarks.verify training         accuracy against the share proven robust, for ways to train
    python -m benchmarks.verify page             docs/verification.md from what is there

The table models are trained here, from the configurations below and seed 0, where results/verify/ does not hold them
(breast cancer Wisconsin comes with scikit-learn, Adult is read from $GATEFIT_DATA); digits and mnist are the committed
circuits of the hardware benchmark. Rows are the first of the test part. Seconds are the processor's, of one row; the
time limit is the clock's. Every finished cell is kept in results/verify/MODEL.json, and rows of an unfinished one by
themselves, so that each model can be stopped, resumed, and run beside the others.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gatefit import Circuit, verify
from gatefit.circuit.prove.questions import Effort
from gatefit.circuit.verify.decide import decide
from gatefit.circuit.verify.pose import posed, state_never_matters
from gatefit.circuit.verify.problem import domain_of
from gatefit.datasets import load_adult_frame, load_dataset

HERE = Path(__file__).parent / "results"
OUT = HERE / "verify"
PAGE = Path(__file__).parent.parent / "docs" / "verification.md"
MODELS: dict[str, dict[str, Any]] = {
    "wdbc-m": {"width": 480, "depth": 3, "steps": 600, "thresholds": 15, "wiring": "fixed"},
    "adult-s": {"width": 86, "depth": 4, "steps": 600, "thresholds": 15, "wiring": "fixed"},
    "adult-m": {"width": 336, "depth": 4, "steps": 600, "thresholds": 15, "wiring": "fixed"},
    "adult-l": {"width": 2170, "depth": 4, "steps": 600, "thresholds": 15, "wiring": "fixed"},
}
BASELINE: dict[str, Any] = {"width": 336, "depth": 4, "steps": 600, "thresholds": 15, "wiring": "fixed"}
VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "outputs / 4": {"width": 84},
    "outputs / 2": {"width": 168},
    "outputs x 2": {"width": 672},
    "temperature / 2": {"readout_temperature": 6.5},
    "temperature x 2": {"readout_temperature": 26.0},
    "temperature x 4": {"readout_temperature": 52.0},
    "depth 2": {"depth": 2},
    "depth 3": {"depth": 3},
    "depth 6": {"depth": 6},
    "depth 2, temperature x 2": {"depth": 2, "readout_temperature": 26.0},
    "learned wiring": {"wiring": "learned", "votes": "last"},
    "learned, all layers vote": {"wiring": "learned", "votes": "all", "width": 112, "depth": 3},
}
"""What is different from the baseline, whose readout divides by √168 = 13; dividing by more asks for wider margins."""
TRAINED = ("adult", "wdbc")
SEEDS = 3
COMMITTED = {name: HERE / "hardware" / f"{name}.gate" for name in ("digits", "mnist")}
FAIR = ("adult-s", "adult-m", "adult-l")
FAIR_CONFLICTS = 5_000
"""Of a solver, for one margin: the same margins on every machine, and proofs that a checker in plain Python reads."""
ROWS = 100
MNIST_ROWS = {"changes 1": 1000, "changes 2": 1000}
"""Rows that each question is asked about; of mnist, those that are exhausted or decomposed."""
ASKED: dict[str, dict[str, int]] = {
    "changes 1": {"changes": 1},
    "changes 2": {"changes": 2},
    "changes 3": {"changes": 3},
    "levels 1": {"levels": 1},
}


def data_of(name: str) -> tuple[Any, Any, Any, Any]:
    """Training rows and answers, test rows and answers."""
    if name.startswith("adult"):
        train, y, test, wanted = load_adult_frame()
        left = ["fnlwgt", "education-num"]
        return train.drop(columns=left), y, test.drop(columns=left), wanted
    if name.startswith("wdbc"):
        from sklearn.datasets import load_breast_cancer
        from sklearn.model_selection import train_test_split

        bunch = load_breast_cancer(as_frame=True)
        names = bunch.target_names[bunch.target.to_numpy()]
        train, test, y, wanted = train_test_split(
            bunch.data, names, test_size=0.3, random_state=0, stratify=bunch.target
        )
        return train, y, test, wanted
    found = load_dataset(name)
    return found.x_train, found.y_train, found.x_test, found.y_test


def circuit_of(name: str, folder: Path) -> tuple[Circuit, Any, dict[str, Any]]:
    """The circuit, test rows, and what is said of the model."""
    path = COMMITTED.get(name, folder / f"{name}.gate")
    train, y, test, wanted = data_of(name)
    if not path.exists():
        from gatefit import LogicGateClassifier

        model = LogicGateClassifier(**MODELS[name], random_state=0, early_stopping=False).fit(train, y)
        model.circuit_.save(path)
    circuit = Circuit.load(path)
    predicted = circuit.predict(test)
    right = float(np.mean(predicted.astype(str) == np.asarray(wanted).astype(str)))
    sizes = {"bits": circuit.inputs, "gates": int(circuit.gates.size), "outputs": int(circuit.outputs.size)}
    return circuit, test, {**sizes, "accuracy": right}


def rows_of(test: Any, count: int) -> list[Any]:
    """The first rows, one by one."""
    return [test.iloc[i] if hasattr(test, "iloc") else test[i] for i in range(min(count, len(test)))]


def timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """An answer, and the seconds of the processor that it took."""
    start = time.process_time()
    return ask(), time.process_time() - start


def robustness(circuit: Circuit, rows: list[Any], asked: dict[str, int], timeout: float) -> dict[str, Any]:
    """Shares and times of one robust question."""
    verify.robust(circuit, rows[0], timeout=timeout, **asked)  # kernels are compiled
    found = [timed(lambda row=row: verify.robust(circuit, row, timeout=timeout, **asked)) for row in rows]
    kinds = [answer.verdict for answer, _ in found]
    methods = [answer.method for answer, _ in found if isinstance(answer, verify.Proved)]
    return {
        "rows": len(rows),
        **{kind: kinds.count(kind) for kind in ("proved", "counterexample", "undecided")},
        "methods": {method: methods.count(method) for method in sorted(set(methods))},
        **times(found),
    }


def times(found: list[tuple[Any, float]]) -> dict[str, float]:
    """Of answers and their seconds: the median, the most, and all of them."""
    seconds = [each for _, each in found]
    return {"median": float(np.median(seconds)), "most": max(seconds), "total": sum(seconds)}


def one_reason(circuit: Circuit, row: Any, widen: bool, timeout: float) -> dict[str, Any]:
    """What is kept of the reason for one row."""
    answer, seconds = timed(lambda: verify.explain(circuit, row, widen=widen, why_not=False, timeout=timeout))
    if not isinstance(answer, verify.Explanation):
        return {"seconds": seconds, "proved": False}
    # Of an interval or a set: which share of the values of its feature it leaves free.
    values = {feature.name: len(feature.values) for feature in verify.Domain.of(circuit).features}
    return {
        "seconds": seconds,
        "proved": True,
        "minimal": answer.minimal,
        "widest": answer.widest,
        "of": answer.features,
        "shares": [len(condition.values) / values[condition.feature] for condition in answer.because],
    }


def reasons(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Sizes and times of reasons, as they are or widened."""
    good = [row for row in found if row["proved"]]
    return {
        "rows": len(found),
        "proved": len(good),
        "minimal": sum(row["minimal"] for row in good),
        "widest": sum(row["widest"] for row in good),
        "size": float(np.median([len(row["shares"]) for row in good])) if good else None,
        "of": good[0]["of"] if good else None,
        "values": float(np.mean([share for row in good for share in row["shares"]] or [0])),
        **times([(row, row["seconds"]) for row in found]),
    }


def one_nearest(circuit: Circuit, row: Any, timeout: float) -> dict[str, Any]:
    """What is kept of the smallest change that turns the answer to one row."""
    answer, seconds = timed(lambda: verify.closest(circuit, row, timeout=timeout))
    found = isinstance(answer, verify.Counterexample)
    return {
        "seconds": seconds,
        "changes": answer.changes if found else None,
        "nearest": bool(answer.nearest) if found else False,
    }


def nearest(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The smallest changes that turn answers."""
    changes = [row["changes"] for row in found if row["changes"] is not None]
    return {
        "rows": len(found),
        "found": len(changes),
        "nearest": sum(row["nearest"] for row in found),
        "changes": float(np.median(changes)) if changes else None,
        "most changes": max(changes, default=None),
        **times([(row, row["seconds"]) for row in found]),
    }


def row_by_row(path: Path, rows: list[Any], ask: Callable[[Any], dict[str, Any]]) -> list[dict[str, Any]]:
    """What is kept of every row; each is written when it is there, so that a stopped run goes on where it was."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if len(found) < len(rows):
        ask(rows[0])  # kernels are compiled
    for i, row in enumerate(rows):
        if str(i) not in found:
            found[str(i)] = ask(row)
            path.write_text(json.dumps(found) + "\n")
    return [found[str(i)] for i in range(len(rows))]


def fairness(circuit: Circuit) -> dict[str, Any]:
    """For sex and race the least margin from which on they are proved never to matter, and the largest up to which not.

    The first has a certificate for two checkers. Where the two are not neighbours, what lies between was not decided.
    """
    return {feature: fairness_of(circuit, feature) for feature in ("sex", "race")}


def fairness_of(circuit: Circuit, feature: str) -> dict[str, Any]:
    """The same for one feature. What holds of pairs with a margin holds of those with more: so margins are halved."""

    def asked(margin: int) -> str:
        statement = state_never_matters(circuit, feature, margin=margin)
        outcome = decide(posed(statement, (circuit,), domain_of(circuit)).problem, Effort(FAIR_CONFLICTS))
        return "refuted" if outcome.found is not None else "undecided" if outcome.left else "proved"

    refuted, undecided, proved = -1, circuit.outputs.size + 1, circuit.outputs.size + 1  # no margin is larger
    low = refuted
    while proved - low > 1:  # the least that is proved
        middle = (low + proved) // 2
        verdict = asked(middle)
        if verdict == "proved":
            proved = middle
        else:
            low = middle
            refuted = middle if verdict == "refuted" else refuted
            undecided = min(undecided, middle) if verdict == "undecided" else undecided
    undecided = min(undecided, proved)
    while undecided - refuted > 1:  # the largest that is refuted
        middle = (refuted + undecided) // 2
        if asked(middle) == "refuted":
            refuted = middle
        else:
            undecided = middle
    folder = Path(tempfile.mkdtemp()) / "proof"
    answer, seconds = timed(
        lambda: verify.never_matters(circuit, feature, margin=proved, timeout=None, certificate=folder)
    )
    checked, check_seconds = timed(lambda: verify.check(folder, circuit))
    result = {
        "margin": proved,
        "refuted": refuted,
        "method": answer.method,
        "seconds": seconds,
        "check seconds": check_seconds,
        "clauses": checked.clauses,
        "steps": checked.steps,
        "second checker": second_checker(folder),
    }
    shutil.rmtree(folder.parent)
    return result


def second_checker(folder: Path) -> str:
    """What dratify says of the refutations in a folder."""
    paths = list(folder.glob("*.cnf"))
    if not paths:
        return "no formula"
    try:
        import dratify
    except ModuleNotFoundError:
        return "not installed"
    for path in paths:
        formula = dratify.parse_dimacs(path.read_text())
        verdict = dratify.check_proof(formula, path.with_suffix(".drat").read_text(), check_rat=False)
        if not (verdict.ok and verdict.reached_empty):
            return "refuses"
    return "accepts"


def training(timeout: float) -> None:
    """Train every variant, one seed after the other, and ask how many rows are proven robust."""
    from gatefit import LogicGateClassifier

    path = OUT / "training.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for seed in range(SEEDS):
        for data in TRAINED:
            train, y, test, wanted = data_of(data)
            rows = rows_of(test, ROWS)
            for name, given in VARIANTS.items():
                key = f"{data}, {name}, {seed}"
                if key in found:
                    continue
                model = LogicGateClassifier(**BASELINE | given, random_state=seed, early_stopping=False).fit(train, y)
                circuit = model.circuit_
                scores = np.sort(circuit.scores(test).astype(np.float64), axis=1)
                cell = {
                    "gates": int(circuit.gates.size),
                    "outputs": int(circuit.outputs.size),
                    "reads": features_read(circuit),
                    "margin": float(np.median(scores[:, -1] - scores[:, -2])) / int(circuit.outputs.size),
                    "accuracy": float(np.mean(circuit.predict(test).astype(str) == np.asarray(wanted).astype(str))),
                }
                for asked, amount in ASKED.items():
                    if asked != "changes 3":
                        cell[asked] = robustness(circuit, rows, amount, timeout)
                found[key] = cell
                path.write_text(json.dumps(found, indent=1) + "\n")
                print(key, cell["accuracy"], [cell[a]["proved"] for a in ASKED if a in cell], flush=True)


def features_read(circuit: Circuit) -> float:
    """How many features an output reads, on average."""
    reads = [0] * circuit.nodes  # a bit for each feature
    for i, feature in enumerate(verify.Domain.of(circuit).features):
        for bit in feature.inputs.tolist():
            reads[bit] = 1 << i
    for gate, (a, b) in enumerate(circuit.operands.T.tolist(), start=circuit.inputs):
        reads[gate] = reads[a] | reads[b]
    return float(np.mean([reads[node].bit_count() for node in circuit.outputs.tolist()]))


def training_table(found: dict[str, Any]) -> list[str]:
    """The means over seeds of each variant."""
    asked = [each for each in ASKED if each != "changes 3"]
    lines = ["", "## Training for it", "", *_TRAINING, ""]
    head = "| data | variant | seeds | gates | outputs | features an output reads | margin | accuracy | "
    lines += [head + " | ".join(asked) + " |", "|" + "---|" * (8 + len(asked))]
    for data in TRAINED:
        for name in VARIANTS:
            cells = [found[f"{data}, {name}, {s}"] for s in range(SEEDS) if f"{data}, {name}, {s}" in found]
            if not cells:
                continue
            mean = {key: float(np.mean([cell[key] for cell in cells])) for key in _SIZES}
            shares = [float(np.mean([100 * c[each]["proved"] / c[each]["rows"] for c in cells])) for each in asked]
            left = [sum(cell[each]["undecided"] for cell in cells) for each in asked]
            words = [
                f"{share:.0f} %" + (f" ({n} undecided)" if n else "") for share, n in zip(shares, left, strict=True)
            ]
            lines.append(
                f"| {data} | {name} | {len(cells)} | {mean['gates']:,.0f} | {mean['outputs']:,.0f} | "
                f"{mean['reads']:.1f} | {100 * mean['margin']:.1f} % | {100 * mean['accuracy']:.2f} % | "
                f"{' | '.join(words)} |"
            )
    return [*lines, "", *_CONCLUSION]


def page(found: dict[str, dict[str, Any]], trained: dict[str, Any]) -> str:
    """The results as tables."""
    lines = [*_HEAD, "", "| model | bits | gates | outputs | accuracy |", "|---|---|---|---|---|"]
    for name, cells in found.items():
        about = cells["model"]
        sizes = f"{about['bits']} | {about['gates']:,} | {about['outputs']:,}"
        lines.append(f"| {name} | {sizes} | {100 * about['accuracy']:.2f} % |")
    lines += ["", "## Robust", "", *_ROBUST, ""]
    lines += [
        "| model | question | rows | proved | refuted | undecided | by | median s | most s | all s |",
        "|" + "---|" * 10,
    ]
    for name, cells in found.items():
        for asked in ASKED:
            if asked in cells:
                cell = cells[asked]
                shares = " | ".join(f"{100 * cell[k] / cell['rows']:.3g} %" for k in _KINDS)
                by = ", ".join(f"{method} {count}" for method, count in cell["methods"].items()) or "-"
                lines.append(f"| {name} | {asked} | {cell['rows']:,} | {shares} | {by} | {_times(cell)} |")
    lines += ["", "## Reasons", "", *_REASONS, ""]
    lines += ["| model | reason | proved | minimal | widest | features | of their values | median s | most s | all s |"]
    lines += ["|" + "---|" * 10]
    for name, cells in found.items():
        for kind in ("reasons plain", "reasons widened"):
            if kind in cells:
                cell = cells[kind]
                size = f"{cell['size']:g} of {cell['of']} | {100 * cell['values']:.3g} %"
                widest = cell.get("widest", "not counted") if kind == "reasons widened" else "-"
                counts = f"{cell['proved']} of {cell['rows']} | {cell['minimal']} | {widest}"
                lines.append(f"| {name} | {kind.split()[1]} | {counts} | {size} | {_times(cell)} |")
    lines += [
        "",
        *_NEAREST,
        "",
        "| model | change found | proved nearest | features | most features | median s | most s | all s |",
        "|" + "---|" * 8,
    ]
    for name, cells in found.items():
        if "closest" in cells:
            cell = cells["closest"]
            counts = f"{cell['found']} of {cell['rows']} | {cell['nearest']} | {cell['changes']:g}"
            counts += f" | {cell.get('most changes', 'not counted')}"
            lines.append(f"| {name} | {counts} | {_times(cell)} |")
    lines += ["", "## Features that never matter", "", *_FAIRNESS, ""]
    lines += [
        "| model | feature | refuted up to a margin of | proved from | by | clauses, steps | s | check s | dratify |"
    ]
    lines += ["|" + "---|" * 9]
    for name, cells in found.items():
        for feature, cell in cells.get("fairness", {}).items():
            margins = f"{cell['refuted']} | {cell['margin']}"
            size = f"{cell['clauses']:,}, {cell['steps']:,}" if cell["clauses"] else "-"
            seconds = f"{cell['seconds']:.3g} | {cell['check seconds']:.3g}"
            lines.append(
                f"| {name} | {feature} | {margins} | {cell['method']} | {size} | {seconds} | {cell['second checker']} |"
            )
    if trained:
        lines += training_table(trained)
    return "\n".join(lines) + "\n"


def _times(cell: dict[str, Any]) -> str:
    return f"{cell['median']:.3g} | {cell['most']:.3g} | {cell['total']:.3g}"


_KINDS = ("proved", "counterexample", "undecided")
_SIZES = ("gates", "outputs", "reads", "margin", "accuracy")
_HEAD = """# Proofs, measured

How much of what models say can be proved, and how fast: [questions](questions.md) about rows of tables and images that
no model was trained on. The page is made by `python -m benchmarks.verify page` from `benchmarks/results/verify/`, which
`python -m benchmarks.verify` fills; configurations and seeds are in that script. Seconds are one processor's.
""".splitlines()
_ROBUST = """`changes 2`: any two features, each to any value that it can have. `levels 1`: every number by up to one
threshold, all at once. *Refuted* is a counterexample that was replayed, *proved* is exact: by a bound from supports,
by trying every point, by decomposition, or by a solver whose proof was checked.
""".splitlines()
_REASONS = """Features that force the answer whatever the others are, each fixed (*plain*) or as wide an interval or set
as still forces it (*widened*); *of their values* is the share of a feature's values that its interval or set has.
Every reason is proved, that is included in the seconds; none of its features can be left out where it is *minimal*,
and none can have a value more where it is the *widest*. Where a solver does not prove that (10,000 conflicts, fewer of
more than 1,000 gates), it is widened as far as all points can be tried, or fewer of its features are. The time limit
of a row is 60 seconds, of widened reasons of adult-l and digits, measured on a busy machine, 240.
""".splitlines()
_NEAREST = """The fewest features whose change turns the answer. Where it was not *proved nearest* within 60 seconds, a
change of so many features is known, and fewer may do.
""".splitlines()
_FAIRNESS = """Whether `sex` or `race` alone ever decides: up to some margin between scores a pair of people shows that
it does, and from some margin on it is proved that it does not. The certificate is read again by
`gatefit verify --check FOLDER` and, where it holds a formula and its refutation, by a second checker (dratify). A
bound needs no formula: it is counted again from what each output reads. Where the two margins are not neighbours,
those between were not decided with 5,000 conflicts of the solver each.
""".splitlines()


_TRAINING = """What training can do for the share that is proven robust, and its price: means over seeds of variants of
one configuration (`VARIANTS` in the script), 100 test rows each; *margin* is the median distance between the two
best scores, as a share of the outputs. What is not proved was refuted, unless it says undecided.
""".splitlines()

_CONCLUSION = """**What it says.** Narrow supports help most and cost least: with two layers an output reads under two
features instead of four, which more than doubles the share of Adult that no single feature can turn, for half a point
of accuracy, and costs breast cancer nothing. A readout temperature twice as high widens margins and raises nearly
every share, for a tenth of a point to one; four times as high is paid for with one to two points. Both together
treble Adult's share, for two points. Fewer outputs make proofs smaller and faster, not answers more robust: Adult
gains, breast cancer loses. Learned wiring has the widest margins and, on Adult, the answers that are steadiest
against small moves (`levels`), and yet the least robust ones against a feature that becomes anything: its votes hang
on few features.
""".splitlines()


def everything(name: str, timeout: float, later: list[str]) -> None:
    """All cells of one model that are not there yet, but for those that are left for later."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def keep(cell: str, make: Callable[[], Any]) -> None:
        if cell not in found and cell not in later:
            found[cell] = make()
            path.write_text(json.dumps(found, indent=1) + "\n")
            print(name, cell, found[cell], flush=True)

    circuit, test, about = circuit_of(name, OUT)
    rows = rows_of(test, max(ROWS, *MNIST_ROWS.values()) if name == "mnist" else ROWS)
    keep("model", lambda: about)
    for asked, given in ASKED.items():
        if name != "mnist" or asked != "levels 1":  # one threshold a pixel: a level is every bit
            some = rows[: MNIST_ROWS.get(asked, ROWS)]
            keep(asked, lambda some=some, given=given: robustness(circuit, some, given, timeout))
    if name in FAIR:
        keep("fairness", lambda: fairness(circuit))
    asks: dict[str, tuple[Callable[[Any], dict[str, Any]], Callable[[list[dict[str, Any]]], dict[str, Any]]]] = {
        "reasons plain": (lambda row: one_reason(circuit, row, False, timeout), reasons),
        "reasons widened": (lambda row: one_reason(circuit, row, True, timeout), reasons),
        "closest": (lambda row: one_nearest(circuit, row, timeout), nearest),
    }
    for cell, (ask, summary) in asks.items():
        if name != "mnist":
            unfinished = OUT / f"{name} {cell}.rows.json"
            keep(cell, lambda ask=ask, summary=summary, at=unfinished: summary(row_by_row(at, rows[:ROWS], ask)))
            if cell in found:
                unfinished.unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*MODELS, *COMMITTED])
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--later", nargs="*", default=[], metavar="CELL", help="what to leave for another run")
    options = parser.parse_args()
    for name in options.models:
        if name not in ("page", "training", *MODELS, *COMMITTED):
            raise SystemExit(f"there is no model {name!r}; choose among {', '.join([*MODELS, *COMMITTED])}")
        if name == "training":
            training(options.timeout)
        elif name != "page":
            everything(name, options.timeout, options.later)
    paths = [OUT / f"{name}.json" for name in (*MODELS, *COMMITTED)]
    trained = OUT / "training.json"
    PAGE.write_text(
        page(
            {path.stem: json.loads(path.read_text()) for path in paths if path.exists()},
            json.loads(trained.read_text()) if trained.exists() else {},
        )
    )


if __name__ == "__main__":
    main()
