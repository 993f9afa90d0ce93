"""A regression whose values are bounded by proof: the least and the largest answer, everywhere and in a region.

python examples/regression_with_bounds.py        diabetes progression, from the tables of scikit-learn
"""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from gatefit import LogicGateRegressor, verify

data = load_diabetes(as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)

model = LogicGateRegressor(max_gates=150, random_state=0).fit(X_train, y_train)
circuit = model.circuit_
print(f"R² {model.score(X_test, y_test):.2f} with {len(circuit.gates)} gates")
print(f"seen: {y_train.min():.0f} to {y_train.max():.0f}; answered: {model.predict(X_test).min():.0f} to ", end="")
print(f"{model.predict(X_test).max():.0f}")

# No input whatsoever, not only none of the samples, is answered with more or less than this.
print(verify.bounds(circuit, timeout=20))

# The same for those with a low body mass index and low blood pressure.
print(verify.bounds(circuit, {"bmi": (None, 22), "bp": (None, 85)}, timeout=20))

# Why this value? Features that keep it within 30, whatever the others become.
print(verify.explain(circuit, X_test.iloc[0], tolerance=30, timeout=5))
