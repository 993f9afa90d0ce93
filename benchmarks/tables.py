"""The estimators on many tables, beside gradient boosting and a forest: how defaults are chosen, and what they reach.

    python -m benchmarks.tables trial TABLE... [--set NAME=VALUE ...]   a row for each in results/tables/trials.csv
    python -m benchmarks.tables study [TABLE...]                        results/tables/study.csv, docs/tables.md

Every table is split once. Trials, from which defaults are chosen, see the development part alone, in folds of its own.
The study reads the final part:

    own test file      fit on the development part, test on the file (monks, adult)
    up to 1,000 rows   the final part (40 %) in three folds; each is predicted by a model fitted on all other rows
    more rows          the final part (40 %, beyond 5,000 rows 25 %) at once

so that no row on which a figure of the study is measured has had a say in any default. Both commands are resumed where
they were stopped: a row that is in the file is not made again. Seconds are of one processor (``time.process_time``).
"""

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import average_precision_score
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gatefit.circuit.statistics import statistics
from gatefit.datasets import load_adult_frame, load_dataset
from gatefit.encoders.frames import take
from gatefit.estimators import LogicGateClassifier, LogicGateRegressor, base
from gatefit.estimators.recipes import recipe_of

ROOT = Path(__file__).parents[1]
SPLIT_SEED = 17
SMALL, FOLDED = 5_000, 1_000
"""Rows up to which the final part is 40 % of them, and up to which it is read in folds."""

