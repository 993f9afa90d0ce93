"""Simulation by iverilog: how many vectors a piece of Verilog answers differently from the engine."""

import json
import re
from pathlib import Path

from gatefit.hardware.targets import Target
from gatefit.hardware.tools import Tool, ToolError, find_simulator


def run_bench(sources: list[str], folder: Path, stem: str, timeout: float, libraries: list[Path] | None = None) -> int:
    """Compile and run a bench; the number of vectors that differ."""
    compiler, runtime = find_simulator()
    program = f"{stem}.vvp"
    known = [str(path) for path in libraries or []]
    folders = sorted({str(Path(path).parent) for path in known})
    flags = ["-g2005", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", *(f"-I{path}" for path in folders), "-s", "bench", "-o", program]
    seconds = compiler.run([*flags, *sources, *known], folder, f"{stem}_compile.log", timeout)
    runtime.run(["-n", program], folder, f"{stem}.log", max(1.0, timeout - seconds))
    said = (folder / f"{stem}.log").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^DIFFER (\d+) OF (\d+)$", said, re.MULTILINE)
    if found is None:
        raise ToolError(f"the simulation did not come to its end; see {stem}.log", said)
    return int(found[1])


def cell_models(yosys: Tool, target: Target) -> list[Path]:
    """Yosys's models of the target's cells."""
    found = [] if yosys.share is None else [yosys.share / path for path in target.models]
    missing = [path for path in target.models if yosys.share is None or not (yosys.share / path).is_file()]
    if missing:
        raise ToolError(f"yosys {yosys.version} comes without its cell models {', '.join(missing)}; install it again")
    return found


def input_registers(netlist: Path, inputs: int) -> tuple[str, dict[int, str] | None]:
    """The top module of a netlist in JSON, and the nets of its input register, None where they are one vector.

    An input that the circuit does not use may have no net any more.
    """
    try:
        modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"]
        (top, module), *_ = [(name, m) for name, m in modules.items() if "shift_out" in m["ports"]]
        nets = module["netnames"]
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise ToolError(f"{netlist.name} is not a netlist of the harness ({reason!r})") from None
    if len(nets.get("in_q", {"bits": []})["bits"]) == inputs:
        return top, None
    return top, {i: f"in_q[{i}]" for i in range(inputs) if f"in_q[{i}]" in nets}
