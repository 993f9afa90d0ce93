"""``gatefit report``: a report from a store and from an export, and what it says when it cannot be made."""

import re
import sys
from pathlib import Path

import pytest

from gatefit.experiments.export import write_export
from gatefit.experiments.store import Store
from gatefit.paper.claims import CLAIMS, VERDICTS, WHOSE
from gatefit.paper.report.markdown import escaped
from gatefit.paper.scales import DATASET_NAMES, DATASETS, runs
from gatefit.paper.values import paper
from gatefit.training.config import RunConfig

pytestmark = pytest.mark.outside

ROWS = [
    {
        "step": step,
        "loss": 0.5,
        "train_hard": 0.9,
        "train_soft": 0.9,
        "train_discretisation_gap": 0.0,
        "test_hard": 0.8 + step / 1e6,
        "test_soft": 0.8,
        "test_discretisation_gap": 0.0,
        "generalisation_gap": 0.1,
    }
    for step in range(1000, 11000, 1000)
]
LABELS = ("--label", "tab:h7-cross-dataset", "--label", "fig:codebook-3d")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MONK's-2 by two methods at the paper's scale, with made-up figures."""
    folder = tmp_path_factory.mktemp("report") / "store"
    with Store.open(folder) as store:
        for method in ("multilinear-ste", "multilinear-covjac"):
            config = runs("paper", (0,), "monks-2", method)[0]
            (identity,) = store.plan([config])
            store.begin(identity, code_version="0.1.0", machine={"cpu": "Example CPU", "cores": 2})
            store.write_metrics(identity, ROWS)
            store.finish(identity, ROWS, {"last_10_accuracy": 0.8055, "best_accuracy": 0.81, "boolean": True})
    return folder


def test_a_report_from_a_store(gatefit, refused, store, tmp_path):
    result = gatefit("report", "--store", store, "--out", tmp_path / "out", *LABELS)
    assert result.code == 0, result.err
    assert result.out.splitlines()[0] == "2 of 2 labels from 2 runs"
    first = (tmp_path / "out" / "report.md").read_text()
    assert "Example CPU, 2 cores" in first
    assert "[tab:h7-cross-dataset](report/tab-h7-cross-dataset.md)" in first
    markdown = (tmp_path / "out" / "report" / "tab-h7-cross-dataset.md").read_text()
    assert "80.5" in markdown
    assert "paper 86.06 ± 2.17" in markdown
    assert "`gatefit runs missing --label tab:h7-cross-dataset`" in markdown
    assert str(store.parent) not in first + markdown  # where a folder is on this machine is nobody's business
    assert (tmp_path / "out" / "report.html").read_text().count("<svg ") == 1
    assert (tmp_path / "out" / "figures" / "fig-codebook-3d-paper-1.svg").exists()
    words = ("report", "--store", store, "--out", tmp_path / "out", *LABELS)
    message = f"{tmp_path / 'out' / 'report.md'} exists; choose another --out, or replace it with --overwrite"
    (tmp_path / "out" / "report.md").write_text("mine")
    assert refused(*words) == message
    assert (tmp_path / "out" / "report.md").read_text() == "mine"
    assert gatefit(*words, "--overwrite").code == 0


def test_a_page_of_the_documentation_from_an_export(gatefit, refused, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.open(store, read_only=True) as opened:
        write_export(opened.records(rows=True), tmp_path / "results")
    words = ("report", "--from", "results", "--docs", "docs/reproduction.md", *LABELS[:2])
    assert gatefit(*words).code == 0
    page = (tmp_path / "docs" / "reproduction.md").read_bytes()
    assert b"gatefit report --from results --docs docs/reproduction.md --label tab:h7-cross-dataset --overwrite" in page
    message = "docs/reproduction.md exists; choose another --docs, or replace it with --overwrite"
    assert refused(*words) == message
    assert gatefit(*words, "--overwrite").code == 0
    assert (tmp_path / "docs" / "reproduction.md").read_bytes() == page


def test_all_labels_and_claims_without_figures(gatefit, store, tmp_path):
    result = gatefit("report", "--store", store, "--out", tmp_path, "--no-figures", "--scale", "paper")
    assert result.code == 0, result.err
    text = (tmp_path / "report.md").read_text()
    assert "## The paper's claims" in text
    assert "| not testable here |" in text
    claims = (tmp_path / "report" / "claims.md").read_text()
    assert "Not testable here" in claims
    assert "11 change no coefficient" in claims
    assert "No run of this label is finished" in (tmp_path / "report" / "tab-depth.md").read_text()


PROJECT = Path(__file__).parent.parent.parent
PAGE = PROJECT / "docs" / "reproduction.md"


def test_the_pages_of_the_documentation_are_what_the_committed_results_say(gatefit, tmp_path, monkeypatch):
    """No page is behind the code or the results, none is left over, and every figure is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(PROJECT / "results")
    result = gatefit("report", "--from", "results", "--docs", "docs/reproduction.md")
    assert result.code == 0, result.err
    made, committed = (
        {
            path.relative_to(docs).as_posix(): path.read_text()
            for path in [docs / PAGE.name, *docs.glob("reproduction/*")]
        }
        for docs in (tmp_path / "docs", PROJECT / "docs")
    )
    again = "gatefit report --from results --docs docs/reproduction.md --overwrite"
    assert sorted(made) == sorted(committed), again
    assert [name for name in made if made[name] != committed[name]] == [], again
    assert {path.name for path in (tmp_path / "docs" / "figures").iterdir()} == {
        path.name for path in (PROJECT / "docs" / "figures").iterdir()
    }


