"""Circuits that ship with the package, by name: the bytes of a circuit file, and a card that says what it is.

    NAME.json       the card: data, the commands that made it, seed, accuracy, gates, proof, terms of the data
    NAME.gate.gz    the circuit file, compressed; a card without one is of a circuit that is too large to ship

    Circuit.load("mnist-1k")        a file of that name, or else the model

Nothing here knows what a circuit is: the bytes are read, and checked, by ``circuit.file`` as any file's are.
"""

import difflib
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
LARGEST: Final = 8_000
"""Live gates up to which a circuit ships."""
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CIRCUIT: Final = ".gate.gz"


def names() -> tuple[str, ...]:
    """The models that there are cards of: those that ship, smallest first, then those that a command makes."""
    cards = [card(path.stem) for path in FOLDER.glob("*.json")]
    return tuple(each["name"] for each in sorted(cards, key=_order))


def _order(content: dict[str, Any]) -> tuple[Any, ...]:
    return not is_shipped(content["name"]), content["dataset"], content["live_gates"], content["name"]


def is_name(text: str | os.PathLike[str]) -> bool:
    """Whether this could be a model's name: lower case letters, digits and dashes."""
    path = os.fspath(text)
    return isinstance(path, str) and _NAME.fullmatch(path) is not None


def is_shipped(name: str) -> bool:
    """Whether the package holds the circuit itself."""
    return is_name(name) and (FOLDER / f"{name}{_CIRCUIT}").is_file()


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether this names a circuit of the package: no file, and no folder, has the name here."""
    return not os.path.lexists(path) and is_shipped(os.fspath(path))


def card(name: str) -> dict[str, Any]:
    """What is known of a model; of an unknown name, a ValueError that says the nearest."""
    path = FOLDER / f"{name}.json"
    if not is_name(name) or not path.is_file():
        raise ValueError(f"there is no model {name!r}{_near(name)} `gatefit models` lists them")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def read(name: str) -> bytes:
    """The bytes of a model's circuit file; a FileNotFoundError says what to do where there is none."""
    path = FOLDER / f"{name}{_CIRCUIT}"
    if is_shipped(name):
        return gzip.decompress(path.read_bytes())
    if is_name(name) and (FOLDER / f"{name}.json").is_file():
        commands = "; ".join(card(name)["commands"])
        raise FileNotFoundError(f"the model {name} is too large to ship with gatefit; make it with: {commands}")
    raise FileNotFoundError(
        f"there is no file {name}, and gatefit ships no model of that name{_near(name)} `gatefit models` lists them"
    )


def size(name: str) -> int:
    """Bytes that a model takes in the package, without its card; 0 of one that does not ship."""
    return (FOLDER / f"{name}{_CIRCUIT}").stat().st_size if is_shipped(name) else 0


def write(folder: Path, content: dict[str, Any], circuit: bytes | None) -> list[Path]:
    """Put a card, and the bytes of a circuit file, into a folder of models; the same content gives the same bytes."""
    name = content["name"]
    if not is_name(name):
        raise ValueError(f"a model's name is lower case letters, digits and dashes, got {name!r}; rename it")
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json"]
    written[0].write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    path = folder / f"{name}{_CIRCUIT}"
    if circuit is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(gzip.compress(circuit, 9, mtime=0))
        written.append(path)
    return written


def _near(name: str) -> str:
    near = difflib.get_close_matches(name, names(), 3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ";"
