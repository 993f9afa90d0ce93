"""The observers that show a run, and the words for learned gates."""

import io
import re

import numpy as np
import pytest
from rich.console import Console

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.cli import output
from gatefit.cli.datasets import downloads
from gatefit.cli.gate_stories import in_words, telling_gates
from gatefit.cli.progress import shown
from gatefit.gates import Gate
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.runs import execute


def terminal(text):
    return Console(file=text, force_terminal=True, width=160, color_system=None)


def test_a_terminal_gets_a_bar_with_speed_loss_accuracy_and_time_left(tmp_path):
    text = io.StringIO()
    config = RunConfig(dataset="monks-1", width=34, depth=2, steps=300, evaluate_every=100)
    with shown(terminal(text), quiet=False) as observers:
        run = execute(config, folder=tmp_path, observers=observers)
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    last = re.findall(r"training .*", drawn)[-1]
    accuracy = output.percent(run.result.summary["test_accuracy"])
    assert re.search(rf"300/300 [\d.]+ steps/s loss \d\.\d{{4}} test {re.escape(accuracy)} 0:00:00", last)
    assert text.getvalue().count("\n") < 50


@pytest.mark.parametrize("terminal_width", [160, None])
def test_a_validation_set_is_not_called_test(tmp_path, terminal_width):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal_width is not None, width=terminal_width, color_system=None)
    config = RunConfig(
        dataset="monks-1", width=34, depth=2, steps=20, evaluate_every=10, validation_fraction=0.2, patience=5
    )
    with shown(console, quiet=False) as observers:
        execute(config, folder=tmp_path, observers=observers)
    assert re.search(r"validation [\d.]+ %", text.getvalue())
    assert not re.search(r"test [\d.-]+", text.getvalue())


def test_a_bar_gives_the_terminal_back_when_a_run_fails():
    text = io.StringIO()

    def failing_run():
        with shown(terminal(text), quiet=False) as observers:
            observers[0].started(RunConfig(steps=10), None, TrainingState())
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        failing_run()
    assert text.getvalue().rstrip().endswith("\x1b[?25h")


def test_quiet_observes_nothing():
    with shown(terminal(io.StringIO()), quiet=True) as observers:
        assert observers == []


def test_downloads_are_a_bar_on_a_terminal_and_a_line_elsewhere():
    text = io.StringIO()
    with downloads(terminal(text)) as progress:
        progress("train.gz", 500_000, 1_000_000)
        progress("train.gz", 1_000_000, 1_000_000)
    assert "downloading train.gz" in text.getvalue()
    assert "1.0/1.0 MB" in text.getvalue()
    text = io.StringIO()
    with downloads(Console(file=text)) as progress:
        for done in (1, 2, 3):
            progress("train.gz", done, 3)
    assert text.getvalue() == "downloading train.gz\n"
    with downloads(Console(file=text), quiet=True) as progress:
        assert progress is None


@pytest.mark.parametrize(("seconds", "text"), [(0.417, "0.42 s"), (12.3, "12 s"), (185.9, "3:05"), (7385.0, "2:03:05")])
def test_durations(seconds, text):
    assert output.duration(seconds) == text


def test_tables_align_numbers_to_the_right(capsys):
    output.print_table(("name", "gates"), [("a", "1,000"), ("longer", "2")])
    assert capsys.readouterr().out == "name     gates\na        1,000\nlonger       2\n"


@pytest.mark.parametrize("gate", Gate)
def test_words_compute_the_gate(gate):
    said = in_words(gate, "a", "b")
    python = {"xor": "!=", "xnor": "==", "true": "True", "false": "False"}
    words = [python.get(word, word) for word in said.split()]
    for a in (False, True):
        for b in (False, True):
            names = {"a": a, "b": b}
            if "nand" in words or "nor" in words:
                value = not eval(" ".join(words).replace("nand", "and").replace("nor", "or"), names)
            elif words in (["a", "True", "b"], ["a", "False", "b"]):
                value = words[1] == "True"
            else:
                value = eval(" ".join(words), names)
            assert bool(value) == bool(gate(a, b)), said


def test_telling_gates_are_those_that_separate_classes():
    circuit = Circuit(
        inputs=3,
        gates=np.array([Gate.AND, Gate.XOR, Gate.A, Gate.OR]),
        operands=np.array([[0, 0, 1, 3], [1, 2, 1, 4]]),
        outputs=np.array([3, 4, 5, 6]),
        readout=GroupSum(np.array([0, 0, 1, 1]), np.zeros(2, dtype=int)),
        class_names=("zero", "one"),
    )
    bits = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]], dtype=bool)
    stories = telling_gates(circuit, bits, np.array([0, 0, 1, 1]), ("x", "y", "z"))
    assert [(s.text, s.most, s.most_share, s.least, s.least_share) for s in stories] == [
        ("x and y", "zero", 1.0, "one", 0.0),
        ("x xor z", "one", 1.0, "zero", 0.0),
    ]


def test_a_narrow_terminal_folds_prose_but_no_name_or_number(monkeypatch):
    text = io.StringIO()
    narrow = {"force_terminal": True, "width": 30, "color_system": None}
    monkeypatch.setattr(output, "console", lambda: Console(file=text, **narrow))
    output.print_table(("run", "accuracy", "options"), [("bb2f5f5be131", "95.43 %", "wiring=random " * 6)])
    lines = text.getvalue().splitlines()
    assert lines[1].startswith("bb2f5f5be131")
    assert "95.43 %" in lines[1]
    assert text.getvalue().count("wiring=random") == 6
    assert len(lines) > 3
    text.truncate(0)
    output.print_table(("run", "data set", "status"), [("bb2f5f5be131", "tiny-imagenet", "finished")])
    assert "bb2f5f5be131   tiny-imagenet   finished" in text.getvalue()
