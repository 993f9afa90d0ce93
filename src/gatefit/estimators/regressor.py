"""The regressor: the value is a straight line over the number of ones.

    value = low + (high - low) · ones / gates

The network is trained on targets scaled to [-1, 1]; afterwards the line is fitted again, by least squares, to what the
deployed network counts on the training set.
"""

from typing import Any, Final, cast

import numpy as np
import torch
from jaxtyping import Float64
from sklearn.base import RegressorMixin

from gatefit.encoders import Encoder
from gatefit.estimators.base import LogicGateEstimator
from gatefit.estimators.growth import Fitted
from gatefit.estimators.inputs import read_features, read_targets, read_weights
from gatefit.estimators.networks import MakeNetwork
from gatefit.estimators.recipes import Recipe
from gatefit.network import LogicNetwork
from gatefit.readouts import RegressionReadout
from gatefit.training.data import TrainingData
from gatefit.training.metrics import scores_of

TRAINED_RANGE: Final = (-1.0, 1.0)
"""What the smallest and the largest target are while the network is trained."""


class LogicGateRegressor(RegressorMixin, LogicGateEstimator):  # type: ignore[misc]
    """A logic gate network as a scikit-learn regressor: a number from a count of ones.

    X may be an array, or a pandas or polars data frame with columns of numbers, categories and Booleans. Missing values
    (NaN, None) have a bit of their own, and categories never seen have none. Predictions lie near the range of y.

    Arguments:
        method: how gates are learned: multilinear-covjac, multilinear-ste, soft-mix, hard-st, gumbel-st, iwp, iwp-ste.
        width: gates a layer; "auto" is 500 where the wiring is learned, else 1,000, or more where there are many bits.
        depth: layers; "auto" is 3 where the wiring is learned, else 6.
        steps: training steps; "auto" is 20 √samples, from 300 to 4,000, where the wiring is learned, else 1,000.
        batch_size: samples a step, all of them where there are fewer; "auto" is 256 for a learned wiring, else 512.
        learning_rate: Adam's; "auto" is 0.02 where the wiring is learned, else 0.05.
        schedule: the learning rate over the steps: constant, cosine or linear; "auto" is cosine for a learned wiring,
            else constant.
        weight_decay: decoupled from the gradient.
        initialisation: "normal", gates of every kind, or "residual", gates that lean to passing their first input on.
        temperature: of the method, where it has one.
        wiring: "learned", "fixed", "unique", "stride", "random" or "local"; "auto" is learned, but fixed where y has
            heavy tails (an excess kurtosis above 10). "fixed" is unique, but reads pairs again when all are read.
        candidates: nodes that each gate input of a learned wiring chooses among; None is eight, or all of fewer.
        votes: which layers' gates are counted, "all" or "last"; "auto" is all where the wiring is learned.
        score_learning_rate: Adam's for what chooses among the candidates; "auto" is 1.5 times that of the gates.
        encoder: what makes bits of X: "auto" is a ``gatefit.encoders.Table``; one of yours is copied and fitted.
        thresholds: the most bits that a column of numbers gets from encoder="auto", apart from up to eight more in
            its tails, as long as they leave eight samples beyond; "auto" is 15, and up to 47 where the wiring is
            learned, for samples / 20 and 5,000 bits of all columns at most.
        early_stopping: keep a validation set apart, stop when its R² has not risen for ``n_iter_no_change``
            evaluations, and keep the best network; "auto" does so from 10,000 samples on.
        validation_fraction: the part of the samples that is kept apart; 10,000 at most.
        n_iter_no_change: see ``early_stopping``.
        evaluate_every: steps between evaluations; "auto" is a twentieth of the steps.
        warm_start: whether ``fit`` goes on with the network of the last ``fit``, for ``steps`` more.
        random_state: parameters, wiring, the order of samples and the validation split follow from it.
        threads: for training and predicting; None is as many as torch uses. The result is the same.
        proof_seconds: time for the proof behind ``circuit_``; when it is over, the circuit stays as trained, with a
            warning. None sets no time, so that the same random_state gives the same circuit on any machine.
        verbose: 1 prints a line an evaluation, 0 nothing.
        network: a function (bits, classes, seed) that makes the untrained ``LogicNetwork``, in place of ``method`` to
            ``wiring``: for layers, wirings, methods and readouts of your own.
        max_gates: a budget in place of ``width``: live two-input gates of ``circuit_``, encoder and readout apart. The
            network is as wide as fits; several are trained where optimising leaves room, unless ``warm_start``.
        max_luts: the same in tables of six inputs for gates and their count, by the estimate of
            ``gatefit.training.budget``; ``gatefit synth`` counts them.

    Attributes:
        network_: the trained ``LogicNetwork``.
        encoder_: the fitted encoder; ``encoder_.names`` says what each bit means.
        circuit_: the circuit, optimised and proven equal to the network, made when it is first asked for.
        history_: step, loss and scores (R²) of every evaluation, on 10,000 training samples at most; the loss is of y
            scaled to [-1, 1].
        n_iter_: training steps made.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

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
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
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
            proof_seconds=proof_seconds,
            verbose=verbose,
            network=network,
            max_gates=max_gates,
            max_luts=max_luts,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LogicGateRegressor":
        """Encode X, train the network, return self."""
        X = read_features(self, X, reset=not self._continues(), least=2)
        y = read_targets(self, y, X).astype(np.float64)
        weights = read_weights(sample_weight, X)
        if not self._continues():
            present = y[weights > 0]
            low, high = present.min(), present.max()
            self._centre, self._half = (low + high) / 2, (high - low) / 2 or 1.0
        targets = (y - self._centre) / self._half
        strata = np.zeros(len(y), dtype=np.int64)
        self._fit(X, targets, weights, strata=strata, classes=1, target_range=TRAINED_RANGE)
        return self

    def predict(self, X: Any) -> Float64[np.ndarray, " samples"]:
        """The value of every sample, as the circuit computes it."""
        return np.asarray(self._scores(X)[:, 0])

    def _finish(self, fit: Fitted, recipe: Recipe, data: TrainingData, measured: TrainingData) -> None:
        """Fit the readout's line to the deployed network, in the target's own units."""
        network = fit.network
        readout = cast(RegressionReadout, network.readout)
        value = scores_of(network, data.train, soft=False)[:, 0].double().numpy()
        target = data.train_targets.double().numpy()
        weight = None if data.train_weights is None else data.train_weights.double().numpy()
        slope, intercept = _line(value, target, weight)
        low, high = readout.range.tolist()
        ends = (intercept + slope * np.array([low, high])) * self._half + self._centre
        readout.range.copy_(torch.as_tensor(ends))

    def _targets(self, y: Any) -> Float64[np.ndarray, " samples"]:
        return np.asarray((np.asarray(y, dtype=np.float64) - self._centre) / self._half)

    def _resume(self, network: LogicNetwork) -> None:
        """Take the readout back from the target's units to those of training."""
        readout = cast(RegressionReadout, network.readout)
        readout.range.copy_(torch.tensor(network.configuration["target_range"]))

    def _readout_fields(self, recipe: Recipe, gates_per_class: int) -> dict[str, Any]:
        return {"readout": "regression"}


def _line(
    x: Float64[np.ndarray, " samples"],
    y: Float64[np.ndarray, " samples"],
    weights: Float64[np.ndarray, " samples"] | None,
) -> tuple[float, float]:
    """Slope and intercept of the weighted least-squares line; slope 0 where x is constant."""
    x_mean, y_mean = np.average(x, weights=weights), np.average(y, weights=weights)
    variance = np.average((x - x_mean) ** 2, weights=weights)
    slope = np.average((x - x_mean) * (y - y_mean), weights=weights) / variance if variance > 0 else 0.0
    return float(slope), float(y_mean - slope * x_mean)
