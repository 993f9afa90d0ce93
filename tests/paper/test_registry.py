"""Labels are found by name, and an unknown one is refused with its neighbours."""

import subprocess
import sys

import pytest

from gatefit.paper.outcome import SCALES
from gatefit.paper.registry import EXPERIMENTS, experiment, labels

PAPER = {
    "tab:mnist-main", "tab:best-acc", "fig:depth-scaling", "tab:depth", "tab:depth-100k", "tab:adult-depth",
    "tab:cifar-depth", "tab:cifar100-depth", "tab:ablation", "tab:basis-constraint-main",
    "tab:basis-constraint-depth", "tab:ste-basis-catalogue", "tab:width-scaling", "tab:scaling-exponents",
    "tab:param-budget", "tab:cifar-full", "tab:scale-up", "tab:h7-cross-dataset", "tab:starvation-severity",
    "fig:interaction-scaling", "tab:tau-sensitivity", "tab:wiring-ablation", "tab:mlp-cnn-baseline", "tab:cost",
    "tab:method-summary", "tab:ste-enumeration", "tab:degree-complexity", "fig:commitment", "fig:cancellation",
    "fig:codebook-neurons", "fig:codebook-3d", "fig:gate-selection", "app:entropy", "app:gradnorm", "sec:controls",
    "app:significance", "app:gap-decomp",
}  # fmt: skip


def test_every_label_of_the_paper_is_there():
    assert PAPER == {label for label in labels() if not label.startswith("extra:")}
    assert len(labels()) == len(set(labels())) == len(EXPERIMENTS)


@pytest.mark.parametrize("label", labels())
def test_an_experiment_says_what_it_is(label):
    each = experiment(label)
    assert each.label == label
    assert each.title
    assert set(each.default_seeds) == set(SCALES)


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("tab:dept", "tab:depth"),
        ("depth", "fig:depth-scaling"),
        ("tab:cifar", "tab:cifar-full"),
        ("fig:cancelation", "fig:cancellation"),
    ],
)
def test_an_unknown_label_is_refused_with_the_nearest(given, near):
    with pytest.raises(ValueError, match=rf"^unknown label '{given}'; nearest: .*{near}.*--list$"):
        experiment(given)


def test_a_label_like_no_other_is_refused_too():
    with pytest.raises(ValueError, match=r"^unknown label 'xyz'; all labels: gatefit reproduce --list$"):
        experiment("xyz")


def test_planning_and_showing_need_neither_torch_nor_numba():
    code = (
        "import sys\n"
        "from gatefit.paper.registry import EXPERIMENTS\n"
        "for each in EXPERIMENTS.values():\n"
        "    each.plan('small', (0,))\n"
        "print(sorted({'torch', 'numba', 'sklearn', 'pandas', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
