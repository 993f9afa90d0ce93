"""What exported C says of itself: the stack of a call, measured by the compiler, and how features are compared."""

import re
import subprocess

import numpy as np
import pytest

from gatefit.backends.c import to_c
from gatefit.backends.c.native import NativeModel
from gatefit.circuit import simulate
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Thermometer
from strategies import layered_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)
PIXELS = Thermometer(2, low=0, high=255).fit(np.empty((0, 196)))


def network(readout="group_sum"):
    """392 inputs, 1,800 gates, 600 outputs: the size of a model for handwritten digits."""
    circuit = layered_circuit(np.random.default_rng(0), PIXELS.bits, 600, 3, 10, gates=range(1, 15))
    kinds = {
        "group_sum": circuit.readout,
        "affine": Affine(600),
        "linear": Linear(np.random.default_rng(0).normal(size=(10, 600)), np.zeros(10)),
    }
    return Circuit(circuit.inputs, circuit.gates, circuit.operands, circuit.outputs, kinds[readout], encoder=PIXELS)


def frames(folder, text, flag):
    """Bytes of stack of every function, by the compiler."""
    (folder / "m.c").write_text(f"#define GATEFIT_MODEL_IMPLEMENTATION\n{text}")
    command = [require_tool("gcc"), "-std=c99", flag, "-fstack-usage", "-c", "m.c", "-o", "m.o"]
    subprocess.run(command, cwd=folder, check=True)
    found = {}
    for line in (folder / "m.su").read_text().splitlines():
        place, size, _ = line.split("\t")
        found[place.rpartition(":")[2].removeprefix("gatefit_model_")] = int(size)
    return found


def stated(text):
    """What the header says: bytes for one sample, from raw features, for a batch, and of working memory."""
    said = re.search(
        r"at most ([\d,]+) bytes for one sample \(([\d,]+) from raw features\),\n \* ([\d,]+) for a batch; ([\d,]+) of",
        text,
    )
    return [int(number.replace(",", "")) for number in said.groups()]


@pytest.mark.parametrize("flag", ["-O1", "-O2", "-Os"])
@pytest.mark.parametrize("style", ["straight", "table"])
@pytest.mark.parametrize("readout", ["group_sum", "affine", "linear"])
def test_the_stack_is_what_the_header_says(readout, style, flag, tmp_path):
    text = to_c(network(readout), style=style)
    single, features, batch, work = stated(text)
    found = frames(tmp_path, text, flag)
    entry = [name for name in found if re.fullmatch(r"(predict|scores|value|encode|outputs)(_batch|_features)?", name)]
    inner = sum(sorted((found[name] for name in found if name not in entry and name != "self_test"), reverse=True)[:4])
    assert work <= max(found["scores"], found.get("predict", 0)) + inner <= single
    if readout == "affine":
        assert found["value_features"] + found["value"] + found["scores"] + inner <= features
    else:
        assert found["predict_features"] + found["predict"] + inner <= features
    assert max(found["scores_batch"], found.get("predict_batch", 0)) + inner <= batch


@pytest.mark.parametrize("style", ["straight", "table"])
def test_words_are_used_again(style):
    """One word a value would be 2,392 words, 19 kB, and inputs and outputs once more."""
    _, _, _, work = stated(to_c(network(), style=style))
    assert work <= 8 * 1250


def test_larger_working_memory_is_static_and_said_to_be():
    circuit = layered_circuit(np.random.default_rng(0), 64, 14_000, 2, 10)
    text = to_c(circuit, test_vectors=0)
    assert re.search(r"Working memory \([\d,]+ bytes\) is static: calls must not overlap", text)
    assert len(re.findall(r"static uint64_t \w+\[\d{4,}\];", text)) == 1
    assert "Stack of a call" not in text


def near_thresholds():
    """A circuit that is its encoder, and doubles one unit from its thresholds, which no float tells apart."""
    rng = np.random.default_rng(0)
    encoder = Thermometer(7, spacing="quantile").fit(rng.normal(size=(400, 6)))
    classes = np.arange(encoder.bits) % 3
    circuit = Circuit(encoder.bits, [], NO_GATES, np.arange(encoder.bits), GroupSum(classes, [0] * 3), encoder=encoder)
    levels = np.array([rule.value for rule in encoder.rules])
    x = rng.choice(np.concatenate([levels, np.nextafter(levels, np.inf), np.nextafter(levels, -np.inf)]), (4000, 6))
    return circuit, x, simulate.predict_classes(circuit, encoder.transform(x))


def test_doubles_are_compared_as_python_does():
    circuit, x, expected = near_thresholds()
    model = NativeModel(circuit, "straight", ("-O1",), require_tool("gcc"), feature_type="double")
    np.testing.assert_array_equal(model.predict_features(x), expected)
    assert "Raw features are compared as double, as Python does." in to_c(circuit, feature_type="double")


def test_floats_are_not_and_the_header_says_so():
    circuit, x, expected = near_thresholds()
    model = NativeModel(circuit, "straight", ("-O1",), require_tool("gcc"))
    assert (model.predict_features(x.astype(np.float32)) != expected).any()
    text = to_c(circuit)
    assert "Raw features are compared as float: a number that is no float is rounded to one before" in text
    assert "gatefit export --feature-type double" in text
    plain = Circuit(1, [], NO_GATES, [0], Affine(1))
    assert "Raw features are compared" not in to_c(plain)
