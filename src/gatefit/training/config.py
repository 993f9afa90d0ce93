"""A run's configuration: typed sections, frozen and checked; the command line is generated from it, its hash names it.

    DataConfig        what is read
    NetworkConfig     what is trained: method, layers, wiring, readout
    OptimiserConfig   how: steps, batches, Adam, its schedule
    EvaluationConfig  when it is measured, and when it ends
    RunConfig         one of each, and a seed

A run *is* one of each section: it has their fields by their own names, and serves where a section is asked for. So a
function says by the type of its parameter what it reads, while files, stores, exports and options have one flat list:

    identity = first 12 hex digits of SHA-256 over the canonical JSON of every field that is not at its default

A new field leaves the names of older runs alone, as long as its default means what they did.

Defaults are the paper's protocol (app. hyperparams): Adam 0.01, betas (0.9, 0.999), batch 512, 50,000 steps,
N(0, 1), evaluation every 1,000 steps. Types and bounds are checked by msgspec, whatever a configuration is made from.
"""

import difflib
import hashlib
import json
import re
import sys
from dataclasses import Field, asdict, dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta

GATE_METHODS: Final = (
    "soft-mix", "hard-st", "gumbel-st", "multilinear-ste", "multilinear-covjac", "multilinear-free", "iwp", "iwp-ste",
    "iwp-free",
)  # fmt: skip
"""The names of ``gatefit.methods.METHODS``, known without torch; a model of another kind may have no width."""

Schedule = Literal["constant", "cosine", "linear"]

_Count = Annotated[int, Meta(ge=1)]
_NotNegative = Annotated[int, Meta(ge=0)]
_Finite = Meta(le=sys.float_info.max)
_Decay = Annotated[float, Meta(ge=0, lt=1)]


