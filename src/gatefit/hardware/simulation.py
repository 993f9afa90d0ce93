"""Simulation by iverilog: how many vectors a piece of Verilog answers differently from the engine."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
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


def cell_models(yosys: Tool, target: Target, kinds: Iterable[str]) -> str:
    """Yosys's own models of cells of these kinds, as Verilog."""
    # Cells of Yosys itself are written as expressions, and need no model.
    named = {kind for kind in kinds if not kind.startswith("$")}
    if not named:
        return ""
    missing = [path for path in target.models if yosys.share is None or not (yosys.share / path).is_file()]
    if missing or yosys.share is None:
        raise ToolError(f"yosys {yosys.version} comes without its cell models {', '.join(missing)}; install it again")
    return module_texts([yosys.share / path for path in target.models], named)


def module_texts(paths: list[Path], names: set[str]) -> str:
    """The text of some modules in Verilog files, and in the files that they include.

    Yosys takes minutes to elaborate the memories among a family's cells, and iverilog does not parse all of them: both
    are handed only what a netlist uses.
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
    # A model may be made of others.
    needed, unseen = set(names), list(names)
    while unseen:
        inside = set(re.findall(r"\w+", found_modules[unseen.pop()])) & set(found_modules) - needed
        needed |= inside
        unseen += inside
    return "\n".join([*macros, *(found_modules[name] for name in sorted(needed)), ""])


@dataclass(frozen=True)
class Registers:
    """Where a netlist of the harness holds its input and its answer."""

    top: str
    inputs: dict[int, list[str]]
    """Names of each input bit's net; none for a bit that the circuit does not use."""
    outputs: list[str] | None
    """An expression for each bit of the answer, lowest first; None where one cannot be seen."""


def find_registers(synthesised: Path, netlist: Path, inputs: int, outputs: int) -> Registers:
    """The registers of the harness in NETLIST.

    A net may go by the name of anything that is equal to it, so all names that it had when it was SYNTHESISED are
    looked for.
    """
    _, before = _harness(synthesised)
    top, now = _harness(netlist)
    names: dict[int | str, list[str]] = {}
    for name, net in before.items():
        if len(net["bits"]) == 1:  # vectors were split before they were written
            names.setdefault(net["bits"][0], []).append(name)

    def bit(register: str, i: int, width: int) -> int | str | None:
        net = before.get(register if width == 1 else f"{register}[{i}]")
        return None if net is None else net["bits"][0]

    def found(register: str, i: int, width: int) -> list[str]:
        number = bit(register, i, width)
        return [name for name in names.get(number, []) if name in now] if isinstance(number, int) else []

    answer = []
    for i in range(outputs):
        value = bit("out_q", i, outputs)
        seen = [f"1'b{value}"] if value in ("0", "1") else [f"dut.\\{name} " for name in found("out_q", i, outputs)]
        answer += seen[:1]
    return Registers(
        top,
        {i: found("in_q", i, inputs) for i in range(inputs)},
        answer if len(answer) == outputs else None,
    )


def cell_kinds(netlist: Path) -> set[str]:
    """The types of all cells of a netlist in JSON."""
    try:
        modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"].values()
        return {str(cell["type"]) for module in modules for cell in module["cells"].values()}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise ToolError(f"{netlist.name} is not a netlist ({reason!r})") from None


def _harness(netlist: Path) -> tuple[str, dict[str, Any]]:
    """The name of the module that has the harness's pins, and its nets."""
    try:
        modules = json.loads(netlist.read_text(encoding="utf-8"))["modules"]
        (top, module), *_ = [(name, m) for name, m in modules.items() if "shift_out" in m["ports"]]
        return str(top), dict(module["netnames"])
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise ToolError(f"{netlist.name} is not a netlist of the harness ({reason!r})") from None
