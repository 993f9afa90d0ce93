"""Help, version and the cost of asking for them."""

import subprocess
import sys
import time
from dataclasses import fields

import pytest

from gatefit import __version__
from gatefit.training.config import RunConfig

VERBS = [
    "train",
    "evaluate",
    "compile",
    "optimise",
    "prove",
    "verify",
    "explain",
    "predict",
    "export",
    "info",
    "datasets",
    "models",
    "frontier",
    "runs",
    "reproduce",
    "report",
    "prune",
    "view",
    "synth",
    "bench",
    "warm-up",
    "demo",
]


def test_gatefit_alone_prints_help_that_names_every_verb(gatefit):
    outcome = gatefit()
    assert outcome.code == 0
    assert [verb for verb in VERBS if f" {verb} " not in outcome.out] == []


def test_version(gatefit):
    assert gatefit("--version").out == f"gatefit {__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(gatefit, verb):
    outcome = gatefit(verb, "--help")
    assert outcome.code == 0
    assert f"gatefit {verb}" in outcome.out.partition("Example:")[2]


def test_train_has_an_option_for_every_field_of_the_configuration(gatefit):
    text = gatefit("train", "--help").out
    missing = [f.name for f in fields(RunConfig) if f"--{f.name.replace('_', '-')} " not in text]
    assert missing == []
    assert "[default: 512]" in text


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["demo", "--help"], ["--version"]])
def test_help_loads_no_heavy_library(arguments):
    script = (
        "import sys\n"
        "from gatefit.cli import app\n"
        f"try:\n    app({arguments!r})\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'torch', 'numba', 'numpy', 'scipy', 'sklearn', 'pandas'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_help_is_quick():
    """It takes little longer than the libraries that print it: 0.2 s on an idle machine."""

    def seconds(*command: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        return time.perf_counter() - start

    # By turns: what else the machine does slows both.
    pairs = [(seconds("-m", "gatefit.cli", "--help"), seconds("-c", "import typer.core, rich.table")) for _ in range(5)]
    assert min(help for help, _ in pairs) < 5 * min(libraries for _, libraries in pairs)


def test_unknown_verb_and_option_name_the_nearest(refused):
    assert refused("trian") == "no such command 'trian'. Did you mean 'train'? (see gatefit --help)"
    assert "--width" in refused("train", "--widht", "3")
    assert "gatefit train --help" in refused("train", "--depth", "many")
