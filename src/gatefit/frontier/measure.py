"""One finished run as a row of figures: hardened, optimised, proven, evaluated, counted.

    trained     every gate of the network                               harden
    compiled    as few gates as the passes find                         proven equal to trained, certificate checked
    pruned      fewer outputs, where the entry says so                  another function: measured, not proven
    deployed    compiled, or pruned and optimised again                 proven equal to pruned, certificate checked

Accuracy is that of the deployed circuit on the test set, by the engine; without pruning it must be what training saw.
Everything is kept in a folder beside the store's runs, with the row last: a row that is there is not made again.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import gatefit
from gatefit.circuit.engine import Engine
from gatefit.circuit.file import digest, write_atomically
from gatefit.circuit.ir import Circuit
from gatefit.circuit.optimise import optimise
from gatefit.circuit.prove import Equivalent, prove
from gatefit.circuit.prove.certificate import check_certificate
from gatefit.circuit.statistics import statistics
from gatefit.datasets import Dataset
from gatefit.experiments.store import Store
from gatefit.frontier.entries import Entry
from gatefit.hardware.prune import prune_readout
from gatefit.training.config import RunConfig
from gatefit.training.folder import read_made

ROW: Final = "row.json"
CIRCUIT: Final = "model.gate"
SAMPLES: Final = 1000
"""Test samples that are held as bits at a time."""
VECTORS: Final = 200
"""Test samples that synthesised netlists are simulated on, as ``gatefit synth`` does."""


class FrontierError(RuntimeError):
    """A circuit that is not what was trained, or not proven to be."""


@dataclass(frozen=True)
class Place:
    """Where what was made of one run's circuit is kept."""

    folder: Path

    @classmethod
    def of(cls, store: Path, entry: Entry, config: RunConfig) -> "Place":
        """The folder of a run's circuit, of this entry's treatment."""
        treated = "" if entry.prune is None else f"-{entry.prune.outputs}-of-{entry.prune.samples}"
        return cls(store / "circuits" / f"{config.identity}{treated}")

    @property
    def circuit(self) -> Path:
        """The deployed circuit's file."""
        return self.folder / CIRCUIT

    def row(self) -> dict[str, Any] | None:
        """The figures, if they are there, of this version."""
        try:
            row: dict[str, Any] = json.loads((self.folder / ROW).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return row if row.get("gatefit") == gatefit.__version__ and self.circuit.is_file() else None

    def keep(self, row: dict[str, Any]) -> None:
        """Write the figures, last of all files."""
        write_atomically(self.folder / ROW, (json.dumps(row, indent=2) + "\n").encode())


def measure(entry: Entry, config: RunConfig, store: Store, dataset: Dataset, *, again: bool = False) -> dict[str, Any]:
    """The figures of one finished run; ``again`` makes them anew though they are there."""
    from gatefit.training.harden_run import harden_run

    place = Place.of(store.folder, entry, config)
    if again:
        shutil.rmtree(place.folder, ignore_errors=True)
    found = place.row()
    if found is not None:
        return found
    shutil.rmtree(place.folder, ignore_errors=True)  # What a killed process left has no row.
    place.folder.mkdir(parents=True)
    record = store.find(config.identity)
    if record is None or record.status != "finished":
        raise FrontierError(f"run {config.identity} of {entry.name} is not finished in {store.folder}; train it first")
    run = store.run_folder(config.identity)
    if not (run / "model.safetensors").is_file():
        raise FrontierError(
            f"run {config.identity} of {entry.name} is finished in {store.folder}, but its network is not in {run}; "
            f"copy the run's folder there, or train it in another --store"
        )
    trained = harden_run(run)
    deployed, proofs = _deploy(entry, trained, dataset, place.folder)
    accuracy = _accuracy(deployed, dataset)
    seen = record.summary["test_accuracy"]
    if entry.prune is None and round(accuracy * len(dataset.y_test)) != round(seen * len(dataset.y_test)):
        raise FrontierError(
            f"the circuit of {entry.name}, run {config.identity}, is right on {accuracy:.4%} of the test set, and the "
            f"network that was trained on {seen:.4%}; this is a bug in gatefit, please report it"
        )
    made = read_made(run)
    counts = statistics(deployed)
    row: dict[str, Any] = {
        "seed": config.seed,
        "run": config.identity,
        "gatefit": gatefit.__version__,
        "test_accuracy": accuracy,
        "test_samples": len(dataset.y_test),
        "trained_gates": int(trained.gates.size),
        "live_gates": counts.live_gates,
        "logic_gates": counts.logic_gates,
        "depth": counts.depth,
        "outputs": counts.outputs,
        "encoder_comparisons": counts.encoder_comparisons,
        "readout_gates": counts.readout.gates,
        "proofs": proofs,
        "digest": digest(deployed),
        "data": dataset.digest,
        "steps": record.step,
        "seconds": made.get("seconds", record.seconds),
        "processor_seconds": made.get("processor_seconds"),
        "threads": made.get("threads"),
        "cpu": made.get("machine", record.machine).get("cpu"),
        "code_version": made.get("code_version", record.code_version),
        "finished": record.finished,
        "luts": {},
    }
    deployed.save(place.circuit, overwrite=True)
    place.keep(row)
    return row


def _accuracy(circuit: Circuit, dataset: Dataset) -> float:
    """Right answers on the whole test set, a few samples at a time: images with many thresholds are many bits."""
    engine, encoder = Engine(circuit), circuit.encoder or dataset.encoder
    right = 0
    for start in range(0, len(dataset.y_test), SAMPLES):
        part = slice(start, start + SAMPLES)
        right += int((engine.predict(encoder.transform(dataset.x_test[part])) == dataset.y_test[part]).sum())
    return right / len(dataset.y_test)


def _deploy(entry: Entry, trained: Circuit, dataset: Dataset, folder: Path) -> tuple[Circuit, list[dict[str, Any]]]:
    compiled, _ = optimise(trained)
    trained.save(folder / "trained.gate")
    proofs = [_proven("the trained network, hardened", trained, compiled, folder / "certificate")]
    if entry.prune is None:
        return compiled, proofs
    samples = slice(entry.prune.samples)
    bits = (compiled.encoder or dataset.encoder).transform(dataset.x_train[samples])
    pruned = prune_readout(compiled, bits, dataset.y_train[samples], entry.prune.outputs)
    deployed, _ = optimise(pruned)
    pruned.save(folder / "pruned.gate")
    words = f"the circuit with {entry.prune.outputs} of its {compiled.outputs.size} outputs"
    return deployed, [*proofs, _proven(words, pruned, deployed, folder / "certificate-pruned")]


def _proven(of: str, spec: Circuit, impl: Circuit, certificate: Path) -> dict[str, Any]:
    """What was proven; anything but a proof whose certificate was checked is an error."""
    verdict = prove(spec, impl, certificate=certificate)
    if not isinstance(verdict, Equivalent):
        raise FrontierError(f"{of} is not proven equal to its optimised circuit: {verdict}")
    checked = check_certificate(certificate, spec, impl)
    return {
        "of": of,
        "gates": int(spec.gates.size),
        "optimised_gates": int(impl.gates.size),
        "method": checked.method,
        "steps": checked.steps,
        "spec_digest": digest(spec),
        "digest": digest(impl),
    }


def count_tables(entry: Entry, config: RunConfig, store: Path, dataset: Dataset) -> dict[str, Any]:
    """The row with the tables of every target that the entry names; a netlist that differs is an error.

    MissingToolError, where Yosys is not installed.
    """
    from gatefit.hardware.build import Settings
    from gatefit.hardware.flow import synthesise
    from gatefit.hardware.targets import TARGETS

    place = Place.of(store, entry, config)
    row = place.row()
    assert row is not None, "measured first"
    wanted = [target for target in entry.synth if target not in row["luts"]]
    if not wanted:
        return row
    circuit = Circuit.load(place.circuit)
    bits = np.asarray((circuit.encoder or dataset.encoder).transform(dataset.x_test[:VECTORS]), np.bool_)
    for target in wanted:
        out = place.folder / "synth"
        settings = Settings(bits, route=False)
        report = synthesise(circuit, [(TARGETS[target], None)], [0], out, settings, {}, lambda report: None)
        (build,) = report["builds"]
        if report["verdict"]["status"] == "differs" or "core" not in build:
            raise FrontierError(f"{entry.name}, seed {config.seed}, {target}: {report['verdict']['text']}")
        row["luts"][target] = {
            "tables": build["core"]["tables"],
            "carries": build["core"]["carries"],
            "levels": build.get("levels"),
            "parts": {part: cells["tables"] for part, cells in build["parts"].items()},
            "verdict": report["verdict"]["status"],
            "tool": next(f"{tool['name']} {tool['version']}" for tool in report["tools"]),
        }
        place.keep(row)
    return row
