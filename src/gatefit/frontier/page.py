"""The frontier as a page: committed results beside published figures, each with what it counts.

Nothing is typed in but the published figures (``published.json``): a row that has not been run is not on the page.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from gatefit.datasets import DATASETS
from gatefit.frontier.entries import COUNTED
from gatefit.frontier.results import Row, in_order

PUBLISHED: Final = Path(__file__).with_name("published.json")

_HEAD: Final = """\
# Accuracy against gates

Made by `gatefit frontier --all --page docs/frontier.md`, which trains what is missing, hardens, optimises, proves,
evaluates and counts; from the committed figures alone (`results/frontier/frontier.json`) by
`gatefit frontier --table-only --page docs/frontier.md`. A test holds this page equal to those figures.

What is counted:

- **Live gates** are all gates of the deployed circuit that some output depends on, inverters and wires included, after
  an optimisation that is proven to change no score on any input; the certificate of each proof was checked.
- The **encoder** (comparisons of features with thresholds, as many as the gates read) and the **readout** (popcount of
  each class and argmax; two-input gates, estimated from adders and comparators) are counted apart.
- **Tables** (LUT4, LUT6) are of all that follows the encoder, gates, popcount and argmax: `gatefit synth` with Yosys.
- **Accuracy** is that of the deployed circuit on the whole test set: the mean over seeds, then every seed. It is the
  network at the end of training, whatever the test set says of it.
- **Seconds** are of processors, over all threads of one training, evaluations included.

Published figures count what their authors count, as said beside each; whether they use augmentation or several
thresholds a pixel is not always stated. They were not run here.
"""


def published(path: Path = PUBLISHED) -> list[dict[str, Any]]:
    """The figures of others: data, model, accuracy, count, what it counts, and where it is from."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def render_page(rows: Iterable[Row]) -> str:
    """The whole page, in Markdown."""
    ordered = in_order(rows)
    parts = [_HEAD]
    if not ordered:
        parts.append("No row has been run yet.\n")
    datasets = list(dict.fromkeys(row.entry.config.dataset for row in ordered))
    for name in sorted(datasets, key=_place):
        parts.append(_data_section(name, [row for row in ordered if row.entry.config.dataset == name]))
    if any(row.tables(target) for row in ordered for target in COUNTED):
        parts.append(_table_section(ordered))
    if ordered:
        parts.append(_command_section(ordered))
        parts.append(_machine_section(ordered))
    return "\n".join(parts)


_FIRST: Final = ("mnist", "cifar10")
_PARTS: Final = ("gates", "popcount", "argmax")
_TARGETS: Final = {
    "lut6": "**LUT6**, tables alone: sums have no carry chains (`--target lut6`).",
    "xilinx": "**LUT6 of Xilinx**, with its carry chains for sums and comparisons (`--target xilinx`).",
    "lut4": "**LUT4**, tables alone (`--target lut4`).",
}


def _place(dataset: str) -> tuple[int, str]:
    """Where a data set stands: first those that are compared with published figures."""
    return (_FIRST.index(dataset) if dataset in _FIRST else len(_FIRST)), dataset


def _data_section(name: str, rows: Sequence[Row]) -> str:
    titles = ("row", "accuracy, %", "seeds", "live gates", "trained", "levels", "encoder", "readout", "LUT4", "LUT6",
              "Xilinx LUT6", "processor seconds")  # fmt: skip
    lines = [
        (
            row.entry.name,
            f"**{100 * row.accuracy:.2f}**",
            _each(row, lambda seed: f"{100 * seed['test_accuracy']:.2f}"),
            _each(row, lambda seed: f"{seed['live_gates']:,}"),
            _same_or_each(row, "trained_gates"),
            _same_or_each(row, "depth"),
            _same_or_each(row, "encoder_comparisons"),
            _same_or_each(row, "readout_gates"),
            _tables(row, "lut4"),
            _tables(row, "lut6"),
            _tables(row, "xilinx"),
            _seconds(row),
        )
        for row in rows
    ]
    text = f"## {DATASETS[name].title if name in DATASETS else name}\n\n{markdown_table(titles, lines, left=1)}\n"
    notes = [f"- {row.entry.name}: {row.entry.note}\n" for row in rows if row.entry.note]
    text += "\n" + "".join(notes) if notes else ""
    return text + _published_section([row for row in published() if row["data"] == name], "gates")


def _published_section(rows: list[dict[str, Any]], unit: str) -> str:
    if not rows:
        return ""
    ordered = sorted(rows, key=lambda row: (row["count"] is None, row["count"], row["accuracy"]))
    lines = [
        (
            row["model"],
            "-" if row["accuracy"] is None else f"{row['accuracy']:g}",
            "-" if row["count"] is None else f"{row['count']:,}",
            row["counts"],
            row["source"],
        )
        for row in ordered
    ]
    titles = ("published", "accuracy, %", unit, "what is counted", "source")
    return f"\n{markdown_table(titles, lines, left=1, prose=2)}\n"