Rows = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Table:
    """A table, whole or with a test file of its own."""

    task: str
    load: Callable[[], Rows]
    test: Callable[[], Rows] | None = None
    note: str = ""

    @property
    def regression(self) -> bool:
        return self.task == "regression"

    def parts(self) -> tuple[Rows, Rows]:
        """The development part and the final part."""
        X, y = self.load()
        if self.test is not None:
            return (X, y), self.test()
        share = 0.4 if len(y) <= SMALL else 0.25
        first, last = train_test_split(
            np.arange(len(y)), test_size=share, random_state=SPLIT_SEED, stratify=None if self.regression else y
        )
        return (take(X, first), y[first]), (take(X, last), y[last])

    def folds(self, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Three folds of ``rows``."""
        kind = KFold if self.regression else StratifiedKFold
        yield from kind(3, shuffle=True, random_state=SPLIT_SEED).split(np.zeros(len(rows[1])), rows[1])

    def trial_splits(self) -> Iterator[tuple[Rows, Rows]]:
        """Folds of the development part."""
        X, y = development = self.parts()[0]
        for fit, check in self.folds(development):
            yield (take(X, fit), y[fit]), (take(X, check), y[check])

    def final_splits(self) -> Iterator[tuple[Rows, Rows]]:
        """What the study fits on and tests on."""
        (X, y), (X_last, y_last) = self.parts()
        if self.test is not None or len(y) + len(y_last) > FOLDED:
            yield (X, y), (X_last, y_last)
            return
        for others, tested in self.folds((X_last, y_last)):
            together = _joined(X, take(X_last, others)), np.concatenate([y, y_last[others]])
            yield together, (take(X_last, tested), y_last[tested])


def _joined(first: Any, second: Any) -> Any:
    if hasattr(first, "columns"):
        import pandas

        return pandas.concat([first, second])
    return np.concatenate([first, second])


def _sklearn(load: Callable[..., Any]) -> Callable[[], Rows]:
    return lambda: load(return_X_y=True)


def _files(name: str, *parts: str) -> Callable[[], Rows]:
    def load() -> Rows:
        data = load_dataset(name, download=False)
        found = [(getattr(data, f"x_{part}"), getattr(data, f"y_{part}")) for part in parts]
        return np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found])

    return load


def _adult(first: int) -> Callable[[], Rows]:
    return lambda: load_adult_frame(download=False)[first : first + 2]


def _letters() -> Rows:
    """Sixteen whole numbers from 0 to 15, 26 classes of two clusters each: the shape of UCI's letter table."""
    X, y = sklearn_datasets.make_classification(
        20_000, 16, n_informative=12, n_redundant=4, n_classes=26, n_clusters_per_class=2, class_sep=2.5,
        random_state=1,
    )  # fmt: skip
    return np.clip(np.rint(7.5 + 3 * X / X.std(axis=0)), 0, 15).astype(np.int64), y


def _made(rows: int, features: int, informative: int, **options: Any) -> Callable[[], Rows]:
    return lambda: sklearn_datasets.make_classification(
        rows, features, n_informative=informative, random_state=2, **options
    )


def _hastie() -> Rows:
    X, y = sklearn_datasets.make_hastie_10_2(8_000, random_state=3)
    return X, y.astype(int)


def _heavy_tail() -> Rows:
    X = np.random.default_rng(4).normal(size=(2_000, 5))
    return X, np.exp(2 * X[:, 0])


TABLES: dict[str, Table] = {
    "iris": Table("classification", _sklearn(sklearn_datasets.load_iris)),
    "wine": Table("classification", _sklearn(sklearn_datasets.load_wine)),
    "breast cancer": Table("classification", _sklearn(sklearn_datasets.load_breast_cancer)),
    "digits": Table("classification", _sklearn(sklearn_datasets.load_digits)),
    "monks-1": Table("classification", _files("monks-1", "train"), _files("monks-1", "test")),
    "monks-2": Table("classification", _files("monks-2", "train"), _files("monks-2", "test")),
    "monks-3": Table("classification", _files("monks-3", "train"), _files("monks-3", "test")),
    "ljubljana": Table("classification", _files("breast-cancer", "train", "test"), note="categories, missing values"),
    "splice": Table("classification", _files("splice", "train", "test"), note="60 columns of letters"),
    "adult": Table("classification", _adult(0), _adult(2), note="numbers and categories"),
    "letters": Table("classification", _letters, note="26 classes"),
    "many rows": Table(
        "classification", _made(300_000, 20, 8, n_redundant=4, n_classes=3, n_clusters_per_class=3), note="300,000 rows"
    ),
    "few rows": Table("classification", _made(80, 8, 4, n_classes=2), note="80 rows"),
    "wide": Table("classification", _made(2_000, 400, 20, n_redundant=20, class_sep=1.5), note="400 columns"),
    "imbalanced": Table(
        "classification", _made(20_000, 20, 5, weights=[0.97]), note="3 % of one class; also by average precision"
    ),
    "noisy": Table("classification", _made(5_000, 12, 6, flip_y=0.3), note="15 % of the labels are wrong"),
    "hastie": Table("classification", _hastie, note="sum of ten squares above its median"),
    "diabetes": Table("regression", _sklearn(sklearn_datasets.load_diabetes)),
    "friedman1": Table("regression", lambda: sklearn_datasets.make_friedman1(2_000, noise=1.0, random_state=5)),
    "friedman3": Table("regression", lambda: sklearn_datasets.make_friedman3(1_000, noise=0.1, random_state=6)),
    "linear": Table(
        "regression",
        lambda: sklearn_datasets.make_regression(800, 10, n_informative=5, noise=10.0, random_state=7),
    ),
    "heavy tail": Table("regression", _heavy_tail, note="y = exp(2 x) of a normal x"),
    "many rows, value": Table(
        "regression",
        lambda: sklearn_datasets.make_friedman1(100_000, noise=1.0, random_state=8),
        note="100,000 rows of friedman1",
    ),
}
"""Named before the first trial."""

BEFORE: dict[str, Any] = {"wiring": "fixed", "thresholds": 15}
"""The first version's defaults."""


def boosting(table: Table, X: Any) -> Any:
    """Histogram gradient boosting; categories by its own means."""
    kind = HistGradientBoostingRegressor if table.regression else HistGradientBoostingClassifier
    return kind(random_state=0, categorical_features="from_dtype")


def forest(table: Table, X: Any) -> Any:
    """A random forest; categories one-hot."""
    kind = RandomForestRegressor if table.regression else RandomForestClassifier
    model = kind(random_state=0, n_jobs=1)
    if not hasattr(X, "columns"):
        return model
    words = make_column_selector(dtype_include="category")
    return make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), remainder="passthrough"), model
    )


def ours(table: Table, options: dict[str, Any], seed: int) -> Any:
    """The estimator of the task."""
    kind = LogicGateRegressor if table.regression else LogicGateClassifier
    return kind(**options, random_state=seed, threads=1)