def _help(text: str) -> Meta:
    return Meta(description=text)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Fields that are of their type and within their bounds."""

    def __post_init__(self) -> None:
        for f in fields(self):
            # 1 and 1.0 are the same run, and have the same name.
            object.__setattr__(self, f.name, _checked(f.name, getattr(self, f.name), f.type))


@dataclass(frozen=True, kw_only=True)
class DataConfig(Section):
    """What is read."""

    dataset: Annotated[str, _help("data set, see `gatefit datasets`")] = "mnist"
    thresholds: Annotated[int | None, _help("image sets: thresholds a channel (default: the paper's)")] = None
    threshold_rule: Annotated[
        Literal["even", "wide", "quantile"] | None,
        _help(
            "image sets: thresholds evenly over the range (default), wide to its ends, or at quantiles of each channel"
        ),
    ] = None
    adult_encoding: Annotated[str | None, _help("adult: fixed or difflogic")] = None
    shift: Annotated[_NotNegative, _help("image sets: move training images by up to so many pixels")] = 0
    flip: Annotated[bool, _help("image sets: exchange left and right in half of the training images")] = False
    rotate: Annotated[
        float, Meta(ge=0, le=180), _help("image sets: turn training images by up to so many degrees either way")
    ] = 0.0
    zoom: Annotated[_Decay, _help("image sets: make training images larger or smaller by up to this share")] = 0.0
    elastic: Annotated[
        float, Meta(ge=0), _Finite, _help("image sets: bend training images by up to so many pixels")
    ] = 0.0
    augment_until: Annotated[
        float, Meta(gt=0, le=1), _help("image sets: part of the steps after which training images are read as they are")
    ] = 1.0
    split_seed: Annotated[_NotNegative, _help("splice: seed of the split into training and test set")] = 0
    validation_fraction: Annotated[
        _Decay, _help("part of the training set kept apart and evaluated instead of the test set")
    ] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment_until != 1 and not (self.shift or self.flip or self.rotate or self.zoom or self.elastic):
            raise ValueError(
                f"augment_until={self.augment_until:g} ends moves of images, and none is asked for; set shift, flip, "
                "rotate, zoom or elastic too, or leave augment_until out"
            )

    @property
    def held_out(self) -> str:
        """Which set is evaluated beside the training set: "validation" where one is kept apart, else "test"."""
        return "validation" if self.validation_fraction else "test"

    def dataset_options(self) -> dict[str, Any]:
        """The options that the data set's loader takes."""
        options: dict[str, Any] = {}
        if self.thresholds is not None:
            options["thresholds"] = self.thresholds
        if self.threshold_rule is not None:
            options["threshold_rule"] = self.threshold_rule
        if self.adult_encoding is not None:
            options["encoding"] = self.adult_encoding
        if self.split_seed:
            options["split_seed"] = self.split_seed
        return options


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Section):
    """What is trained: a gate method in layers of gates, their wiring, and the readout."""

    method: Annotated[str, _help("gate method")] = "multilinear-covjac"
    width: Annotated[int | None, _help("gates a layer; a multiple of the classes (default: the data set's)")] = None
    depth: Annotated[_Count, _help("layers")] = 6
    widths: Annotated[
        str | None, _help("gates layer by layer, as 2000,1000: instead of width and depth (default: all equal)")
    ] = None
    skips: Annotated[
        str | None, _help("what later layers read beside the layer below: inputs or all (default: nothing)")
    ] = None
    wiring: Annotated[
        str, _help("unique, stride, random, local, learned, tree or auto; or one a layer, as learned,tree")
    ] = "unique"
    wiring_seed: Annotated[int, _help("seed of the wiring")] = 0
    reach: Annotated[
        int | None, _help("local wiring: how many gates away a gate reads at most (default: width / 10)")
    ] = None
    candidates: Annotated[int | None, _help("learned wiring: nodes that each gate input chooses among (default 8)")] = (
        None
    )
    regrow_every: Annotated[
        int | None, _help("learned wiring: steps between regrowths of candidates, 0 for never (default 5)")
    ] = None
    regrow_share: Annotated[
        float | None, _help("learned wiring: share of the gate inputs that are regrown at a time (default 0.3)")
    ] = None
    regrow_until: Annotated[
        float | None, _help("learned wiring: part of training after which candidates stay (default 0.7)")
    ] = None
    regrow_pool: Annotated[
        int | None, _help("learned wiring: nodes that are compared at each regrowth, drawn at random (default 64)")
    ] = None
    votes: Annotated[str | None, _help("layers that vote: last (default) or all")] = None
    readout: Annotated[str, _help("group-sum or linear")] = "group-sum"
    readout_temperature: Annotated[
        Annotated[float, Meta(gt=0), _Finite] | Literal["search"] | None,
        _help("temperature of the class scores, or search it on held-out data (default: 0.36 √(gates a class))"),
    ] = None
    precision: Annotated[
        Literal["single", "half"] | None,
        _help("what layers hand one another in training: single (default), or half, faster where layers are wide"),
    ] = None
    initialisation: Annotated[str, _help("normal or residual (leaning to the identity)")] = "normal"
    sigma: Annotated[
        float | None, _help("standard deviation of the initial parameters (default: 1, residual 0.25)")
    ] = None
    temperature: Annotated[float | None, _help("temperature of covjac, hard-st or gumbel-st (default 1)")] = None
    learnable_temperature: Annotated[bool, _help("covjac: learn the temperature of each layer")] = False
    backward_basis: Annotated[
        str | None, _help("multilinear-ste: canonical, walsh, smoothed, expected-value, uniform")
    ] = None
    epsilon: Annotated[float | None, _help("multilinear-ste: epsilon of the smoothed basis (default 0.2)")] = None
    corner_activation: Annotated[
        str | None,
        _help("iwp: sigmoid, sin01 or identity (soft, not Boolean); iwp-ste: identity, sigmoid or sin01"),
    ] = None
    snap: Annotated[
        str | None, _help("iwp-ste: to the nearest corners (default) or codebook, the nearest coefficients")
    ] = None
    surrogate: Annotated[
        str | None,
        _help(
            "iwp-ste, multilinear-ste: gradients of the gate that is snapped (default) or of the continuous polynomial"
        ),
    ] = None
    noise_scale: Annotated[float | None, _help("gumbel-st: factor on the noise (default 1)")] = None
    noise_in: Annotated[str | None, _help("gumbel-st: where noise enters: both (default), forward or backward")] = None
    noise_steps: Annotated[
        int | None, _help("gumbel-st: steps over which the noise fades to nothing (default: never)")
    ] = None

    def __post_init__(self) -> None:
        if isinstance(self.widths, list | tuple):
            object.__setattr__(self, "widths", ",".join(map(str, self.widths)))
        if isinstance(self.wiring, list | tuple):
            object.__setattr__(self, "wiring", ",".join(map(str, self.wiring)))
        super().__post_init__()
        if self.precision == "single":
            object.__setattr__(self, "precision", None)  # the same run, and the same name
        self._check_layers()
        if self.reach is not None and "local" not in self.wirings:
            raise ValueError(f"reach is of the local wiring, got wiring={self.wiring!r}; set wiring='local' too")
        given = [name for name in WIRING_OPTIONS if getattr(self, name) is not None]
        if given and "learned" not in self.wirings:
            raise ValueError(
                f"{', '.join(given)} is of the learned wiring, got wiring={self.wiring!r}; set wiring='learned' too"
            )
        for name, choices in (("votes", ("last", "all")), ("skips", ("inputs", "all"))):
            value = getattr(self, name)
            if value is not None and value not in choices:
                near = difflib.get_close_matches(value, choices, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"{name} must be {' or '.join(choices)}, got {value!r}{meant}")

    def _check_layers(self) -> None:
        """Refuse widths, depths and wirings that name different numbers of layers; widths say what the depth is."""
        if self.widths is not None:
            words = [word.strip() for word in self.widths.split(",")]
            if not all(word.isascii() and word.isdigit() and int(word) for word in words):
                raise ValueError(f"widths are numbers of gates layer by layer, as 2000,1000; got {self.widths!r}")
            if self.width is not None:
                raise ValueError(
                    f"widths name the gates of every layer, got width={self.width} too; leave one of them out"
                )
            if self.depth not in (NetworkConfig.depth, len(words)):
                raise ValueError(
                    f"widths={self.widths} are {len(words)} layers, got depth={self.depth} too; leave depth out"
                )
            object.__setattr__(self, "widths", ",".join(str(int(word)) for word in words))
            object.__setattr__(self, "depth", len(words))
        if self.wiring != self.wirings[0]:
            object.__setattr__(self, "wiring", ",".join(self.wirings))
            if len(self.wirings) != self.depth:
                raise ValueError(
                    f"{self.depth} layers need one wiring for all or {self.depth} of them, got {len(self.wirings)}: "
                    f"{self.wiring}"
                )

    @property
    def wirings(self) -> tuple[str, ...]:
        """The names in ``wiring``: one for all layers, or one a layer."""
        return tuple(word.strip() for word in self.wiring.split(","))

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The gates of every layer; none where neither ``widths`` nor ``width`` is said."""
        if self.widths is not None:
            return tuple(map(int, self.widths.split(",")))
        return () if self.width is None else (self.width,) * self.depth

    def wiring_options(self) -> dict[str, Any]:
        """What is said of the learned wiring."""
        return {name: getattr(self, name) for name in WIRING_OPTIONS if getattr(self, name) is not None}

    def method_options(self) -> dict[str, Any]:
        """The options that the method's constructor takes; one that it does not take is refused."""
        from gatefit.methods import method_class

        accepted = method_class(self.method).options()
        options: dict[str, Any] = {"initialisation": self.initialisation}
        for name in METHOD_OPTIONS:
            value = getattr(self, name)
            if value is None or value is False:
                continue
            if name not in accepted:
                takes = [option for option in METHOD_OPTIONS if option in accepted]
                raise ValueError(f"{self.method} has no option {name}; it takes {', '.join(takes)}")
            options[name] = value
        return options


