"""What the classifier and the regressor share: parameters, fitting, and the way to the circuit.

    fit            X -> encoder_ -> bits -> network_, trained
    partial_fit    the same encoder and network, some steps further on other rows
    predict        X -> encoder_ -> bits -> engine on the circuit of network_

Predictions are those of the deployed circuit, to the bit. Results depend on random_state, not on threads.
"""

import copy
import math
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Int64, Num, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gatefit.circuit import picture
from gatefit.circuit.ir import Circuit
from gatefit.datasets.splits import stratified_split
from gatefit.encoders import Encoder
from gatefit.encoders.frames import take
from gatefit.estimators.background import Background
from gatefit.estimators.deployment import Deployment
from gatefit.estimators.evaluation import MOST_EVALUATED, SampledEvaluation, keep_so_far, measured_on
from gatefit.estimators.export import export_circuit
from gatefit.estimators.growth import Fitted, grown
from gatefit.estimators.inputs import accepts_missing, encoded_batches, fit_encoder, read_features
from gatefit.estimators.networks import MakeNetwork, made_from, new_network, own_network, refuse_changes
from gatefit.estimators.origin import provenance
from gatefit.estimators.progress import ProgressLines, history_row
from gatefit.estimators.recipes import Recipe, batch_size_of, recipe_of, thresholds_of, wiring_of
from gatefit.estimators.relevance import preferred_bits
from gatefit.estimators.training_set import training_set
from gatefit.estimators.unfitted import JUDGED_STEPS, warn_unfitted
from gatefit.estimators.watch import Watch
from gatefit.network import LogicNetwork
from gatefit.readouts import Readout, check_groups
from gatefit.training.budget import Size, largest_size
from gatefit.training.config import RunConfig
from gatefit.training.data import TrainingData
from gatefit.training.device import choose_device, placed
from gatefit.training.loop import Learner, train, train_together

