"""A short training of every method ends with the bits that were recorded: what is computed does not change unnoticed.

Recorded on x86-64; AVX2 and AVX-512 give the same bits (``test_processors``). Where a change of bits is meant, write
them anew with ``python tests/training/test_recorded_bits.py``.
"""

import hashlib
import json
import platform
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from gatefit.cli import app

RECORDED = Path(__file__).parent.parent / "samples" / "training-bits.json"
COMMON = "--dataset digits --width 300 --depth 4 --steps 60 --evaluate-every 20 --batch-size 509 --threads 1 --quiet"
CASES = [
    "--method soft-mix",
    "--method hard-st",
    "--method gumbel-st",
    "--method gumbel-st --noise-in forward --noise-scale 0.5 --noise-steps 40",
    "--method multilinear-ste",
    "--method multilinear-ste --backward-basis smoothed --epsilon 0.3",
    "--method multilinear-ste --surrogate continuous",
    "--method multilinear-covjac",
    "--method multilinear-covjac --temperature 0.1 --initialisation residual",
    "--method multilinear-covjac --learnable-temperature",
    "--method multilinear-covjac --wiring random",
    "--method multilinear-covjac --wiring stride",
    "--method multilinear-covjac --wiring local",
    "--method multilinear-covjac --readout linear",
    "--method multilinear-covjac --schedule cosine --warmup 5 --weight-decay 0.1",
    "--method multilinear-covjac --validation-fraction 0.2 --patience 1",
    "--method iwp",
    "--method iwp --corner-activation identity",
    "--method iwp-ste",
    "--method iwp-ste --snap codebook --surrogate continuous",
    "--method multilinear-free",
    "--method iwp-free",
]


OWN_PROCESSOR = ("-free", "--learnable-temperature")
"""Words of cases in which torch's own sums or functions take part: equal only on the kind of processor recorded."""
OWN_VENDOR = ("--readout linear",)
"""Likewise with matrix products, for which the vendor counts too."""


def processor() -> str:
    """What torch's own kernels are chosen by."""
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def vendor() -> str:
    """Who made the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "unknown")


def digest(options: str, folder: Path) -> str:
    """SHA-256 of the log and of every learned number, in the order of their names."""
    result = CliRunner().invoke(app, ["train", *COMMON.split(), *options.split(), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    tensors = load_file(folder / "model.safetensors")
    found = hashlib.sha256((folder / "metrics.jsonl").read_bytes())
    for name in sorted(tensors):
        if tensors[name].dtype.kind == "f":
            found.update(tensors[name].tobytes())
    return found.hexdigest()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="recorded on x86-64")
@pytest.mark.parametrize("options", CASES)
def test_a_short_training_ends_with_the_recorded_bits(options, tmp_path):
    recorded = json.loads(RECORDED.read_text())
    if any(word in options for word in OWN_PROCESSOR + OWN_VENDOR) and recorded["processor"] != processor():
        pytest.skip(f"recorded on {recorded['processor']}, and torch's sums are its own on {processor()}")
    if any(word in options for word in OWN_VENDOR) and recorded["vendor"] != vendor():
        pytest.skip(f"recorded on {recorded['vendor']}, and matrix products differ on {vendor()}")
    assert digest(options, tmp_path / "run") == recorded[options]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {options: digest(options, Path(folder) / str(i)) for i, options in enumerate(CASES)}
    RECORDED.write_text(json.dumps({"processor": processor(), "vendor": vendor(), **found}, indent=1) + "\n")
