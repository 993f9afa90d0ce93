"""What a synthesised netlist holds, read from Yosys's JSON: cells by kind, and levels of tables.

levels    tables on the longest path between registers and ports; carry cells lie between tables and are not counted
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final

from gatefit.hardware.targets import Target
from gatefit.hardware.tools import ToolError

_FLIP_FLOPS: Final = ("SB_DFF", "TRELLIS_FF", "FDRE", "FDSE", "FDCE", "FDPE", "$_DFF", "$_SDFF", "$_ALDFF")


@dataclass(frozen=True)
class Cells:
    """How many cells of each kind."""

    tables: int = 0
    flip_flops: int = 0
    carries: int = 0

    def __add__(self, other: "Cells") -> "Cells":
        return Cells(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    def __sub__(self, other: "Cells") -> "Cells":
        return Cells(*(a - b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


def read_kinds(path: Path) -> dict[str, dict[str, int]]:
    """Cells by type of every module, from the output of ``stat -json``; instances of other modules left out."""
    content = _read(path)
    try:
        modules = {name.removeprefix("\\"): dict(row["num_cells_by_type"]) for name, row in content["modules"].items()}
        skipped = {*modules, "$scopeinfo"}
        return {
            name: {kind: int(count) for kind, count in kinds.items() if kind not in skipped}
            for name, kinds in modules.items()
        }
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ToolError(f"{path.name} is not what Yosys's stat -json writes: it has no cells by type") from None


def read_statistics(path: Path, target: Target) -> dict[str, Cells]:
    """Tables, flip-flops and carry cells of every module; a cell of any other kind is an error."""
    counted = {}
    for name, cells in read_kinds(path).items():
        unknown = [kind for kind in cells if not _known(kind, target)]
        if unknown:
            raise ToolError(f"Yosys left cells that {target.name} does not have: {', '.join(sorted(unknown))}")
        counted[name] = Cells(
            sum(count for kind, count in cells.items() if kind in target.tables),
            sum(count for kind, count in cells.items() if kind.startswith(_FLIP_FLOPS)),
            sum(count for kind, count in cells.items() if kind in target.carries),
        )
    return counted


def _known(kind: str, target: Target) -> bool:
    return kind in target.tables or kind in target.carries or kind.startswith(_FLIP_FLOPS)


def read_levels(path: Path, target: Target) -> dict[str, int]:
    """Levels of tables of every module in a netlist written by ``write_json``."""
    content = _read(path)
    try:
        return {name: _levels(module, target) for name, module in content["modules"].items() if module["cells"]}
    except (KeyError, TypeError, AttributeError):
        raise ToolError(f"{path.name} is not a netlist as Yosys's write_json writes it") from None


def _levels(module: dict[str, Any], target: Target) -> int:
    drivers: dict[int, str] = {}
    reads: dict[str, set[int]] = {}
    weights: dict[str, int] = {}
    for name, cell in module["cells"].items():
        if cell["type"] not in target.tables | target.carries:
            continue
        weights[name] = int(cell["type"] in target.tables)
        reads[name] = set()
        for port, bits in cell["connections"].items():
            # Constants are strings; port directions are there for every cell that Yosys knows.
            numbers = [bit for bit in bits if isinstance(bit, int)]
            if cell["port_directions"][port] == "output":
                drivers.update(dict.fromkeys(numbers, name))
            else:
                reads[name].update(numbers)
    before = {name: {drivers[bit] for bit in bits if bit in drivers} for name, bits in reads.items()}
    longest: Counter[str] = Counter()
    try:
        for name in TopologicalSorter(before).static_order():
            longest[name] = weights[name] + max((longest[other] for other in before[name]), default=0)
    except CycleError:
        raise ToolError("the synthesised netlist has a combinational loop; this is a defect, report it") from None
    return max(longest.values(), default=0)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise ToolError(f"{path.name} cannot be read as JSON ({reason}); run the synthesis again") from None
