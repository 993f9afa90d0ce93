"""``gatefit export --to arduino``."""

import re
import shutil

import pytest

from gatefit.backends.c.arduino import to_arduino
from gatefit.circuit.ir import Circuit
from tools import require_tool

pytestmark = pytest.mark.outside


def test_a_sketch_is_written(gatefit, refused, model, tmp_path):
    folder = tmp_path / "monks"
    outcome = gatefit("export", model, "--to", "arduino", "--out", folder)
    assert outcome.code == 0
    assert outcome.out.startswith(f"{folder} (monks.ino, monks_model.h, monks_model.c, README.md)\n")
    files = to_arduino(Circuit.load(model), "monks")
    assert {path.name: path.read_text() for path in folder.iterdir()} == files
    if shutil.which("gcc"):
        assert "flash bytes   RAM bytes" in outcome.out
        assert "this machine" in outcome.out
    assert f"{folder} exists; choose another --out" in refused("export", model, "--to", "arduino", "--out", folder)
    assert gatefit("export", model, "--to", "arduino", "--out", folder, "--overwrite").code == 0


def test_without_a_compiler_the_readme_is_named(gatefit, model, tmp_path, monkeypatch):
    monkeypatch.setattr("gatefit.backends.c.arduino.shutil.which", lambda name: None)
    outcome = gatefit("export", model, "--to", "arduino", "--out", tmp_path / "monks")
    assert outcome.out.endswith("no C compiler here: README.md says what the tables take, without the code\n")


def test_bad_options(refused, model, tmp_path):
    assert refused("export", model, "--to", "arduino") == "a sketch is a folder of files; name it with --out"
    assert "'my-sketch' cannot name anything in C" in refused(
        "export", model, "--to", "arduino", "--out", tmp_path / "my-sketch"
    )
    assert "--name is for --to c or verilog or blif, got --to arduino" in refused(
        "export", model, "--to", "arduino", "--name", "x", "--out", tmp_path / "x"
    )
    (tmp_path / "file").write_text("mine")
    assert "file exists" in refused("export", model, "--to", "arduino", "--out", tmp_path / "file", "--overwrite")


def test_a_target_that_is_too_small_is_a_row(gatefit, model, tmp_path, monkeypatch):
    """A compiler for small machines refuses large tables; the files are written, and the other targets measured."""
    require_tool("gcc")
    small = {"tiny machine": ("gcc", ("-Wlarger-than=30",)), "this machine": ("gcc", ())}
    monkeypatch.setattr("gatefit.backends.c.arduino.TARGETS", small)
    outcome = gatefit("export", model, "--to", "arduino", "--out", tmp_path / "monks")
    assert outcome.code == 0
    assert (tmp_path / "monks" / "monks.ino").is_file()
    tiny, whole = outcome.out.splitlines()[-2:]
    assert re.match(r"tiny machine +- +- +gcc -Os: size of .* exceeds maximum object size 30", tiny)
    assert re.match(r"this machine +[\d,]+ +[\d,]+ +gcc -Os$", whole)
