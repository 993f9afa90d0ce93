"""Budgets: the widest network that fits, and one clear error where none does."""

import pytest

from gatefit.training.budget import Size, budgeted, estimated_luts, largest_size
from gatefit.training.config import RunConfig


@pytest.mark.parametrize("classes", [1, 2, 10, 26])
@pytest.mark.parametrize("votes", ["all", "last"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_size_is_the_largest_that_fits(classes, votes, depth):
    wanted = Size(40 * classes, depth, votes)
    for limit in range(classes * depth, 45 * classes * depth, 7):
        size = largest_size(wanted, classes, max_gates=limit)
        assert size.gates <= limit
        assert size.depth == depth
        wider = Size(size.width + classes, depth, votes)
        assert wider.gates > limit or size == wanted
    for limit in range(estimated_luts(Size(classes, depth, votes), classes), 60 * classes * depth, 11):
        size = largest_size(wanted, classes, max_luts=limit)
        assert estimated_luts(size, classes) <= limit
        assert size == wanted or estimated_luts(Size(size.width + classes, size.depth, votes), classes) > limit


def test_both_limits_hold():
    size = largest_size(Size(1000, 2, "all"), 10, max_gates=1000, max_luts=700)
    assert size.gates <= 1000
    assert estimated_luts(size, 10) <= 700
    assert largest_size(Size(1000, 2, "all"), 10, max_gates=100, max_luts=7000) == Size(50, 2, "all")


def test_where_layers_do_not_fit_there_are_fewer():
    assert largest_size(Size(1000, 3, "all"), 10, max_gates=29) == Size(10, 2, "all")
    assert largest_size(Size(1000, 3, "all"), 10, max_gates=19) == Size(10, 1, "all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_gates": 9}, r"^max_gates=9 is too small: the smallest is 10, one layer of one gate for each of 10 cl"),
        ({"max_gates": 29, "fixed_depth": True}, r"^max_gates=29 is too small: the smallest is 30, 3 layers of one"),
        ({"max_luts": 20}, r"^max_luts=20 is too small: the smallest is 37, one layer of one gate for each of 10"),
        ({"max_gates": 0}, r"^max_gates must be None or a whole number >= 1, got 0$"),
        ({"max_luts": 2.5}, r"^max_luts must be None or a whole number >= 1, got 2.5$"),
        ({"max_luts": True}, r"^max_luts must be None or a whole number >= 1, got True$"),
    ],
)
def test_a_budget_that_nothing_fits_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        largest_size(Size(1000, 3, "all"), 10, **options)
    smallest = {"max_gates": 10, "max_luts": 37}
    name = next(name for name in options if name in smallest)
    assert largest_size(Size(1000, 3, "all"), 10, **{name: smallest[name]}) == Size(10, 1, "all")


def test_the_estimate_is_not_below_what_was_synthesised():
    """Tables that Yosys counted for trained networks on MNIST (target xilinx), and how many the estimate has more."""
    for size, synthesised in (
        (Size(493, 2, "all"), 2149),
        (Size(1965, 2, "all"), 9699),
        (Size(500, 2, "last"), 1103),
    ):
        assert synthesised <= estimated_luts(size, 10) <= 1.06 * synthesised


def test_a_runs_fields_follow_from_its_budget():
    fields = budgeted({"dataset": "mnist", "steps": 7}, 10, max_gates=4005)
    config = RunConfig(**fields)
    assert (config.width, config.depth, config.votes, config.wiring) == (2000, 2, "all", "learned")
    assert (config.steps, config.batch_size, config.schedule) == (7, 256, "cosine")
    assert config.readout_temperature == pytest.approx(9)  # 0.45 √(4000 / 10)
    tables = RunConfig(**budgeted({}, 10, max_luts=1111))
    assert (tables.width, tables.depth, tables.votes) == (500, 2, "last")
    fixed = RunConfig(**budgeted({"wiring": "random", "depth": 3, "learning_rate": 0.5}, 10, max_gates=100))
    assert (fixed.width, fixed.score_learning_rate, fixed.learning_rate) == (30, None, 0.5)
    with pytest.raises(ValueError, match=r"^max_gates and max_luts choose the width, got width=50 too; leave one out$"):
        budgeted({"width": 50}, 10, max_gates=100)