@contextmanager
def changed_recipe(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Fits in here have the recipe's fields that are named in options as recipe.FIELD; gives the other options."""
    changes = {name.removeprefix("recipe."): value for name, value in options.items() if name.startswith("recipe.")}
    with mock.patch.object(base, "recipe_of", lambda *args, **shape: replace(recipe_of(*args, **shape), **changes)):
        yield {name: value for name, value in options.items() if not name.startswith("recipe.")}


def for_rivals(X: Any) -> Any:
    """Words as pandas categories; numbers as they are."""
    import pandas

    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return X
    frame = X if hasattr(X, "columns") else pandas.DataFrame(X).rename(columns=str)
    words = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    return frame.astype(dict.fromkeys(words, "category"))


def measure(table: Table, model: Any, fit: Rows, check: Rows, *, gates: bool) -> dict[str, Any]:
    """Scores and cost of one fit."""
    start = time.process_time()
    model.fit(*fit)
    row: dict[str, Any] = {"seconds": round(time.process_time() - start, 2)}
    row["score"] = round(float(model.score(*check)), 5)
    if not table.regression and len(np.unique(fit[1])) == 2:
        positive = check[1] == np.unique(fit[1])[1]
        row["average_precision"] = round(
            float(average_precision_score(positive, model.predict_proba(check[0])[:, 1])), 5
        )
    if isinstance(model, LogicGateClassifier | LogicGateRegressor):
        row["train_score"] = round(float(model.history_[-1]["train_score"]), 5)
        row["trained_gates"] = sum(model.network_.widths)
        if gates:
            row["gates"] = statistics(model.circuit_).live_gates
    return row


FIELDS = (
    "table", "model", "options", "fold", "seed", "score", "average_precision", "train_score", "seconds",
    "trained_gates", "gates",
)  # fmt: skip


class Rowed:
    """A csv file of finished fits, by table, model, options, fold and seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))

    def made(
        self,
        name: str,
        model: str,
        options: dict[str, Any],
        fold: int,
        seed: int,
        rows: tuple[Rows, Rows],
        *,
        gates: bool,
    ) -> None:
        """Make the fit that is named so, unless it is there."""
        key = {
            "table": name,
            "model": model,
            "options": json.dumps(options, sort_keys=True),
            "fold": fold,
            "seed": seed,
        }
        if any(all(row[field] == str(value) for field, value in key.items()) for row in self.rows):
            return
        made = _measured(TABLES[name], model, options, *rows, seed, gates=gates)
        row = {name: str(value) for name, value in {**dict.fromkeys(FIELDS, ""), **key, **made}.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        print(" ".join(f"{name}={row[name]}" for name in FIELDS if row[name] != ""), flush=True)


def trial(names: list[str], options: dict[str, Any], model: str, folds: int, seed: int) -> None:
    """Fit on folds of development parts."""
    log = Rowed(ROOT / "results" / "tables" / "trials.csv")
    for name in names:
        for fold, rows in enumerate(islice(TABLES[name].trial_splits(), folds)):
            log.made(name, model, options, fold, seed, rows, gates=False)


def _measured(
    table: Table, model: str, options: dict[str, Any], fit: Rows, check: Rows, seed: int, *, gates: bool
) -> dict[str, Any]:
    if model in ("boosting", "forest"):
        X, X_check = for_rivals(fit[0]), for_rivals(check[0])
        made = (boosting if model == "boosting" else forest)(table, X)
        return measure(table, made, (X, fit[1]), (X_check, check[1]), gates=False)
    with changed_recipe(options) as own:
        return measure(table, ours(table, own, seed), fit, check, gates=gates)


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "boosting": ("boosting", {}),
    "after": ("gatefit", {}),
    "before": ("gatefit", BEFORE),
    "forest": ("forest", {}),
}
"""What the study fits: who, and with which parameters."""


def study(names: list[str], models: list[str]) -> None:
    """Fit on all but the final part, test on it."""
    log = Rowed(ROOT / "results" / "tables" / "study.csv")
    for model in models:
        kind, options = MODELS[model]
        for name in names:
            for fold, rows in enumerate(TABLES[name].final_splits()):
                log.made(name, kind, options, fold, 0, rows, gates=fold == 0)
    path = ROOT / "docs" / "tables.md"
    further = path.read_text().partition("## Probabilities")  # what benchmarks.log_loss wrote below
    path.write_text(page(log.rows) + "".join(["\n", *further[1:]] if further[1] else []))


PAGE = """# Tables: the estimators beside boosting and a forest

Made by `python -m benchmarks.tables study` from `results/tables/study.csv`. Every table was named before the first
trial and split once: trials (`results/tables/trials.csv`), from which defaults were chosen, saw its development part
alone, and no row that is tested here. One table was changed after it was named: *letters* was made easier when boosting
had reached 63 % on it, before any network had been fitted to it. Options in the log were written
out afterwards where defaults had changed since. Final parts of *letters*, *many rows* and *many rows, value* were read
twice: trials on development parts made networks wider where rows are many, after the first defaults had reached 91.6 %,
89.7 % and 0.958 there.

Accuracy in percent for classes, R² for values. *before*: the first version's defaults, with fixed wiring. *now*:
`LogicGateClassifier()` and `LogicGateRegressor()`. *boosting*, *forest*: scikit-learn's `HistGradientBoosting...` and
`RandomForest...`, as they come. Up to 1,000 rows the final part is read in three folds, of which the means are shown.
*s.e.*: the standard error of one accuracy. Gates are live two-input gates after proven optimisation (of the first
fold), seconds those of one processor for one fit.

"""
HEADER = """\
| table | rows | before | now | boosting | forest | s.e. | gates before | gates now | s before | s now | s boosting |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


def page(rows: list[dict[str, str]]) -> str:
    """The tables of the documentation."""
    text = [PAGE]
    for task, title in (("classification", "Classes"), ("regression", "Values")):
        text.append(f"## {title}\n")
        text.append(HEADER)
        gaps = []
        for name, table in TABLES.items():
            if table.task != task:
                continue
            cells = {model: _cell(rows, name, model) for model in MODELS}
            if cells["after"] is None:
                continue
            line, gap = _line(name, table, cells)
            text.append(line)
            if gap is not None:
                gaps.append(gap)
        if gaps:
            unit = "points" if task == "classification" else "R²"
            digits = 1 if task == "classification" else 3
            text.append(
                f"\nNow less boosting: median {np.median(gaps):+.{digits}f} {unit}, least {min(gaps):+.{digits}f}; "
                f"ahead or level on {sum(gap >= 0 for gap in gaps)} of {len(gaps)}.\n"
            )
    imbalanced = {model: _cell(rows, "imbalanced", model) for model in MODELS}
    if all(imbalanced.values()):
        shown = ", ".join(f"{model} {cell['average_precision']:.3f}" for model, cell in imbalanced.items() if cell)
        text.append(f"Average precision on *imbalanced*: {shown}.\n")
    return "\n".join(text)


def _cell(rows: list[dict[str, str]], name: str, model: str) -> dict[str, float] | None:
    """The means over folds of what was measured of one model on one table."""
    kind, options = MODELS[model]
    own = [
        row
        for row in rows
        if (row["table"], row["model"], row["options"]) == (name, kind, json.dumps(options, sort_keys=True))
    ]
    if not own:
        return None
    means = {}
    for field in ("score", "average_precision", "seconds", "gates"):
        values = [float(row[field]) for row in own if row[field]]
        if values:
            means[field] = float(np.mean(values))
    return means


def _line(name: str, table: Table, cells: dict[str, dict[str, float] | None]) -> tuple[str, float | None]:
    """One row of the page, and how far ours is ahead of boosting."""
    (_, y), (_, y_last) = table.parts()
    scale, digits = (1, 3) if table.regression else (100, 1)

    def of(model: str, field: str, digits: int, scale: float = 1) -> str:
        cell = cells[model]
        return "" if cell is None or field not in cell else f"{scale * cell[field]:,.{digits}f}"

    after, other = cells["after"], cells["boosting"]
    assert after is not None
    error = "" if table.regression else f"{100 * np.sqrt(after['score'] * (1 - after['score']) / len(y_last)):.1f}"
    scores = [of(model, "score", digits, scale) for model in ("before", "after", "boosting", "forest")]
    costs = [of("before", "gates", 0), of("after", "gates", 0)]
    costs += [of(model, "seconds", 1) for model in ("before", "after", "boosting")]
    gap = None if other is None else scale * (after["score"] - other["score"])
    return f"| {name} | {len(y) + len(y_last):,} | {' | '.join([*scores, error, *costs])} |", gap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["trial", "study"])
    parser.add_argument("tables", nargs="*", help="names of tables (default: all)")
    parser.add_argument("--set", nargs="*", default=[], help="parameters of a trial's estimator, name=value")
    parser.add_argument("--model", default="gatefit", choices=["gatefit", "boosting", "forest"], help="of a trial")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS, help="of the study")
    parser.add_argument("--folds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    names = given.tables or list(TABLES)
    options = {name: _value(text) for name, text in (pair.split("=", 1) for pair in given.set)}
    if given.verb == "trial":
        trial(names, options, given.model, given.folds, given.seed)
    else:
        study(names, given.models)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
