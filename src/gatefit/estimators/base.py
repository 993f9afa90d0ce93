"""What the classifier and the regressor share: parameters, fitting, and the way to the circuit.

    fit        X -> encoder_ -> bits -> network_, trained
    predict    X -> encoder_ -> bits -> engine on the circuit of network_

Predictions are those of the deployed circuit, to the bit. Results depend on random_state, not on threads.
"""

import copy
import math
import numbers
import warnings
from abc import abstractmethod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64, Num, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gatefit.circuit.ir import Circuit
from gatefit.datasets.splits import stratified_split
from gatefit.encoders import Encoder
from gatefit.encoders.frames import take
from gatefit.estimators.deployment import Deployment
from gatefit.estimators.evaluation import MOST_EVALUATED, SampledEvaluation
from gatefit.estimators.export import export_circuit
from gatefit.estimators.inputs import accepts_missing, encoded_batches, fit_encoder, read_features
from gatefit.estimators.networks import MakeNetwork, made_from, new_network, own_network, refuse_changes
from gatefit.estimators.progress import ProgressLines, history_row
from gatefit.estimators.relevance import preferred_bits
from gatefit.estimators.training_set import training_set
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData
from gatefit.training.device import choose_device, placed
from gatefit.training.loop import train

AUTO_WIDTH, AUTO_GATES_PER_CLASS = 1000, 200
"""Gates a layer, and for each class, that width="auto" has at least; it also has enough to read every bit."""
AUTO_EARLY_STOPPING = 10_000
"""Samples from which early_stopping="auto" keeps a validation set apart."""
LEAST_VALIDATION = 10
"""Samples that a validation set must have for its score to mean anything."""


