"""What Yosys's JSON says, read."""

import json

import pytest

from gatefit.hardware.cell_counts import Cells, read_levels, read_statistics
from gatefit.hardware.targets import TARGETS
from gatefit.hardware.tools import ToolError

pytestmark = pytest.mark.outside

ICE40 = TARGETS["ice40"]
# As yosys 0.23 and 0.70 write it, shortened.
STATISTICS = {
    "creator": "Yosys 0.23",
    "modules": {
        "\\net_gates": {"num_cells": 7, "num_cells_by_type": {"SB_LUT4": 5, "SB_DFF": 2}},
        "\\top": {
            "num_cells": 9,
            "num_cells_by_type": {"$scopeinfo": 1, "SB_CARRY": 2, "SB_DFFSR": 3, "SB_LUT4": 2, "net_gates": 1},
        },
    },
    "design": {"num_cells": 16},
}


def written(folder, content):
    path = folder / "content.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_cells_by_module(tmp_path):
    found = read_statistics(written(tmp_path, STATISTICS), ICE40)
    assert found == {"net_gates": Cells(5, 2, 0), "top": Cells(2, 3, 2)}
    assert found["top"] + found["net_gates"] - Cells(1, 1, 1) == Cells(6, 4, 1)


def test_a_cell_that_the_target_does_not_have_is_an_error(tmp_path):
    wrong = {"modules": {"\\top": {"num_cells_by_type": {"SB_LUT4": 1, "LUT6": 3}}}}
    with pytest.raises(ToolError, match="Yosys left cells that ice40 does not have: LUT6"):
        read_statistics(written(tmp_path, wrong), ICE40)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"modules": 3}', '{"modules": {"a": {}}}'])
def test_damaged_files_are_refused_by_name(tmp_path, content):
    path = written(tmp_path, content)
    for read in (read_statistics, read_levels):
        with pytest.raises(ToolError, match=r"content\.json"):
            read(path, ICE40)


def cell(kind, inputs, output):
    ports = {f"I{i}": [bit] for i, bit in enumerate(inputs)}
    directions = {**dict.fromkeys(ports, "input"), "O": "output"}
    return {"type": kind, "port_directions": directions, "connections": {**ports, "O": [output]}}


def netlist(**cells):
    return {"modules": {"top": {"ports": {}, "cells": cells, "netnames": {}}}}


def test_levels_are_tables_between_registers(tmp_path):
    chain = netlist(
        c=cell("SB_LUT4", [11, "0"], 12),
        a=cell("SB_LUT4", [2, 3, "1", "x"], 10),
        carry=cell("SB_CARRY", [10, 2], 11),
        q=cell("SB_DFF", [12], 13),
        d=cell("SB_LUT4", [13], 14),
    )
    assert read_levels(written(tmp_path, chain), ICE40) == {"top": 2}
    registers = netlist(q=cell("SB_DFF", [2], 3))
    assert read_levels(written(tmp_path, registers), ICE40) == {"top": 0}


def test_a_loop_is_an_error(tmp_path):
    loop = netlist(a=cell("SB_LUT4", [5], 6), b=cell("SB_LUT4", [6], 5))
    with pytest.raises(ToolError, match="combinational loop"):
        read_levels(written(tmp_path, loop), ICE40)
