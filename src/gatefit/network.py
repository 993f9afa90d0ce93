"""Logic gate networks as torch modules: layers, then a readout.

    network   x (batch, inputs) -> layer -> ... -> layer -> readout (batch, classes)
    reads     layer l reads the layer below, or the outputs of several sources side by side (skips)
    votes     the readout reads the last layer, or several; gates of one class side by side, layer after layer

Sources are numbered: 0 is the network's input, l the l-th layer. ``eval()`` is the deployed Boolean network: what
``harden`` copies into a circuit, to the bit. The soft forward pass of a trained network is an explicit metric
(``soft_scores``), not a third mode. The state_dict holds all there is: parameters, wiring, encoder, class names and the
configuration to build the network again.
"""

import contextlib
import difflib
import itertools
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gatefit._requires import require

require("torch", "train", "training")

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from gatefit.encoders import Encoder, encoder_from_spec
from gatefit.layers import LAYERS, GateLayer, Layer
from gatefit.layers.gates import no_gradient_to_inputs, saved_method, saved_pairs
from gatefit.methods import Method, NotBooleanError, resolve_method
from gatefit.ops.batches import Batch, are_bits, as_float, check_batch
from gatefit.ops.boolean_stack import boolean_counts, boolean_stack
from gatefit.ops.cross_entropy.numba import losses_and_back
from gatefit.ops.expected_loss import ExpectedLoss, expected_loss
from gatefit.ops.implementations import Implementation, Implemented
from gatefit.ops.laid_out import LaidOut, laid_out
from gatefit.ops.learned_stack import Watch, learned_stack
from gatefit.ops.learned_stack.reference import note_gradients
from gatefit.ops.soft_stack import soft_stack
from gatefit.ops.stacks import Back, Layered, Stack
from gatefit.ops.threads import parallel_torch
from gatefit.randomness import stream
from gatefit.readouts import (
    READOUTS,
    GroupSum,
    LinearReadout,
    Readout,
    RegressionReadout,
    automatic_temperature,
)
from gatefit.wirings import LearnedWiring, Wiring, WiringChoice, WiringContext, WiringOptions

if TYPE_CHECKING:
    from typing_extensions import Self


SKIPS: Final = ("inputs", "all")
"""What layers may read beside the layer below, by name."""
TOGETHER: Final = 100_000
"""Gates of a network up to which coefficients of all layers are computed by one call where their parameters have to be
copied together for it; copying more takes longer."""
HISTORY: Final = ("seed", "wiring_seed", "wiring", "initialisation", "sigma", "target_range", "precision")
"""Fields of a configuration that say how a network began; a state_dict holds what became of it."""


