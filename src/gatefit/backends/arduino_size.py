"""What a microcontroller export takes once it is compiled: bytes of flash and RAM, for every compiler at hand.

    flash = code + constants + initial values        RAM = initial values + zeroed memory (on AVR, constants too)

Object files are measured, so that what belongs to the board or the C library is not counted. A target that a model is
too large for (its compiler says so) has no bytes, but the reason.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

TARGETS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cortex-m0": ("arm-none-eabi-gcc", ("-mcpu=cortex-m0", "-mthumb")),
    "cortex-m4": ("arm-none-eabi-gcc", ("-mcpu=cortex-m4", "-mthumb")),
    "atmega328p": ("avr-gcc", ("-mmcu=atmega328p",)),
    "this machine": ("gcc", ()),
}
"""For each target its compiler and the options that choose it."""

FLAGS: Final = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Werror")


class Size(NamedTuple):
    """Bytes that the model's object file takes."""

    target: str
    compiler: str
    flash: int | None
    ram: int | None
    reason: str = ""
    """What the compiler said, where there is nothing to measure."""


def available_targets() -> list[str]:
    """The targets whose compiler is installed."""
    return [target for target, (compiler, _) in TARGETS.items() if shutil.which(compiler)]


def measured_sizes(files: dict[str, str], targets: Iterable[str] | None = None) -> list[Size]:
    """Compile the model's C for each target (without any: for every one that is available) and measure it."""
    sizes = []
    with tempfile.TemporaryDirectory(prefix="gatefit-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        (source,) = Path(folder).glob("*_model.c")
        for target in available_targets() if targets is None else targets:
            compiler, options = TARGETS[target]
            refusal = _compile([compiler, *FLAGS, *options, "-c", str(source), "-o", f"{folder}/model.o"])
            if refusal:
                sizes.append(Size(target, compiler, None, None, refusal))
                continue
            listing = _run([compiler.replace("gcc", "size"), "-A", "-d", f"{folder}/model.o"])
            sizes.append(Size(target, compiler, *_count(listing, constants_in_ram=compiler.startswith("avr"))))
    return sizes


def _count(listing: str, *, constants_in_ram: bool) -> tuple[int, int]:
    """Flash and RAM of the sections that ``size -A`` lists."""
    flash = ram = 0
    for line in listing.splitlines():
        name, *numbers = line.split() or [""]
        if not name.startswith((".text", ".rodata", ".progmem", ".data", ".bss")):
            continue
        size = int(numbers[0])
        flash += 0 if name.startswith(".bss") else size
        in_ram = name.startswith((".data", ".bss")) and not name.startswith(".data.rel.ro")
        ram += size if in_ram or (constants_in_ram and name.startswith(".rodata")) else 0
    return flash, ram


def _compile(command: list[str]) -> str:
    """Nothing, or in one line why the compiler refused."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    errors = [line.partition("error: ")[2] for line in run.stderr.splitlines() if "error: " in line]
    return (errors or run.stderr.splitlines() or [f"it ended with code {run.returncode}"])[0].strip()[:200]


def _run(command: list[str]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{run.stderr[-2000:]}")
    return run.stdout
