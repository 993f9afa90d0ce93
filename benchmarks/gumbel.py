"""What makes Gumbel-ST learn: where its noise enters, how strong it is, how many samples share a draw.

    python benchmarks/gumbel.py [--only monks-2] [--out benchmarks/results]

Each row changes one thing. Accuracy of the deployed network (argmax θ): last-10, the mean of the last ten evaluations,
and last, the last one; train loss of the last window, of the network as it is trained; seconds of one processor for all
seeds. Every row but those of noise per chunk is one `gatefit train` with the options named in it. Finished rows are
kept in gumbel.json, so that the script can be stopped and resumed. MNIST is read from $GATEFIT_DATA.

Noise per chunk: the batch is cut into chunks, and every gate draws anew for each. That is the same as training on the
chunks one after another and adding up the gradients.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from gatefit.datasets import Dataset, DatasetError, load_dataset
from gatefit.network import LogicNetwork
from gatefit.ops.threads import training_threads
from gatefit.training.checkpoint import TrainingState
from gatefit.training.config import RunConfig
from gatefit.training.data import DataOrder
from gatefit.training.loop import Learner, evaluation, loss_of, make_optimiser, train_together
from gatefit.training.metrics import summary
from gatefit.training.runs import build_network, training_data
from gatefit.training.side_by_side import SideBySide


class Case(NamedTuple):
    """Runs that are compared with one another."""

    base: RunConfig
    seeds: int
    paper: float | None
    """What the paper reports for Gumbel-ST in this setting, where it does."""
    rows: dict[str, dict[str, Any]]
    """Options of each row; ``chunk`` is the number of samples that share a draw."""


REFERENCES: dict[str, dict[str, Any]] = {
    "soft-mix": {"method": "soft-mix"},
    "hard-st": {"method": "hard-st"},
    "gumbel-st": {},
    "noise_in=backward": {"noise_in": "backward"},
    "noise_in=forward": {"noise_in": "forward"},
}
MONKS = RunConfig(dataset="monks-2", method="gumbel-st", steps=10_000)
MNIST = RunConfig(dataset="mnist", method="gumbel-st", width=2000, depth=3, steps=1500, evaluate_every=150)
CASES: dict[str, Case] = {
    "monks-2": Case(
        MONKS,
        3,
        81.46,
        REFERENCES
        | {f"noise_scale={scale}": {"noise_scale": scale} for scale in (0.25, 0.1, 0.05, 0.02)}
        | {
            "noise per 64 samples": {"chunk": 64},
            "temperature=0.3": {"temperature": 0.3},
            "temperature=3": {"temperature": 3.0},
            "sigma=6": {"sigma": 6.0},
            "initialisation=residual": {"initialisation": "residual"},
            "readout_temperature=10": {"readout_temperature": 10.0},
            "noise_steps=1000": {"noise_steps": 1000},
            "noise_steps=5000": {"noise_steps": 5000},
        },
    ),
    "mnist 3 x 2000": Case(
        MNIST,
        1,
        None,
        REFERENCES
        | {f"noise_scale={scale}": {"noise_scale": scale} for scale in (0.25, 0.1, 0.02)}
        | {
            "noise per 64 samples": {"chunk": 64},
            "noise_steps=500": {"noise_steps": 500},
            "steps=10000": {"steps": 10_000, "evaluate_every": 1000},
            "steps=10000, noise_in=backward": {"steps": 10_000, "evaluate_every": 1000, "noise_in": "backward"},
            "steps=10000, method=soft-mix": {"steps": 10_000, "evaluate_every": 1000, "method": "soft-mix"},
        },
    ),
    "mnist 6 x 2000": Case(
        replace(MNIST, depth=6),
        1,
        None,
        REFERENCES
        | {
            "noise_scale=0.02": {"noise_scale": 0.02},
            "noise_steps=500": {"noise_steps": 500},
            "steps=5000": {"steps": 5000, "evaluate_every": 500},
        },
    ),
}


def by_chunks(config: RunConfig, network: LogicNetwork, dataset: Dataset, chunk: int) -> TrainingState:
    """Train with gates drawn anew for every ``chunk`` samples of a batch."""
    data, state = training_data(config, dataset), TrainingState()
    optimiser, order = make_optimiser(config, network), DataOrder(data.train.samples, config.batch_size, config.seed)
    network.train()
    while state.step < config.steps:
        optimiser.zero_grad(set_to_none=True)
        indices = order.indices(state.step)
        for start in range(0, len(indices), chunk):
            part = indices[start : start + chunk]
            loss = loss_of(network(data.train.batch(part)), data.train_targets[part], None) * (len(part) / len(indices))
            loss.backward()
            state.loss_sum += float(loss.detach())
        optimiser.step()
        state.step, state.loss_count = state.step + 1, state.loss_count + 1
        if state.step % config.evaluate_every == 0 or state.step == config.steps:
            evaluation(network, data, state)
    return state


def measure(case: Case, options: dict[str, Any]) -> dict[str, Any]:
    """Train one row's seeds; side by side where they can be."""
    options = dict(options)
    chunk = options.pop("chunk", None)
    configs = [replace(case.base, seed=seed, **options).resolved() for seed in range(case.seeds)]
    dataset = load_dataset(configs[0].dataset, download=False)
    networks = [build_network(config, dataset) for config in configs]
    start = time.process_time()
    if chunk is None:
        data = training_data(configs[0], dataset)
        together = train_together(list(map(Learner, configs, networks)), data, strategy=SideBySide(), threads=1)
        states = [result.state for result in together]
    else:
        with training_threads(1):
            states = [by_chunks(c, n, dataset, chunk) for c, n in zip(configs, networks, strict=True)]
    summaries = [summary(state.metrics) for state in states]
    return {
        "last_10": [100 * row["last_10_accuracy"] for row in summaries],
        "last": [100 * row["test_accuracy"] for row in summaries],
        "train": [100 * row["train_accuracy"] for row in summaries],
        "loss": [state.metrics[-1]["loss"] for state in states],
        "seconds": time.process_time() - start,
    }