class LogicNetwork(Implemented):
    """Layers and a readout: ``depth`` layers of ``width`` gates, layers of the widths in a list, or ``layers``.

    ``seed`` draws the parameters, ``wiring_seed`` the wiring: the paper fixes one and varies the other.
    ``wiring`` is a name (``gatefit.wirings``) or a class of your own, or one of these, a tensor (2, gates) or a
    ``Wiring`` for each layer; "learned,tree" names one a layer too. ``wiring_options`` are what it may know. ``method``
    is a name, or a class of your own. Regression: ``readout="regression"``, classes=1; a ``Readout`` of your own is
    given as the module that it is.

    ``reads`` names the sources of each layer, ``votes`` those of the readout: 0 is the network's input, l the l-th
    layer, counted from 1. A layer reads its sources side by side, in the order named. The default is a plain stack,
    reads=[[0], [1], ...] and votes="last"; votes="all" lets every layer vote. Where several vote, the readout sees the
    gates class by class: of each class first the first voting layer's, then the next one's. ``skips`` names common
    ``reads``: "inputs", so that every later layer reads the network's input too, or "all", all layers below.

    ``precision="half"``: in training, layers hand one another numbers of 16 bits, which wide layers are faster with;
    parameters, their gradients and everything that is deployed are what they are without.

        LogicNetwork(784, 10, width=[2000, 1000], votes="all")
        LogicNetwork(784, 10, 2000, 2, skips="inputs")             reads=[[0], [0, 1]]
        LogicNetwork(784, 10, [2000, 1000], wiring="learned,tree")
        LogicNetwork(layers=[GateLayer(784, 2000, generator=g), MyLayer(2000, 500)], classes=10)
    """

    def __init__(
        self,
        inputs: int | None = None,
        classes: int | None = None,
        width: int | Sequence[int] | None = None,
        depth: int | None = None,
        *,
        layers: Sequence[Layer] | None = None,
        reads: Sequence[Sequence[int]] | None = None,
        skips: str | None = None,
        votes: str | Sequence[int] = "last",
        method: str | type[Method] = "multilinear-covjac",
        wiring: WiringChoice | Sequence[WiringChoice] = "unique",
        wiring_options: WiringOptions | None = None,
        readout: str | Readout = "group-sum",
        readout_temperature: float | str = "auto",
        target_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
        wiring_seed: int = 0,
        implementation: str | Implementation = "auto",
        precision: str = "single",
        dtype: torch.dtype = torch.float32,
        encoder: Encoder | None = None,
        class_names: Sequence[str] = (),
        **method_options: Any,
    ) -> None:
        super().__init__()
        if layers is None:
            inputs, widths = _sizes(inputs, classes, width, depth)
        else:
            if width is not None or depth is not None or method_options:
                given = [*(["width"] if width is not None else []), *(["depth"] if depth is not None else [])]
                raise TypeError(
                    f"layers say their own sizes and methods, got {', '.join([*given, *method_options])} too"
                )
            inputs, widths = _sizes_of(layers, inputs)
        if encoder is not None and encoder.bits != inputs:
            raise ValueError(
                f"the encoder makes {encoder.bits} bits, the network reads {inputs}; use inputs={encoder.bits}"
            )
        self.inputs, self.widths = inputs, widths
        if skips is not None:
            reads = skip_reads(skips, len(widths), reads)
        self.reads, self.votes = _checked_sources(reads, votes, len(widths))
        # First the readout: its error about widths should not wait for the layers to be built.
        _check_votes(self.votes, [self._size(source) for source in self.votes], readout, classes)
        voters = sum(self._size(source) for source in self.votes)
        self.readout = _make_readout(readout, voters, classes, readout_temperature, target_range)
        self.classes = self.readout.classes
        # What the stacks compute as one function: layers that read one another, and votes that are counted.
        self._sequential = self.reads == tuple((below,) for below in range(len(widths)))
        several = len(self.votes) > 1 or self.votes[-1] < len(widths)
        self._counted = not several or (
            self.readout.groups is not None and self.votes[0] > 0 and self.votes[-1] == len(widths)
        )
        self.ballot: Tensor | None
        self.register_buffer("ballot", self._ballot(), persistent=False)
        self.encoder, self.class_names = encoder, tuple(class_names)
        sources = [sum(map(self._size, each)) for each in self.reads]
        if layers is None:
            kind = resolve_method(method)
            context = WiringContext(
                inputs, 0, torch.Generator(), depth=len(widths), classes=self.classes, seed=wiring_seed,
                options=wiring_options or WiringOptions(),
            )  # fmt: skip
            layers = [
                GateLayer(
                    size,
                    gates,
                    method=kind,
                    wiring=choice,
                    wiring_context=replace(
                        context, inputs=size, gates=gates, layer=i, generator=context.stream(str(i))
                    ),
                    generator=stream(seed, f"parameters/{i}"),
                    dtype=dtype,
                    **method_options,
                )
                for i, (size, gates, choice) in enumerate(
                    zip(sources, widths, _wiring_choices(wiring, len(widths)), strict=True)
                )
            ]
            made: dict[str, Any] = {
                "inputs": inputs,
                "classes": self.classes,
                "width": widths[0] if len(set(widths)) == 1 else list(widths),
                "depth": len(widths),
                "method": kind.name,
                "wiring": _wiring_name(wiring),
            }
        else:
            made = {"inputs": inputs, "classes": self.classes, "layers": [layer.configuration() for layer in layers]}
        for number, (layer, size) in enumerate(zip(layers, sources, strict=True), 1):
            if layer.inputs != size:
                raise ValueError(f"layer {number} has {layer.inputs} inputs, but what it reads gives {size}")
        self.layers = nn.ModuleList(layers)
        self._known_stack: Stack | None = None
        self.watch: Watch | None = None
        self._begins = False
        self._expected: Callable[[], ExpectedLoss | None] | None = None
        self._heeded: ExpectedLoss | None = None
        self._laid_out: LaidOut | None = None
        self._leaf: Tensor | None = None
        self.readout.to(self.dtype)
        self.implementation = implementation
        self.precision = precision
        self._check_precision()
        self.configuration: dict[str, Any] = {
            **made,
            "readout": readout if isinstance(readout, str) else type(readout).__name__,
            "readout_temperature": readout_temperature,
            "target_range": list(target_range),
            "seed": seed,
            "wiring_seed": wiring_seed,
            **({} if self._sequential else {"reads": [list(each) for each in self.reads]}),
            **({} if self.votes == (len(widths),) else {"votes": list(self.votes)}),
            **({} if precision == "single" else {"precision": precision}),
            **method_options,
        }

    def __repr__(self) -> str:
        # What it is, in a line; ``print(network)`` lists its layers, as every module's does.
        sizes = self.widths[:1] if len({*self.widths}) == 1 else self.widths
        plural = "s" if self.depth > 1 else ""
        layers = f"{self.depth} layer{plural} of {', '.join(f'{size:,}' for size in sizes)} gates"
        methods = ", ".join(dict.fromkeys(layer.method.name for layer in self.gate_layers)) or "no gate method"
        wiring = f", wiring {self.configuration['wiring']}" if "wiring" in self.configuration else ""
        answers = f"{self.classes} classes" if self.classes > 1 else "1 value"
        return (
            f"<{type(self).__name__}: {self.inputs:,} inputs, {layers}, {methods}{wiring}, "
            f"{type(self.readout).__name__} of {answers}>"
        )

    def __str__(self) -> str:
        return super().__repr__()

    def _repr_html_(self) -> str:
        from gatefit.circuit.picture import layers_html

        try:
            gates = [layer.cpu().numpy() for layer in self.gates()]
        except NotBooleanError:  # a free variant: there are no gates to count
            gates = []
        return layers_html(repr(self), gates)

    @property
    def width(self) -> int:
        """The outputs of the widest layer."""
        return max(self.widths)

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(self.widths)

    @property
    def wired_layers(self) -> list[tuple[Layer, tuple[int, ...]]]:
        """Every layer with the sources that it reads."""
        return list(zip(self.layers, self.reads, strict=True))  # type: ignore[arg-type]

    @property
    def gate_layers(self) -> list[GateLayer]:
        """The layers that have a gate method, those inside other layers included."""
        found: list[GateLayer] = []
        for layer in self.layers:
            # Walking through all modules of plain layers at every step would cost small networks a tenth of it.
            own = [layer] if type(layer) is GateLayer else layer.modules()
            found += [part for part in own if isinstance(getattr(part, "method", None), Method)]  # type: ignore[misc]
        return found

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' floating type."""
        first = self.layers[0]
        if type(first) is GateLayer:  # at every step: a walk through all modules would take a hundredth of a small one
            return first.method.latent.dtype
        return next((p.dtype for p in self.layers.parameters() if p.is_floating_point()), torch.float32)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        tensors = itertools.chain(self.layers.parameters(), self.layers.buffers())
        return next((tensor.device for tensor in tensors), torch.device("cpu"))

    def _check_precision(self) -> None:
        """Refuse 16-bit numbers where layers are not computed as one stack of float32."""
        if self.precision == "single":
            return
        if self.precision != "half":
            raise ValueError(f"precision must be single or half, got {self.precision!r}")
        own = [layer.wiring for layer in self.gate_layers if layer.wiring.learns]
        for fits, got in (
            (self.dtype == torch.float32, f"numbers of {self.dtype}"),
            (self._sequential and self._counted, "skips, or votes that are not counted"),
            (all(type(layer) is GateLayer for layer in self.layers), "layers of another kind"),
            (all(wiring.candidates_and_scores() is not None for wiring in own), "a learned wiring without candidates"),
            (
                all(layer.method.activation_name == "identity" for layer in self.gate_layers),
                "a method with an activation of its own, such as the free ones",
            ),
        ):
            if not fits:
                raise ValueError(
                    f"precision='half' is for layers of gates in float32 that read one another; got {got}; leave it out"
                )

    def _size(self, source: int) -> int:
        return self.widths[source - 1] if source else self.inputs

    def _ballot(self) -> Tensor | None:
        """The voters class by class, as places among the sources' outputs one after another; None: as they are."""
        if len(self.votes) == 1:
            return None
        groups = self.readout.groups or self.readout.classes
        sizes = [self._size(source) for source in self.votes]
        if any(size % groups for size in sizes):
            raise ValueError(
                f"layers that vote together need widths that are multiples of {groups} classes, got {sizes}"
            )
        starts = np.cumsum([0, *sizes[:-1]])
        places = [np.arange(size).reshape(groups, -1) + start for size, start in zip(sizes, starts, strict=True)]
        return torch.from_numpy(np.concatenate(places, axis=1).ravel())

    def forward(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores: as trained in ``train()``, of the deployed Boolean network in ``eval()``.

        ``x`` is 0/1: a Boolean, uint8 or floating tensor (batch, inputs), or packed bits (``bits.PackedBatch``).
        """
        return self.trained_scores(x) if self.training else self._deployed_scores(x)

    def soft_scores(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores of the network as it is trained, without gradients, whatever the mode."""
        with torch.no_grad():
            return self.trained_scores(x)

    def layer_by_layer(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores of the network as it is trained, by a call of each layer: forward hooks see what layers read and give.

        ``forward`` gives the same scores, where it can by one function for all layers.
        """
        check_batch(x, self.inputs)
        with _training(self.layers):
            return self._scores(self.readout(self._voters(as_float(x, self.dtype, self.device))))

    def trained_scores(self, x: Batch) -> Float[Tensor, "batch classes"]:
        """Scores of the network as it is trained, whatever the mode."""
        check_batch(x, self.inputs)
        expected, self._expected = self._expected, None
        sums = self._trained_sums(x, expected)
        return self.layer_by_layer(x) if sums is None else self._scores(self.readout.from_sums(sums))

    def _trained_sums(
        self, x: Batch, expected: Callable[[], ExpectedLoss | None] | None, back: Back | None = None
    ) -> Tensor | None:
        """What the votes add up to, where one function computes all layers; else None."""
        layers = self._stacked(x)
        if layers is None or any(
            layer.wiring.learns and layer.wiring.candidates_and_scores() is None for layer in layers
        ):
            return None
        methods = [layer.method for layer in layers]
        activation = methods[0].activation_name
        if activation is None or any(method.activation_name != activation for method in methods):
            return None
        stack = self._stack_of(layers)
        if any(layer.wiring.learns for layer in layers):
            return self._learned_sums(x, stack, layers, expected, back) if activation == "identity" else None
        gates, coefficients = self._gates_and_coefficients(methods, at_once=back is not None)
        way = self.implementation
        if gates is not None:
            return boolean_stack(x, stack, gates, coefficients, back=back, implementation=way)
        sigmoid, heeded = activation == "sigmoid", self._heed(expected)
        return soft_stack(x, stack, coefficients, sigmoid=sigmoid, expected=heeded, back=back, implementation=way)

    def learn(
        self, x: Batch, targets: Int64[Tensor, " batch"], weights: Float[Tensor, " batch"] | None = None
    ) -> Float[Tensor, " batch"] | None:
        """Leave the gradients of ``training.loop.loss_of(self(x), targets, weights)`` in the parameters, at once.

        Returns the samples' losses, without a graph. To the bit what autograd computes, which is asked for the way from
        coefficients to parameters alone. None, and nothing done, where a network needs autograd for more than that.
        """
        loss = self._loss_at_once(targets, weights)
        if loss is None:
            return None
        check_batch(x, self.inputs)
        self._expected = self._leaf = None
        found: list[Tensor] = []

        def back(sums: Tensor) -> Tensor:
            losses, gradient = losses_and_back(sums, loss)
            found.append(losses)
            return gradient

        if self._trained_sums(x, lambda: loss, back) is None:
            return None
        leaf, self._leaf = self._leaf, None
        if leaf is not None and leaf.grad is not None and self._laid_out is not None:
            self._laid_out.hand_out(leaf.grad)
        return found[0]

    @contextlib.contextmanager
    def laid_out(self) -> Iterator[None]:
        """In here the parameters of layers that learn alike lie in one piece of memory, which ``learn`` reads whole.

        For the same bits: it copies nothing together then. What a network saves and what it shows is as ever.
        """
        methods = [layer.method for layer in self.gate_layers]
        fits = self.implementation.without_graph and "layers" not in self.configuration
        apart = len({id(method.latent) for method in methods}) == len(methods) > 1
        if not (fits and apart) or type(methods[0]).together(methods) is None:
            yield
            return
        with laid_out([method.latent for method in methods]) as found:
            self._laid_out = found
            try:
                yield
            finally:
                self._laid_out = None

    def _loss_at_once(self, targets: Tensor, weights: Tensor | None) -> ExpectedLoss | None:
        """The loss, where nothing but a stack, a temperature and cross-entropy lies between coefficients and it."""
        watched = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        plain = type(self).forward is LogicNetwork.forward and type(self.readout).from_sums is GroupSum.from_sums
        if watched or not (plain and self.training and self.implementation.without_graph):
            return None
        divisor = self.readout.divisor
        if divisor is None or self.dtype != torch.float32:
            return None
        return expected_loss([targets], [weights], temperature=divisor, columns=self.readout.classes)

    def _together(self, methods: Sequence[Method], latents: Sequence[Tensor], at_once: bool) -> Method | None:
        """All layers' methods as one, where that takes less time; ``at_once``: for ``learn``."""
        # Layers that were given may have options of their own.
        if len(methods) < 2 or "layers" in self.configuration:
            return None
        kind = type(methods[0])
        leaf = self._laid_out.leaf(latents) if at_once and self._laid_out is not None else None
        if leaf is not None:
            whole = kind.together(methods, leaf)
            self._leaf = None if whole is None else leaf
            return whole
        return kind.together(methods) if sum(map(len, latents)) <= TOGETHER else None

    def _gates_and_coefficients(
        self, methods: Sequence[Method], *, at_once: bool
    ) -> tuple[Sequence[Tensor] | None, Sequence[Tensor]]:
        """Of every layer the gates, where all commit to gates in training, and the coefficients."""
        latents = [method.latent for method in methods]
        sizes, whole = [latent.shape[0] for latent in latents], self._together(methods, latents, at_once)
        if not all(method.boolean_forward for method in methods):
            if whole is not None:
                return None, Layered(whole.coefficients(), sizes)
            return None, [method.coefficients() for method in methods]
        if whole is not None:
            gates, coefficients = whole.sample()
            return Layered(gates, sizes), Layered(coefficients, sizes)
        samples = [method.sample() for method in methods]
        return [gates for gates, _ in samples], [coefficients for _, coefficients in samples]

    def _learned_sums(
        self,
        x: Batch,
        stack: Stack,
        layers: Sequence[GateLayer],
        expected: Callable[[], ExpectedLoss | None] | None,
        back: Back | None,
    ) -> Tensor:
        """The votes of a stack some of whose wirings learn."""
        choices = [layer.wiring.candidates_and_scores() or (None, None) for layer in layers]
        methods = [layer.method for layer in layers]
        gates, coefficients = self._gates_and_coefficients(methods, at_once=back is not None)
        return learned_stack(
            x,
            stack,
            [nodes for nodes, _ in choices],
            [scores for _, scores in choices],
            coefficients,
            gates=gates,
            watch=self.watch,
            expected=self._heed(expected) if gates is None else None,
            back=back,
            implementation=self.implementation,
        )

    def expect(
        self, targets: Sequence[Int64[Tensor, " batch"]], weights: Sequence[Tensor | None], *, share: float = 1.0
    ) -> None:
        """Say what the scores of the next pass are for, which takes less time then and computes the same.

        ``share`` times the sum of the losses (``training.loop.loss_of``) of as many equal blocks of columns as there
        are targets. Where something else was done with the scores once, no more is expected.
        """
        divisor = self.readout.divisor
        if divisor is None or (self._heeded is not None and self._heeded.failed):
            return
        columns = self.readout.groups or self.readout.classes
        # Laid out when layers ask for it: those that commit to gates have no use for it.
        self._expected = partial(expected_loss, targets, weights, temperature=divisor, columns=columns, share=share)

    def _heed(self, expected: Callable[[], ExpectedLoss | None] | None) -> ExpectedLoss | None:
        """The loss that is expected, for a stack that goes by it."""
        found = None if expected is None else expected()
        self._heeded = found or self._heeded
        return found

    def wiring_parameters(self) -> list[nn.Parameter]:
        """What wirings learn."""
        return [parameter for layer in self.gate_layers for parameter in layer.wiring.parameters()]

    def before_step(self, step: int, steps: int) -> None:
        """Before step ``step`` of ``steps``, counted from 0: ask wirings which gradients they want to see."""
        self._begins = step == 0
        inputs = [layer.wiring.watched(step, steps) for layer in self.gate_layers]
        nodes = [
            layer.wiring.offered(step) if len(own) else None
            for layer, own in zip(self.gate_layers, inputs, strict=True)
        ]
        self.observe(Watch(inputs, nodes) if any(map(len, inputs)) else None)

    def observe(self, watch: Watch | None) -> None:
        """Write down what ``watch`` asks for when the next pass is differentiated."""
        self.watch = watch
        for number, layer in enumerate(self.gate_layers):
            # Heeded where layers are called one by one; a stack as a whole is given the watch itself.
            wanted = watch is not None and len(watch.inputs[number])
            layer.note = partial(note_gradients, watch, number) if watch is not None and wanted else None

    def after_step(self, optimiser: torch.optim.Optimizer) -> None:
        """After the optimiser's step: wirings change what they choose from."""
        if self._begins:
            self._check_gradients_of_wirings()
        watch = self.watch
        if watch is None:
            return
        self.observe(None)
        layers, numbers = self.gate_layers, [*watch.gradients]

        def regrow(place: int) -> None:
            number = numbers[place]
            wiring = layers[number].wiring
            choices = wiring.candidates_and_scores()
            moments = {} if choices is None else optimiser.state.get(choices[1], {})
            seen = watch.inputs[number], watch.nodes[number], watch.gradients[number], watch.pools[number]
            wiring.regrow(*seen, moments)

        if self.device.type == "cpu":
            # An input is compared with the nodes that are offered in about so many nanoseconds.
            work = 500 * sum(len(watch.inputs[number]) for number in numbers)
            parallel_torch(regrow, len(numbers), nanoseconds=work)
        else:
            for place in range(len(numbers)):
                regrow(place)

    def _check_gradients_of_wirings(self) -> None:
        """Refuse to train wirings that cannot learn: after the first step, where gradients are kept here at all."""
        if all(parameter.grad is None for parameter in self.parameters()):
            return
        for layer in self.gate_layers:
            gradients = [parameter.grad for parameter in layer.wiring.parameters()]
            if gradients and all(each is None or not each.any() for each in gradients):
                raise ValueError(no_gradient_to_inputs(layer.method))

    def _deployed_scores(self, x: Batch) -> Tensor:
        check_batch(x, self.inputs)
        if isinstance(x, Tensor) and x.is_floating_point():
            odd = x[(x != 0) & (x != 1)]
            if odd.numel():
                raise ValueError(
                    f"the deployed network reads bits 0 and 1, got {float(odd[0])}; encode the features first, "
                    "or use soft_scores for values between"
                )
            x = x.bool()
        layers = self._stacked(x)
        if layers is None:
            return self._scores(self.readout.deployed(self._voters(as_float(x, self.dtype, self.device))))
        gates = [layer.method.gates() for layer in layers]
        counts = boolean_counts(x, self._stack_of(layers), gates, implementation=self.implementation)
        return self._scores(self.readout.deployed_from_sums(counts.to(self.dtype)))

    def _stacked(self, x: Batch) -> list[GateLayer] | None:
        """The layers, where one function computes them all: plain gates one above another, on bits."""
        plain = all(type(layer) is GateLayer for layer in self.layers)
        return [*self.layers] if plain and self._sequential and self._counted and are_bits(x) else None

    def _stack_of(self, layers: Sequence[GateLayer]) -> Stack:
        wirings, owners = [layer.wiring.committed() for layer in layers], [layer.owners for layer in layers]
        known = self._known_stack
        if (
            known is None
            or known.groups != self.readout.groups
            or not all(map(operator.is_, (*known.wirings, *known.owners), (*wirings, *owners)))
        ):
            # Kept while it holds the very same tensors: in a small network checking it anew costs as much as a layer.
            known = self._known_stack = Stack(
                wirings,
                groups=self.readout.groups,
                votes=self.votes,
                owners=owners,
                changing=[layer.wiring.learns for layer in layers],
                half=self.precision == "half",
            )
        return known

    def _voters(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch voters"]:
        """What the readout reads, by a call of each layer; what is not read any more is not kept."""
        held = {0: x}
        for number, (layer, sources) in enumerate(self.wired_layers, 1):
            held[number] = layer(_joined([held[source] for source in sources]))
            later = {source for each in (*self.reads[number:], self.votes) for source in each}
            held = {source: value for source, value in held.items() if source in later}
        voters = _joined([held[source] for source in self.votes])
        return voters if self.ballot is None else voters.T[self.ballot].T

    @staticmethod
    def _scores(scores: Any) -> Tensor:
        assert isinstance(scores, Tensor)
        return scores

    def gates(self) -> list[UInt8[Tensor, " _"]]:
        """The deployed gate numbers of every layer of gates."""
        return [layer.method.gates() for layer in self.gate_layers]

    def get_extra_state(self) -> Tensor:
        """Configuration, encoder and class names as JSON bytes: a state_dict says everything about its network."""
        state = {
            "format": 1,
            "configuration": self.configuration,
            "encoder": None if self.encoder is None else self.encoder.to_spec(),
            "class_names": list(self.class_names),
        }
        return torch.frombuffer(bytearray(json.dumps(state, sort_keys=True).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Take encoder and class names from a state_dict; a network of another configuration is refused."""
        content = _parse_extra_state(state)
        self._refuse_other(content["configuration"])
        self.configuration = content["configuration"]
        self.encoder = None if content["encoder"] is None else encoder_from_spec(content["encoder"])
        self.class_names = tuple(content["class_names"])

    def _refuse_other(self, configuration: Mapping[str, Any]) -> None:
        """Refuse a state that this network would run in another way than the one that saved it."""
        mine, theirs = self._meaning(self.configuration), self._meaning(configuration)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if names:
            listed = "; ".join(f"{name} {theirs.get(name)!r} there, {mine.get(name)!r} here" for name in names)
            raise ValueError(
                f"this state_dict is of a network of another configuration: {listed}; "
                "LogicNetwork.from_state_dict(state) makes the network that it describes"
            )

    def _meaning(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """What a configuration means: defaults written out, and without what the state itself holds."""
        if "layers" in configuration:
            parts = zip(configuration["layers"], self.layers, strict=False)
            meaning = {**configuration, "layers": [_meaning_of(part, layer) for part, layer in parts]}
        else:
            meaning = _meaning_of(configuration, self.layers[0])
        if meaning.get("readout_temperature") == "auto":
            meaning["readout_temperature"] = automatic_temperature(_voters(configuration) // configuration["classes"])
        # Wiring and parameters are loaded, and so is the range of a regression: how they began is their history.
        return {name: value for name, value in meaning.items() if name not in HISTORY}

    @classmethod
    def from_state_dict(
        cls,
        state: Mapping[str, Any],
        *,
        implementation: str | Implementation = "auto",
        method: type[Method] | None = None,
        wiring: WiringChoice | Sequence[WiringChoice] | None = None,
        layers: Sequence[Layer] | None = None,
        readout: Readout | None = None,
    ) -> "Self":
        """The network that a state_dict describes: no configuration has to be remembered beside it.

        A state names what it was made of; what is of your own is given again: the class of a ``method``, the class of a
        ``wiring`` or one object a layer, all ``layers`` where one of them is yours, the ``readout``.
        """
        if "_extra_state" not in state:
            raise ValueError(
                "this state_dict is not of a LogicNetwork: it has no _extra_state; save network.state_dict()"
            )
        configuration = dict(_parse_extra_state(state["_extra_state"])["configuration"])
        configuration["target_range"] = tuple(configuration["target_range"])
        configuration["readout"] = _saved_readout(configuration["readout"], readout)
        if "layers" in configuration:
            described = configuration["layers"]
            configuration["layers"] = layers or [
                _saved_layer(part, _part(state, f"layers.{i}."), method) for i, part in enumerate(described)
            ]
        elif layers is not None:
            raise ValueError("this state_dict describes its layers by width and depth; leave layers out")
        else:
            configuration["method"] = saved_method(configuration["method"], method)
            saved = _saved_wirings(state, configuration["wiring"], configuration["depth"]) if wiring is None else wiring
            configuration["wiring"] = saved
        floating = [value.dtype for name, value in state.items() if name.startswith("layers.")]
        dtype = next((kind for kind in floating if kind.is_floating_point), torch.float32)
        network = cls(**configuration, dtype=dtype, implementation=implementation)
        network.load_state_dict(state)
        return network


@contextlib.contextmanager
def _training(layers: nn.ModuleList) -> Iterator[None]:
    """The layers in training mode, whatever the mode of each of them was."""
    waiting = [part for part in layers.modules() if not part.training]
    for part in waiting:
        part.training = True
    try:
        yield
    finally:
        for part in waiting:
            part.training = False


def _joined(parts: Sequence[Float[Tensor, "batch _"]]) -> Float[Tensor, "batch inputs"]:
    """Outputs side by side; activations are stored feature by feature, and stay so."""
    return parts[0] if len(parts) == 1 else torch.cat([part.T for part in parts]).T


def _sizes(
    inputs: int | None, classes: int | None, width: int | Sequence[int] | None, depth: int | None
) -> tuple[int, tuple[int, ...]]:
    """Inputs and the width of every layer."""
    named = {"inputs": inputs, "classes": classes, "width": width}
    if isinstance(width, int):
        named["depth"] = depth
    missing = [name for name, value in named.items() if value is None]
    if inputs is None or width is None or missing:
        raise TypeError(f"a network needs {', '.join(named)}, or layers=[...]; got no {' and no '.join(missing)}")
    widths = (width,) * (depth or 0) if isinstance(width, int) else tuple(width)
    if not widths:
        raise ValueError(f"a network needs at least one layer, got depth={depth}")
    if depth is not None and len(widths) != depth:
        raise ValueError(f"depth={depth} needs as many widths, got {len(widths)}: {list(widths)}; leave depth out")
    return inputs, widths


def _sizes_of(layers: Sequence[Layer], inputs: int | None) -> tuple[int, tuple[int, ...]]:
    """The same of layers that are there."""
    if not layers:
        raise ValueError("a network needs at least one layer, got layers=[]")
    for layer in layers:
        if not isinstance(layer, Layer):
            raise TypeError(f"layers must be gatefit.layers.Layer, got {type(layer).__name__}; make it a subclass")
    return layers[0].inputs if inputs is None else inputs, tuple(layer.outputs for layer in layers)


def skip_reads(skips: str, depth: int, reads: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
    """The sources of each layer where later ones read the network's inputs too, or all layers below."""
    if reads is not None:
        raise TypeError("skips and reads both say what layers read; give one of them")
    if skips not in SKIPS:
        near = difflib.get_close_matches(str(skips), SKIPS, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"skips is 'inputs', 'all' or None, got {skips!r}{meant}")
    if skips == "all":
        return [[*range(below + 1)] for below in range(depth)]
    return [sorted({0, below}) for below in range(depth)]


def _checked_sources(
    reads: Sequence[Sequence[int]] | None, votes: str | Sequence[int], depth: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """What every layer reads, and what votes."""
    if reads is None:
        reads = [[below] for below in range(depth)]
    if len(reads) != depth:
        raise ValueError(f"reads names the sources of each of the {depth} layers, got {len(reads)} entries")
    for number, sources in enumerate(reads, 1):
        if not sources or not all(0 <= source < number for source in sources):
            raise ValueError(
                f"layer {number} reads sources from 0 (the network's input) to {number - 1} (the layer below), "
                f"got {list(sources)}"
            )
    if isinstance(votes, str):
        if votes not in ("last", "all"):
            raise ValueError(f"votes is 'last', 'all' or the numbers of layers, got {votes!r}")
        votes = range(1, depth + 1) if votes == "all" else [depth]
    if not votes or not all(0 <= source <= depth for source in votes) or list(votes) != sorted(set(votes)):
        raise ValueError(f"votes names sources from 0 to {depth}, each once and in order, got {list(votes)}")
    used = {source for sources in (*reads, votes) for source in sources}
    idle = [number for number in range(1, depth + 1) if number not in used]
    if idle:
        raise ValueError(f"nothing reads layer {idle[0]} and it does not vote; leave it out or name it in votes")
    return tuple(tuple(sources) for sources in reads), tuple(votes)


def _check_votes(votes: Sequence[int], gates: Sequence[int], readout: str | Readout, classes: int | None) -> None:
    """Refuse layers that vote together and cannot each be shared by the classes."""
    if len(votes) < 2 or readout != "group-sum" or classes is None or classes < 2:
        return
    if any(size % classes for size in gates):
        raise ValueError(
            f"layers that vote together need widths that are multiples of {classes} classes, got {list(gates)}"
        )


def _wiring_choices(wiring: Any, depth: int) -> list[Any]:
    """The wiring of each layer."""
    if isinstance(wiring, str):
        names = [name.strip() for name in wiring.split(",")]
        if len(names) not in (1, depth):
            raise ValueError(f"{depth} layers need one wiring for all or {depth} of them, got {len(names)}: {wiring}")
        return names * (depth // len(names))
    if callable(wiring) and not isinstance(wiring, nn.Module):
        return [wiring] * depth
    if isinstance(wiring, nn.Module) or len(wiring) != depth:
        given = 1 if isinstance(wiring, nn.Module) else len(wiring)
        raise ValueError(f"an explicit wiring needs one tensor a layer: got {given} for depth={depth}")
    return list(wiring)


def _wiring_name(wiring: Any) -> str:
    if isinstance(wiring, list | tuple) and all(isinstance(name, str) for name in wiring):
        return ",".join(wiring)
    return wiring if isinstance(wiring, str) else getattr(wiring, "__name__", "explicit")


def _make_readout(
    kind: str | Readout, gates: int, classes: int | None, temperature: float | str, target_range: tuple[float, float]
) -> Readout:
    if isinstance(kind, Readout):
        if kind.gates != gates or classes not in (None, kind.classes):
            raise ValueError(
                f"the readout is of {kind.gates} gates and {kind.classes} classes, "
                f"the network has {gates} gates that vote and {classes} classes"
            )
        return kind
    if kind not in READOUTS:
        raise ValueError(
            f"unknown readout {kind!r}; choose one of {', '.join(READOUTS)}, or give a Readout of your own"
        )
    if classes is None:
        raise TypeError(f"the readout {kind!r} needs the number of classes; got none")
    if kind == "group-sum":
        return GroupSum(gates, classes, temperature=temperature)
    if kind == "linear":
        return LinearReadout(gates, classes, temperature=temperature)
    return RegressionReadout(gates, low=target_range[0], high=target_range[1])


def _meaning_of(configuration: Mapping[str, Any], layer: nn.Module) -> dict[str, Any]:
    """The configuration of a layer, or of equal ones, with the options of its method written out, without history."""
    own = getattr(layer, "method", None)
    options = own.options() if isinstance(own, Method) and own.name == configuration.get("method") else {}
    return {name: value for name, value in {**options, **configuration}.items() if name not in HISTORY}


def _voters(configuration: Mapping[str, Any]) -> int:
    """How many gates vote in a network of this configuration."""
    if "layers" in configuration:
        widths = [layer["outputs"] for layer in configuration["layers"]]
    else:
        width, depth = configuration["width"], configuration["depth"]
        widths = [width] * depth if isinstance(width, int) else width
    sizes = [configuration["inputs"], *widths]
    return sum(sizes[source] for source in configuration.get("votes", [len(widths)]))


def _part(state: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


def _saved_layer(described: Mapping[str, Any], state: Mapping[str, Any], method: type[Method] | None) -> Layer:
    """A layer of a saved network that describes its layers."""
    kind = described["kind"]
    if kind not in LAYERS:
        raise ValueError(
            f"this state_dict has a layer {kind!r}, which is not one of {', '.join(LAYERS)}; "
            "give the layers: LogicNetwork.from_state_dict(state, layers=[...])"
        )
    return LAYERS[kind](described, state, method=method)


def _saved_wirings(state: Mapping[str, Any], name: str, depth: int) -> list[WiringChoice]:
    """The wirings of a saved network: the pairs of fixed ones, or what makes one that learns."""
    choices: list[WiringChoice] = []
    for i, own in enumerate(_wiring_choices(name, depth)):
        pairs = _saved_learned(state, i) if own == "learned" else saved_pairs(_part(state, f"layers.{i}."))
        if pairs is None:
            raise ValueError(
                "this state_dict is of a wiring of your own; "
                "give its class: LogicNetwork.from_state_dict(state, wiring=YourWiring)"
            )
        choices.append(pairs)
    return choices


def _saved_learned(state: Mapping[str, Any], layer: int) -> Callable[[WiringContext], Wiring]:
    """A learned wiring with as many candidates as the state has; what they are is loaded."""
    count = state[f"layers.{layer}.wiring.candidates"].shape[2]

    def make(context: WiringContext) -> Wiring:
        return LearnedWiring(replace(context, options=replace(context.options, candidates=count)))

    return make


def _saved_readout(name: str, own: Readout | None) -> str | Readout:
    """The readout of a saved network: one of gatefit's, or the module that the user gives for it."""
    given = None if own is None else type(own).__name__
    if given == name or (own is None and name in READOUTS):
        return name if own is None else own
    if own is None:
        raise ValueError(
            f"this state_dict is of the readout {name!r}, which is not one of {', '.join(READOUTS)}; "
            "give it: LogicNetwork.from_state_dict(state, readout=YourReadout(...))"
        )
    raise ValueError(f"this state_dict is of the readout {name!r}, got a {given}")


def _parse_extra_state(state: Tensor) -> dict[str, Any]:
    content = json.loads(bytes(state.cpu().numpy().tobytes()))
    if not isinstance(content, dict) or content.get("format") != 1:
        raise ValueError(f"unknown network format {content.get('format')!r}; this version of gatefit reads format 1")
    return content
