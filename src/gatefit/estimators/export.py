"""A fitted model's circuit as a file in any format that gatefit writes.

x.v                  the end of the name says the format
x.v, to="verilog"    as said twice; to="c" is refused, since one of the two is a slip
x.txt, to="c"        an end that says nothing leaves it to ``to``, and is refused without it
folder/              ``to``, or C without it
"""

from importlib import import_module
from os import PathLike, fspath, sep
from pathlib import Path
from typing import Any, Final

from gatefit.circuit.file import refuse_existing, write_atomically
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

SUFFIXES: Final[dict[str, str]] = {
    **{suffix: name for name, (_, _, suffix) in FORMATS.items()},
    ".c": "c",
    ".sv": "verilog",
    ".aig": "aiger",
    ".gv": "dot",
    ".htm": "html",
}
"""What the end of a file's name says."""

FILE_NAME: Final = "gatefit_model"


def export_circuit(
    circuit: Circuit, path: str | PathLike[str], to: str | None, options: dict[str, Any], *, overwrite: bool = False
) -> Path:
    """Write ``circuit`` to the file ``path``, or into the folder ``path``; returns the file written."""
    if to is not None and to not in FORMATS:
        raise ValueError(f"unknown format {to!r}; choose one of {', '.join(FORMATS)}")
    text = fspath(path)
    file = Path(text)
    folder = text.endswith(("/", sep)) or file.is_dir()
    to = (to or "c") if folder else _format_of(file, to)
    module, function, suffix = FORMATS[to]
    if folder:
        file = file / f"{FILE_NAME}{suffix}"
    refuse_existing(file, overwrite)
    if to == "aiger" and file.suffix.lower() == ".aig":
        options = {"binary": True, **options}
    content = getattr(import_module(module), function)(circuit, **options)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content if isinstance(content, bytes) else content.encode())
    return file


def _format_of(file: Path, to: str | None) -> str:
    """The format that a file's name and ``to`` agree on."""
    said = SUFFIXES.get(file.suffix.lower())
    if said is None and to is None:
        own = "circuit_.save(path) writes .gate files; " if file.suffix.lower() == ".gate" else ""
        raise ValueError(
            f"the name {file.name} does not say a format; {own}end it in one of {', '.join(SUFFIXES)}, or give to=, "
            f"one of {', '.join(FORMATS)}"
        )
    if said is not None and to is not None and said != to:
        raise ValueError(
            f"{file.name} is a name for {said}, and to={to!r} asks for another format; leave out to=, or choose a name "
            f"that ends in {FORMATS[to][2]}"
        )
    return to or said or ""
