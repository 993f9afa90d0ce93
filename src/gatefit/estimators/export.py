"""A fitted model's circuit as a file in any format that gatefit writes."""

from importlib import import_module
from os import PathLike, fspath, sep
from pathlib import Path
from typing import Any, Final

from gatefit.circuit.file import write_atomically
from gatefit.circuit.ir import Circuit

FORMATS: Final[dict[str, tuple[str, str, str]]] = {
    "c": ("gatefit.backends.c", "to_c", ".h"),
    "verilog": ("gatefit.backends.verilog", "to_verilog", ".v"),
    "blif": ("gatefit.backends.blif", "to_blif", ".blif"),
    "aiger": ("gatefit.backends.aiger", "to_aiger", ".aag"),
    "dot": ("gatefit.backends.dot", "to_dot", ".dot"),
    "json": ("gatefit.backends.json_export", "to_json", ".json"),
    "html": ("gatefit.backends.html", "to_html", ".html"),
}
"""For each format the module and function that write it, and the usual end of a file's name."""

FILE_NAME: Final = "gatefit_model"


def export_circuit(circuit: Circuit, path: str | PathLike[str], to: str, options: dict[str, Any]) -> Path:
    """Write ``circuit`` to the file ``path``, or into the folder ``path``; returns the file written."""
    if to not in FORMATS:
        raise ValueError(f"unknown format {to!r}; choose one of {', '.join(FORMATS)}")
    module, function, suffix = FORMATS[to]
    text = fspath(path)
    file = Path(text)
    if text.endswith(("/", sep)) or file.is_dir():
        file = file / f"{FILE_NAME}{suffix}"
    if to == "aiger" and file.suffix == ".aig":
        options = {"binary": True, **options}
    content = getattr(import_module(module), function)(circuit, **options)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content if isinstance(content, bytes) else content.encode())
    return file
