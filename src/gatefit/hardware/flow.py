"""A report: one circuit, built for some targets with some numbers of pipeline stages, and what all builds agree on.

builds    target x pipeline stages, each in its folder OUT/TARGET-STAGES
verdict   agrees       every comparison was made, and none found a difference
          differs      some simulation or proof did
          incomplete   what was compared agrees, but a step failed, ran out of time or was not possible
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gatefit.backends.verilog.modules import plan_stages
from gatefit.circuit.ir import Circuit
from gatefit.circuit.statistics import depth
from gatefit.hardware.build import Build, Settings
from gatefit.hardware.targets import Device, Target
from gatefit.hardware.tools import MissingToolError, Tool, find_nextpnr, find_simulator, find_yosys


def check_circuit(circuit: Circuit) -> None:
    """Refuse a circuit that has no hardware readout."""
    if circuit.readout.float_terms() is not None or circuit.readout.sums() is None:
        raise ValueError(
            "a learned linear readout needs floating-point arithmetic, which is not synthesised; train with the "
            "group-sum readout (gatefit train --readout group-sum)"
        )
    if not circuit.outputs.size:
        raise ValueError("the circuit has no output bits: all of them are constant; there is nothing to synthesise")


def resolve_stages(circuit: Circuit, asked: Sequence[int | None]) -> list[int]:
    """Numbers of pipeline stages, None as the automatic one; each once, and each possible for the circuit."""
    found = [plan_stages(circuit, stages).latency for stages in asked]
    return list(dict.fromkeys(found))


def synthesise(
    circuit: Circuit,
    targets: Sequence[tuple[Target, Device | None]],
    stages: Sequence[int],
    out: Path,
    settings: Settings,
    about: dict[str, Any],
    save: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Run all builds; ``save`` is given the report after each, so that what is done is kept whatever comes next.

    ``about`` says where the model and the vectors come from, and goes into the report as it is.
    """
    check_circuit(circuit)
    find_yosys()  # without it no step after the simulation is possible
    report: dict[str, Any] = {
        **about,
        "circuit": {
            "inputs": circuit.inputs,
            "gates": int(circuit.gates.size),
            "gate_levels": depth(circuit),
            "outputs": int(circuit.outputs.size),
            "classes": circuit.readout.classes,
        },
        "inputs": f"features of {settings.feature_bits} bits" if settings.feature_bits else "bits",
        "tools": _tools([target for target, _ in targets], settings.route),
        "builds": [],
    }
    for target, device in targets:
        for count in stages:
            build = Build(circuit, target, device, count, out / f"{target.name}-{count}", settings)
            report["builds"].append(build.content)
            try:
                build.run()
            finally:
                report["verdict"] = verdict(report["builds"])
                save(report)
    return report


def verdict(builds: list[dict[str, Any]]) -> dict[str, str]:
    """What the comparisons of all builds come to."""
    steps = [(build, step) for build in builds for step in build["steps"]]
    different = [(build, step) for build, step in steps if step["status"] == "differs"]
    if different:
        build, step = different[0]
        where = f"{build['target']}, {build['pipeline_stages']} stages"
        return {"status": "differs", "text": f"{where}: {step['step']}: {step['detail']}"}
    missing = [(build, step) for build, step in steps if step["status"] != "done"]
    if missing:
        build, step = next(((b, s) for b, s in missing if s["status"] != "skipped"), missing[0])
        where = f"{build['target']}, {build['pipeline_stages']} stages"
        rest = f" (and {len(missing) - 1} more steps)" if len(missing) > 1 else ""
        text = f"what was compared agrees; not done: {where}: {step['step']}: {step['status']}: {step['detail']}{rest}"
        return {"status": "incomplete", "text": text}
    kinds = ["the exported Verilog", "the synthesised netlists"]
    if any(step["step"] == "simulate the routed netlist" for _, step in steps):
        kinds.append("the routed netlists")
    text = (
        f"{', '.join(kinds[:-1])} and {kinds[-1]} give the engine's answers on every vector; "
        f"the gates of the export and of the netlists are proven equal to the circuit's on every input"
    )
    return {"status": "agrees", "text": text}


def _tools(targets: list[Target], route: bool) -> list[dict[str, str]]:
    found: list[Tool] = [find_yosys()]
    # Where one is missing, the steps that need it say so.
    with suppress(MissingToolError):
        found.append(find_simulator()[0])
    for target in targets:
        if target.routable and route:
            with suppress(MissingToolError):
                found.append(find_nextpnr(target.name))
    return [{"name": tool.name, "version": tool.version, "origin": tool.origin} for tool in found]
