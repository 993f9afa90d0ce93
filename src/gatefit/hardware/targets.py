"""What a circuit can be synthesised for: how Yosys is called, what its cells are, and which devices there are.

    ice40, ecp5     synthesised, placed and routed       xilinx       counted in tables of 6 inputs
    lut4, lut6      counted in tables of any FPGA

Wide multiplexers are switched off (``-nowidelut``): on logic like this they cost twice the tables.
"""

import difflib
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Device:
    """One chip: how nextpnr is told of it, and how many logic cells it has."""

    name: str
    arguments: tuple[str, ...]
    cells: int


@dataclass(frozen=True)
class Target:
    """A family of devices, or a generic table size."""

    name: str
    synthesis: str
    """The Yosys command; ``-top`` is added."""
    counter: int
    """Bits that one counter of the popcount takes."""
    models: tuple[str, ...]
    """Cell models for simulation, among Yosys's own."""
    devices: tuple[Device, ...] = ()
    default: str = ""
    tables: frozenset[str] = field(default=frozenset())
    carries: frozenset[str] = field(default=frozenset())
    carry_adders: bool = False
    """Whether full adders of the popcount are written as additions, which tools map to carry chains."""
    logic_cell: str = ""
    """What nextpnr calls the cells that a device has ``cells`` of."""

    @property
    def routable(self) -> bool:
        """Whether there is a place and route tool."""
        return bool(self.devices)

    def device(self, name: str) -> Device:
        """A device by name."""
        for device in self.devices:
            if device.name == name:
                return device
        names = [device.name for device in self.devices]
        near = difflib.get_close_matches(name, names, 1, cutoff=0.3)
        meant = f"; did you mean {near[0]}?" if near else ";"
        raise ValueError(f"{self.name} has no device {name!r}{meant} choose one of {', '.join(names)}")


def _ice40(name: str, package: str, cells: int) -> Device:
    return Device(name, (f"--{name}", "--package", package), cells)


def _ecp5(name: str, cells: int) -> Device:
    return Device(name, (f"--{name}", "--package", "CABGA381"), cells)


TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (
        Target(
            "ice40",
            "synth_ice40",
            3,
            ("ice40/cells_sim.v",),
            (
                _ice40("lp384", "qn32", 384),
                _ice40("hx1k", "tq144", 1280),
                _ice40("up5k", "sg48", 5280),
                _ice40("hx8k", "ct256", 7680),
            ),
            "hx8k",
            frozenset({"SB_LUT4"}),
            frozenset({"SB_CARRY"}),
            logic_cell="ICESTORM_LC",
        ),
        Target(
            "ecp5",
            "synth_ecp5 -nowidelut",
            3,
            ("ecp5/cells_sim.v",),
            (_ecp5("12k", 24288), _ecp5("25k", 24288), _ecp5("45k", 43848), _ecp5("85k", 83640)),
            "25k",
            frozenset({"LUT4"}),
            frozenset({"CCU2C"}),
            logic_cell="TRELLIS_COMB",
        ),
        Target(
            "xilinx",
            "synth_xilinx -flatten -noiopad -noclkbuf -nosrl -nowidelut",
            6,
            ("xilinx/cells_sim.v",),
            tables=frozenset({"LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6", "INV"}),
            carries=frozenset({"CARRY4"}),
            carry_adders=True,
        ),
        Target("lut4", "synth -flatten -lut 4", 3, (), tables=frozenset({"$lut"})),
        Target("lut6", "synth -flatten -lut 6", 6, (), tables=frozenset({"$lut"})),
    )
}


def target(name: str) -> Target:
    """A target by name."""
    if name in TARGETS:
        return TARGETS[name]
    near = difflib.get_close_matches(name, TARGETS, 1, cutoff=0.4)
    meant = f"; did you mean {near[0]}?" if near else ";"
    raise ValueError(f"unknown target {name!r}{meant} choose one of {', '.join(TARGETS)}")
