"""Export C, compile it, call it: the header's answers beside the engine's, sample for sample.

python examples/call_from_c.py        writes tumour.h; needs a C compiler
"""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gatefit import LogicGateClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = LogicGateClassifier(max_gates=150, random_state=0).fit(X_train, y_train)

# Double, so that C compares features with thresholds as Python does.
model.export("tumour.h", to="c", name="tumour", feature_type="double", overwrite=True)
print(f"tumour.h: {Path('tumour.h').stat().st_size // 1000} kB")

compiler = shutil.which("cc") or shutil.which("gcc")
if compiler is None:
    raise SystemExit("no C compiler found; install gcc, or use model.circuit_.predict, which needs none")
Path("tumour.c").write_text('#define TUMOUR_IMPLEMENTATION\n#include "tumour.h"\n')
flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
subprocess.run([compiler, *flags, "tumour.c", "-o", "tumour.so"], check=True)

library = ctypes.CDLL(str(Path("tumour.so").resolve()))
library.tumour_predict_features.argtypes = [ctypes.POINTER(ctypes.c_double)]
print(library.tumour_self_test(), "wrong answers in the self-test")


def predict(row):
    """The class of one row of raw features."""
    features = np.ascontiguousarray(row, dtype=np.float64)
    return library.tumour_predict_features(features.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))


answers = np.array([predict(row) for row in X_test])
print(f"{(answers == model.circuit_.predict(X_test)).sum()} of {len(X_test)} answers are the engine's")
print(f"test accuracy {(answers == y_test).mean():.3f}")
