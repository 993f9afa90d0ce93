"""Fit a table, prove the circuit equal to what was trained, and keep a certificate that others can check.

python examples/fit_and_prove.py        writes tumour.gate and tumour-certificate/ into this folder
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gatefit import Circuit, LogicGateClassifier, prove
from gatefit.circuit.prove.certificate import check_certificate
from gatefit.harden import harden

data = load_breast_cancer(as_frame=True)
label = data.target.map(dict(enumerate(data.target_names)))
X_train, X_test, y_train, y_test = train_test_split(data.data, label, random_state=0)

model = LogicGateClassifier(max_gates=150, random_state=0).fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.3f}")

trained = harden(model.network_)  # gate for gate what was trained
circuit = model.circuit_  # the same function in fewer gates
print(f"{len(trained.gates)} gates trained, {len(circuit.gates)} deployed")

answer = prove(trained, circuit, certificate="tumour-certificate")
print(f"{type(answer).__name__}: the same scores on every input")
check_certificate("tumour-certificate", trained, circuit)  # neither the solver nor this program has to be trusted

circuit.save("tumour.gate", overwrite=True)
print((Circuit.load("tumour.gate").predict(X_test) == model.predict(X_test)).all())  # no torch needed to load and run
