"""The circuit of a finished run, as it was trained: ``gatefit compile`` and every table of circuits begin with it."""

import json
from pathlib import Path

from gatefit._version import VERSION
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import ACCURACIES, stamped
from gatefit.harden import harden
from gatefit.training.folder import read_config
from gatefit.training.own_run import read_own_run
from gatefit.training.runs import load_network


def harden_run(folder: Path) -> Circuit:
    """Every gate that was trained in ``folder``; the circuit says which run it is of, and how well that did."""
    config = read_config(folder)
    own = read_own_run(folder)
    if own is not None:
        trained = harden(load_network(folder / "model.safetensors"), own.classes)
        return stamped(trained, own.metadata())
    trained = harden(load_network(folder / "model.safetensors"))
    entries = {
        "gatefit": VERSION,
        "dataset": config.dataset,
        "dataset_options": json.dumps(config.dataset_options(), sort_keys=True),
        "run": config.identity,
    }
    try:
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # trained by hand, or not to its end: the network is there, its figures are not
        result = {}
    if isinstance(result, dict):
        measured = {name: value for name, value in result.items() if name in ACCURACIES and isinstance(value, float)}
        entries |= {name: repr(value) for name, value in measured.items()}
        entries |= {"data": result["data"]} if isinstance(result.get("data"), str) else {}
    return stamped(trained, entries)
