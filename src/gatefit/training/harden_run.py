"""The circuit of a finished run, as it was trained: ``gatefit compile`` and every table of circuits begin with it."""

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from gatefit.circuit.ir import Circuit
from gatefit.harden import harden
from gatefit.training.folder import read_config
from gatefit.training.own_run import read_own_run
from gatefit.training.runs import load_network


def harden_run(folder: Path) -> Circuit:
    """Every gate that was trained in ``folder``; the circuit says which run, data set and version it is of."""
    config = read_config(folder)
    own = read_own_run(folder)
    if own is not None:
        trained = harden(load_network(folder / "model.safetensors"), own.classes)
        return replace(trained, metadata={**trained.metadata, **own.metadata()})
    trained = harden(load_network(folder / "model.safetensors"))
    metadata = {
        **trained.metadata,
        "gatefit": version("gatefit"),
        "dataset": config.dataset,
        "dataset_options": json.dumps(config.dataset_options(), sort_keys=True),
        "run": config.identity,
    }
    return replace(trained, metadata=metadata)
