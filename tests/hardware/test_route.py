"""nextpnr's report, read; and what a failure of nextpnr means."""

import json

import pytest

from gatefit.hardware.route import TooLargeError, log_utilisation, place_and_route, read_report
from gatefit.hardware.targets import TARGETS
from gatefit.hardware.tools import Tool, ToolError, ToolTimeoutError
from patience import HANG

pytestmark = pytest.mark.outside

ICE40, ECP5 = TARGETS["ice40"], TARGETS["ecp5"]
PATH = [{"delay": 0.5, "type": "clk-to-q"}, {"delay": 1.5, "type": "routing"}, {"delay": 2.0, "type": "logic"}]
# As nextpnr 0.11 writes it, shortened.
REPORT = {
    "critical_paths": [
        {"from": "posedge clk", "to": "posedge clk", "path": PATH},
        {"from": "<async>", "to": "posedge clk", "path": [{"delay": 99.0, "type": "routing"}]},
    ],
    "fmax": {"clk$SB_IO_IN_$glb_clk": {"achieved": 29.15, "constraint": 1}},
    "utilization": {"ICESTORM_LC": {"available": 7680, "used": 2556}, "SB_IO": {"available": 206, "used": 4}},
}
TOO_LARGE = """Info: Device utilisation:
Info: \t         ICESTORM_LC:    2556/   1280   199%
Info: \t               SB_IO:       4/     96     4%
ERROR: Unable to place cell 'x', no BELs remaining to implement cell type 'ICESTORM_LC'
"""


def program(folder, text):
    path = folder / "nextpnr"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Tool("nextpnr-ice40", (str(path),), "0.0", "test")


def route(tool, folder, timeout=HANG):
    return place_and_route(tool, ICE40, ICE40.device("hx1k"), "whole", folder, timeout, 1)


def test_a_report_is_read(tmp_path):
    (tmp_path / "kept.json").write_text(json.dumps(REPORT))
    routed, seconds = route(program(tmp_path, "cp kept.json whole_report.json; echo $@ > arguments"), tmp_path)
    assert (routed.megahertz, routed.cells, routed.available, routed.flip_flops) == (29.15, 2556, 7680, None)
    assert routed.period == pytest.approx(1000 / 29.15)
    assert routed.routing_share == pytest.approx(1.5 / 4)
    assert seconds >= 0
    given = (tmp_path / "arguments").read_text().split()
    assert given[:3] == ["--hx1k", "--package", "tq144"]
    assert given[given.index("--seed") + 1] == "1"
    assert given[given.index("--router") + 1] == "router1"


def test_flip_flops_are_cells_of_their_own_on_an_ecp5(tmp_path):
    used = {"TRELLIS_COMB": {"available": 24288, "used": 5}, "TRELLIS_FF": {"available": 24288, "used": 7}}
    (tmp_path / "r.json").write_text(json.dumps({**REPORT, "critical_paths": [], "utilization": used}))
    routed = read_report(tmp_path / "r.json", ECP5)
    assert (routed.cells, routed.flip_flops, routed.routing_share) == (5, 7, None)


@pytest.mark.parametrize("content", ["", "{}", '{"fmax": {}, "utilization": {}}', "[1]"])
def test_damaged_reports_are_refused(tmp_path, content):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(ToolError, match=r"r\.json is not a report as nextpnr writes it"):
        read_report(tmp_path / "r.json", ICE40)


def test_an_old_report_is_not_taken_for_a_new_one(tmp_path):
    (tmp_path / "whole_report.json").write_text(json.dumps(REPORT))
    with pytest.raises(ToolError, match="is not a report"):
        route(program(tmp_path, "true"), tmp_path)


def test_too_large_is_told_from_other_failures(tmp_path):
    (tmp_path / "said").write_text(TOO_LARGE)
    with pytest.raises(TooLargeError, match="2,556 logic cells are needed, hx1k has 1,280"):
        route(program(tmp_path, "cat said; exit 1"), tmp_path)
    with pytest.raises(ToolError, match="ERROR: no such pin") as caught:
        route(program(tmp_path, "echo ERROR: no such pin; exit 1"), tmp_path)
    assert not isinstance(caught.value, TooLargeError)
    with pytest.raises(ToolTimeoutError, match=r"nextpnr-ice40 did not finish in 0\.2 s; raise --timeout"):
        route(program(tmp_path, "sleep 60"), tmp_path, timeout=0.2)


def test_utilisation_in_a_log():
    assert log_utilisation(TOO_LARGE, "ICESTORM_LC") == (2556, 1280)
    assert log_utilisation("nothing", "ICESTORM_LC") == (None, None)