class LogicGateEstimator(BaseEstimator):  # type: ignore[misc]
    """Parameters and fitting; see ``LogicGateClassifier`` and ``LogicGateRegressor``."""

    encoder_: Encoder
    network_: LogicNetwork
    history_: list[dict[str, Any]]
    n_iter_: int
    _deployment: Deployment
    _made_from: dict[str, Any]

    def __init__(
        self,
        *,
        method: str,
        width: int | str,
        depth: int,
        steps: int,
        batch_size: int,
        learning_rate: float,
        schedule: str,
        weight_decay: float,
        initialisation: str,
        temperature: float | None,
        wiring: str,
        encoder: Encoder | str,
        thresholds: int,
        early_stopping: bool | str,
        validation_fraction: float,
        n_iter_no_change: int,
        evaluate_every: int | str,
        warm_start: bool,
        random_state: Any,
        threads: int | None,
        device: str,
        proof_seconds: float | None,
        verbose: int,
        network: MakeNetwork | None,
    ) -> None:
        self.method = method
        self.width = width
        self.depth = depth
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.initialisation = initialisation
        self.temperature = temperature
        self.wiring = wiring
        self.encoder = encoder
        self.thresholds = thresholds
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.evaluate_every = evaluate_every
        self.warm_start = warm_start
        self.random_state = random_state
        self.threads = threads
        self.device = device
        self.proof_seconds = proof_seconds
        self.verbose = verbose
        self.network = network

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = accepts_missing(self.encoder)
        return tags

    @property
    def circuit_(self) -> Circuit:
        """The circuit: optimised, and proven to compute what the network does; made when it is first asked for."""
        if "_deployment" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} has no circuit_ yet; call fit first")
        return self._deployment.circuit

    def export(
        self, path: str | PathLike[str], to: str | None = None, *, overwrite: bool = False, **options: Any
    ) -> Path:
        """Write the circuit as c, verilog, blif, aiger, dot, json or html to a file, or into the folder ``path/``.

        The end of the file's name says the format (.h or .c, .v, .blif, .aag or .aig, .dot, .json, .html); ``to`` names
        it for other names and for folders (without it: c), and is refused where it says another than the name.
        Options are those of the format's function, such as ``pipeline_stages=2`` of ``gatefit.backends.verilog``.
        A file that is there is replaced only with ``overwrite=True``.
        Returns the path of the file. ``circuit_.save(path)`` writes gatefit's own format.
        """
        check_is_fitted(self)
        return export_circuit(self.circuit_, path, to, options, overwrite=overwrite)

    @abstractmethod
    def _readout_fields(self, gates_per_class: int) -> dict[str, Any]:
        """The readout's part of the configuration."""

    def _own_readout(self, gates: int, classes: int) -> Readout | None:
        """A readout of the user's own for the new network; None: the configuration names one."""

    def _finish(self, network: LogicNetwork, data: TrainingData) -> None:
        """What is left to do to a trained network."""

    def _resume(self, network: LogicNetwork) -> None:
        """Make a finished network again what it was when it was trained."""

    def _continues(self) -> bool:
        return bool(self.warm_start) and "network_" in vars(self)

    def _fit(
        self,
        X: Any,
        targets: Num[np.ndarray, " samples"],
        weights: Float64[np.ndarray, " samples"],
        *,
        strata: Int64[np.ndarray, " samples"],
        classes: int,
        labels: Shaped[np.ndarray, " classes"] | None = None,
        target_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Train on checked data; ``strata`` are the classes that a validation split keeps in proportion.

        ``labels`` are what the classes are called in the targets; the circuit answers with them.
        """
        continues, proof_seconds = self._continues(), self._proof_seconds()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(weights):
            X, targets, weights, strata = take(X, kept), targets[kept], weights[kept], strata[kept]
        encoder = self.encoder_ if continues else fit_encoder(self.encoder, self.thresholds, X, tails=classes == 1)
        apart = self._validation_rows(strata, seed)
        validated = apart is not None
        bits = encoder.transform(X)
        data, measured = training_set(bits, targets, weights, apart, self._whole("batch_size", 1), seed)
        done = self.n_iter_ if continues else 0
        config = self._configuration(encoder.bits, classes, seed, validated=validated, done=done)
        made = made_from(config, self.encoder, self.thresholds, self.network)
        if continues:
            refuse_changes(self._made_from, made)
            network = copy.deepcopy(self.network_)
            self._resume(network)
        else:
            class_names = () if labels is None else tuple(str(label) for label in labels.tolist())
            preferred = None
            if classes > 1 and config.wiring == "auto":
                seen = np.setdiff1d(np.arange(len(bits)), [] if apart is None else apart)
                preferred = preferred_bits(encoder, bits, targets, seen)
            if self.network is None:
                readout = self._own_readout(config.width or 0, classes) or config.readout
                network = new_network(config, encoder, classes, class_names, target_range, preferred, readout=readout)
            else:
                network = own_network(self.network, encoder, classes, class_names, seed)
        observers = [ProgressLines(validated=validated)] if self.verbose else []
        with placed([network], data, choose_device(self.device), config.batch_size) as there:
            result = train(
                config, network, there, observers=observers, threads=self.threads, strategy=SampledEvaluation(measured)
            )
        self._finish(network, data)
        log = [history_row(row, validated=validated, after=done) for row in result.state.metrics]
        self.history_ = [*self.history_, *log] if continues else log
        self.n_iter_ = done + result.state.step
        self.encoder_, self.network_, self._made_from = encoder, network, made
        self._deployment = Deployment(network, self.threads, labels=labels, proof_seconds=proof_seconds)

    def _scores(self, X: Any) -> Float64[np.ndarray, "samples classes"]:
        """Scores of the circuit, some rows at a time."""
        if "_deployment" not in vars(self):  # asked first: scikit-learn's way to ask takes as long as a prediction
            check_is_fitted(self)
        X = read_features(self, X, reset=False)
        return np.concatenate([self._deployment.scores(bits) for bits in encoded_batches(self.encoder_, X)])

    def _validation_rows(self, strata: Int64[np.ndarray, " samples"], seed: int) -> Int64[np.ndarray, " apart"] | None:
        wanted = self.early_stopping
        if isinstance(wanted, str) and wanted == "auto":
            wanted = len(strata) >= AUTO_EARLY_STOPPING
        if not isinstance(wanted, bool | np.bool_):
            raise ValueError(f"early_stopping must be True, False or 'auto', got {wanted!r}")
        if not wanted:
            return None
        fraction = self._number("validation_fraction")
        if not 0 < fraction < 1:
            raise ValueError(f"validation_fraction must be a number in (0, 1), got {fraction}")
        needed = math.ceil(LEAST_VALIDATION / min(fraction, 1 - fraction))
        if len(strata) < needed:
            warnings.warn(
                f"early stopping with validation_fraction={fraction} needs {needed} samples or more, "
                f"got {len(strata)}; training for all steps on all of them instead",
                stacklevel=4,
            )
            return None
        return stratified_split(strata, test_fraction=min(fraction, MOST_EVALUATED / len(strata)), seed=seed)[1]

    def _configuration(self, bits: int, classes: int, seed: int, *, validated: bool, done: int) -> RunConfig:
        steps = self._whole("steps", 1)
        if isinstance(self.evaluate_every, str) and self.evaluate_every == "auto":
            every = max(1, steps // 20) if validated or self.verbose else steps
        else:
            every = self._whole("evaluate_every", 1, "'auto' or ")
        width = self._resolved_width(bits, classes)
        return RunConfig(
            dataset="custom",
            method=self.method,
            width=width,
            depth=self._whole("depth", 1),
            steps=steps,
            seed=seed + done,  # After a warm start the samples come in a new order.
            wiring_seed=seed,
            wiring=self.wiring,
            batch_size=self._whole("batch_size", 1),
            learning_rate=self._number("learning_rate"),
            weight_decay=self._number("weight_decay"),
            schedule=self.schedule,  # type: ignore[arg-type]  # any word: it is checked there
            evaluate_every=every,
            initialisation=self.initialisation,
            temperature=self.temperature,
            validation_fraction=self._number("validation_fraction") if validated else 0.0,
            patience=self._whole("n_iter_no_change", 1) if validated else None,
            **self._readout_fields(width // classes),
        )

    def _resolved_width(self, bits: int, classes: int) -> int:
        if isinstance(self.width, str) and self.width == "auto":
            width = max(AUTO_WIDTH, AUTO_GATES_PER_CLASS * classes, -(-bits // 2))
            return -(-width // classes) * classes
        return self._whole("width", 1, "'auto' or ")

    def _proof_seconds(self) -> float | None:
        seconds = None if self.proof_seconds is None else self._number("proof_seconds", "None or ")
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"proof_seconds must be None or a finite number > 0, got {seconds}")
        return seconds

    def _whole(self, name: str, least: int, otherwise: str = "") -> int:
        value = getattr(self, name)
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be {otherwise}a whole number >= {least}, got {value!r}")
        return int(value)

    def _number(self, name: str, otherwise: str = "") -> float:
        value = getattr(self, name)
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise ValueError(f"{name} must be {otherwise}a number, got {value!r}")
        return float(value)
