"""gatefit runs missing: what labels wait for, and the command that makes it."""

from gatefit.experiments.export import Export
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.paper.outcome import Results
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


def test_a_run_that_diverges_has_said_what_it_has_to_say(gatefit, tmp_path):
    """IWP without an activation squares its values layer by layer: with twelve of them the first loss is no number."""
    label, scale = "extra:as-written", "tiny"
    (config,) = (
        config
        for config in experiment(label).plan(scale, (0,))
        if config.corner_activation == "identity" and config.depth == 12
    )
    folder, exported = tmp_path / "store", tmp_path / "export"
    with Store.open(folder) as opened:
        run_all([config], opened)
        record = opened.find(config.identity)
        assert record.diverged
        planned = len(experiment(label).plan(scale, (0,)))
    gatefit("runs", "export", "--store", folder, "--out", exported)
    for source in (folder, exported):
        words = ("runs", "missing", "--store", source, "--scale", scale, "--label", label, "--json")
        (row,) = gatefit(*words).json["labels"]
        assert config.identity not in row["runs"]
        assert row["missing"] == planned - 1
    outcome = experiment(label).show(Results(Export(exported).find, scale=scale))
    notes = [cell.note for table in outcome.tables for _, cells in table.rows for cell in cells]
    assert "diverges: the loss is nan at step 1" in notes
    assert config.identity not in {each.identity for each in outcome.missing}
