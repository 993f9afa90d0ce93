"""Encoders of one's own: refused where a file could not give them back, and given back once they are registered."""

import numpy as np
import pytest

from gatefit.backends.json_export import to_json
from gatefit.circuit.file import CircuitFileError, digest, dumps, loads
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.encoders import ENCODERS, Encoder, Identity, Rule, Threshold, register_encoder
from gatefit.encoders.frames import read_matrix


class Signs(Encoder):
    """bit_i = x_i > 0"""

    kind = "signs"

    def _read(self, x):
        return read_matrix(x, "Signs")

    def _learn(self, frame, names):
        return None

    def _become(self, state):
        pass

    def _encode(self, frame, out):
        np.greater(frame.values, 0, out=out)

    def _bits(self):
        return self.features

    def _rules(self):
        return [Rule(i, ">", 0.0) for i in range(self.features)]


class Halves(Threshold):
    """A kind of Threshold that a file would take for a Threshold."""


X = np.array([[-1.0, 2.0], [3.0, 4.0]])


def circuit(encoder):
    return Circuit(2, [6, 1], [[0, 0], [1, 1]], [2, 3], GroupSum([0, 1], [0, 0]), encoder=encoder.fit(X))


@pytest.fixture
def _registry():
    before = dict(ENCODERS)
    yield
    ENCODERS.clear()
    ENCODERS.update(before)


@pytest.mark.usefixtures("_registry")
@pytest.mark.parametrize("save", [dumps, to_json])
@pytest.mark.parametrize("encoder", [Signs, Halves])
def test_what_could_not_be_loaded_is_not_saved(encoder, save, tmp_path):
    own = circuit(encoder())
    message = f"{encoder.__name__} is not a kind of encoder that can be read back from a file; .*register_encoder"
    with pytest.raises(ValueError, match=message):
        save(own)
    with pytest.raises(ValueError, match=message):
        own.save(tmp_path / "m.gate")
    assert list(tmp_path.iterdir()) == []
    assert own.predict(X).tolist() == [0, 1]
    assert digest(own).startswith("sha256:")


@pytest.mark.usefixtures("_registry")
def test_a_registered_encoder_is_loaded():
    assert register_encoder(Signs) is Signs is register_encoder(Signs)
    data = dumps(circuit(Signs()))
    assert isinstance(loads(data).encoder, Signs)
    assert loads(data).predict(X).tolist() == [0, 1]
    del ENCODERS["signs"]
    with pytest.raises(CircuitFileError, match=r"unknown encoder kind 'signs'; .*register_encoder before loading"):
        loads(data)


@pytest.mark.usefixtures("_registry")
def test_a_kind_is_one_class():
    with pytest.raises(ValueError, match="Halves needs a kind of its own"):
        register_encoder(Halves)
    with pytest.raises(ValueError, match="the encoder kind 'identity' is Identity already; choose another kind"):
        register_encoder(type("Mine", (Identity,), {"kind": "identity"}))
    with pytest.raises(
        TypeError, match=r"register_encoder takes a subclass of gatefit\.encoders\.Encoder, got 'signs'"
    ):
        register_encoder("signs")
