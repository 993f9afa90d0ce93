"""What a run was made with: the machine and the version of the code. No host names, no paths, no users."""

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

FIELDS: Final = ("cpu", "cores", "memory_gb", "system", "python", "torch", "numba", "numpy")


@functools.cache
def machine() -> dict[str, Any]:
    """Processor, memory and versions, by the names in ``FIELDS``; None where one is not known."""
    return {
        "cpu": _processor(),
        "cores": _cores(),
        "memory_gb": _memory_gb(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: _version(package) for package in ("torch", "numba", "numpy")},
    }


def same_bits_on(own_kernels_alone: bool, device: "torch.device | None" = None) -> str:
    """On which machines a run has the same bits, with the same versions; see docs/training.md.

    A part that was trained on another kind of device has its own last bits: sums are cut in another way there.

    Kernels write down the order of their sums, and torch's part of a run is the same with AVX2 and with AVX-512. Matrix
    products and torch's own functions of activations are not.
    """
    import torch

    if device is not None and device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} {_BY_TRITON} {_version('triton')}"
    vectors = torch.backends.cpu.get_cpu_capability()
    if own_kernels_alone and vectors in ("AVX2", "AVX512"):
        return "x86-64 with AVX2"
    return f"{platform.machine()} with {vectors}, {_processor()}"


_BY_TRITON: Final = "with Triton"


def then(before: str | None, now: str) -> str:
    """Where a run has the same bits that was begun on one device and goes on on another: on one after the other."""
    if before and before.endswith(now):
        return before
    return f"{before}, then {now}" if before and _BY_TRITON in before + now else now


@functools.cache
def code_version() -> str:
    """0.2.0+COMMIT in a working copy of gatefit, with .changed where its sources differ; else 0.2.0."""
    version, package = _version("gatefit") or "unknown", Path(__file__).parents[1]
    # Not the repository of somebody's project in which gatefit happens to be installed.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return version
    commit = _git(package, "rev-parse", "--short=12", "HEAD")
    if commit is None:
        return version
    changed = ".changed" if _git(package, "status", "--porcelain", "--", ".") else ""
    return f"{version}+{commit}{changed}"


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
