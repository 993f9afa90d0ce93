"""Images to a page: draw a digit, and see the gates that answer.

python examples/digits_in_the_browser.py        writes digits.html: open it, it needs no server
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from gatefit import LogicGateClassifier
from gatefit.backends.html import Samples, to_html

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = LogicGateClassifier(max_gates=600, random_state=0).fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.3f} with {len(model.circuit_.gates)} gates")

first = np.array([np.flatnonzero(y_test == digit)[0] for digit in range(10)])  # one sample of each class
page = to_html(model.circuit_, title="Handwritten digits", samples=Samples(X_test[first], y_test[first]))
Path("digits.html").write_text(page, encoding="utf-8")
print(f"digits.html: {len(page) // 1000} kB, open it in a browser")
