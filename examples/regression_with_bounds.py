"""A regression whose values are bounded by proof: the least and the largest answer, everywhere and in a region.

python examples/regression_with_bounds.py        Friedman's first function: five columns count, five are noise
"""

import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from gatefit import LogicGateRegressor, verify

X, y = make_friedman1(n_samples=1000, noise=0.5, random_state=0)
X = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = LogicGateRegressor(max_gates=200, random_state=0).fit(X_train, y_train)
circuit = model.circuit_
print(f"R² {model.score(X_test, y_test):.2f} with {len(circuit.gates)} gates")
answers = model.predict(X_test)
print(f"answers to the test samples: {answers.min():.1f} to {answers.max():.1f}")

# No input whatsoever, not only none of the samples, is answered with less or more than this.
print(verify.bounds(circuit, timeout=60))

# The same where x3 is small, which the function rises with.
print(verify.bounds(circuit, {"x3": (None, 0.2)}, timeout=60))

# Why this value? Features that keep it within 4, whatever the others become.
print(verify.explain(circuit, X_test.iloc[0], tolerance=4, timeout=10))
