"""gatefit runs missing: what labels wait for, and the command that makes it."""

from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.paper.registry import experiment


def test_missing_lists_what_labels_wait_for(gatefit, tmp_path, refused):
    """By label and scale with the command; the runs themselves for a label that is asked for."""
    plan = experiment("tab:h7-cross-dataset").plan("tiny", (0,))
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        run_all(plan[:-1], opened)
    words = ("runs", "missing", "--store", folder, "--scale", "tiny")
    content = gatefit(*words, "--label", "tab:h7-cross-dataset", "--json").json
    (row,) = content["labels"]
    assert (row["missing"], row["of"], content["runs"]) == (1, len(plan), 1)
    assert row["runs"] == [plan[-1].identity]
    assert row["command"] == f"gatefit reproduce tab:h7-cross-dataset --scale tiny --store {folder}"
    lines = gatefit(*words, "--label", "tab:h7-cross-dataset").out.splitlines()
    assert lines[1].split()[:4] == ["tab:h7-cross-dataset", "tiny", "1", str(len(plan))]
    assert "tab:h7-cross-dataset, tiny scale:" in lines
    assert any(line.startswith(f"  {plan[-1].dataset} {plan[-1].method}, ") for line in lines)
    assert lines[-1] == "1 different run; labels share them"
    every = gatefit(*words).out
    assert "tab:cost" not in every  # it needs none
    assert "tab:depth" in every
    with Store.open(folder) as opened:
        run_all(plan, opened)
    assert gatefit(*words, "--label", "tab:h7-cross-dataset").out == "no run is missing\n"
    assert "unknown scale 'huge'" in refused(*words[:-1], "huge")
    assert "unknown label 'tab:x'" in refused(*words, "--label", "tab:x")
