"""How the estimators' defaults for a fixed wiring were chosen: one parameter changed at a time, on small data sets.

Those for a learned wiring: ``benchmarks/tables.py``.

    python benchmarks/estimator_defaults.py [--seeds 2] [--out benchmarks/results]

Accuracy (classifier) and R² (regressor) on a test part that no choice within a fit sees, mean over seeds (one seed for
the larger sets); seconds of one processor for all fits of a row. Monk's problems come with gatefit; Splice and Adult
(6,000 rows) are read from $GATEFIT_DATA, and left out where they are not there. Finished fits are kept in the JSON
file, so that the script can be stopped and resumed.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gatefit.datasets import DatasetError, load_adult_frame, load_dataset
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor

Split = tuple[Any, Any, Any, Any]

VARIATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "method=multilinear-ste": {"method": "multilinear-ste"},
    "method=soft-mix": {"method": "soft-mix"},
    "initialisation=residual": {"initialisation": "residual"},
    "width=540": {"width": 540},
    "width=2010": {"width": 2010},
    "depth=2": {"depth": 2},
    "depth=4": {"depth": 4},
    "depth=8": {"depth": 8},
    "steps=500": {"steps": 500},
    "steps=2000": {"steps": 2000},
    "learning_rate=0.01": {"learning_rate": 0.01},
    "learning_rate=0.1": {"learning_rate": 0.1},
    "thresholds=31": {"thresholds": 31},
    "wiring=random": {"wiring": "random"},
}
LARGE = ("digits", "splice", "adult 6k")
"""Sets that are large enough for one seed to tell."""
CLASSIFIER_ONLY: dict[str, dict[str, Any]] = {
    "readout_temperature=paper": {"readout_temperature": 0.36},
    "readout=linear": {"readout": "linear"},
}


def from_sklearn(load: Callable[..., Any]) -> Callable[[int], Split]:
    def split(seed: int) -> Split:
        X, y = load(return_X_y=True)
        stratify = y if y.dtype.kind == "i" else None
        return tuple(train_test_split(X, y, test_size=0.3, random_state=seed, stratify=stratify))

    return split


def from_gatefit(name: str) -> Callable[[int], Split]:
    def split(seed: int) -> Split:
        data = load_dataset(name, download=False)
        return data.x_train, data.x_test, data.y_train, data.y_test

    return split


def adult(seed: int) -> Split:
    X, y, X_test, y_test = load_adult_frame(download=False)
    rows = np.random.default_rng(seed).permutation(len(X))[:6000]
    return X.iloc[rows], X_test, y[rows], y_test


def generated(make: Callable[..., Any], **options: Any) -> Callable[[int], Split]:
    def split(seed: int) -> Split:
        X, y = make(n_samples=600, random_state=seed, **options)
        return tuple(train_test_split(X, y, test_size=0.3, random_state=seed))

    return split


CLASSIFICATION: dict[str, Callable[[int], Split]] = {
    "iris": from_sklearn(sklearn_datasets.load_iris),
    "wine": from_sklearn(sklearn_datasets.load_wine),
    "breast cancer": from_sklearn(sklearn_datasets.load_breast_cancer),
    "digits": from_sklearn(sklearn_datasets.load_digits),
    "monks-2": from_gatefit("monks-2"),
    "monks-3": from_gatefit("monks-3"),
    "splice": from_gatefit("splice"),
    "adult 6k": adult,
}
REGRESSION: dict[str, Callable[[int], Split]] = {
    "diabetes": from_sklearn(sklearn_datasets.load_diabetes),
    "friedman1": generated(sklearn_datasets.make_friedman1, noise=1.0),
    "friedman3": generated(sklearn_datasets.make_friedman3, noise=0.1),
    "linear": generated(sklearn_datasets.make_regression, n_features=10, n_informative=5, noise=10.0),
}


def one_hot(numeric: Any) -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")), remainder=numeric
    )


def linear_model(X: Any, task: str) -> Any:
    if task == "regression":
        return make_pipeline(StandardScaler(), RidgeCV())
    model = LogisticRegression(max_iter=5000)
    if hasattr(X, "columns"):
        return make_pipeline(one_hot(StandardScaler()), model)
    return make_pipeline(StandardScaler(), model)


def boosting(X: Any, task: str) -> Any:
    if task == "regression":
        return HistGradientBoostingRegressor(random_state=0)
    if hasattr(X, "columns"):
        encode = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
            remainder="passthrough",
        )
        return make_pipeline(encode, HistGradientBoostingClassifier(random_state=0))
    return HistGradientBoostingClassifier(random_state=0)


def gatefit_model(options: dict[str, Any], y: Any, task: str, seed: int) -> Any:
    options = {"wiring": "fixed", "thresholds": 15, **options}
    if task == "regression":
        return LogicGateRegressor(**options, random_state=seed, threads=1)
    classes = len(np.unique(y))
    if "width" in options:
        options["width"] -= options["width"] % classes
    if "readout_temperature" in options:
        options["readout_temperature"] *= (max(1000, 200 * classes) / classes) ** 0.5
    return LogicGateClassifier(**options, random_state=seed, threads=1)


def measure(name: str, split: Split, task: str, seed: int) -> dict[str, float]:
    X, X_test, y, y_test = split
    if name == "linear model":
        model = linear_model(X, task)
    elif name == "gradient boosting":
        model = boosting(X, task)
    else:
        model = gatefit_model((VARIATIONS | CLASSIFIER_ONLY)[name], y, task, seed)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    return {"score": float(model.score(X_test, y_test)), "seconds": seconds}


def table(results: dict[str, Any], task: str, rows: list[str], names: list[str]) -> str:
    lines = [f"| | {' | '.join(names)} | mean | CPU s |", "|---" * (len(names) + 3) + "|"]
    scale, digits = (100, 1) if task == "classification" else (1, 3)
    for row in rows:
        cells = [[v for k, v in results.items() if k.startswith(f"{task}/{row}/{name}/")] for name in names]
        means = [scale * float(np.mean([c["score"] for c in cell])) for cell in cells]
        seconds = sum(c["seconds"] for cell in cells for c in cell)
        shown = " | ".join(f"{mean:.{digits}f}" for mean in [*means, float(np.mean(means))])
        lines.append(f"| {row} | {shown} | {seconds:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "estimator_defaults.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    references = ["linear model", "gradient boosting"]
    text = [f"Mean test score ({arguments.seeds} seeds, one for {', '.join(LARGE)}); each row changes one parameter.\n"]
    for task, sets, rows in (
        ("classification", CLASSIFICATION, [*VARIATIONS, *CLASSIFIER_ONLY, *references]),
        ("regression", REGRESSION, [*VARIATIONS, *references]),
    ):
        present = []
        for name, load in sets.items():
            try:
                splits = [load(seed) for seed in range(1 if name in LARGE else arguments.seeds)]
            except DatasetError:
                continue
            present.append(name)
            for row in rows:
                for seed, split in enumerate(splits):
                    key = f"{task}/{row}/{name}/{seed}"
                    if key not in results:
                        results[key] = measure(row, split, task, seed)
                        path.write_text(json.dumps(results, indent=1))
        text += [f"## {task.capitalize()}\n", table(results, task, rows, present), ""]
    (arguments.out / "estimator_defaults.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
