"""Networks in plain numpy, gate by gate from the definitions: what diagnostics are checked against."""

import numpy as np
import torch

from gatefit.codebook import CODEBOOK, CORNER_VALUES
from gatefit.diagnostics.batch import ProbeBatch
from gatefit.methods import GumbelST
from gatefit.network import LogicNetwork
from gatefit.training.loop import loss_of

INPUTS, CLASSES, WIDTH, DEPTH = 8, 3, 24, 3


def small(method, seed=3, **options):
    return LogicNetwork(
        INPUTS, CLASSES, WIDTH, DEPTH, method=method, seed=seed, **{"dtype": torch.float64, **options}
    )  # fmt: skip


def bits(samples, seed=0, inputs=INPUTS):
    return np.random.default_rng(seed).random((samples, inputs)) < 0.5


def batch(samples, seed=0):
    targets = torch.tensor(np.random.default_rng(seed + 100).integers(CLASSES, size=samples))
    found = ProbeBatch(torch.tensor(bits(samples, seed)), lambda scores: loss_of(scores, targets, None))
    return found, targets.numpy()


def noise_states(network):
    return [layer.method.noise.get_state() for layer in network.gate_layers if isinstance(layer.method, GumbelST)]


def evaluated_coefficients(network):
    """c of the next training pass, layer by layer; the noise is put back."""
    methods = [layer.method for layer in network.gate_layers]
    states = noise_states(network)
    found = [method.coefficients().detach().numpy() for method in methods]
    for method, state in zip(methods, states, strict=False):
        method.noise.set_state(state)
    return found


def softmax(values):
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def proximity(points, centres, temperature=1.0):
    return softmax(-np.square(points[:, None] - centres).sum(-1) / temperature)


def mixture(name, latent, temperature=1.0):
    """π of the forward pass, from the method's definition; None where it is not a mixture by definition."""
    if name == "soft-mix":
        return softmax(latent)
    if name == "multilinear-covjac":
        return proximity(latent, CODEBOOK, temperature)
    if name == "iwp":
        corners = sigmoid(latent)[:, None]
        return np.where(CORNER_VALUES, corners, 1 - corners).prod(-1)
    if name == "hard-st":
        return np.eye(16)[latent.argmax(-1)]
    if name == "multilinear-ste":
        return np.eye(16)[np.square(latent[:, None] - CODEBOOK).sum(-1).argmin(-1)]
    if name == "iwp-ste":
        return np.eye(16)[np.square(latent[:, None] - CORNER_VALUES).sum(-1).argmin(-1)]
    return None


def activations(network, x, coefficients):
    """(a, b, z) of every layer, z after the activation."""
    h, found = x.astype(float), []
    for layer, c in zip(network.gate_layers, coefficients, strict=True):
        a, b = (h[:, row] for row in layer.wiring.committed().numpy())
        z = c[:, 0] + c[:, 1] * a + c[:, 2] * b + c[:, 3] * a * b
        h = sigmoid(z) if layer.method.has_activation else z
        found.append((a, b, h))
    return found


def coefficient_gradients(network, x, targets, coefficients):
    """∂L/∂c of every layer by backpropagation written out, L the mean cross-entropy of group sums."""
    layers = activations(network, x, coefficients)
    samples, temperature = len(x), network.readout.temperature
    scores = layers[-1][2].reshape(samples, CLASSES, -1).sum(-1) / temperature
    wrong = softmax(scores) - np.eye(CLASSES)[targets]
    delta = np.repeat(wrong / samples / temperature, WIDTH // CLASSES, axis=1)
    found = []
    for layer, c, (a, b, h) in reversed(list(zip(network.gate_layers, coefficients, layers, strict=True))):
        if layer.method.has_activation:
            delta = delta * h * (1 - h)
        found.append(np.stack([delta.sum(0), (delta * a).sum(0), (delta * b).sum(0), (delta * a * b).sum(0)], axis=1))
        before = np.zeros((samples, layer.inputs))
        first, second = layer.wiring.committed().numpy()
        np.add.at(before.T, first, (delta * (c[:, 1] + c[:, 3] * b)).T)
        np.add.at(before.T, second, (delta * (c[:, 2] + c[:, 3] * a)).T)
        delta = before
    return found[::-1]