def table(case: Case, results: dict[str, dict[str, Any]]) -> str:
    """The finished rows of one case."""
    lines = ["| | last-10 | last | train | loss | CPU s |", "|---|---|---|---|---|---|"]
    if case.paper is not None:
        lines.append(f"| the paper's Gumbel-ST | {case.paper:.2f} | | | | |")
    for name, row in results.items():
        spread = f" ± {np.std(row['last_10'], ddof=1):.2f}" if case.seeds > 1 else ""
        figures = " | ".join(f"{np.mean(row[key]):.2f}" for key in ("last", "train", "loss"))
        lines.append(f"| {name} | {np.mean(row['last_10']):.2f}{spread} | {figures} | {row['seconds']:.0f} |")
    return "\n".join(lines)


def agreement_table(gates: int = 200_000) -> str:
    """How often a gate drawn with noise is the deployed one, at N(0, 1) logits; and all gates of an output's cone."""
    logits = torch.randn(gates, 16, generator=torch.Generator().manual_seed(0))
    lines = ["| noise_scale | P(drawn = argmax θ) | all 7 of a cone, L = 3 | all 63, L = 6 |", "|---|---|---|---|"]
    for scale in (1.0, 0.5, 0.25, 0.1, 0.05, 0.02):
        agreed = float(torch.softmax(logits / scale, dim=-1).amax(-1).mean())
        lines.append(f"| {scale} | {agreed:.3f} | {agreed**7:.2g} | {agreed**63:.2g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(CASES), nargs="+", default=list(CASES))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "gumbel.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in arguments.only:
        finished = results.setdefault(name, {})
        for row, options in CASES[name].rows.items():
            if row in finished:
                continue
            try:
                finished[row] = measure(CASES[name], options)
            except DatasetError as error:
                print(f"{name} is left out: {error}")
                break
            path.write_text(json.dumps(results, indent=1))
            print(name, row, f"{np.mean(finished[row]['last_10']):.2f} {finished[row]['seconds']:.0f}s", flush=True)
    text = ["Gates that are the deployed ones:\n", agreement_table(), ""]
    for name, case in CASES.items():
        ordered = {row: results[name][row] for row in case.rows if row in results.get(name, {})}
        if ordered:
            text += [f"## {name}\n", table(case, ordered), ""]
    (arguments.out / "gumbel.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
