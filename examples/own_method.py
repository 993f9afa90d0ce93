"""A gate method of your own: AND, OR, NAND and NOR alone, trained beside gatefit's default on digits.

python examples/own_method.py
"""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from gatefit import Gate, LogicGateClassifier, prove
from gatefit.harden import harden
from gatefit.methods import Method
from gatefit.network import LogicNetwork
from gatefit.ops.coefficients import codebook

CELLS = [Gate.AND, Gate.OR, Gate.NAND, Gate.NOR]


class CellMix(Method):
    """Training: softmax(θ) mixes four rows of the codebook. Deployed: the likeliest of the four gates."""

    name = "cell-mix"
    parameters_per_gate = 4

    def residual_centre(self):
        return torch.zeros(4)

    def gate_probabilities(self):
        probabilities = torch.zeros(len(self.latent), 16, dtype=self.latent.dtype)
        probabilities[:, CELLS] = torch.softmax(self.latent, -1)
        return probabilities

    def coefficients(self):
        return self.gate_probabilities() @ codebook(self.latent.dtype, self.latent.device)

    def gates(self):
        return self.gate_probabilities().argmax(-1).to(torch.uint8)


X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
for method in (CellMix, "multilinear-covjac"):

    def network(bits, classes, seed, method=method):
        return LogicNetwork(bits, classes, width=1000, depth=2, method=method, seed=seed)

    model = LogicGateClassifier(network=network, steps=600, learning_rate=0.05, random_state=0).fit(X_train, y_train)
    trained = harden(model.network_)
    kinds = sorted({Gate(gate).name for gate in trained.gates})
    print(f"{getattr(method, 'name', method)}: accuracy {model.score(X_test, y_test):.3f}, {len(kinds)} kinds of gates")
    print(f"  {type(prove(trained, model.circuit_)).__name__}, {len(model.circuit_.gates)} gates deployed")