WIRING_OPTIONS: Final = ("candidates", "regrow_every", "regrow_share", "regrow_until", "regrow_pool")
"""Fields of a network that are its learned wiring's."""
METHOD_OPTIONS: Final = (
    "sigma", "temperature", "backward_basis", "epsilon", "corner_activation", "snap", "surrogate", "noise_scale",
    "noise_in", "noise_steps", "learnable_temperature",
)  # fmt: skip
"""Fields of a network that are its method's, each of which only some methods take."""


@dataclass(frozen=True, kw_only=True)
class OptimiserConfig(Section):
    """How a network is trained."""

    steps: Annotated[_Count, _help("training steps")] = 50_000
    batch_size: Annotated[_Count, _help("samples a step; the whole set where it is smaller")] = 512
    learning_rate: Annotated[float, Meta(gt=0), _Finite, _help("Adam's learning rate")] = 0.01
    score_learning_rate: Annotated[
        Annotated[float, Meta(gt=0), _Finite] | None,
        _help("learned wiring: learning rate of the candidates' scores (default: that of the gates)"),
    ] = None
    beta1: Annotated[_Decay, _help("Adam's decay of the first moment")] = 0.9
    beta2: Annotated[_Decay, _help("Adam's decay of the second moment")] = 0.999
    weight_decay: Annotated[float, Meta(ge=0), _Finite, _help("decoupled weight decay")] = 0.0
    schedule: Annotated[Schedule, _help("learning rate over the run: constant, cosine or linear")] = "constant"
    warmup: Annotated[_NotNegative, _help("steps of linear warm-up")] = 0


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Section):
    """When a network is measured, and when training ends early."""

    evaluate_every: Annotated[_Count, _help("steps between evaluations and checkpoints")] = 1000
    patience: Annotated[
        _Count | None,
        _help("stop after so many evaluations of the validation set without improvement; needs validation_fraction"),
    ] = None
    whole_batches: Annotated[bool, _help("evaluate the whole batches at the beginning of the test set too")] = False


SectionType = TypeVar("SectionType", bound=Section)


