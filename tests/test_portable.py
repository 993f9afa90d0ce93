"""What Linux has and Windows has not, hidden: training, stores of runs, files and tools go on without it."""

import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.outside

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
HIDE = f"import sys\nfor name in {MODULES!r}: sys.modules[name] = None\n"
"""As sitecustomize.py: in the process itself and in all that it starts."""
BARE = """
import os, selectors, signal, sys
from pathlib import Path
assert sys.modules["fcntl"] is None
import joblib, numba, scipy.stats, sklearn.base, torch  # What they need of the system is their own affair.

for name in ("O_DIRECTORY", "fork", "geteuid", "getuid", "killpg", "sched_getaffinity", "setsid", "sysconf", "uname"):
    delattr(os, name)
for name in ("SIGHUP", "SIGQUIT", "SIGUSR1"):
    delattr(signal, name)

def no_pipes(self, *arguments):
    raise OSError("an operation was attempted on something that is not a socket")

selectors.DefaultSelector = type("DefaultSelector", (), {"__init__": no_pipes})
folder = Path(sys.argv[1])
"""
ESTIMATOR = """
from gatefit import LogicGateClassifier
from sklearn.datasets import load_iris
x, y = load_iris(return_X_y=True)
model = LogicGateClassifier(width=60, depth=2, steps=200, random_state=0).fit(x, y)
assert model.score(x, y) > 0.8
model.circuit_.save(folder / "iris.gate")
from gatefit import Circuit
assert (Circuit.load(folder / "iris.gate").gates == model.circuit_.gates).all()
"""
STORE = """
from gatefit.experiments.runner import run_all
from gatefit.experiments.store import Store
from gatefit.training.config import RunConfig
configs = [RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20, seed=s) for s in range(2)]
with Store.open(folder / "store") as store:
    records = run_all(configs, store, jobs=2, threads=2, side_by_side=False)
    assert [record.status for record in records] == ["finished"] * 2, [record.error for record in records]
    assert {record.machine["system"] for record in records}
"""
TRAIN = """
import dataclasses
from gatefit.training.config import RunConfig
from gatefit.training.folder import RunFolderInUseError, locked
from gatefit.training.runs import execute
config = RunConfig(dataset="monks-1", width=40, depth=2, steps=60, evaluate_every=20)
asked = iter(range(100))
assert not execute(config, folder=folder / "run", should_stop=lambda: next(asked) > 30).result.finished
assert execute(config, folder=folder / "run").result.finished
with locked(folder / "run"):
    try:
        execute(dataclasses.replace(config, seed=1), folder=folder / "run")
    except RunFolderInUseError:
        pass
    else:
        raise AssertionError("two at once in one folder")
from gatefit.hardware.tools import Tool, ToolTimeoutError
endless = Tool("endless", (sys.executable, "-c", "import time; time.sleep(60)"), "1", "system")
try:
    endless.run([], folder, "log", timeout=0.1)
except ToolTimeoutError:
    pass
"""


@pytest.mark.parametrize(
    "script", [ESTIMATOR, pytest.param(STORE, marks=pytest.mark.slow), TRAIN], ids=["estimator", "store", "train"]
)
def test_what_only_linux_has_is_not_needed(tmp_path, script):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDE)
    places = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", BARE + script, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_pipe_that_takes_few_letters_gets_the_others_as_question_marks(encoding):
    done = subprocess.run(
        [sys.executable, "-m", "gatefit.cli", "train", "--help"],
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "0.36 ?(gates a class)" in re.sub(r"\s+", " ", done.stdout.decode(encoding))
