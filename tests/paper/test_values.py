"""The typed-in numbers are the paper's: compared with its LaTeX where that is at hand, and with themselves."""

import math
import re
from pathlib import Path

import pytest

from gatefit.paper.outcome import Value
from gatefit.paper.values import CIRCUIT_SIZE, SIZES, TEXT, paper, paper_labels, paper_number

PAPER = Path(__file__).parents[3] / "shared" / "paper"
NUMBER = re.compile(r"[-+]?\d*\.\d+|[-+]?\d+")
IN_TEXT = (
    "sec:ablation", "sec:controls", "app:interaction-demand", "app:significance", "app:tau", "fig:commitment",
    "fig:cancellation", "fig:codebook-neurons", "fig:gate-selection", "app:gradnorm", "tab:wiring-ablation", *TEXT,
    "app:basis-futility", "tab:depth/corollary", "tab:adult-depth/tau-1", "app:tau/learned", "app:gradnorm/covjac",
)  # fmt: skip


@pytest.fixture(scope="module")
def latex() -> str:
    files = sorted(PAPER.glob("0*.txt")) if PAPER.is_dir() else []
    if not files:
        pytest.skip("the paper's LaTeX is not part of the repository; looked for ../shared/paper")
    return files[0].read_text()


def table(latex: str, label: str) -> str:
    """The tabular that follows a label, without its layout."""
    body = latex[latex.index(rf"\label{{{label}}}") :]
    return body[body.index(r"\midrule") : body.index(r"\bottomrule")]


def numbers(text: str) -> list[float]:
    plain = re.sub(
        r"\\tiny|\\text\{k\}|\\textbf|\\textit|\\multicolumn\{\d\}|\{,\}|\{|\}|\$|\\times|\\citep", " ", text
    )
    plain = re.sub(r"\\pm|\\,", " ", plain).replace("- ", "-").replace("+ ", "+")
    return [float(n) for n in NUMBER.findall(plain)]


def written(value: Value) -> list[float]:
    return [value.mean] if value.std is None else [value.mean, value.std]


@pytest.mark.parametrize("label", [label for label in paper_labels() if label not in IN_TEXT])
def test_a_table_is_the_papers(latex, label):
    block = paper(label)
    typed = [
        number
        for row in block.rows
        for column in block.columns
        if (v := block[row, column]) is not None
        for number in written(v)
    ]
    theirs = iter(numbers(table(latex, label.partition("/")[0])))
    # Row by row, in the same order, among the table's other numbers (widths, best checkpoints, ...).
    missing = [number for number in typed if not any(math.isclose(number, other) for other in theirs)]
    assert missing == []


@pytest.mark.parametrize("label", IN_TEXT)
def test_a_number_of_the_text_is_the_papers(latex, label):
    theirs = set(numbers(latex))
    typed = [number for value in paper(label).values.values() for number in written(value)]
    assert [number for number in typed if number not in theirs and -number not in theirs] == []


def test_a_number_that_the_paper_does_not_give_is_no_number():
    assert paper_number("tab:depth", "soft-mix", 12) == 82.94
    with pytest.raises(ValueError, match=r"the paper's sec:controls has no value at \(walsh, cifar10\)"):
        paper_number("sec:controls", "walsh", "cifar10")


def test_sizes_are_printed_in_the_papers_table(latex):
    body = latex[latex.index(r"\label{tab:mlp-cnn-baseline}") :]
    rows = body[body.index(r"\midrule") : body.index(r"\end{table}")].replace(r"${\sim}$", "").replace(r"\textbf{", "")
    for parameters, operations in SIZES.values():
        assert f"{parameters}" in rows
        assert operations in rows
    assert CIRCUIT_SIZE in rows


def test_the_catalogue_at_8000_gates_stands_in_one_sentence(latex):
    sentence = latex[latex.index("Empirical confirmation.") :][:700]
    theirs = numbers(sentence)
    assert all(value.mean in theirs for value in paper("app:basis-futility").values.values())


def test_values_carry_their_spread_and_unit():
    assert paper("tab:mnist-main")["soft-mix", "monks-2"] == Value(81.32, 1.09, 3, "%")
    assert paper("tab:cost")["soft-mix", "train"] == Value(175.0, None, 1, "ops")
    assert paper("tab:starvation-severity")["adult", "ratio"] is None
    assert paper("tab:depth")["soft-mix", 12] == Value(82.94, 2.85, 3, "%")


@pytest.mark.parametrize("label", paper_labels())
def test_blocks_are_well_formed(label):
    block = paper(label)
    assert len(set(block.rows)) == len(block.rows)
    assert len(set(block.columns)) == len(block.columns)
    assert block.values
    assert all(value.std is None or value.std >= 0 for value in block.values.values())


def test_differences_that_the_paper_prints_are_those_of_its_table():
    main, gaps = paper("tab:mnist-main"), paper("tab:starvation-severity")
    for dataset in gaps.rows:
        soft, ste, covjac = (main[f"{m}", dataset] for m in ("soft-mix", "multilinear-ste", "multilinear-covjac"))
        assert gaps[dataset, "starvation"].mean == pytest.approx(soft.mean - ste.mean, abs=0.006)
        assert gaps[dataset, "advantage"].mean == pytest.approx(covjac.mean - ste.mean, abs=0.006)
