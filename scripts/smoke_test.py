"""Build wheel and sdist, install each into a clean environment, and use them: `python scripts/smoke_test.py`.

Everything happens with the Python that runs this file, in a temporary folder, from a copy of the files that git knows.

    wheel and sdist hold the same package, with py.typed, templates, models and data
    a circuit that ships is loaded, run and exported, by Python and by the command line; torch is not installed
    --train: with the wheel's extra a network is trained
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("gatefit/py.typed", "gatefit/models/mnist-1k.gate.gz", "gatefit/backends/c/templates/model.h.jinja")

USE = """
import json, sys
import numpy as np
import gatefit
from gatefit import Circuit
circuit = Circuit.load("monks-1")
bits = np.random.default_rng(0).random((100, circuit.inputs)) < 0.5
assert circuit.predict(bits).shape == (100,)
assert "torch" not in sys.modules
print(json.dumps({"version": gatefit.__version__, "file": gatefit.__file__}))
"""
TRAIN = """
from sklearn.datasets import load_iris
from gatefit import LogicGateClassifier
X, y = load_iris(return_X_y=True)
model = LogicGateClassifier(width=60, depth=2, steps=60, random_state=0).fit(X, y)
assert model.score(X, y) > 0.9
"""


def run(*command: object, **options: object) -> str:
    """A command that must work; what it printed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return str(done.stdout)


def copied(folder: Path) -> Path:
    """The files that git knows, as they are now: what lies around beside them must not be needed."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def built(source: Path, out: Path) -> tuple[Path, Path]:
    """Wheel and sdist."""
    out.mkdir()
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", out, source)
    builder = out / "builder"
    venv.create(builder, with_pip=True)
    install(builder, "setuptools>=77")
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(out)!r})"
    run(python_of(builder), "-c", code, cwd=source)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def install(environment: Path, what: object) -> None:
    """The versions of dependencies are those that the tests run with."""
    pip = (python_of(environment), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run(*pip, "--constraint", ROOT / "constraints.txt", what)


def package_files(archive: Path) -> set[str]:
    """The files of the package in a wheel or an sdist, by their path from the package's folder on."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as held:
            return {name for name in held.namelist() if name.startswith("gatefit/")}
    with tarfile.open(archive) as unpacked:
        names = [member.name.partition("/")[2] for member in unpacked.getmembers() if member.isfile()]
    return {name.removeprefix("src/") for name in names if name.startswith("src/gatefit/")}


def python_of(environment: Path) -> Path:
    """An environment's interpreter."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def used(archive: Path, environment: Path) -> dict[str, str]:
    """Install an archive into a new environment and use it; what the package says of itself."""
    venv.create(environment, with_pip=True)
    python = python_of(environment)
    install(environment, archive)
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(environment / "cache")}
    said: dict[str, str] = json.loads(run(python, "-c", USE, cwd=environment, env=settings))
    if not Path(said["file"]).is_relative_to(environment):
        raise SystemExit(f"{said['file']} was used, not what was installed into {environment}")
    command = python.with_name("gatefit")
    if run(command, "--version", cwd=environment, env=settings).split() != ["gatefit", said["version"]]:
        raise SystemExit(f"`gatefit --version` is not {said['version']}")
    header = environment / "monks.h"
    run(command, "export", "monks-1", "--to", "c", "--out", header, cwd=environment, env=settings)
    run(command, "info", header, "--circuit", "monks-1", cwd=environment, env=settings)
    return said


def main() -> None:
    """Both packages, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="install torch too, and train a small network")
    train = parser.parse_args().train
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, sdist = built(copied(place / "source"), place / "dist")
        files = package_files(wheel)
        if files != package_files(sdist):
            raise SystemExit(f"wheel and sdist differ in {sorted(files ^ package_files(sdist))}")
        missing = [name for name in NEEDED if name not in files]
        if missing:
            raise SystemExit(f"{wheel.name} does not hold {', '.join(missing)}")
        for archive in (wheel, sdist):
            said = used(archive, place / f"use-{archive.suffix[1:]}")
            print(f"{archive.name}: gatefit {said['version']} works with Python {sys.version.split()[0]}", flush=True)
        if train:
            install(place / "use-whl", f"{wheel}[train]")
            run(python_of(place / "use-whl"), "-c", TRAIN, cwd=place)
            print(f"{wheel.name}: training works too", flush=True)


if __name__ == "__main__":
    main()
