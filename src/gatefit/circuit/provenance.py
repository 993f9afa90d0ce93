"""Where a circuit is from, in its file and in whatever was exported from it.

    metadata     gatefit         the version that trained it
                 run             the name of its configuration
                 dataset, data   the name of the data, and what identifies their content
                 …_accuracy      of the classes, on the set that the name says, by the network that was trained
                 date            only if asked for: the same training gives the same bytes on any day
    export       gatefit 0.2.0: circuit sha256:…                  the digest of the circuit that was exported
                 gatefit: run=… data=… test_accuracy=…            what its metadata say of the above, percent-encoded

The two lines of an export stand in a comment of its language, and are found again in any file by ``read_origin``. JSON
has no comments and needs none: it holds the circuit itself.
"""

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from gatefit._version import VERSION
from gatefit.circuit.file import digest
from gatefit.circuit.ir import Circuit

ACCURACIES: Final = ("test_accuracy", "validation_accuracy", "train_accuracy")
ENTRIES: Final[tuple[str, ...]] = ("gatefit", "method", "run", "dataset", "data", *ACCURACIES, "date")
"""What metadata say of where a circuit is from."""
_MOST: Final = 200
"""Characters of a value in an export."""
_FIRST: Final = re.compile(rb"gatefit ([0-9A-Za-z.+!-]{1,40}): circuit (sha256:[0-9a-f]{64})")
_SECOND: Final = re.compile(rb"gatefit: ((?:[a-z_]{1,20}=[0-9A-Za-z_.~%-]{0,2000} ?)+)")


@dataclass(frozen=True)
class Origin:
    """What an export says of itself."""

    version: str
    """Of the gatefit that wrote it."""
    digest: str
    """Of the circuit that it was written from."""
    entries: Mapping[str, str]


def stamped(circuit: Circuit, entries: Mapping[str, str], *, dated: bool = False) -> Circuit:
    """The circuit with more metadata; ``dated``: today's date too (UTC)."""
    today = {"date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()} if dated else {}
    return replace(circuit, metadata={**circuit.metadata, **entries, **today})


def unmeasured(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata without accuracies: for a circuit that answers differently from the one they were measured on."""
    return {name: value for name, value in metadata.items() if name not in ACCURACIES}


def origin_lines(circuit: Circuit) -> list[str]:
    """The lines of an export: plain ASCII, nothing in them ends a comment of any language.

    A circuit that cannot be saved (a name that is no text, a readout that says no kind) has no digest, so no lines.
    """
    try:
        found = digest(circuit)
    except (ValueError, TypeError, AttributeError):
        return []
    said = [
        f"{name}={quote(circuit.metadata[name][:_MOST], safe='')}" for name in ENTRIES if circuit.metadata.get(name)
    ]
    return [f"gatefit {VERSION}: circuit {found}", *([f"gatefit: {' '.join(said)}"] if said else [])]


def read_origin(content: bytes) -> Origin | None:
    """What the bytes of an export say, or None."""
    first = _FIRST.search(content)
    if first is None:
        return None
    second = _SECOND.search(content, first.end())
    pairs = [pair.partition("=") for pair in second[1].decode("ascii").split()] if second else []
    entries = {name: unquote(value, errors="replace") for name, _, value in pairs if name in ENTRIES}
    return Origin(first[1].decode("ascii"), first[2].decode("ascii"), entries)
