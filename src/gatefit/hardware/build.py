"""One build: a circuit for one target and one number of pipeline stages, step by step, whatever a step comes to.

    export -> simulate, prove -> synthesise -> simulate, prove -> place and route -> simulate

A step that fails or runs out of time is labelled, those that need its result are skipped, and all others still run.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from gatefit.backends.verilog.modules import to_verilog_modules
from gatefit.circuit.ir import Circuit
from gatefit.hardware import yosys_scripts
from gatefit.hardware.bench import (
    ROUTED_ECP5,
    core_bench,
    encoder_bench,
    encoder_vectors,
    harness,
    harness_bench,
    make_vectors,
)
from gatefit.hardware.cell_counts import Cells, read_kinds, read_levels, read_statistics
from gatefit.hardware.readback import DifferentError, prove_gates
from gatefit.hardware.route import ROUTERS, TooLargeError, place_and_route
from gatefit.hardware.simulation import cell_kinds, cell_models, find_registers, run_bench
from gatefit.hardware.targets import Device, Target
from gatefit.hardware.tools import MissingToolError, ToolError, ToolTimeoutError, find_nextpnr, find_yosys

MODULE = "gatefit"


@dataclass(frozen=True)
class Settings:
    """What every build of a report shares."""

    bits: Bool[np.ndarray, "vectors inputs"]
    stimulus: tuple[int, ...] | None = None
    feature_bits: int = 0
    scores: bool = True
    timeout: float = 1800.0
    seed: int = 1
    route: bool = True
    router: str = ROUTERS[0]
    notify: Callable[[str], None] = field(default=lambda text: None)


class Build:
    """Runs the steps and collects what they found in ``content``, which is plain data at any time."""

    def __init__(
        self, circuit: Circuit, target: Target, device: Device | None, stages: int, folder: Path, settings: Settings
    ) -> None:
        self.circuit, self.target, self.device, self.settings = circuit, target, device, settings
        self.folder = folder
        self.modules = to_verilog_modules(
            circuit,
            MODULE,
            stages,
            settings.feature_bits,
            settings.scores,
            target.counter,
            carries=target.carry_adders,
        )
        self.wrapped = target.routable
        self.top = f"{MODULE}_harness" if self.wrapped else MODULE
        self.content: dict[str, Any] = {
            "target": target.name,
            "device": device.name if device else None,
            "pipeline_stages": stages,
            "steps": [],
        }

    def run(self) -> dict[str, Any]:
        """All steps; returns ``content``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._step("export", self._export)
        self._step("simulate the export", self._simulate_export)
        if self.settings.stimulus is not None:
            self._step("simulate the comparators", self._simulate_comparators)
        self._step("prove the export", self._prove_export)
        whole = self._step("synthesise", self._synthesise)
        self._step("simulate the netlist", self._simulate_netlist, needs=whole)
        self._step("prove the netlist", self._prove_netlist, needs=whole)
        if self.target.routable and self.settings.route:
            routed = self._step("place and route", self._route, needs=whole)
            self._step("simulate the routed netlist", self._simulate_routed, needs=routed)
        self._advise()
        return self.content

    def _step(self, name: str, work: Callable[[], str], needs: bool = True) -> bool:
        row: dict[str, Any] = {
            "step": name,
            "status": "skipped",
            "seconds": 0.0,
            "detail": "what it needs is not there",
        }
        self.content["steps"].append(row)
        if not needs:
            return False
        where = f"{self.target.name}, {self.content['pipeline_stages']} stages"
        self.settings.notify(f"{where}: {name}")
        start = time.monotonic()
        try:
            row["detail"] = work()
            row["status"] = "done"
        except ToolTimeoutError as error:
            row |= {"status": "timed out", "detail": str(error)}
        except TooLargeError as error:
            row |= {"status": "too large", "detail": str(error)}
        except DifferentError as error:
            row |= {"status": "differs", "detail": str(error)}
        except MissingToolError as error:
            row |= {"status": "tool missing", "detail": str(error)}
        except ToolError as error:
            row |= {"status": "failed", "detail": str(error)}
        row["seconds"] = round(time.monotonic() - start, 2)
        return bool(row["status"] == "done")

    def _export(self) -> str:
        text = self.modules.text + (harness(self.modules) if self.wrapped else "")
        (self.folder / "design.v").write_text(text, encoding="ascii")
        self.vectors = make_vectors(self.circuit, self.modules, self.settings.bits, self.settings.stimulus)
        self.vectors.write(self.folder)
        return f"design.v, {len(text):,} bytes"

    def _simulate_export(self) -> str:
        (self.folder / "bench.v").write_text(core_bench(self.modules, self.vectors), encoding="ascii")
        return self._compared(run_bench(["bench.v", "design.v"], self.folder, "simulate", self.settings.timeout))

    def _simulate_comparators(self) -> str:
        assert self.settings.stimulus is not None
        vectors = encoder_vectors(self.modules, self.settings.bits, self.settings.stimulus)
        vectors.write(self.folder, "encoder_")
        (self.folder / "encoder_bench.v").write_text(encoder_bench(self.modules, vectors), encoding="ascii")
        sources = ["encoder_bench.v", "design.v"]
        return self._compared(run_bench(sources, self.folder, "encoder_simulate", self.settings.timeout))

    def _compared(self, differ: int) -> str:
        count = len(self.vectors.stimulus)
        if differ:
            raise DifferentError(f"{differ:,} of {count:,} vectors are answered differently from the engine")
        return f"{count:,} vectors, all answers are the engine's"

    def _prove_export(self) -> str:
        return self._proven("design.v", "")

    def _prove_netlist(self) -> str:
        kinds = read_kinds(self.folder / "parts_stat.json").get(f"{MODULE}_gates", {})
        return self._proven("parts.v", cell_models(find_yosys(), self.target, kinds))

    def _proven(self, source: str, models: str) -> str:
        return prove_gates(self.circuit, find_yosys(), source, models, MODULE, self.folder, self.settings.timeout)

    def _yosys(self, stem: str, script: str) -> None:
        (self.folder / f"{stem}.ys").write_text(script, encoding="ascii")
        find_yosys().run([f"{stem}.ys"], self.folder, f"{stem}.log", self.settings.timeout)

    def _synthesise(self) -> str:
        names = [f"{MODULE}_{part}" for part in self.modules.parts]
        self._yosys("synthesis", yosys_scripts.synthesis(self.target, "design.v", self.top, names))
        whole = read_statistics(self.folder / "whole_stat.json", self.target)[self.top]
        levels = read_levels(self.folder / "whole.json", self.target)
        apart = read_statistics(self.folder / "parts_stat.json", self.target)
        part_levels = read_levels(self.folder / "parts.json", self.target)
        self.content["whole"] = asdict(whole)
        self.content["levels"] = levels.get(self.top, 0)
        rows, core = {}, Cells()
        for part, name in zip(self.modules.parts, names, strict=True):
            # A part that is nothing but wires may have no module any more.
            cells = apart.get(name, Cells())
            rows[part] = asdict(cells) | {"levels": part_levels.get(name, 0)}
            core += cells
        self.content["parts"], self.content["core"] = rows, asdict(core)
        if self.wrapped:
            self.content["harness"] = asdict(whole - core)
        if rows["gates"]["tables"]:
            self.content["gates_per_table"] = self.circuit.gates.size / rows["gates"]["tables"]
        split = ", ".join(f"{part} {row['tables']:,}" for part, row in rows.items())
        return f"{core.tables:,} tables ({split}), {core.flip_flops:,} flip-flops"

    def _simulate_netlist(self) -> str:
        bench = self._harness_bench("whole_nets.json") if self.wrapped else core_bench(self.modules, self.vectors)
        kinds = read_kinds(self.folder / "whole_stat.json")[self.top]
        return self._simulated("whole", bench, cell_models(find_yosys(), self.target, kinds))

    def _simulated(self, stem: str, bench: str, models: str) -> str:
        (self.folder / f"{stem}_bench.v").write_text(bench, encoding="ascii")
        (self.folder / f"{stem}_cells.v").write_text(models, encoding="utf-8")
        sources = [f"{stem}_bench.v", f"{stem}.v", f"{stem}_cells.v"]
        return self._compared(run_bench(sources, self.folder, f"{stem}_simulate", self.settings.timeout))

    def _harness_bench(self, netlist: str) -> str:
        files = self.folder / "whole_nets.json", self.folder / netlist
        registers = find_registers(*files, self.vectors.inputs, self.vectors.outputs)
        return harness_bench(registers, self.modules.pipeline.latency, self.vectors)

    def _route(self) -> str:
        assert self.device is not None
        whole = self.content["whole"]
        needed = max(whole["tables"], whole["flip_flops"])
        if needed > self.device.cells:
            # No packing can be smaller, so there is no need to try.
            raise TooLargeError(
                f"at least {needed:,} logic cells are needed, {self.device.name} has {self.device.cells:,}"
            )
        routed, _ = place_and_route(
            find_nextpnr(self.target.name),
            self.target,
            self.device,
            "whole",
            self.folder,
            self.settings.timeout,
            self.settings.seed,
            self.settings.router,
        )
        cycles = max(1, self.modules.pipeline.latency)
        self.content["routed"] = asdict(routed) | {
            "period_ns": routed.period,
            "latency_cycles": cycles,
            "latency_ns": cycles * routed.period,
        }
        return f"{routed.megahertz:.1f} MHz, {routed.cells:,} of {routed.available:,} logic cells"

    def _simulate_routed(self) -> str:
        self._yosys("routed", yosys_scripts.to_netlist("whole_routed.json", "routed.v"))
        bench = self._harness_bench("whole_routed.json")
        if self.target.name == "ecp5":
            return self._simulated("routed", bench, ROUTED_ECP5)
        kinds = cell_kinds(self.folder / "whole_routed.json")
        return self._simulated("routed", bench, cell_models(find_yosys(), self.target, kinds))

    def _advise(self) -> None:
        for row in self.content["steps"]:
            if row["status"] == "too large":
                row["detail"] += "; " + self._what_to_do()

    def _what_to_do(self) -> str:
        larger = [device for device in self.target.devices if self.device and device.cells > self.device.cells]
        advice = [
            f"a bigger device (--device {larger[0].name})" if larger else "another target (ecp5 has up to 83,640)"
        ]
        parts = self.content["parts"]
        largest = max(parts, key=lambda part: int(parts[part]["tables"]))
        share = parts[largest]["tables"] / max(1, self.content["core"]["tables"])
        found = f"the largest part is the {largest} with {share:.0%} of the tables; use "
        if largest == "popcount":
            advice.append("fewer outputs a class (gatefit prune)")
        else:
            advice.append("a narrower network")
        return found + ", ".join(advice) + ", or optimise the circuit first (gatefit optimise --level 3)"
