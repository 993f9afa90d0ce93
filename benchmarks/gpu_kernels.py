"""Every GPU kernel compiled ahead of time, no GPU needed: registers, shared memory and spills on sm_80 and sm_90.

    python -m benchmarks.gpu_kernels             compile, print the table
    python -m benchmarks.gpu_kernels --write     and keep it in benchmarks/results/gpu_kernels.csv

Each operation is called once in every form that training and inference use, with launches written down instead of made
(``ops.triton_launch.recording``); what was written down is compiled as a launch would be (float32, sizes that sixteen
divides), assembled by the ptxas that comes with Triton, and asked by its cuobjdump. Compiled is not run: this says
nothing about speed.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

TARGETS: Final = {"sm_80": 80, "sm_90": 90}
TABLE: Final = Path(__file__).parent / "results" / "gpu_kernels.csv"
COLUMNS: Final = ("kernel", "form", "target", "shared_bytes", "registers", "stack_bytes", "local_bytes")

WIDTH, INPUTS, BATCH, CLASSES, CANDIDATES = 3200, 64, 256, 10, 8


def every_launch() -> list[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """One launch of every kernel in every form."""
    import numpy as np
    import torch

    from gatefit.bits import pack
    from gatefit.ops.boolean_stack import triton as boolean
    from gatefit.ops.coefficients import triton as coefficients
    from gatefit.ops.gate_layer import triton as gate_layer
    from gatefit.ops.gather import triton as gather
    from gatefit.ops.gumbel import triton as gumbel
    from gatefit.ops.learned_stack import Watch
    from gatefit.ops.learned_stack import triton as learned
    from gatefit.ops.regrowth import triton as regrowth
    from gatefit.ops.soft_stack import triton as soft
    from gatefit.ops.stacks import Stack
    from gatefit.ops.triton_launch import recording

    generator = torch.Generator().manual_seed(0)

    def floats(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator).requires_grad_()

    def nodes(*shape: int, below: int) -> Any:
        return torch.randint(below, shape, generator=generator, dtype=torch.int32)

    def run(output: Any) -> None:
        """Backward too, where there is something to differentiate."""
        output = output[1] if isinstance(output, tuple) else output
        if output is not None and output.requires_grad:
            output.backward(torch.ones_like(output))

    sizes = (INPUTS, WIDTH, WIDTH)
    wirings = [nodes(2, WIDTH, below=below) for below in sizes]
    gates = [nodes(WIDTH, below=16).to(torch.uint8) for _ in sizes]
    c, logits, temperature = [floats(WIDTH, 4) for _ in sizes], floats(WIDTH, 16), torch.ones((), requires_grad=True)
    bits = pack((torch.rand(BATCH, INPUTS, generator=generator) < 0.5).numpy())
    candidates = [nodes(2, WIDTH, CANDIDATES, below=below) for below in sizes]
    scores = [floats(2, WIDTH, CANDIDATES) for _ in sizes]
    stacks = [Stack(wirings, groups=CLASSES, votes=(1, 2, 3)), Stack(wirings, groups=CLASSES), Stack(wirings)]
    shared = Stack(wirings, groups=CLASSES, owners=[torch.arange(WIDTH) // 2] * 3)
    with recording() as recorder:
        run(coefficients.snap(c[0]))
        run(coefficients.largest(logits))
        run(coefficients.soft_coefficients(c[0], temperature))
        run(coefficients.mixture_coefficients(logits, 1.0))
        run(coefficients.straight_through_mixture(logits, 1.0))
        run(gate_layer.gate_layer(floats(BATCH, INPUTS), wirings[0], c[0]))
        run(gate_layer.gate_layer(floats(BATCH, INPUTS).detach(), wirings[0], c[0]))
        for stack in stacks:
            run(soft.soft_stack_triton(bits, stack, c))
            run(soft.soft_stack_triton(bits, stack, c, sigmoid=True))
            run(boolean.boolean_stack_triton(bits, stack, gates, c))
            run(boolean.boolean_counts_triton(bits, stack, gates))
        run(soft.soft_stack_triton(bits, shared, [floats(WIDTH // 2, 4) for _ in sizes]))
        for kinds in (None, gates):
            for stack in stacks[:2]:
                watch = Watch([np.arange(0, 2 * WIDTH, 3)] * len(sizes))
                run(learned.learned_stack_triton(bits, stack, candidates, scores, c, gates=kinds, watch=watch))
        for pool in (bits, floats(INPUTS, BATCH)):
            run(regrowth.best_nodes_triton(floats(2 * WIDTH, BATCH), pool, candidates[0].flatten(0, 1)))
        run(gather.gather_triton(torch.zeros(1000, 2, dtype=torch.int64), torch.arange(BATCH), INPUTS))
        run(gumbel.fill(12345, 67890, torch.empty(WIDTH * 16)))
    return recorder.launches


def forms() -> dict[tuple[str, str], tuple[Any, dict[str, Any], dict[str, Any]]]:
    """Launches by kernel and form: its constants, and which whole numbers are 1, which Triton compiles for apart."""
    found = {}
    for kernel, arguments, options in every_launch():
        constants = {
            name: value for name, value in arguments.items() if name.isupper() and not isinstance(value, tuple)
        }
        ones = [name for name, value in arguments.items() if type(value) is int and value == 1]
        named = [f"{name}={value}" for name, value in constants.items()] + [f"{name}=1" for name in ones]
        found[f"{_room(kernel)}.{kernel.fn.__name__.strip('_')}", " ".join(named)] = (kernel, arguments, options)
    return dict(sorted(found.items()))


def _room(kernel: Any) -> str:
    return str(kernel.fn.__module__).removeprefix("gatefit.ops.").removesuffix(".triton")


def compile_form(kernel: Any, arguments: dict[str, Any], options: dict[str, Any], capability: int) -> dict[str, int]:
    """What a launch with these arguments would compile, assembled for a target; by the steps of ``JITFunction.run``."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    target = GPUTarget("cuda", capability, 32)
    backend = make_backend(target)
    settings: dict[str, Any] = {**options, "debug": False, "instrumentation_mode": ""}
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialisation, given = binder(**arguments, **settings)
    made, signature, constants, attributes = kernel._pack_args(backend, settings, bound, specialisation, given)
    compiled = triton.compile(ASTSource(kernel, signature, constants, attributes), target=target, options=made.__dict__)
    return {"shared_bytes": compiled.metadata.shared, **used(compiled.asm["cubin"])}


