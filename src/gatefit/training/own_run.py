"""A run on a user's own data: what its folder says about the data, beside what every run's folder has (``folder``).

    data.json     where the data are, what was learned from them and how; written first
    report.json   what the columns held, how large the circuit is, what it reaches; written last but one
    model.gate    the circuit, with encoder and labels

``train --data`` with the same data.json in the folder goes on with it; ``evaluate``, ``compile``, ``prove`` read it.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from jaxtyping import Shaped

from gatefit._version import VERSION
from gatefit.circuit.labels import labels_from_spec
from gatefit.training.folder import RunFolderError

DATA: Final = "data.json"
REPORT: Final = "report.json"


class OwnRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked for, and what it was found to mean."""

    data: str
    digest: str
    target: str
    task: str
    parameters: dict[str, Any]
    """Of the estimator, as far as they were given; random_state always."""
    test: str | None = None
    test_digest: str | None = None
    test_fraction: float = 0.0
    header: bool = True
    columns: dict[str, str] = {}
    labels: dict[str, Any] | None = None
    format: int = 1

    @property
    def classes(self) -> Shaped[np.ndarray, " classes"] | None:
        """The labels of the classes; None for a regression."""
        return None if self.labels is None else labels_from_spec(self.labels)

    @property
    def dataset(self) -> str:
        """A name for the data: the file's, and the beginning of its digest."""
        return f"{Path(self.data).name}@{self.digest.removeprefix('sha256:')[:12]}"

    def metadata(self) -> dict[str, str]:
        """What the circuit says about where it is from: names and digests, no paths."""
        return {
            "gatefit": VERSION,
            "dataset": self.dataset,
            "data": self.digest,
            "target": self.target,
            "task": self.task,
        }

    def to_json(self) -> bytes:
        """The content of data.json."""
        return json.dumps(msgspec.to_builtins(self), indent=2, sort_keys=True).encode()


def read_own_run(folder: Path) -> OwnRun | None:
    """What the folder says about its data; None where it is a run on one of the package's data sets."""
    path = folder / DATA
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=OwnRun)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path} is damaged: {error}") from error
