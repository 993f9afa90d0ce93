"""The picture of a circuit in a notebook."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gatefit import Circuit
from gatefit.circuit.picture import MOST_DRAWN, to_html, to_svg
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.circuit.statistics import statistics
from strategies import random_circuit

SVG = "{http://www.w3.org/2000/svg}"


def drawn(circuit):
    return ElementTree.fromstring(to_svg(circuit))


def test_every_live_gate_and_no_other_is_a_dot():
    # The last gate is dead, one is a constant, one an inverter.
    circuit = Circuit(3, [6, 15, 12, 1], [[0, 0, 3, 1], [1, 1, 3, 2]], [5, 4, 2], GroupSum([0, 1, 1], [0, 0]))
    root = drawn(circuit)
    legend, scores = 3, 2
    assert len(root.findall(f"{SVG}circle")) == statistics(circuit).live_gates + legend + scores
    assert len(root.findall(f"{SVG}rect")) == 3  # inputs that are read
    assert statistics(circuit).live_gates == 3


def test_a_large_circuit_is_bars_that_add_up():
    rng = np.random.default_rng(0)
    circuit = random_circuit(rng, max_inputs=20, max_gates=900, max_outputs=200)
    while statistics(circuit).live_gates <= MOST_DRAWN:
        circuit = random_circuit(rng, max_inputs=20, max_gates=900, max_outputs=200)
    titles = [title.text for title in drawn(circuit).iter(f"{SVG}title")]
    assert sum(int(text.rpartition(": ")[2].replace(",", "")) for text in titles) == statistics(circuit).live_gates


@pytest.mark.parametrize("readout", [Affine(1), Linear([[1.0]], [0.0]), GroupSum([0], [0])], ids=lambda r: r.kind)
def test_every_readout_and_a_circuit_without_gates(readout):
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], readout)
    assert "0 live gates in 0 levels read 1 of 1 bits" in to_html(circuit)
    assert len(drawn(circuit).findall(f"{SVG}rect")) == 1


def test_names_from_outside_are_text_and_nothing_is_executed():
    hostile = {"<script>alert(1)</script>": "<img src=x onerror=alert(1)>"}
    circuit = Circuit(2, [1], [[0], [1]], [2], GroupSum([0], [0, 0]), metadata=hostile)
    html = circuit._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("method", ["multilinear-covjac", "iwp-free"])
def test_a_network_is_a_bar_a_layer(method):
    from gatefit.network import LogicNetwork

    network = LogicNetwork(12, 2, width=[40, 20], method=method, seed=0)
    html = network._repr_html_()
    assert "12 inputs, 2 layers of 40, 20 gates" in html
    assert ("<svg" in html) == (method != "iwp-free")
    counts = [int(count.replace(",", "")) for count in re.findall(r'right">([\d,]+)<', html)]
    assert sum(counts) == (60 if method != "iwp-free" else 0)
