"""What the tests of the frontier share: commands as a user types them, and two tiny rows, run once."""

import json
from pathlib import Path

import pytest

from command_line import _plain_environment, gatefit, invoke, process, refused

__all__ = ["_plain_environment", "gatefit", "process", "refused"]

CONFIG = {"dataset": "monks-1", "width": 20, "depth": 2, "steps": 40, "evaluate_every": 20, "votes": "all"}
ROWS = [
    {"name": "tiny", "config": CONFIG, "note": "for tests"},
    {"name": "tiny-pruned", "config": CONFIG, "seeds": [1], "prune": {"outputs": 12, "samples": 100}},
]


class Made:
    """The folders of rows that were made by the command."""

    def __init__(self, folder: Path) -> None:
        self.entries, self.store, self.out = folder / "entries.json", folder / "store", folder / "out"
        self.page, self.models = folder / "page.md", folder / "models"
        self.entries.write_text(json.dumps(ROWS))

    @property
    def options(self) -> list[object]:
        """What every command on them says."""
        return ["--entries", self.entries, "--store", self.store, "--out", self.out]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Both rows, with page and models; not to be changed."""
    made = Made(tmp_path_factory.mktemp("frontier"))
    outcome = invoke("frontier", "--all", *made.options, "--page", made.page, "--adopt", made.models)
    assert outcome.code == 0, outcome
    return made