# The last base's fields come first.
@dataclass(frozen=True, kw_only=True)
class RunConfig(EvaluationConfig, OptimiserConfig, NetworkConfig, DataConfig):
    """Everything that determines a run's result."""

    seed: Annotated[int, _help("seed of parameters, noise and data order")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_patience()
        if self.score_learning_rate is not None and "learned" not in self.wirings:
            raise ValueError(
                f"score_learning_rate is of the learned wiring, got wiring={self.wiring!r}; set wiring='learned' too"
            )

    def check_patience(self) -> None:
        """Refuse to stop by the test set: an accuracy that decided when to stop is not one on unseen samples."""
        if self.patience is not None and not self.validation_fraction:
            raise ValueError(
                f"patience={self.patience} needs a validation set, and validation_fraction is 0: the test set must not "
                "decide when training ends; set validation_fraction too, to 0.1 for example, or leave patience out"
            )

    @classmethod
    def of(cls, *sections: Section, seed: int = 0) -> "RunConfig":
        """The run of these sections; of one that is not given, its defaults."""
        values = {f.name: getattr(section, f.name) for section in sections for f in fields(section)}
        return cls(**values, seed=seed)

    @property
    def data(self) -> DataConfig:
        """What is read."""
        return self.section(DataConfig)

    @property
    def network(self) -> NetworkConfig:
        """What is trained."""
        return self.section(NetworkConfig)

    @property
    def optimiser(self) -> OptimiserConfig:
        """How."""
        return self.section(OptimiserConfig)

    @property
    def evaluation(self) -> EvaluationConfig:
        """When it is measured."""
        return self.section(EvaluationConfig)

    def section(self, kind: type[SectionType]) -> SectionType:
        """The part of this run that ``kind`` describes, by itself."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})

    @property
    def identity(self) -> str:
        """Twelve hex digits that name this configuration."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]

    def resolved(self) -> "RunConfig":
        """The same run with the data set's default width of a logic network written out."""
        if self.layer_widths or self.method not in GATE_METHODS:
            return self
        from gatefit.datasets.registry import default_width

        return replace(self, width=default_width(self.dataset))

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
        super(RunConfig, config).__post_init__()
        return config

    def differences(self, other: "RunConfig") -> list[str]:
        """The fields in which two configurations differ, in words."""
        mine, theirs = asdict(self), asdict(other)
        return [f"{name}: {theirs[name]!r} there, {mine[name]!r} here" for name in mine if mine[name] != theirs[name]]


@dataclass(frozen=True)
class Option:
    """A field as an option of the command line: a plain type (``int | None``), and the section it is of."""

    name: str
    kind: Any
    default: Any
    help: str
    section: str


def option_of(field: "Field[Any]") -> Option:
    """The option that sets a field of ``RunConfig``."""
    text = next(meta.description for meta in get_args(field.type)[1:] if meta.description)
    section = next((title for title, kind in _TITLES.items() if field.name in kind.__dataclass_fields__), "Run")
    return Option(field.name, _plain(field.type), field.default, text, section)


_TITLES: Final[dict[str, type[Section]]] = {
    "Data": DataConfig,
    "Network": NetworkConfig,
    "Optimiser": OptimiserConfig,
    "Evaluation": EvaluationConfig,
}


def _plain(kind: Any) -> Any:
    """A type without what was annotated to it; words of a choice are words."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return str
    parts = [_plain(part) for part in get_args(kind)]
    return Union[tuple(parts)] if parts else kind  # noqa: UP007 -- of types that are known only here


def _choices(kind: Any) -> tuple[str, ...]:
    """The words that a value may be."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for part in get_args(kind) for word in _choices(part))


def _checked(name: str, value: Any, kind: Any) -> Any:
    for plain in (int, float, str):
        # Numbers and words of numpy's are such ones too.
        if isinstance(value, plain) and not isinstance(value, bool):
            value = plain(value)
            break
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_explanation(name, value, kind, str(error))) from None


_WORDS: Final = {"int": "a whole number", "float": "a finite number", "str": "a word", "bool": "True or False"}


def _explanation(name: str, value: Any, kind: Any, error: str) -> str:
    """msgspec's "Expected `int | null`, got `str`" as "width must be a whole number or None, got '40'"."""
    choices, numbers = _choices(kind), float in get_args(_plain(kind))
    if choices and numbers and isinstance(value, str):
        return f"{name} must be {' or '.join(map(repr, choices))}, a number or None, got {value!r}"
    if choices and not numbers:
        return f"unknown {name} {value!r}; choose one of {', '.join(choices)}"
    expected, bound = re.match(r"Expected `([^`]*)`(?: ([<>]=? [\d.]+)$)?", error).groups()  # type: ignore[union-attr]
    words = " or ".join("None" if word == "null" else _WORDS[word] for word in expected.split(" | "))
    limit = f" {bound.removesuffix('.0')}" if bound else ""
    return f"{name} must be {words}{limit}, got {value!r}"