def test_the_first_screen_is_the_papers_first_table():
    """In 40 lines, for every data set: CovJac less STE with its standard error, the paper's, and the verdict."""
    lines = PAGE.read_text().splitlines()
    assert len(lines) <= 300
    block = paper("tab:mnist-main")
    number = r"[+−]?\d+\.\d\d"
    for dataset in DATASETS:
        (line,) = [line for line in lines[:40] if line.startswith(f"| {DATASET_NAMES[dataset]} |")]
        theirs = block["multilinear-covjac", dataset].mean - block["multilinear-ste", dataset].mean
        ours, paper_gap, verdict, judged_by = [cell.strip() for cell in line.split("|")][6:10]
        assert paper_gap.startswith(f"{theirs:+.2f} ± ")
        if verdict == "no runs":
            assert (ours, judged_by) == ("–", "–")
        else:
            assert re.fullmatch(rf"{number} ± \d+\.\d\d", ours), line
            assert re.match(r"\*\*(holds|level|does not hold)\*\*", verdict), line
            assert judged_by in ("the paper's scale", "the paper's length, 8k gates", "small scale")


def test_a_line_for_every_claim_and_no_list_of_missing_runs():
    text = PAGE.read_text()
    claims = CLAIMS
    for i, claim in enumerate(claims, 1):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| [{i}](reproduction/claims.md#claim-{i}) ")]
        assert escaped(claim.statement) in line
        verdict, judged_by, whose = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)][2:5]
        assert verdict in VERDICTS
        assert judged_by
        assert {each.removesuffix("\\*") for each in whose.split(", ")} <= {*WHOSE, "–"}
        assert (whose == "–") == (verdict in ("confirmed", "by definition"))
    pages = [text, *(path.read_text() for path in (PROJECT / "docs" / "reproduction").iterdir())]
    assert not any("more configurations" in page or "seeds 0–2\n" in page for page in pages)


def test_every_link_of_the_pages_leads_somewhere():
    pages = [PAGE, *(PROJECT / "docs" / "reproduction").iterdir()]
    assert all(":" not in page.name for page in pages)
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).resolve().is_file(), (page.name, target)
    anchors = set(re.findall(r'<a id="(claim-\d+)"', (PROJECT / "docs" / "reproduction" / "claims.md").read_text()))
    assert anchors == set(re.findall(r"claims\.md#(claim-\d+)", PAGE.read_text()))


def test_a_store_of_tiny_runs_makes_a_tiny_report(gatefit, tmp_path):
    from gatefit.paper.registry import experiment

    with Store.open(tmp_path / "store") as store:
        (identity, *_) = store.plan(experiment("tab:h7-cross-dataset").plan("tiny", (0,)))
        store.begin(identity, code_version="0.1.0", machine={})
        store.write_metrics(identity, ROWS)
        store.finish(identity, ROWS, {"last_10_accuracy": 0.8055, "best_accuracy": 0.81, "boolean": True})
    words = ("report", "--store", tmp_path / "store", "--no-figures", "--label", "tab:h7-cross-dataset")
    assert gatefit(*words, "--out", tmp_path / "out").out.splitlines()[:2] == [
        "no finished run is of paper or small scale: --scale tiny",
        "1 of 1 labels from 1 runs",
    ]
    assert "--scale tiny" in (tmp_path / "out" / "report.md").read_text()
    asked = gatefit(*words, *words[-2:], "--scale", "small", "--out", tmp_path / "out", "--overwrite")
    assert asked.out.splitlines()[:2] == [
        "none of 1 finished runs belongs to these labels and scales; see `gatefit runs list`",
        "0 of 1 labels from 0 runs",
    ]


def test_no_store(refused, tmp_path):
    message = refused("report", "--store", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert "there are no results at" in message
    assert "gatefit reproduce tab:h7-cross-dataset --scale small" in message
    assert not (tmp_path / "out").exists()


def test_an_empty_store_says_which_command_makes_runs(refused, tmp_path):
    Store.open(tmp_path / "store").close()
    message = refused("report", "--store", tmp_path / "store")
    assert "holds no finished run (it is empty)" in message
    assert "gatefit reproduce tab:h7-cross-dataset --scale small --store" in message


def test_a_store_with_nothing_finished(refused, tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.plan([RunConfig(dataset="monks-2").resolved()])
    assert "1 planned, running or failed, none finished" in refused("report", "--store", tmp_path / "store")


def test_a_folder_that_holds_no_results(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    assert str(tmp_path / "empty") in refused("report", "--from", tmp_path / "empty")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scale", "papre"), "unknown scale 'papre'; did you mean paper?"),
        (("--label", "tab:mnist-mian"), "unknown label 'tab:mnist-mian'; nearest: tab:mnist-main"),
        (("--docs", "docs/page.html"), "--docs names a Markdown page, got docs/page.html"),
        (("--from", "results"), "--store and --from both say where the runs are"),
    ],
)
def test_wrong_options(refused, store, words, message):
    assert message in refused("report", "--store", store, *words)


def test_out_is_a_file(refused, store, tmp_path):
    (tmp_path / "file").write_text("")
    assert "--out names a folder, got the file" in refused("report", "--store", store, "--out", tmp_path / "file")


def test_out_cannot_be_written(refused, store, tmp_path):
    (tmp_path / "file").write_text("")
    message = refused("report", "--store", store, "--no-figures", "--out", tmp_path / "file" / "out", *LABELS)
    assert "Not a directory" in message


def test_matplotlib_is_missing(refused, gatefit, store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = refused("report", "--store", store, "--out", tmp_path)
    assert "matplotlib, which is not installed; run: pip install 'gatefit[plots]'" in message
    assert "--no-figures" in message
    assert gatefit("report", "--store", store, "--out", tmp_path, "--no-figures", *LABELS).code == 0
