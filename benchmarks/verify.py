"""How much of what models say is proved, how fast: robustness, reasons and fairness on tables and images.

    python -m benchmarks.verify [wdbc-m adult-s adult-m adult-l digits mnist] [--rows 100] [--timeout 10] [--out FOLDER]

The table models are trained here, from the configurations below and seed 0 (breast cancer Wisconsin comes with
scikit-learn, Adult is read from $GATEFIT_DATA); digits and mnist are the committed circuits of the hardware benchmark.
Rows are the first of the test part. Seconds are the processor's, medians over rows. Every finished cell is kept in the
JSON file, so that the script can be stopped and resumed; the page beside it is made from that file.
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
from gatefit.datasets import load_adult_frame, load_dataset

HERE = Path(__file__).parent / "results"
MODELS: dict[str, dict[str, Any]] = {
    "wdbc-m": {"width": 400, "depth": 3, "steps": 600, "thresholds": 15},
    "adult-s": {"width": 100, "depth": 4, "steps": 600, "thresholds": 15},
    "adult-m": {"width": 400, "depth": 4, "steps": 600, "thresholds": 15},
    "adult-l": {"width": 2000, "depth": 4, "steps": 600, "thresholds": 15},
}
COMMITTED = {name: HERE / "hardware" / f"{name}.gate" for name in ("digits", "mnist")}
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
        "median": float(np.median([seconds for _, seconds in found])),
        "most": max(seconds for _, seconds in found),
    }


def reasons(circuit: Circuit, rows: list[Any], timeout: float) -> dict[str, Any]:
    """Sizes and times of reasons, as they are and widened; and of the smallest changes."""
    result: dict[str, Any] = {"rows": len(rows)}
    verify.explain(circuit, rows[0], timeout=timeout)
    for name, widen in (("plain", False), ("widened", True)):
        found = [
            timed(
                lambda row=row, widen=widen: verify.explain(circuit, row, widen=widen, why_not=False, timeout=timeout)
            )
            for row in rows
        ]
        good = [answer for answer, _ in found if isinstance(answer, verify.Explanation)]
        result[name] = {
            "proved": len(good),
            "minimal": sum(answer.minimal for answer in good),
            "size": float(np.median([len(answer.because) for answer in good])) if good else None,
            "of": good[0].features if good else None,
            "one value": float(np.mean([len(c.values) == 1 for a in good for c in a.because] or [0])),
            "median": float(np.median([seconds for _, seconds in found])),
            "most": max(seconds for _, seconds in found),
        }
    found = [timed(lambda row=row: verify.closest(circuit, row, timeout=timeout)) for row in rows]
    near = [answer for answer, _ in found if isinstance(answer, verify.Counterexample)]
    result["closest"] = {
        "found": len(near),
        "nearest": sum(bool(answer.nearest) for answer in near),
        "changes": float(np.median([answer.changes for answer in near])) if near else None,
        "median": float(np.median([seconds for _, seconds in found])),
        "most": max(seconds for _, seconds in found),
    }
    return result


def fairness(circuit: Circuit, timeout: float) -> dict[str, Any]:
    """For sex and race the least margin from which on they never matter, with a certificate for two checkers."""
    result: dict[str, Any] = {}
    for feature in ("sex", "race"):
        for margin in range(circuit.outputs.size):
            folder = Path(tempfile.mkdtemp()) / "proof"
            answer, seconds = timed(
                lambda f=feature, m=margin, path=folder: verify.never_matters(
                    circuit, f, margin=m, timeout=timeout, certificate=path
                )
            )
            if isinstance(answer, verify.Counterexample):
                continue
            result[feature] = {"margin": margin, "answer": answer.verdict, "seconds": seconds}
            if isinstance(answer, verify.Proved):
                checked, result[feature]["check seconds"] = timed(lambda path=folder: verify.check(path, circuit))
                result[feature] |= {"method": answer.method, "clauses": checked.clauses, "steps": checked.steps}
                result[feature]["second checker"] = second_checker(folder)
            shutil.rmtree(folder.parent)
            break
    return result


def second_checker(folder: Path) -> bool | None:
    """Whether dratify accepts every refutation in a folder; None where it is not installed."""
    try:
        import dratify
    except ModuleNotFoundError:
        return None
    verdicts = []
    for path in folder.glob("*.cnf"):
        formula = dratify.parse_dimacs(path.read_text())
        verdicts.append(dratify.check_proof(formula, path.with_suffix(".drat").read_text(), check_rat=False))
    return all(verdict.ok and verdict.reached_empty for verdict in verdicts)


def page(found: dict[str, Any]) -> str:
    """The results as tables."""
    lines = [
        "# Questions answered with proofs",
        "",
        "Made by `python -m benchmarks.verify`; seconds of one processor.",
        "",
    ]
    lines += [
        "| model | gates | accuracy | question | proved | refuted | undecided | median s | most s |",
        "|" + "---|" * 9,
    ]
    for name, cells in found.items():
        about = f"{name} | {cells['model']['gates']:,} | {cells['model']['accuracy']:.4f}"
        for asked in ASKED:
            cell = cells.get(asked)
            if cell:
                shares = " | ".join(f"{100 * cell[k] / cell['rows']:.3g} %" for k in _KINDS)
                lines.append(f"| {about} | {asked} | {shares} | {cell['median']:.3g} | {cell['most']:.3g} |")
    lines += ["", "| model | reasons | proved | minimal | features | median s | most s |", "|" + "---|" * 7]
    for name, cells in found.items():
        for kind in ("plain", "widened") if "reasons" in cells else ():
            cell = cells["reasons"][kind]
            lines.append(
                f"| {name} | {kind} | {cell['proved']} of {cells['reasons']['rows']} | {cell['minimal']} | "
                f"{cell['size']:g} of {cell['of']} | {cell['median']:.3g} | {cell['most']:.3g} |"
            )
    lines += ["", "| model | feature | never matters from a margin of | method | s | check s |", "|" + "---|" * 6]
    for name, cells in found.items():
        for feature, cell in cells.get("fairness", {}).items():
            lines.append(
                f"| {name} | {feature} | {cell['margin']} ({cell['answer']}) | {cell.get('method', '-')} | "
                f"{cell['seconds']:.3g} | {cell.get('check seconds', float('nan')):.3g} |"
            )
    return "\n".join(lines) + "\n"


_KINDS = ("proved", "counterexample", "undecided")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*MODELS, *COMMITTED])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    path = options.out / "verify.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def keep(name: str, cell: str, make: Callable[[], Any]) -> None:
        if cell not in found.setdefault(name, {}):
            found[name][cell] = make()
            path.write_text(json.dumps(found, indent=1) + "\n")
            (options.out / "verify.md").write_text(page(found))
            print(name, cell, found[name][cell], flush=True)

    for name in options.models:
        circuit, test, about = circuit_of(name, options.out)
        rows = rows_of(test, options.rows)
        keep(name, "model", lambda about=about: about)
        for asked, given in ASKED.items():
            if name != "mnist" or asked != "levels 1":  # one threshold a pixel: a level is every bit
                keep(name, asked, lambda g=given, c=circuit, r=rows: robustness(c, r, g, options.timeout))
        if name not in COMMITTED:
            some = rows[: max(3, options.rows // 5)]
            keep(name, "reasons", lambda c=circuit, r=some: reasons(c, r, options.timeout))
        if name.startswith("adult"):
            keep(name, "fairness", lambda c=circuit: fairness(c, options.timeout))


if __name__ == "__main__":
    main()