if TYPE_CHECKING:
    from gatefit.circuit.dependence import PartialDependence
    from gatefit.circuit.verify import Batch

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
    _moments: dict[str, Any] | None = None
    """The optimiser's state after ``partial_fit``; a ``fit`` begins without."""
    _background: Background | None = None
    _importances: Float64[np.ndarray, " features"] | None = None
    watch: Watch | None = None
    """Who watches a fit and may stop it; no parameter: it changes nothing of what is trained."""

    def __init__(
        self,
        *,
        method: str,
        width: int | str,
        depth: int | str,
        steps: int | str,
        batch_size: int | str,
        learning_rate: float | str,
        schedule: str,
        weight_decay: float,
        initialisation: str,
        temperature: float | None,
        wiring: str,
        candidates: int | None,
        votes: str,
        score_learning_rate: float | str,
        encoder: Encoder | str,
        thresholds: int | str,
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
        max_gates: int | None,
        max_luts: int | None,
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
        self.candidates = candidates
        self.votes = votes
        self.score_learning_rate = score_learning_rate
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
        self.max_gates = max_gates
        self.max_luts = max_luts

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

    @property
    def feature_importances_(self) -> Float64[np.ndarray, " features"]:
        """How much the circuit's answers depend on each feature, together 1 (0 where none is read).

        I_f of ``gatefit.circuit.dependence``, divided by the sum of all: the share of class probability (of a
        regression: of the value) that is expected to move when feature f is drawn again from the training values, over
        rows whose features are drawn independently of each other. Exact for these rows; no score is measured, and
        nothing is fitted again. ``gatefit.circuit.dependence.importance(model.circuit_, X)`` is the same of any rows.
        """
        circuit = self.circuit_
        if self._background is None:
            raise AttributeError(
                f"this {type(self).__name__} was fitted by an earlier version of gatefit and has no "
                "feature_importances_; use gatefit.circuit.dependence.importance(model.circuit_, X), or fit again"
            )
        if self._importances is None:
            self._importances = self._background.importances(circuit)
        return self._importances.copy()

    def partial_dependence(self, X: Any, feature: str | int) -> "PartialDependence":
        """The mean answer over the rows of X with ``feature`` at each value that the circuit can tell apart: exact.

        Class probabilities, or values. scikit-learn's ``partial_dependence`` and ``PartialDependenceDisplay`` work with
        this estimator too, on a grid; see ``gatefit.circuit.dependence``.
        """
        from gatefit.circuit.dependence import partial_dependence

        check_is_fitted(self)
        return partial_dependence(self.circuit_, read_features(self, X, reset=False), feature)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        return f"<{text}, fitted: {self._described()}>" if "network_" in vars(self) else text

    def _described(self) -> str:
        """A fitted model in a few words."""
        network = self.network_
        answers = f"{network.classes} classes" if network.classes > 1 else "one value"
        gates = f"{sum(network.widths):,} gates trained for {self.n_iter_:,} steps"
        return f"{self.n_features_in_:,} features to {answers}, {gates}"

    def _html_repr(self) -> str:
        """scikit-learn's box of parameters, and below it what the model has become."""
        html = str(super()._html_repr())
        if "network_" not in vars(self):
            return html
        # A circuit that nobody asked for yet is not made for a picture.
        circuit = self._deployment.made
        below = "" if circuit is None else picture.to_html(circuit)
        return f"{html}<div>{escape(self._described())}</div>{below}"

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
    def _readout_fields(self, recipe: Recipe, gates_per_class: int) -> dict[str, Any]:
        """The readout's part of the configuration."""

    def _own_readout(self, gates: int, classes: int) -> Readout | None:
        """A readout of the user's own for the new network; None: the configuration names one."""

    def _finish(self, fit: Fitted, recipe: Recipe, data: TrainingData, measured: TrainingData) -> None:
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
        part: bool = False,
    ) -> None:
        """Train on checked data; ``strata`` are the classes that a validation split keeps in proportion.

        ``labels`` are what the classes are called in the targets; the circuit answers with them. ``part``: of a table
        that comes in parts, from the network that is there, with its optimiser, for one pass.
        """
        continues = "network_" in vars(self) if part else self._continues()
        proof_seconds = self._proof_seconds()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(weights):
            X, targets, weights, strata = take(X, kept), targets[kept], weights[kept], strata[kept]
        known = self._made_from.get("wiring") if continues and is_auto(self.wiring) else None
        wiring = known or wiring_of(self.wiring, targets)
        encoder = self.encoder_ if continues else self.planned_encoder(X, targets, classes=classes)
        if encoder.bits == 1 and is_auto(self.wiring) and not continues:
            wiring = wiring_of("fixed", targets)  # a choice of one node is none
        apart = None if part else self._validation_rows(strata, seed)
        validated = apart is not None
        bits = encoder.transform(X)
        batch_size = self._whole_or("batch_size", batch_size_of(wiring))
        data, measured = training_set(bits, targets, weights, apart, batch_size, seed)
        recipe = recipe_of(wiring, rows=data.train.samples, bits=encoder.bits, classes=classes)
        if continues and "width" in self._made_from:  # of as many samples as there were then
            recipe = replace(recipe, **{name: self._made_from[name] for name in ("width", "depth", "votes")})
        done = self.n_iter_ if continues else 0
        preferred = None
        if classes > 1 and wiring == "auto" and not continues:
            seen = np.setdiff1d(np.arange(len(bits)), [] if apart is None else apart)
            preferred = preferred_bits(encoder, bits, targets, seen)
        class_names = () if labels is None else tuple(str(label) for label in labels.tolist())
        until = done + (self._pass(data.train.samples, batch_size) if part else 0)
        watch = self.watch or Watch()
        if watch.held_out is not None and not validated:
            measured = measured_on(measured, encoder.transform(watch.held_out[0]), self._targets(watch.held_out[1]))

        def fitted(size: Size) -> Fitted:
            """A network of this size, trained; or the one that is there, trained on."""
            config = self._configuration(
                recipe, size, wiring, batch_size, classes, seed, validated=validated, done=done
            )
            made = made_from(config, self.encoder, self.thresholds, self.network)
            if continues:
                refuse_changes(self._made_from, made)
                network = copy.deepcopy(self.network_)
                self._resume(network)
            elif self.network is None:
                readout = self._own_readout(size.voters, classes) or config.readout
                ends = (recipe.spread * target_range[0], recipe.spread * target_range[1])
                network = new_network(config, encoder, classes, class_names, ends, preferred, readout=readout)
            else:
                network = own_network(self.network, encoder, classes, class_names, seed)
            lines = [ProgressLines(validated=validated)] if self.verbose else []
            strategy = SampledEvaluation(measured)
            if part:
                config = replace(config, steps=max(config.steps, until), evaluate_every=max(config.steps, until))
                config = replace(config, schedule=self._constant())
            folder = watch.checkpoints
            if folder is not None and self.max_gates is not None:
                folder = folder / f"width-{size.width}"
            with placed([network], data, choose_device(self.device), config.batch_size) as there:
                if part:
                    return self._further(config, network, there, strategy, made, (done, until))
                result = train(
                    config,
                    network,
                    there,
                    folder=folder,
                    observers=[*lines, *watch.observers],
                    should_stop=watch.should_stop,
                    threads=self.threads,
                    strategy=strategy,
                )
            if not result.finished:
                keep_so_far(network, result.state, measured)
            reached = result.state.best_score if validated else result.state.metrics[-1]["train_hard"]
            return Fitted(network, seed, result.state.metrics, result.state.step, made, reached, config.identity)

        size = self._size(recipe, classes)
        fit = fitted(size)
        if self.max_gates is not None and self.max_luts is None and not self.warm_start and not part:
            # What is trained further may be optimised less: then only what surely fits will do.
            widest = Size(recipe.width, size.depth, size.votes)
            fit = grown(fit, fitted, size, widest, classes, self.max_gates, watch.should_stop)
        self._finish(fit, recipe, data, measured)
        self._calibrate(fit.network, data, None if apart is None else weights[apart])
        if fit.steps >= JUDGED_STEPS and not part and not watch.should_stop():
            weighted = bool(weights.max() > weights.min())
            warn_unfitted(fit.metrics[-1], measured.train_targets, weighted=weighted, stacklevel=4)
        log = [history_row(row, validated=validated, after=0 if part else done) for row in fit.metrics]
        self.history_ = [*self.history_, *log] if continues else log
        self.n_iter_ = done + fit.steps
        if not part:
            self._moments = None
        self._background, self._importances = Background.of(encoder, bits, seed), None
        self.encoder_, self.network_, self._made_from = encoder, fit.network, fit.made
        said = provenance(fit, data, bits, targets, weights)
        self._deployment = Deployment(fit.network, self.threads, labels=labels, proof_seconds=proof_seconds, said=said)

    def _further(
        self,
        config: RunConfig,
        network: LogicNetwork,
        data: TrainingData,
        strategy: SampledEvaluation,
        made: dict[str, Any],
        steps: tuple[int, int],
    ) -> Fitted:
        """The network after steps ``steps[0]`` to ``steps[1]`` of a training whose end is open."""
        learner = Learner(config, network, None, [ProgressLines(validated=False)] if self.verbose else [])
        learner.state.step = steps[0]
        if self._moments is not None:
            learner.optimiser.load_state_dict(self._moments)
        (result,) = train_together(
            [learner],
            data,
            strategy=strategy,
            threads=self.threads,
            should_stop=lambda: learner.state.step >= steps[1],
        )
        if not result.state.metrics:
            strategy.evaluate(learner, data)
        self._moments = learner.optimiser.state_dict()
        metrics = result.state.metrics
        reached = metrics[-1]["train_hard"]
        return Fitted(network, config.wiring_seed, metrics, steps[1] - steps[0], made, reached, config.identity)

    def _pass(self, rows: int, batch_size: int) -> int:
        """Steps of one ``partial_fit``: ``steps``, or with "auto" one pass over the rows."""
        return self._whole_or("steps", -(-rows // min(batch_size, rows)))

    def _constant(self) -> Any:
        """The schedule of a training whose end is open."""
        if self.schedule not in ("auto", "constant"):
            raise ValueError(
                f"schedule={self.schedule!r} needs to know the last step, which partial_fit does not; "
                "leave it 'auto', or set schedule='constant'"
            )
        return "constant"

    def _calibrate(
        self, network: LogicNetwork, data: TrainingData, apart: Float64[np.ndarray, " apart"] | None
    ) -> None:
        """Find the temperature of probabilities, where there are any; ``apart`` weighs the rows kept apart."""

    def planned_encoder(self, X: Any, targets: Num[np.ndarray, " samples"], *, classes: int) -> Encoder:
        """The encoder that ``fit`` would fit to these samples; ``targets`` are class numbers, or values (one class)."""
        thresholds = self.thresholds
        if is_auto(thresholds):
            thresholds = thresholds_of(wiring_of(self.wiring, targets), X.shape[0], X.shape[1])
        return fit_encoder(self.encoder, thresholds, X, tails=classes == 1)

    def _targets(self, y: Any) -> Num[np.ndarray, " samples"]:
        """Class numbers or values as the network is trained on them."""
        return np.asarray(y, dtype=np.int64)

    def explain(self, X: Any, **options: Any) -> "Batch":
        """For every row the features that force its answer whatever the others are, and the smallest change of it.

        Each answer is proved about ``circuit_`` (``gatefit.verify.explain_each``, whose ``options`` these are; of a
        value ``tolerance`` says by how much it may move); ``importance()`` of the result says how often each feature is
        in a reason.
        """
        from gatefit.circuit.verify import explain_each

        return explain_each(self.circuit_, X, **options)

    def _scores(self, X: Any) -> Float64[np.ndarray, "samples classes"]:
        """Scores of the circuit, some rows at a time."""
        return self._answers(X, self._fitted_deployment().scores)

    def _fitted_deployment(self) -> Deployment:
        if "_deployment" not in vars(self):  # asked first: scikit-learn's way to ask takes as long as a prediction
            check_is_fitted(self)
        return self._deployment

    def _answers(
        self, X: Any, answer: Callable[[Bool[np.ndarray, "samples bits"]], Float64[np.ndarray, "samples classes"]]
    ) -> Float64[np.ndarray, "samples classes"]:
        """What ``answer`` gives for the bits of X, some rows at a time."""
        X = read_features(self, X, reset=False)
        return np.concatenate([answer(bits) for bits in encoded_batches(self.encoder_, X)])

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

    def _configuration(
        self,
        recipe: Recipe,
        size: Size,
        wiring: str,
        batch_size: int,
        classes: int,
        seed: int,
        *,
        validated: bool,
        done: int,
    ) -> RunConfig:
        steps = self._whole_or("steps", recipe.steps)
        if is_auto(self.evaluate_every):
            every = max(1, steps // 20) if validated or self.verbose or self.watch is not None else steps
        else:
            every = self._whole("evaluate_every", 1, "'auto' or ")
        rate = self._number_or("learning_rate", recipe.learning_rate)
        scores_rate = recipe.score_learning_rate
        if scores_rate is not None and not is_auto(self.learning_rate):
            scores_rate *= rate / recipe.learning_rate
        if not is_auto(self.score_learning_rate):
            scores_rate = self._number("score_learning_rate", "'auto' or ")
        config = RunConfig(
            dataset="custom",
            method=self.method,
            width=size.width,
            depth=size.depth,
            votes=size.votes,
            steps=steps,
            seed=seed + done,  # After a warm start the samples come in a new order.
            wiring_seed=seed,
            wiring=wiring,
            candidates=None if self.candidates is None else self._whole("candidates", 1, "None or "),
            batch_size=batch_size,
            learning_rate=rate,
            score_learning_rate=scores_rate,
            beta2=recipe.beta2,
            weight_decay=self._number("weight_decay"),
            schedule=recipe.schedule if self.schedule == "auto" else self.schedule,  # type: ignore[arg-type]
            evaluate_every=every,
            initialisation=self.initialisation,
            temperature=self.temperature,
            validation_fraction=self._number("validation_fraction") if validated else 0.0,
            patience=self._whole("n_iter_no_change", 1) if validated else None,
        )
        return replace(config, **self._readout_fields(recipe, size.voters // classes))

    def _size(self, recipe: Recipe, classes: int) -> Size:
        """Layers, gates and voters: what is asked for, else the recipe's, within the budget."""
        budgeted = self.max_gates is not None or self.max_luts is not None
        if budgeted and (not is_auto(self.width) or self.network is not None):
            other = f"width={self.width!r}" if self.network is None else "a network of your own"
            raise ValueError(f"max_gates and max_luts choose the width, got {other} too; leave one of them out")
        votes = self._votes(recipe)
        depth = self._whole_or("depth", recipe.depth)
        if self.max_luts is not None and is_auto(self.votes):
            votes, depth = "last", min(depth, 2) if is_auto(self.depth) else depth
        width = self._whole_or("width", recipe.width)
        if votes == "all" and classes > 1 and self.network is None:
            check_groups(width, classes)
        if not budgeted:
            return Size(width, depth, votes)
        if votes == "last":  # as many gates in all, in fewer layers
            width = width * recipe.depth // depth // classes * classes
        limits = {name: getattr(self, name) for name in ("max_gates", "max_luts")}
        for name, value in limits.items():
            limits[name] = None if value is None else self._whole(name, 1, "None or ")
        return largest_size(Size(width, depth, votes), classes, **limits, fixed_depth=not is_auto(self.depth))

    def _votes(self, recipe: Recipe) -> str:
        """Which layers vote; a readout that does not count in groups reads the last one."""
        return recipe.votes if is_auto(self.votes) else self.votes

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

    def _whole_or(self, name: str, automatic: int) -> int:
        return automatic if is_auto(getattr(self, name)) else self._whole(name, 1, "'auto' or ")

    def _number_or(self, name: str, automatic: float) -> float:
        return automatic if is_auto(getattr(self, name)) else self._number(name, "'auto' or ")

    def _number(self, name: str, otherwise: str = "") -> float:
        value = getattr(self, name)
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise ValueError(f"{name} must be {otherwise}a number, got {value!r}")
        return float(value)


def is_auto(value: Any) -> bool:
    """Whether a parameter is left open."""
    return isinstance(value, str) and value == "auto"