def used(cubin: bytes) -> dict[str, int]:
    """Registers of a thread, and its bytes of stack and local memory: where there are none, nothing was spilled."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = subprocess.run([tool, "-res-usage", file], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", done.stdout + done.stderr))
    return {name: int(found[key]) for name, key in zip(COLUMNS[4:], ("REG", "STACK", "LOCAL"), strict=True)}


def compiled_table() -> Iterator[dict[str, Any]]:
    """A row for every kernel, form and target."""
    for (name, form), launch in forms().items():
        for target, capability in TARGETS.items():
            yield {"kernel": name, "form": form, "target": target, **compile_form(*launch, capability)}


def main() -> None:
    """Compile all, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"keep the table in {TABLE.name}")
    chosen = parser.parse_args()
    if os.environ.pop("TRITON_INTERPRET", None):
        sys.exit("TRITON_INTERPRET is set: kernels are interpreted then, not compiled; unset it")
    rows = []
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for row in compiled_table():
        rows.append(row)
        writer.writerow(row)
        sys.stdout.flush()
    if chosen.write:
        with TABLE.open("w", newline="") as file:
            kept = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            kept.writeheader()
            kept.writerows(rows)
    spilled = [row for row in rows if row["stack_bytes"] or row["local_bytes"]]
    if spilled:
        sys.exit(f"{len(spilled)} kernels spill registers: {spilled[0]}")


if __name__ == "__main__":
    main()
