"""Simulation by iverilog: how many vectors a piece of Verilog answers differently from the engine."""

import json
import re
from pathlib import Path
from typing import Any

from gatefit.hardware.targets import Target
from gatefit.hardware.tools import Tool, ToolError, find_simulator


def run_bench(sources: list[str], folder: Path, stem: str, timeout: float, libraries: list[Path] | None = None) -> int:
    """Compile and run a bench; the number of vectors that differ."""
    compiler, runtime = find_simulator()
    program = f"{stem}.vvp"
    known = [str(path) for path in libraries or []]
    folders = sorted({str(Path(path).parent) for path in known})
    flags = [
        "-g2005",
        "-DNO_ICE40_DEFAULT_ASSIGNMENTS",
        *(f"-I{path}" for path in folders),
        "-s",
        "bench",
        "-o",
        program,
    ]
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


def module_texts(paths: list[Path], names: set[str]) -> str:
    """The text of some modules in Verilog files, and in the files that they include.

    Yosys takes minutes to elaborate the memories among a family's cells, so it is handed only what a netlist uses.
    """
    texts, seen = [], set()
    queue = list(paths)
    while queue:
        path = queue.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = path.read_text(encoding="utf-8")
        texts.append(text)
        for name in re.findall(r'^\s*`include\s+"([^"]+)"', text, re.MULTILINE):
            # Relative to the file, or to the folder of all families.
            found = [folder / name for folder in (path.parent, path.parent.parent) if (folder / name).is_file()]
            queue += found[:1]
    whole = "\n".join(texts)
    # What stands before a file's first module are macros that its modules use.
    macros = [re.split(r"^(?:module|\(\*)", text, maxsplit=1, flags=re.MULTILINE)[0] for text in texts]
    macros = [re.sub(r"^\s*`include.*$", "", text, flags=re.MULTILINE) for text in macros]
    found_modules: dict[str, str] = {}
    for match in re.finditer(r"^module\s+(\w+)\b.*?^endmodule", whole, re.MULTILINE | re.DOTALL):
        found_modules.setdefault(match[1], match[0])
    missing = names - set(found_modules)
    if missing:
        raise ToolError(f"there is no model of the cells {', '.join(sorted(missing))} in {paths[0].name}")
    return "\n".join([*macros, *(found_modules[name] for name in sorted(names)), ""])


def input_registers(synthesised: Path, netlist: Path, inputs: int) -> tuple[str, dict[int, list[str]]]:
    """The top module of NETLIST, and the names there of each bit of the harness's input register.

    A net may go by the name of anything that is equal to it, so all names that it had when it was SYNTHESISED are
    looked for. An input that the circuit does not use may have no net any more.
    """
    _, before = _harness(synthesised)
    top, now = _harness(netlist)
    names: dict[int, list[str]] = {}
    for name, net in before.items():
        if len(net["bits"]) == 1:  # whole vectors were split before they were written
            names.setdefault(net["bits"][0], []).append(name)
    register = {i: before[f"in_q[{i}]"]["bits"][0] for i in range(inputs) if f"in_q[{i}]" in before}
    if inputs == 1 and "in_q" in before:
        register = {0: before["in_q"]["bits"][0]}
    return top, {i: [name for name in names[bit] if name in now] for i, bit in register.items()}


def _harness(netlist: Path) -> tuple[str, dict[str, Any]]:
    """The name of the module that has the harness's pins, and its nets."""
    try:
        modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"]
        (top, module), *_ = [(name, m) for name, m in modules.items() if "shift_out" in m["ports"]]
        return str(top), dict(module["netnames"])
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise ToolError(f"{netlist.name} is not a netlist of the harness ({reason!r})") from None
