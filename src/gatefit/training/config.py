"""One frozen configuration is one run: the command line is generated from it, its hash names the run.

    identity = first 12 hex digits of SHA-256 over the canonical JSON of every field that is not at its default

A new field therefore leaves the names of older runs alone, as long as its default means what they did.

Defaults are the paper's protocol (app. hyperparams): Adam 0.01, betas (0.9, 0.999), batch 512, 50,000 steps,
N(0, 1), evaluation every 1,000 steps. A width of None is the paper's for the data set, or the nearest we can run.
"""

import difflib
import hashlib
import json
import math
import types
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Union, get_args, get_origin

SCHEDULES: Final = ("constant", "cosine", "linear")
PAPER_WIDTHS: Final[dict[str, int]] = {
    "monks-1": 136,
    "monks-2": 136,
    "monks-3": 136,
    "adult": 4096,
    "splice": 4095,
    "mnist": 8000,
    "fashion-mnist": 8000,
    "cifar10": 12000,
    "cifar100": 12000,
    "svhn": 12000,
    "tiny-imagenet": 12000,
    "digits": 2000,
    "iris": 300,
    "breast-cancer": 500,
}
GATE_METHODS: Final = (
    "soft-mix", "hard-st", "gumbel-st", "multilinear-ste", "multilinear-covjac", "multilinear-free", "iwp", "iwp-ste",
    "iwp-free",
)  # fmt: skip
"""The names of ``gatefit.methods.METHODS``, known without torch; a model of another kind may have no width."""
_LEAST: Final = {"depth": 1, "steps": 1, "batch_size": 1, "evaluate_every": 1, "warmup": 0, "split_seed": 0}


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run's result."""

    dataset: str = _option("mnist", "data set, see `gatefit datasets`")
    method: str = _option("multilinear-covjac", "gate method")
    width: int | None = _option(None, "gates a layer; a multiple of the classes (default: the data set's)")
    depth: int = _option(6, "layers")
    steps: int = _option(50_000, "training steps")
    seed: int = _option(0, "seed of parameters, noise and data order")
    wiring_seed: int = _option(0, "seed of the wiring")
    wiring: str = _option("unique", "unique, stride, random or local")
    readout: str = _option("group-sum", "group-sum or linear")
    readout_temperature: float | None = _option(
        None, "temperature of the class scores (default: 0.36 √(gates a class))"
    )
    batch_size: int = _option(512, "samples a step; the whole set where it is smaller")
    learning_rate: float = _option(0.01, "Adam's learning rate")
    beta1: float = _option(0.9, "Adam's decay of the first moment")
    beta2: float = _option(0.999, "Adam's decay of the second moment")
    weight_decay: float = _option(0.0, "decoupled weight decay")
    schedule: str = _option("constant", "learning rate over the run: constant, cosine or linear")
    warmup: int = _option(0, "steps of linear warm-up")
    evaluate_every: int = _option(1000, "steps between evaluations and checkpoints")
    initialisation: str = _option("normal", "normal or residual (leaning to the identity)")
    sigma: float | None = _option(None, "standard deviation of the initial parameters (default: 1, residual 0.25)")
    temperature: float | None = _option(None, "temperature of covjac, hard-st or gumbel-st (default 1)")
    learnable_temperature: bool = _option(False, "covjac: learn the temperature of each layer")
    backward_basis: str | None = _option(None, "multilinear-ste: canonical, walsh, smoothed, expected-value, uniform")
    epsilon: float | None = _option(None, "multilinear-ste: epsilon of the smoothed basis (default 0.2)")
    corner_activation: str | None = _option(
        None, "iwp: sigmoid, sin01 or identity (soft, not Boolean); iwp-ste: identity, sigmoid or sin01"
    )
    noise_scale: float | None = _option(None, "gumbel-st: factor on the noise (default 1)")
    thresholds: int | None = _option(None, "image sets: thresholds a channel (default: the paper's)")
    adult_encoding: str | None = _option(None, "adult: fixed or difflogic")
    validation_fraction: float = _option(
        0.0, "part of the training set kept apart and evaluated instead of the test set"
    )
    patience: int | None = _option(
        None, "stop after so many evaluations of the validation set without improvement; needs validation_fraction"
    )
    noise_in: str | None = _option(None, "gumbel-st: where noise enters: both (default), forward or backward")
    noise_steps: int | None = _option(None, "gumbel-st: steps over which the noise fades to nothing (default: never)")
    reach: int | None = _option(None, "local wiring: how many gates away a gate reads at most (default: width / 10)")
    split_seed: int = _option(0, "splice: seed of the split into training and test set")
    snap: str | None = _option(None, "iwp-ste: to the nearest corners (default) or codebook, the nearest coefficients")
    surrogate: str | None = _option(
        None,
        "iwp-ste, multilinear-ste: gradients of the gate that is snapped (default) or of the continuous polynomial",
    )
    whole_batches: bool = _option(False, "evaluate the whole batches at the beginning of the test set too")

    def __post_init__(self) -> None:
        self._check_fields()
        self.check_patience()

    def _check_fields(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not _fits(value, f.type):
                raise ValueError(f"configuration field {f.name} must be {_words(f.type)}, got {value!r}")
            # 1 and 1.0 are the same run, and have the same name.
            object.__setattr__(self, f.name, _convert(value, f.type))
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be a whole number >= {least}, got {getattr(self, name)}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(
                f"learning_rate must be a finite number > 0, got {self.learning_rate}; the paper uses 0.01"
            )
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay must be a finite number >= 0, got {self.weight_decay}")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in [0, 1), got {self.validation_fraction}")
        if self.reach is not None and self.wiring != "local":
            raise ValueError(f"reach is of the local wiring, got wiring={self.wiring!r}; set wiring='local' too")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"unknown schedule {self.schedule!r}; choose one of {', '.join(SCHEDULES)}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(
                f"patience must be >= 1 evaluations, got {self.patience}; leave it out to train to the end"
            )

    def check_patience(self) -> None:
        """Refuse to stop by the test set: an accuracy that decided when to stop is not one on unseen samples."""
        if self.patience is not None and not self.validation_fraction:
            raise ValueError(
                f"patience={self.patience} needs a validation set, and validation_fraction is 0: the test set must not "
                "decide when training ends; set validation_fraction too, to 0.1 for example, or leave patience out"
            )

    @property
    def held_out(self) -> str:
        """Which set is evaluated beside the training set: "validation" where one is kept apart, else "test"."""
        return "validation" if self.validation_fraction else "test"

    @property
    def identity(self) -> str:
        """Twelve hex digits that name this configuration."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]

    def resolved(self) -> "RunConfig":
        """The same run with the data set's default width of a logic network written out."""
        if self.width is not None or self.method not in GATE_METHODS:
            return self
        return replace(self, width=PAPER_WIDTHS.get(self.dataset, 2000))

    def method_options(self) -> dict[str, Any]:
        """The options that the method's constructor takes; one that it does not take is refused."""
        from gatefit.methods import method_class

        accepted = method_class(self.method).options()
        options: dict[str, Any] = {"initialisation": self.initialisation}
        given = {
            "sigma": self.sigma,
            "temperature": self.temperature,
            "backward_basis": self.backward_basis,
            "epsilon": self.epsilon,
            "corner_activation": self.corner_activation,
            "snap": self.snap,
            "surrogate": self.surrogate,
            "noise_scale": self.noise_scale,
            "noise_in": self.noise_in,
            "noise_steps": self.noise_steps,
            "learnable_temperature": self.learnable_temperature or None,
        }
        for name, value in given.items():
            if value is None:
                continue
            if name not in accepted:
                takes = [option for option in given if option in accepted]
                raise ValueError(f"{self.method} has no option {name}; it takes {', '.join(takes)}")
            options[name] = value
        return options

    def dataset_options(self) -> dict[str, Any]:
        """The options that the data set's loader takes."""
        options: dict[str, Any] = {}
        if self.thresholds is not None:
            options["thresholds"] = self.thresholds
        if self.adult_encoding is not None:
            options["encoding"] = self.adult_encoding
        if self.split_seed:
            options["split_seed"] = self.split_seed
        return options

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(asdict(self), indent=2, sort_keys=True)

    @classmethod
    def from_dict(cls, content: Any) -> "RunConfig":
        """Read strictly: no unknown field, every value of its type.

        Older versions let the test set end a run. Such a run's record is still read; no new one is begun.
        """
        if not isinstance(content, dict):
            raise ValueError(f"a configuration is a JSON object, got {type(content).__name__}")
        known = [f.name for f in fields(cls)]
        for name in content:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"unknown configuration field {name!r}{hint}")
        config = object.__new__(cls)
        for f in fields(cls):
            object.__setattr__(config, f.name, content.get(f.name, f.default))
        config._check_fields()
        return config

    def differences(self, other: "RunConfig") -> list[str]:
        """The fields in which two configurations differ, in words."""
        mine, theirs = asdict(self), asdict(other)
        return [f"{name}: {theirs[name]!r} there, {mine[name]!r} here" for name in mine if mine[name] != theirs[name]]


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _fits(value: Any, annotation: Any) -> bool:
    kinds = _kinds(annotation)
    if value is None:
        return type(None) in kinds
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)


def _convert(value: Any, annotation: Any) -> Any:
    return float(value) if float in _kinds(annotation) and value is not None else value


def _words(annotation: Any) -> str:
    return " or ".join("None" if kind is type(None) else kind.__name__ for kind in _kinds(annotation))
