"""Models of difflogic and torchlogix, evaluated as those libraries define it, against the circuits read from them."""

import re

import numpy as np
import pytest

from gatefit.circuit.legacy import from_difflogic, from_torchlogix, gates_of
from gatefit.circuit.simulate import scores
from gatefit.gates import Gate
from strategies import all_patterns

RNG = np.random.default_rng(8)
INPUTS, WIDTH, CLASSES = 6, 12, 3
WIRING = [RNG.integers(0, INPUTS, (2, WIDTH)), RNG.integers(0, WIDTH, (2, WIDTH))]


def raw_value(weights, a, b):
    """The operation with the largest logit, in the order both libraries list them."""
    operations = [
        *(0 * a, a * b, a - a * b, a, b - a * b, b, a + b - 2 * a * b, a + b - a * b),
        *(
            1 - (a + b - a * b),
            1 - (a + b - 2 * a * b),
            1 - b,
            1 - b + a * b,
            1 - a,
            1 - a + a * b,
            1 - a * b,
            1 + 0 * a,
        ),
    ]
    return np.stack(operations)[weights.argmax(axis=1), :, np.arange(len(weights))].T


def warp_value(weights, a, b):
    """Walsh coefficients of 1, b, a and ab at inputs of +1 (false) and -1 (true); true where the sum is negative."""
    a, b = 1 - 2 * a, 1 - 2 * b
    return (weights[:, 0] + weights[:, 1] * b + weights[:, 2] * a + weights[:, 3] * a * b < 0).astype(int)


def light_value(weights, a, b):
    """One weight per corner (0,0), (0,1), (1,0), (1,1); true where it is positive."""
    on = (weights > 0).astype(int)
    return on[:, 0] * (1 - a) * (1 - b) + on[:, 1] * (1 - a) * b + on[:, 2] * a * (1 - b) + on[:, 3] * a * b


def network(value, layers, bits):
    x = bits.astype(int)
    for weights, (a, b) in zip(layers, WIRING, strict=True):
        x = value(weights, x[:, a], x[:, b])
    return x.reshape(len(x), CLASSES, -1).sum(axis=2)


def test_difflogic():
    layers = [RNG.normal(size=(WIDTH, 16)) for _ in WIRING]
    state = {"1.weights": layers[0], "2.weights": layers[1]}
    wiring = [(a, b) for a, b in WIRING]
    circuit = from_difflogic(state, wiring, inputs=INPUTS, classes=CLASSES, temperature=10.0, class_names="abc")
    bits = all_patterns(INPUTS)
    assert np.array_equal(scores(circuit, bits), network(raw_value, layers, bits))
    assert circuit.readout.temperature == 10.0
    assert circuit.class_names == ("a", "b", "c")
    assert circuit.metadata == {"source": "difflogic"}


@pytest.mark.parametrize(
    ("parametrization", "value", "columns"),
    [("raw", raw_value, 16), ("warp", warp_value, 4), ("walsh", warp_value, 4), ("light", light_value, 4)],
)
def test_torchlogix(parametrization, value, columns):
    layers = [RNG.normal(size=(WIDTH, columns)).astype(np.float32) for _ in WIRING]
    state = {}
    for i, (weights, wiring) in enumerate(zip(layers, WIRING, strict=True)):
        state |= {f"{i}.weight": weights, f"{i}.connections.indices": wiring}
    circuit = from_torchlogix(state, inputs=INPUTS, classes=CLASSES, parametrization=parametrization)
    bits = all_patterns(INPUTS)
    assert np.array_equal(scores(circuit, bits), network(value, layers, bits))


def test_learned_connections_take_the_best_candidate():
    candidates = RNG.integers(0, INPUTS, (5, 2, WIDTH))
    choice = RNG.normal(size=(5, 2, WIDTH))
    state = {
        "0.weight": RNG.normal(size=(WIDTH, 16)),
        "0.connections.indices": candidates,
        "0.connections.weights": choice,
    }
    circuit = from_torchlogix(state, inputs=INPUTS, classes=CLASSES)
    for k in range(2):
        for gate in range(WIDTH):
            assert circuit.operands[k, gate] == candidates[choice[:, k, gate].argmax(), k, gate]


def test_layers_are_ordered_by_number_not_by_text():
    weights = {f"{i}.weights": np.eye(16)[[i]] for i in (10, 9, 2)}
    circuit = from_difflogic(weights, [([0], [0])] * 3, inputs=1, classes=1)
    assert circuit.gates.tolist() == [2, 9, 10]


def test_gates_of_known_weights():
    assert gates_of(np.eye(16), "raw").tolist() == list(range(16))
    corners = np.array([[1, -1, -1, 1], [-1, -1, -1, 1]])
    assert gates_of(corners, "light").tolist() == [Gate.XNOR, Gate.AND]
    walsh = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    assert gates_of(walsh, "warp").tolist() == [Gate.A, Gate.B, Gate.XOR, Gate.FALSE]


def test_torch_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    weights = torch.nn.Parameter(torch.eye(16))
    wiring = [(torch.zeros(16, dtype=torch.int64), torch.ones(16, dtype=torch.int64))]
    circuit = from_difflogic({"0.weights": weights}, wiring, inputs=2, classes=2)
    assert circuit.gates.tolist() == list(range(16))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: from_difflogic({"0.weights": np.eye(16)}, [], inputs=2, classes=2),
            ValueError,
            "the state_dict has 1 logic layers, the wiring has 0; pass layer.indices of every LogicLayer",
        ),
        (
            lambda: from_difflogic({"0.bias": np.eye(16)}, [], inputs=2, classes=2),
            ValueError,
            "no layer has 'weights' in this state_dict, which holds 0.bias",
        ),
        (
            lambda: from_difflogic({"0.weights": np.eye(16)}, [np.full((2, 16), 2)], inputs=2, classes=2),
            ValueError,
            "0: the wiring must hold numbers from 0 to 1, got 2 to 2",
        ),
        (
            lambda: from_difflogic({"0.weights": np.eye(16)}, [np.zeros((2, 16))], inputs=2, classes=2),
            TypeError,
            "0: the wiring must hold integers, got float64",
        ),
        (
            lambda: from_difflogic({"0.weights": np.eye(16)}, [np.zeros((2, 15), int)], inputs=2, classes=2),
            ValueError,
            "0: the wiring of 16 gates is two rows of 16 numbers",
        ),
        (
            lambda: from_difflogic({"0.weights": np.eye(16)}, [np.zeros((2, 16), int)], inputs=2, classes=3),
            ValueError,
            "the last layer's 16 gates cannot be shared equally by 3 classes",
        ),
        (
            lambda: from_difflogic({"0.weights": np.eye(16) * np.nan}, [np.zeros((2, 16), int)], inputs=2, classes=2),
            ValueError,
            "0: the weights hold NaN or infinity",
        ),
        (
            lambda: from_torchlogix({"0.weight": np.eye(16)}, inputs=2, classes=2),
            ValueError,
            "the state_dict has no '0.connections.indices': this version of torchlogix did not save the wiring",
        ),
        (
            lambda: from_torchlogix({"0.weight": np.eye(4)}, inputs=2, classes=2, wiring=[np.zeros((2, 4), int)]),
            ValueError,
            "0: raw weights are (gates, 16), got (4, 4); choose parametrization='light' or 'warp'",
        ),
        (
            lambda: gates_of(np.eye(4), "fourier"),
            ValueError,
            "unknown parametrization 'fourier'; choose one of raw, light, warp, walsh",
        ),
    ],
)
def test_bad_models_are_refused(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
