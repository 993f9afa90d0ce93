"""What a user can do wrong: one line that helps, an exit code, nothing half-written; a bug keeps its traceback."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from gatefit.cli.errors import UserError, check_choice, explain, one_line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "mnst"], "unknown data set 'mnst'; did you mean mnist? choose one of monks-1, "),
        (["--method", "multilinear-covjak"], "unknown method 'multilinear-covjak'; did you mean multilinear-covjac?"),
        (["--method", "mlp"], "unknown method 'mlp'; choose one of soft-mix, "),
        (
            ["--wiring", "strid"],
            "unknown wiring 'strid'; did you mean stride? choose one of unique, stride, random, local",
        ),
        (["--readout", "sum"], "unknown readout 'sum'; did you mean group-sum? choose one of group-sum, linear"),
        (["--schedule", "cosin"], "unknown schedule 'cosin'"),
        (["--width", "35"], "the last width must be a multiple of 2 classes, got 35; use width=34 or 36"),
        (["--width", "138"], "136"),
        (["--depth", "0"], "depth must be a whole number >= 1, got 0"),
        (["--learning-rate", "-1"], "learning_rate must be a finite number > 0, got -1.0"),
        (["--threads", "0"], "invalid value for '--threads'"),
        (["--device", "tpu"], "unknown device 'tpu'; choose one of auto, cpu, cuda"),
        (["--method", "soft-mix", "--backward-basis", "walsh"], "soft-mix has no option backward_basis"),
        (["--thresholds", "3"], "monks-1 has no option thresholds"),
        (["--data-dir", "nowhere"], "data_dir is not a directory: nowhere"),
    ],
)
def test_bad_configuration(refused, small, tmp_path, options, message):
    assert message in refused("train", *small, "--out", tmp_path / "run", *options)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_device_that_is_not_there(refused, small, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    message = refused("train", *small, "--out", tmp_path / "run", "--device", "cuda")
    assert "device 'cuda' cannot be used: " in message
    assert message.rstrip().endswith("or use device cpu")
    assert not (tmp_path / "run" / "config.json").exists()


def test_more_gates_than_pairs_says_how_many_there_are(refused, small, tmp_path):
    told = refused("train", *small, "--width", 138, "--out", tmp_path / "run")
    assert "138" in told
    assert "136" in told


def test_run_folder_in_use(refused, small, tmp_path):
    from gatefit.training.folder import locked

    with locked(tmp_path / "run"):
        told = refused("train", *small, "--out", tmp_path / "run")
    assert told == f"{tmp_path / 'run'} is in use by another process; wait for it, or use another --out folder"


def test_run_folder_of_another_configuration_names_the_differing_fields(refused, small, finished_run):
    told = refused("train", *small, "--seed", 7, "--width", 36, "--out", finished_run)
    assert "belongs to another configuration" in told
    assert "width: 34 there, 36 here" in told
    assert "seed: 0 there, 7 here" in told


def test_resume_takes_no_configuration(refused, finished_run, tmp_path):
    told = refused("train", "--resume", finished_run, "--width", 36, "--out", tmp_path)
    assert told == f"--resume takes the configuration of {finished_run}, got --width, --out too; leave it out"


@pytest.mark.parametrize("command", [["train", "--resume"], ["evaluate"], ["info"], ["compile"]])
def test_folder_without_a_run(refused, tmp_path, command):
    assert f"{tmp_path} holds no run: there is no config.json" in refused(*command, tmp_path)


@pytest.mark.parametrize("command", [["evaluate"], ["compile"]])
def test_run_that_is_not_finished(refused, finished_run, tmp_path, command):
    shutil.copy(finished_run / "config.json", tmp_path)
    assert "there is no trained network at" in refused(*command, tmp_path)


@pytest.mark.parametrize("content", ["{", '{"widht": 3}', '{"width": "wide"}', "[]"])
def test_damaged_configuration(refused, tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    assert f"{tmp_path / 'config.json'} is damaged: " in refused("info", tmp_path)


def test_damaged_network(refused, finished_run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished_run, folder)
    model = folder / "model.safetensors"
    model.write_bytes(model.read_bytes()[:100])
    assert "is damaged or not a safetensors file" in refused("compile", folder)
    assert not (folder / "model.gate").exists()


@pytest.mark.parametrize("command", [["info"], ["evaluate"], ["optimise", "--out", "x"], ["export", "--to", "c"]])
def test_missing_foreign_truncated_and_flipped_circuits(refused, model, tmp_path, command):
    def told(path):
        return refused(command[0], path, *command[1:])

    assert told(tmp_path / "no.gate") == f"{tmp_path / 'no.gate'}: No such file or directory"
    damaged = tmp_path / "damaged.gate"
    content = model.read_bytes()
    for wrong in (b"", b"hello", content[:-1], content[:-1] + bytes([content[-1] ^ 1])):
        damaged.write_bytes(wrong)
        assert told(damaged).startswith(f"{damaged}: ")
    damaged.write_bytes(content.replace(b'"version":"1"', b'"version":"3"'))
    assert "version 3" in told(damaged)


def test_circuit_that_names_no_data_set(refused, model, tmp_path):
    from dataclasses import replace

    from gatefit.circuit.ir import Circuit

    replace(Circuit.load(model), metadata={}).save(tmp_path / "m.gate")
    assert "does not say what it was trained on; name a data set with --dataset" in refused(
        "evaluate", tmp_path / "m.gate"
    )


def test_data_set_that_does_not_fit_the_circuit(refused, model):
    assert "17 features, got 64" in refused("evaluate", model, "--dataset", "digits")


def test_data_set_for_a_run_is_refused(refused, finished_run):
    assert "has its own data set; leave out --dataset" in refused("evaluate", finished_run, "--dataset", "monks-2")


def test_missing_and_corrupt_data_files(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GATEFIT_DATA", raising=False)
    (tmp_path / "iris").mkdir()
    (tmp_path / "iris" / "iris.data").write_text("5.1,3.5,1.4,0.2,Iris-setosa\n")
    command = ["train", "--dataset", "iris", "--width", 30, "--data-dir", tmp_path, "--out", tmp_path / "run"]
    told = refused(*command)
    assert str(tmp_path / "iris" / "iris.data") in told
    assert "expected sha256:" in told
    assert "found sha256:" in told
    assert not (tmp_path / "run").exists()


def test_output_into_a_folder_that_is_not_there(refused, finished_run, tmp_path):
    out = tmp_path / "no" / "m.gate"
    assert refused("compile", finished_run, "--out", out) == (
        f"there is no folder {tmp_path / 'no'} to write m.gate into; make it first"
    )
    assert refused("compile", finished_run, "--out", tmp_path) == f"{tmp_path} is a folder; name a file to write"


def test_network_that_is_not_boolean_has_no_circuit(gatefit, refused, small, tmp_path):
    gatefit("train", *small, "--method", "iwp-free", "--out", tmp_path / "run", "--quiet")
    assert "iwp-free" in refused("compile", tmp_path / "run")


def full_disk_after(monkeypatch, syncs):
    """Let the disk be full from the given number of fsyncs on."""
    count, real = iter(range(10**6)), os.fsync

    def fsync(descriptor):
        if next(count) >= syncs:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_full_disk_while_training_keeps_the_last_checkpoint(gatefit, small, finished_run, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        full_disk_after(patch, 9)  # each file needs two; the first checkpoint is written, the second is not
        outcome = gatefit("train", *small, "--out", folder)
    assert outcome.code == 1
    assert outcome.err.startswith("error: the disk is full")
    assert outcome.err.count("\n") == 1
    kept = [path.name for path in (folder / "checkpoints").iterdir()]
    assert kept == ["checkpoint-000000020.safetensors"]
    assert gatefit("train", *small, "--out", folder, "--quiet").code == 0
    digests = [hashlib.sha256((f / "model.safetensors").read_bytes()).hexdigest() for f in (folder, finished_run)]
    assert digests[0] == digests[1]


def test_full_disk_while_compiling_leaves_the_old_file(gatefit, finished_run, tmp_path, monkeypatch):
    out = tmp_path / "m.gate"
    out.write_text("mine")
    full_disk_after(monkeypatch, 0)
    outcome = gatefit("compile", finished_run, "--out", out, "--overwrite")
    assert outcome.code == 1
    assert "the disk is full" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.gate"]
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "feature"),
    [
        (["train", "--dataset", "monks-1"], "training"),
        (["compile", "RUN"], "compiling a run"),
        (["evaluate", "RUN"], "evaluating a run"),
        (["demo", "--out", "OUT"], "the demo"),
    ],
)
def test_what_needs_torch_says_how_to_install_it(refused, finished_run, tmp_path, monkeypatch, arguments, feature):
    monkeypatch.setitem(sys.modules, "torch", None)
    places = {"RUN": finished_run, "OUT": tmp_path / "out"}
    told = refused(*(places.get(argument, argument) for argument in arguments))
    assert told == f"{feature} needs torch, which is not installed; run: pip install 'gatefit[train]'"


def test_circuits_need_no_torch(model, tmp_path):
    data = tmp_path / "x.csv"
    data.write_text(",".join("01" * 8 + "0") + "\n")
    commands = [
        ["info", model, "--json"],
        ["optimise", model, "--out", tmp_path / "o.gate", "--json"],
        ["prove", model, tmp_path / "o.gate", "--json"],
        ["predict", model, data, "--no-header", "--json"],
        ["evaluate", model, "--json"],
        ["export", model, "--to", "c", "--out", tmp_path / "m.h"],
    ]
    script = (
        "import json, sys\n"
        "sys.modules['torch'] = None\n"
        "from gatefit.cli import app\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    try:\n        app(command)\n"
        "    except SystemExit as exit:\n        assert exit.code == 0, command\n"
    )
    argument = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", script, argument], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_bug_keeps_its_traceback(gatefit, small, tmp_path, monkeypatch):
    from gatefit.training import loop

    def broken(*arguments):
        raise ValueError("a bug")

    monkeypatch.setattr(loop, "mean_loss", broken)
    with pytest.raises(ValueError, match="a bug"):
        gatefit("train", *small, "--out", tmp_path / "run")


def test_divergence_is_a_failure_of_the_work(refused, small, tmp_path, monkeypatch):
    import torch

    from gatefit.training import loop

    monkeypatch.setattr(loop, "mean_loss", lambda *arguments: torch.tensor(float("nan")))
    told = refused("train", *small, "--out", tmp_path / "run", code=1)
    assert told.startswith("the loss is nan at step 1; lower learning_rate=0.01")


def test_traceback_on_request(gatefit, monkeypatch):
    monkeypatch.setenv("GATEFIT_TRACEBACK", "1")
    with pytest.raises(UserError, match="unknown data set"):
        gatefit("datasets", "mnst")


def test_one_line_joins_lines_with_what_was_between_them():
    assert one_line("not found\nneeded:\n  a\n  or b\nlooked in:\n  x\n") == "not found; needed: a; or b; looked in: x"


def test_check_choice_without_a_near_name():
    with pytest.raises(UserError, match=r"^unknown thing 'zzz'; choose one of a, b$"):
        check_choice("thing", "zzz", ["a", "b"])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileNotFoundError(errno.ENOENT, "x", "data.csv"), ("data.csv: No such file or directory", 2)),
        (PermissionError(errno.EACCES, "x", "secret.gate"), ("secret.gate: Permission denied", 2)),
        (OSError(errno.EIO, "x"), ("Input/output error", 1)),
        (FileNotFoundError("no C compiler"), ("no C compiler", 2)),
        (ImportError("x needs y, which is not installed; run: pip install z"), None),
        (ModuleNotFoundError("No module named 'y'"), None),
        (ValueError("a bug"), None),
        (KeyError("a bug"), None),
    ],
)
def test_explain(error, expected):
    if isinstance(error, ImportError) and "pip install" in str(error):
        expected = (str(error), 2)
    assert explain(error) == expected
