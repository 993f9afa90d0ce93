"""The classifier: class scores are counts of ones.

score_k = (1/τ) · ones in group k       class = first k with the largest score
P(k)    = softmax_k(τ/T · score)        T: the temperature of probabilities, found when training is over
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Shaped
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from gatefit.encoders import Encoder
from gatefit.estimators.base import LogicGateEstimator, is_auto
from gatefit.estimators.calibration import cautious_factor, fitted_factor
from gatefit.estimators.evaluation import mean_shift
from gatefit.estimators.growth import Fitted
from gatefit.estimators.inputs import read_features, read_targets, read_weights
from gatefit.estimators.networks import MakeNetwork
from gatefit.estimators.recipes import Recipe
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout
from gatefit.training.data import TrainingData
from gatefit.training.metrics import agreement, scores_of


class LogicGateClassifier(ClassifierMixin, LogicGateEstimator):  # type: ignore[misc]
    """A logic gate network as a scikit-learn classifier.

    X may be an array, or a pandas or polars data frame with columns of numbers, categories and Booleans. Missing values
    (NaN, None) have a bit of their own, and categories never seen have none.

    Arguments:
        method: how gates are learned: multilinear-covjac, multilinear-ste, soft-mix, hard-st, gumbel-st, iwp, iwp-ste.
        width: gates a layer, a multiple of the classes; "auto" is 500, and at least 100 a class, where the wiring is
            learned, else 1,000, or more for many classes or bits.
        depth: layers; "auto" is 3 where the wiring is learned, else 6.
        steps: training steps; "auto" is 20 √samples, from 300 to 4,000, where the wiring is learned, else 1,000.
        batch_size: samples a step, all of them where there are fewer; "auto" is 256 for a learned wiring, else 512.
        learning_rate: Adam's; "auto" is 0.02 where the wiring is learned, else 0.05.
        schedule: the learning rate over the steps: constant, cosine or linear; "auto" is cosine for a learned wiring,
            else constant.
        weight_decay: decoupled from the gradient.
        initialisation: "normal", gates of every kind, or "residual", gates that lean to passing their first input on.
        temperature: of the method, where it has one.
        readout: "group-sum", which only counts, "linear", learned weights, or a function of the numbers of gates and
            classes that makes a ``gatefit.readouts.Readout`` of your own, such as its class.
        readout_temperature: τ, what counts are divided by in training; "auto" is 2.8 √votes / classes where the
            wiring is learned, else √(gates per class). Probabilities have a temperature of their own,
            ``circuit_.readout.temperature`` (``gatefit.estimators.calibration``).
        wiring: "learned", "fixed", "unique", "stride", "random" or "local"; "auto" is learned. "fixed" is unique, but
            reads pairs again once all have been read, and from 10,000 samples on prefers features that tell something
            about the class.
        candidates: nodes that each gate input of a learned wiring chooses among; None is eight, or all of fewer.
        votes: which layers' gates are counted, "all" or "last"; "auto" is all where the wiring is learned.
        score_learning_rate: Adam's for what chooses among the candidates; "auto" is 1.5 times that of the gates.
        encoder: what makes bits of X: "auto" is a ``gatefit.encoders.Table``; one of yours is copied and fitted.
        thresholds: the most bits that a column of numbers gets from encoder="auto"; "auto" is 15, and up to 47 where
            the wiring is learned, for samples / 20 and 5,000 bits of all columns at most.
        early_stopping: keep a validation set apart, stop when its accuracy has not risen for ``n_iter_no_change``
            evaluations, and keep the best network; "auto" does so from 10,000 samples on.
        validation_fraction: the part of the samples that is kept apart, the same of every class; 10,000 at most.
        n_iter_no_change: see ``early_stopping``.
        evaluate_every: steps between evaluations; "auto" is a twentieth of the steps.
        class_weight: a weight for each class, or "balanced".
        warm_start: whether ``fit`` goes on with the network of the last ``fit``, for ``steps`` more.
        random_state: parameters, wiring, the order of samples and the validation split follow from it.
        threads: for training and predicting; None is as many as torch uses. The result is the same.
        device: where to train: "cpu", "cuda", or "auto", which is "cuda" where that can be used.
        proof_seconds: time for the proof behind ``circuit_``; when it is over, the circuit stays as trained, with a
            warning. None sets no time, so that the same random_state gives the same circuit on any machine.
        verbose: 1 prints a line an evaluation, 0 nothing.
        network: a function (bits, classes, seed) that makes the untrained ``LogicNetwork``, in place of ``method`` to
            ``wiring``: for layers, wirings, methods and readouts of your own.
        max_gates: a budget in place of ``width``: live two-input gates of ``circuit_``, encoder and readout apart. The
            network is as wide as fits; several are trained where optimising leaves room, unless ``warm_start``.
        max_luts: the same in tables of six inputs for gates, counts and the choice of the class, by the estimate of
            ``gatefit.training.budget``; ``gatefit synth`` counts them.

    Attributes:
        classes_: the labels, sorted.
        network_: the trained ``LogicNetwork``.
        encoder_: the fitted encoder; ``encoder_.names`` says what each bit means.
        circuit_: the circuit, optimised and proven equal to the network, made when it is first asked for.
        history_: step, loss and scores of every evaluation, on 10,000 training samples at most.
        n_iter_: training steps made.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    classes_: Shaped[np.ndarray, " classes"]

    def __init__(
        self,
        *,
        method: str = "multilinear-covjac",
        width: int | str = "auto",
        depth: int | str = "auto",
        steps: int | str = "auto",
        batch_size: int | str = "auto",
        learning_rate: float | str = "auto",
        schedule: str = "auto",
        weight_decay: float = 0.0,
        initialisation: str = "normal",
        temperature: float | None = None,
        readout: str | Callable[[int, int], Readout] = "group-sum",
        readout_temperature: float | str = "auto",
        wiring: str = "auto",
        candidates: int | None = None,
        votes: str = "auto",
        score_learning_rate: float | str = "auto",
        encoder: Encoder | str = "auto",
        thresholds: int | str = "auto",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        evaluate_every: int | str = "auto",
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        device: str = "cpu",
        proof_seconds: float | None = None,
        verbose: int = 0,
        network: MakeNetwork | None = None,
        max_gates: int | None = None,
        max_luts: int | None = None,
    ) -> None:
        super().__init__(
            method=method,
            width=width,
            depth=depth,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            weight_decay=weight_decay,
            initialisation=initialisation,
            temperature=temperature,
            wiring=wiring,
            candidates=candidates,
            votes=votes,
            score_learning_rate=score_learning_rate,
            encoder=encoder,
            thresholds=thresholds,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            evaluate_every=evaluate_every,
            warm_start=warm_start,
            random_state=random_state,
            threads=threads,
            device=device,
            proof_seconds=proof_seconds,
            verbose=verbose,
            network=network,
            max_gates=max_gates,
            max_luts=max_luts,
        )
        self.readout = readout
        self.readout_temperature = readout_temperature
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogicGateClassifier":
        """Encode X, train the network, return self."""
        X = read_features(self, X, reset=not self._continues(), least=2)
        y = read_targets(self, y, X)
        check_classification_targets(y)
        weights = read_weights(sample_weight, X) * compute_sample_weight(self.class_weight, y)
        classes = self.classes_ if self._continues() else np.unique(y)
        numbers = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        if (unknown := classes[numbers] != y).any():
            raise ValueError(
                f"warm_start=True continues with the classes {', '.join(map(str, classes))}, got a class "
                f"{y[unknown][0]!r}; set warm_start=False to start anew"
            )
        if len(np.unique(numbers[weights > 0])) < 2:
            present = ", ".join(map(str, np.unique(y[weights > 0])))
            raise ValueError(
                f"LogicGateClassifier needs samples of at least two classes, got one class only: {present}"
            )
        self._fit(
            X,
            numbers.astype(np.int64),
            weights,
            strata=numbers,
            classes=len(classes),
            labels=classes,
        )
        self.classes_ = classes
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "LogicGateClassifier":
        """Train for one pass over these rows (or ``steps``, if that is a number), from what was learned before.

        The first call needs all ``classes``; it fits the encoder and chooses the sizes, so give it some hundred rows
        that are typical. The optimiser goes on from call to call; there is no early stopping.
        """
        first = "network_" not in vars(self)
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, all labels that will ever come")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs the whole table, and partial_fit sees a part of it; give a "
                "weight for each class, or sample_weight"
            )
        X = read_features(self, X, reset=first, least=2 if first else 1)
        y = read_targets(self, y, X)
        check_classification_targets(y)
        labels = np.unique(np.asarray(classes)) if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), labels):
            given = ", ".join(map(str, np.unique(np.asarray(classes))))
            raise ValueError(f"classes are {', '.join(map(str, labels))} since the first call, got {given}")
        if len(labels) < 2:
            raise ValueError(
                f"LogicGateClassifier needs at least two classes, got one class only: {', '.join(map(str, labels))}"
            )
        numbers = np.searchsorted(labels, y).clip(max=len(labels) - 1)
        if (unknown := labels[numbers] != y).any():
            raise ValueError(
                f"y holds {y[unknown][0]!r}, which is none of the classes of the first call: "
                f"{', '.join(map(str, labels))}"
            )
        weights = read_weights(sample_weight, X) * compute_sample_weight(self.class_weight, y)
        self._fit(
            X, numbers.astype(np.int64), weights, strata=numbers, classes=len(labels), labels=labels, part=True
        )  # fmt: skip
        self.classes_ = labels
        return self

    def predict(self, X: Any) -> Shaped[np.ndarray, " samples"]:
        """The most likely class of every sample, as the circuit computes it."""
        numbers = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "samples classes"]:
        """Softmax of the class scores over the calibrated temperature: what ``circuit_.predict_proba`` gives."""
        return self._answers(X, self._fitted_deployment().probabilities)

    def predict_log_proba(self, X: Any) -> Float64[np.ndarray, "samples classes"]:
        """The logarithm of ``predict_proba``."""
        return np.asarray(np.log(self.predict_proba(X)))

    def decision_function(self, X: Any) -> Float64[np.ndarray, " samples *classes"]:
        """The class scores; for two classes the second's less the first's."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores)

    def _finish(self, fit: Fitted, recipe: Recipe, data: TrainingData, measured: TrainingData) -> None:
        """Give the deployed network's class scores the means that they had before its gates were snapped."""
        if not recipe.calibrated:
            return
        readout = fit.network.readout
        readout.calibrate(torch.zeros(readout.classes))
        readout.calibrate(mean_shift(fit.network, data, fit.seed))
        # The log's last line is about the network as it is now, unless an earlier one was kept.
        if not measured.keep_best:
            fit.metrics[-1] |= {
                "train_hard": agreement(scores_of(fit.network, measured.train, soft=False), measured.train_targets)
            }

    def _calibrate(
        self, network: LogicNetwork, data: TrainingData, apart: Float64[np.ndarray, " apart"] | None
    ) -> None:
        readout = network.readout
        readout.calibrate_probabilities(None)
        if apart is None:
            factor = cautious_factor(data.train.samples)
        else:
            scores = scores_of(network, data.test, soft=False).double().numpy()
            factor = fitted_factor(scores, data.test_targets.numpy(), apart)
        readout.calibrate_probabilities(factor * readout.harden().temperature)

    def _votes(self, recipe: Recipe) -> str:
        # Only counts of votes are computed with the layers themselves; another readout reads the last layer.
        counted = isinstance(self.readout, str) and self.readout == "group-sum"
        return super()._votes(recipe) if counted or not is_auto(self.votes) else "last"

    def _readout_fields(self, recipe: Recipe, gates_per_class: int) -> dict[str, Any]:
        automatic = recipe.calm * math.sqrt(gates_per_class)
        named = self.readout if isinstance(self.readout, str) else "group-sum"
        return {"readout": named, "readout_temperature": self._number_or("readout_temperature", automatic)}

    def _own_readout(self, gates: int, classes: int) -> Readout | None:
        return None if isinstance(self.readout, str) else self.readout(gates, classes)
