"""Names and metadata from a file do nothing to a terminal, and reach files and pipes as they are."""

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.cli.errors import one_line
from gatefit.cli.output import json_text, printable

pytestmark = pytest.mark.outside

pty = pytest.importorskip("pty")

CLIPBOARD, TITLE, CLEAR = "\x1b]52;c;cm0gLXJmIH4=\x07", "\x1b]0;owned\x07", "\x9b2J"
FORGED, REVERSED = "yes\nerror: none", "\u202egnp.exe"
NAMES = (CLIPBOARD + TITLE, FORGED + CLEAR, REVERSED)


@pytest.fixture
def hostile(tmp_path):
    circuit = Circuit(
        2,
        [6, 8],
        [[0, 0], [1, 1]],
        [2, 3],
        GroupSum([0, 1], [0, 0, 0]),
        input_names=(TITLE, FORGED),
        class_names=NAMES,
        metadata={TITLE: CLIPBOARD, "note": FORGED + REVERSED},
    )
    circuit.save(tmp_path / "m.gate")
    replace(circuit, gates=[7, 8]).save(tmp_path / "other.gate")
    (tmp_path / "x.csv").write_text("a,b\n0,0\n1,1\n0,1\n")
    return tmp_path


TYPED = """
import json, sys
from gatefit.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit:
        pass
    print(END, flush=True)
"""
END = "=== end of the command ==="


def on_a_terminal(commands):
    """What each command writes to a terminal, stdout and stderr together; they are typed after one another."""
    controller, terminal = pty.openpty()
    typed = json.dumps([[str(word) for word in arguments] for arguments in commands])
    command = [sys.executable, "-c", TYPED.replace("END", repr(END)), typed]
    environment = {**os.environ, "COLUMNS": "200", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    written = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if not part:
            break
        written += part
    os.close(controller)
    assert process.wait() == 0
    *texts, _ = written.decode("utf-8").split(END)
    assert len(texts) == len(commands)
    return texts


def assert_harmless(text):
    for sequence in (CLIPBOARD, TITLE, CLEAR, REVERSED, "\x07"):
        assert sequence not in text
    assert "error: none" not in [line.strip() for line in text.replace("\r", "\n").split("\n")]


COMMANDS = [
    ["info", "m.gate"],
    ["info", "m.gate", "--json"],
    ["predict", "m.gate", "x.csv", "--no-header", "--scores"],
    ["predict", "m.gate", "x.csv", "--bits", "--no-header"],
    ["prove", "m.gate", "other.gate"],
    *(["export", "m.gate", "--to", to] for to in ("c", "verilog", "blif", "aiger", "dot", "json")),
]


def test_a_terminal_is_left_alone(hostile):
    (hostile / "x.csv").write_text("0,0\n1,1\n0,1\n")
    paths = [
        [hostile / word if word.endswith((".gate", ".csv")) else word for word in arguments] for arguments in COMMANDS
    ]
    for arguments, text in zip(COMMANDS, on_a_terminal(paths), strict=True):
        assert_harmless(text)
        if arguments[0] != "export":
            assert "\\x1b]0;owned\\x07" in text or "\\u001b]0;owned\\u0007" in text, arguments


def test_errors_quote_a_file_without_obeying_it(hostile, refused):
    message = refused("predict", hostile / "m.gate", hostile / "x.csv")
    assert_harmless(message)
    assert "has no column \\x1b]0;owned\\x07, yes" in message


def test_data_for_machines_is_exact(hostile, gatefit):
    (hostile / "x.csv").write_text("0,0\n1,1\n")
    arguments = ("predict", hostile / "m.gate", hostile / "x.csv", "--no-header")
    rows = list(csv.reader(io.StringIO(gatefit(*arguments).out)))
    assert rows == [[NAMES[1]], [NAMES[0]]]
    gatefit(*arguments, "--scores", "--out", hostile / "out.csv")
    written = list(csv.reader(io.StringIO((hostile / "out.csv").read_bytes().decode())))
    assert written[0] == ["prediction", *(f"score of {name}" for name in NAMES)]
    assert gatefit(*arguments, "--json").json["predictions"] == [NAMES[1], NAMES[0]]
    assert gatefit("info", hostile / "m.gate", "--json").json["metadata"] == Circuit.load(hostile / "m.gate").metadata


def test_printable():
    assert printable("é ✓ 日本 👩‍🔬 a\\b") == "é ✓ 日本 👩‍🔬 a\\b"
    assert printable("a\x1b\n\x7f\x85\u2028\u2066\ud800") == "a\\x1b\\n\\x7f\\x85\\u2028\\u2066\\ud800"
    assert printable("a\nb\tc\r", keep="\n\t") == "a\nb\tc\\r"
    assert one_line("a:\n b\x1bc") == "a: b\\x1bc"
    content = {"a\x9b": ["\u202e\x7f\n", "👩‍🔬"]}
    assert json.loads(json_text(content)) == content
    assert not set(json_text(content)) & set("\x9b\x7f\u202e")
