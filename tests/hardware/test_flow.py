"""Reports: their verdicts, and their text and HTML."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.hardware.build import Settings
from gatefit.hardware.flow import check_circuit, resolve_stages, synthesise, verdict
from gatefit.hardware.report import html_report, table, text_report
from gatefit.hardware.targets import TARGETS
from patience import HANG
from strategies import layered_circuit
from tools import require_tool

pytestmark = pytest.mark.outside

NO_GATES = np.empty((2, 0), int)
CELLS = {"tables": 10, "flip_flops": 2, "carries": 1}


def build(*steps, **more):
    rows = [{"step": name, "status": status, "seconds": 1.0, "detail": detail} for name, status, detail in steps]
    return {"target": "ice40", "device": "hx8k", "pipeline_stages": 2, "steps": rows, **more}


DONE = build(("synthesise", "done", ""), ("simulate the routed netlist", "done", "5 vectors"))
LARGE = build(("synthesise", "done", ""), ("place and route", "too large", "9 > 5; do"), ("simulate", "skipped", "no"))
WRONG = build(("simulate the export", "differs", "3 of 5 vectors"))


def test_verdicts():
    assert verdict([DONE])["status"] == "agrees"
    assert "the synthesised netlists and the routed netlists give the engine's answers" in verdict([DONE])["text"]
    counted = build(("synthesise", "done", ""))
    assert "the exported Verilog and the synthesised netlists give" in verdict([counted])["text"]
    assert verdict([DONE, LARGE]) == {
        "status": "incomplete",
        "text": "what was compared agrees; not done: ice40, 2 stages: place and route: too large: 9 > 5; do "
        "(and 1 more steps)",
    }
    assert verdict([LARGE, WRONG]) == {
        "status": "differs",
        "text": "ice40, 2 stages: simulate the export: 3 of 5 vectors",
    }


def report(**more):
    part = {**CELLS, "levels": 3}
    routed = {"megahertz": 50.0, "cells": 15, "available": 7680, "flip_flops": None, "routing_share": 0.5}
    whole = build(
        ("synthesise", "done", "<b>"),
        parts={"gates": part, "popcount": part},
        harness=CELLS,
        core=CELLS,
        whole=CELLS,
        levels=4,
        gates_per_table=1.5,
        routed={**routed, "period_ns": 20.0, "latency_cycles": 2, "latency_ns": 40.0},
    )
    return {
        "model": "<script>x.gate",
        "circuit": {"inputs": 4, "gates": 15, "gate_levels": 3, "outputs": 6, "classes": 2},
        "inputs": "bits",
        "vectors": {"count": 5, "source": "test set of digits"},
        "accuracy": 0.9876,
        "tools": [{"name": "yosys", "version": "0.23", "origin": "system"}],
        "builds": [whole, LARGE, {**DONE, "device": None, "target": "lut4"}],
        "verdict": verdict([whole, LARGE]),
        **more,
    }


def test_text_holds_every_figure():
    text = text_report(report())
    for words in ("98.76 %", "15 of 7,680", "50.0", "40.0 ns", "50%", "1.50", "10 / 2", "too large", "yosys 0.23"):
        assert words in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "Verdict: incomplete" in text


def test_tables_align_numbers_to_the_right():
    assert table(["name", "n"], [["a", "5"], ["long", "-"]]) == "name   n\na      5\nlong   -"
    assert table(["", "count"], [["a", "1,234"], ["b", "7"]]) == "    count\na   1,234\nb       7"


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "action")]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def test_html_is_one_file_without_requests_or_script():
    text = html_report(report())
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == []
    assert "script" not in page.seen
    assert "http" not in text
    assert "&lt;script&gt;x.gate" in text
    assert "prefers-color-scheme: dark" in text
    assert html_report(report(builds=[LARGE])).count("No part was synthesised") == 1


def test_circuits_without_a_hardware_readout_are_refused():
    with pytest.raises(ValueError, match="a learned linear readout needs floating-point arithmetic"):
        check_circuit(Circuit(1, [], NO_GATES, [0], Linear([[1.0]], [0.0])))
    with pytest.raises(ValueError, match="the circuit has no output bits"):
        check_circuit(Circuit(1, [], NO_GATES, [], GroupSum([], [1, 2])))
    check_circuit(Circuit(1, [], NO_GATES, [0], Affine(1)))


def test_stages_are_resolved_once_each():
    circuit = layered_circuit(np.random.default_rng(0), 8, 20, 3, 4, gates=[6])
    automatic = resolve_stages(circuit, [None])[0]
    assert automatic > 0
    assert resolve_stages(circuit, [0, None, 0, automatic]) == [0, automatic]
    with pytest.raises(ValueError, match="pipeline_stages must be from 0 to"):
        resolve_stages(circuit, [0, 99])


def test_what_is_done_is_saved_after_every_build(tmp_path):
    require_tool("yosys")
    require_tool("iverilog")
    circuit = layered_circuit(np.random.default_rng(0), 4, 8, 1, 2, gates=[6])
    bits = np.random.default_rng(0).random((5, 4)) < 0.5
    saved = []
    about = {"model": "m", "vectors": {"count": 5, "source": "random"}}
    targets = [(TARGETS["lut4"], None)]
    found = synthesise(
        circuit, targets, [0, 1], tmp_path, Settings(bits, timeout=HANG), about, lambda r: saved.append(json.dumps(r))
    )
    assert [len(json.loads(text)["builds"]) for text in saved] == [1, 2]
    assert json.loads(saved[-1]) == found
    assert found["verdict"]["status"] == "agrees"
    assert found["circuit"] == {"inputs": 4, "gates": 8, "gate_levels": 1, "outputs": 8, "classes": 2}
    assert (tmp_path / "lut4-1" / "whole.v").is_file()
    assert text_report(found)
