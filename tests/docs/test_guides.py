"""Guides: each page is one session, after what its words take for granted.

Of some pages the commands are run too. Those of the others are trainings of minutes or hours: ``test_commands`` holds
them to the command line. docs/questions.md and docs/own-data.md have tests of their own, from first line to last.
"""

from pathlib import Path

import pytest

from pages import NEVER, blocks, run_page

pytestmark = pytest.mark.outside

DOCS = Path(__file__).parents[2] / "docs"

FIRST = {
    "browser.md": """
from gatefit import Circuit
from gatefit.datasets import load_dataset
data = load_dataset("digits")
rows, classes = data.x_test[:10], data.y_test[:10]
Circuit.load("digits-400").save("digits.gate")
""",
    "circuits.md": """
import numpy as np
from gatefit.encoders import Identity
from gatefit.network import LogicNetwork
network = LogicNetwork(inputs=8, classes=2, width=20, depth=2, seed=0)
rows = np.zeros((3, 8), dtype=bool)
""",
    "models.md": "import numpy as np\nimages = np.zeros((2, 784))\n",
    "scale-out.md": """
from pathlib import Path
from gatefit.training.config import RunConfig
config, folder = RunConfig(dataset="monks-1", width=20, depth=2, steps=20, evaluate_every=10), Path("run")
""",
    "training.md": """
import pandas as pd
import torch
from gatefit.layers import Layer
frame = pd.DataFrame({"age": range(40), "colour": ["red", "green"] * 20})
labels = ["yes" if age > 20 else "no" for age in range(40)]
generator = torch.Generator().manual_seed(0)
class MyLayer(Layer):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
    def forward(self, x):
        return x[:, : self.outputs]
    def lower(self, builder, inputs):
        return inputs[: self.outputs]
""",
}
# A cluster that is up already; tests/experiments has a Ray of their own.
SKIP = {"scale-out.md": "run_on_ray"}
A_RUN = """
import shutil, subprocess
command = "gatefit train --dataset digits --width 100 --depth 2 --steps 100 --quiet --out runs/digits"
subprocess.run(command.split(), check=True)
shutil.copytree("runs/digits", "runs/mnist")
"""
COMMANDS = ("circuits.md", "microcontroller.md")
"""Pages whose commands are quick; they begin with a run."""
SLOW = ("circuits.md", "microcontroller.md")
"""Pages that only `make test-slow` follows."""
GUIDES = [
    pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else [])
    for page in sorted(DOCS.glob("*.md"))
    if page.name not in {"index.md", "reference.md", "questions.md", "own-data.md"}
    and (page.name in COMMANDS or any(block.language == "python" and block.run for block in blocks(page.read_text())))
]


@pytest.mark.parametrize("page", GUIDES, ids=lambda path: path.name)
def test_a_guide_runs(page, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    first = FIRST.get(page.name, "") + (A_RUN if page.name in COMMANDS else "")
    languages = ("sh", "python") if page.name in COMMANDS else ("python",)
    assert run_page(page, folder, first, languages, SKIP.get(page.name, NEVER))
