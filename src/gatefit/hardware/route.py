"""Placing and routing by nextpnr, and its report.

    period     of the slowest path from register to register, in nanoseconds        frequency = 1 / period
    share      of that path's delay that is routing

The target frequency is low on purpose: a missed one would be an error, although the design is placed and routed.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gatefit.hardware.targets import Device, Target
from gatefit.hardware.tools import Tool, ToolError, ToolTimeoutError

FREQUENCY: Final = 1
"""MHz that are asked for; nextpnr makes the slowest paths fast whatever is asked for."""


ROUTERS: Final = ("router1", "router2")
"""nextpnr's: the first finds faster paths, the second ends on crowded devices where the first does not."""


class TooLargeError(ToolError):
    """The design does not fit the device."""


@dataclass(frozen=True)
class Routed:
    """Figures of a placed and routed design."""

    megahertz: float
    cells: int
    available: int
    flip_flops: int | None
    routing_share: float | None

    @property
    def period(self) -> float:
        """Nanoseconds from register to register."""
        return 1000.0 / self.megahertz


def place_and_route(
    tool: Tool,
    target: Target,
    device: Device,
    stem: str,
    folder: Path,
    timeout: float,
    seed: int = 1,
    router: str = ROUTERS[0],
) -> tuple[Routed, float]:
    """Route STEM.json; writes STEM_routed.json and STEM_report.json. The figures, and seconds that it took."""
    report = folder / f"{stem}_report.json"
    report.unlink(missing_ok=True)
    arguments = [
        *device.arguments,
        *("--json", f"{stem}.json", "--write", f"{stem}_routed.json", "--report", report.name),
        *("--freq", str(FREQUENCY), "--seed", str(seed), "--router", router),
    ]
    try:
        seconds = tool.run(arguments, folder, f"{stem}_route.log", timeout)
    except ToolTimeoutError:
        raise
    except ToolError as error:
        used, available = log_utilisation(error.log, target.logic_cell)
        if used is not None and available is not None and used > available:
            raise TooLargeError(
                f"{used:,} logic cells are needed, {device.name} has {available:,}", error.log
            ) from None
        raise
    return read_report(report, target), seconds


def read_report(path: Path, target: Target) -> Routed:
    """The figures in the JSON that ``nextpnr --report`` writes."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        used = content["utilization"]
        clocks = [float(clock["achieved"]) for clock in content["fmax"].values()]
        cells = used[target.logic_cell]
        flip_flops = used.get("TRELLIS_FF")
        return Routed(
            min(clocks),
            int(cells["used"]),
            int(cells["available"]),
            None if flip_flops is None else int(flip_flops["used"]),
            _routing_share(content.get("critical_paths", [])),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as reason:
        raise ToolError(
            f"{path.name} is not a report as nextpnr writes it ({reason!r}); run the routing again"
        ) from None


def _routing_share(paths: list[dict[str, Any]]) -> float | None:
    """Of the slowest path between registers of one clock."""
    inner = [path["path"] for path in paths if path["from"] == path["to"] != "<async>"]
    slowest = max(inner, key=lambda path: sum(step["delay"] for step in path), default=None)
    if not slowest:
        return None
    total = sum(step["delay"] for step in slowest)
    return float(sum(step["delay"] for step in slowest if step["type"] == "routing") / total) if total else None


def log_utilisation(log: str, cell: str) -> tuple[int | None, int | None]:
    """Used and available cells; a design that does not fit gets no report, so this line of the log is all there is."""
    found = re.search(rf"{re.escape(cell)}:\s*(\d+)\s*/\s*(\d+)", log)
    return (int(found[1]), int(found[2])) if found else (None, None)