def _table_section(rows: Sequence[Row]) -> str:
    text = "## Tables of an FPGA\n\nLevels are tables on the longest path.\n"
    for target, words in _TARGETS.items():
        counted = [row for row in rows if row.tables(target)]
        if not counted:
            continue
        titles = ("row", "accuracy, %", "tables", "gates", "popcount", "argmax", "carries", "levels", "live gates")
        lines = [
            (
                row.entry.name,
                f"**{100 * row.accuracy:.2f}**",
                _tables(row, target),
                *(_luts(row, target, partial(_tables_of, part)) for part in _PARTS),
                _luts(row, target, lambda luts: luts["carries"]),
                _luts(row, target, lambda luts: luts["levels"]),
                _each(row, lambda seed: f"{seed['live_gates']:,}", only=target),
            )
            for row in sorted(counted, key=lambda row: (_place(row.entry.config.dataset), _mean(row, target)))
        ]
        text += f"\n{words}\n\n{markdown_table(titles, lines, left=1)}\n"
    return text + _published_section([row for row in published() if row["data"] == "mnist-luts"], "tables")


def _command_section(rows: Sequence[Row]) -> str:
    text = "## Commands\n\n`gatefit frontier NAME` does all of it for every seed. One by one, for the first seed:\n"
    for row in rows:
        commands = "\n".join(row.entry.commands(row.seeds[0]["seed"]))
        text += f"\n**{row.entry.name}**\n\n```sh\n{commands}\n```\n"
    return text


def _machine_section(rows: Sequence[Row]) -> str:
    figures = [seed for row in rows for seed in row.seeds]
    cpus = sorted({str(each["cpu"]) for each in figures})
    versions = sorted({each["code_version"] for each in figures})
    tools = sorted({each["luts"][target]["tool"] for each in figures for target in COUNTED if target in each["luts"]})
    text = f"## Machine\n\nTrained on {' and '.join(cpus)}, by gatefit {', '.join(versions)}"
    return text + (f"; tables by {', '.join(tools)}.\n" if tools else ".\n")


def _each(row: Row, shown: Callable[[dict[str, Any]], str], only: str = "") -> str:
    values = [shown(seed) for seed in row.seeds if not only or only in seed["luts"]]
    return ", ".join(values) or "-"


def _same_or_each(row: Row, name: str) -> str:
    values = list(dict.fromkeys(f"{seed[name]:,}" for seed in row.seeds))
    return values[0] if len(values) == 1 else ", ".join(f"{seed[name]:,}" for seed in row.seeds)


def _tables(row: Row, target: str) -> str:
    return ", ".join(f"{count:,}" for count in row.tables(target)) or "-"


def _mean(row: Row, target: str) -> float:
    counts = row.tables(target)
    return sum(counts) / len(counts)


def _tables_of(part: str, luts: dict[str, Any]) -> int:
    return int(luts["parts"].get(part, 0))


def _luts(row: Row, target: str, figure: Callable[[dict[str, Any]], int | None]) -> str:
    values = [figure(seed["luts"][target]) for seed in row.seeds if target in seed["luts"]]
    return ", ".join("-" if value is None else f"{value:,}" for value in values)


def _seconds(row: Row) -> str:
    threads = {seed["threads"] for seed in row.seeds}
    if any(seed.get("processor_seconds") is None for seed in row.seeds):
        return "-"
    text = ", ".join(f"{seed['processor_seconds']:,.0f}" for seed in row.seeds)
    if None in threads:
        return text
    words = " and ".join(map(str, sorted(threads)))
    return f"{text} ({words} thread{'' if words == '1' else 's'})"


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int, prose: int = 0) -> str:
    """Rows under titles; the first ``left`` and the last ``prose`` columns are words, the others figures."""
    assert all(len(row) == len(titles) for row in rows)
    marks = ["---" if i < left or i >= len(titles) - prose else "--:" for i in range(len(titles))]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (titles, marks, *rows)
    )


def text_rows(rows: Iterable[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles and rows for a terminal."""
    titles = ("row", "data set", "accuracy", "each seed", "live gates", "LUT4", "LUT6", "seconds")
    return titles, [
        (
            row.entry.name,
            row.entry.config.dataset,
            f"{100 * row.accuracy:.2f} %",
            _each(row, lambda seed: f"{100 * seed['test_accuracy']:.2f}"),
            _each(row, lambda seed: f"{seed['live_gates']:,}"),
            _tables(row, "lut4"),
            _tables(row, "lut6"),
            _seconds(row),
        )
        for row in in_order(rows)
    ]
