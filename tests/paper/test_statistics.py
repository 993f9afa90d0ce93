"""Statistics: against the paper's own tables, values worked out by hand, and what must hold for any numbers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gatefit.paper.statistics import PowerLaw, mean_and_std, paired_t_test, pearson, power_law, sign_test

numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 6))

# tab:width-scaling, L = 1, at 8k, 16k, 32k and 64k; tab:scaling-exponents gives alpha, B and the error at 256k.
WIDTHS = (8000, 16000, 32000, 64000)
SCALING = {
    "Soft-Mix": ((91.89, 93.22, 94.56, 95.24), 0.262, 85, 3.25),
    "Gumbel-ST": ((91.73, 93.15, 94.72, 95.98), 0.350, 196, 2.52),
    "M-STE": ((91.39, 93.25, 95.10, 96.46), 0.431, 424, 1.98),
    "M-CovJac": ((91.62, 93.48, 95.14, 96.51), 0.422, 378, 1.98),
}


@pytest.mark.parametrize("method", SCALING)
def test_tab_scaling_exponents_is_reproduced(method):
    accuracies, alpha, scale, at_256k = SCALING[method]
    law = power_law(WIDTHS, accuracies)
    assert law.alpha == pytest.approx(alpha, abs=5e-4)
    assert law.scale == pytest.approx(scale, abs=0.5)
    assert law.error(256_000) == pytest.approx(at_256k, abs=6e-3)
    assert law.r_squared > 0.99


def test_erratum__one_per_cent_error_takes_other_widths_than_the_paper_says():
    """Paper: 230k gates (multilinear) and 2.1M (Soft-Mix). Its own fit says 1.3M and 23M."""
    widths = {name: power_law(WIDTHS, row[0]).width_for_error(1) for name, row in SCALING.items()}
    assert widths["M-CovJac"] == pytest.approx(1.30e6, rel=0.01)
    assert widths["Soft-Mix"] == pytest.approx(22.9e6, rel=0.01)


def test_tab_starvation_severity_is_correlated_as_the_paper_says():
    starvation = (-0.23, -0.06, 0.20, 1.52, 2.11, 3.90, 2.79)
    advantage = (0.02, 0.13, 0.21, 2.22, 2.95, 4.35, 7.53)
    found = pearson(starvation, advantage)
    assert round(found.r, 2) == 0.85
    assert found.count == 7
    assert found.p == pytest.approx(0.0164, abs=1e-4)


def test_the_papers_sign_test_is_one_sided():
    found = sign_test(7, 0)
    assert (found.one_sided, found.two_sided) == (2**-7, 2**-6)
    assert found.one_sided < 0.01 < found.two_sided


def test_the_papers_t_has_the_papers_p():
    """t = 8.70 with three seeds is p = 0.013; the seeds themselves are not in the paper."""
    base, wanted = np.array([1.0, 2.0, 4.0]), 8.70
    noise = np.array([-1.0, 0.0, 1.0])  # mean 0, s = 1
    found = paired_t_test(base + noise + wanted / math.sqrt(3), base)
    assert found.t == pytest.approx(wanted)
    assert found.p == pytest.approx(0.013, abs=5e-4)
    assert found.dof == 2


def test_values_by_hand():
    assert mean_and_std([2.0, 4.0, 4.0, 6.0]) == (4.0, pytest.approx(math.sqrt(8 / 3)))
    assert mean_and_std([5.0]) == (5.0, None)
    found = paired_t_test([3.0, 5.0, 8.0], [1.0, 4.0, 5.0])  # d = 2, 1, 3
    assert (found.t, found.dof, found.difference) == (pytest.approx(2 * math.sqrt(3)), 2, 2.0)
    # Two degrees of freedom: P(|T| > t) = 1 - t / √(2 + t²).
    assert found.p == pytest.approx(1 - found.t / math.sqrt(2 + found.t**2))
    assert (sign_test(3, 1).one_sided, sign_test(3, 1).two_sided) == (pytest.approx(5 / 16), pytest.approx(10 / 16))
    assert sign_test(0, 2).one_sided == 1
    assert pearson([0, 1, 2], [0, 1, 0]).r == pytest.approx(0)
    assert pearson([0, 1, 2, 3], [1, 2, 2, 3]).r == pytest.approx(3 / math.sqrt(10))


def test_what_r_squared_cannot_say():
    assert power_law([10, 100], [90, 99]) == PowerLaw(pytest.approx(1), pytest.approx(100), None)
    flat = power_law([10, 100, 1000], [90, 90, 90])
    assert (flat.alpha, flat.r_squared) == (pytest.approx(0), None)
    assert power_law([10, 100, 1000], [90, 99, 99]).r_squared == pytest.approx(0.75)


@given(st.lists(numbers, min_size=2, max_size=20))
def test_mean_and_std_are_the_definition(values):
    mean, std = mean_and_std(values)
    assert mean == pytest.approx(math.fsum(values) / len(values), abs=1e-9)
    assert std**2 * (len(values) - 1) == pytest.approx(math.fsum((v - mean) ** 2 for v in values), rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12), numbers)
def test_a_t_test_changes_sign_with_its_sides_and_not_with_a_shift(pairs, shift):
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    assume(np.ptp(a - b) > 1e-3)
    found, turned, moved = paired_t_test(a, b), paired_t_test(b, a), paired_t_test(a + shift, b + shift)
    assert (turned.t, turned.difference) == (-found.t, -found.difference)
    assert turned.p == found.p
    assert moved.t == pytest.approx(found.t, rel=1e-6, abs=1e-6)
    d = a - b
    assert found.t == pytest.approx(d.mean() / (d.std(ddof=1) / math.sqrt(len(d))), rel=1e-9, abs=1e-12)
    assert 0 <= found.p <= 1


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_sign_test_adds_up_coins(wins, losses):
    assume(wins + losses)
    found, total = sign_test(wins, losses), wins + losses
    tail = sum(math.comb(total, k) for k in range(wins, total + 1)) / 2**total
    assert found.one_sided == pytest.approx(tail)
    larger = sum(math.comb(total, k) for k in range(max(wins, losses), total + 1)) / 2**total
    assert found.two_sided == pytest.approx(min(1, 2 * larger))
    assert sign_test(losses, wins).two_sided == pytest.approx(found.two_sided)


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=15), st.floats(0.1, 10), numbers)
def test_a_correlation_ignores_scale_and_sides(pairs, scale, shift):
    x, y = (np.array(side) for side in zip(*pairs, strict=True))
    assume(np.ptp(x) > 1e-2 and np.ptp(y) > 1e-2)
    r = pearson(x, y).r
    assert -1 - 1e-9 <= r <= 1 + 1e-9
    assert pearson(y, x).r == pytest.approx(r, abs=1e-9)
    assert pearson(-scale * x + shift, y).r == pytest.approx(-r, abs=1e-6)


@given(st.floats(0.05, 1.5), st.floats(0.5, 60), st.lists(st.integers(1, 10**6), min_size=3, max_size=8, unique=True))
def test_an_exact_power_law_is_found(alpha, scale, widths):
    assume(max(widths) > 1.5 * min(widths))
    law = power_law(widths, [100 - scale * k**-alpha for k in widths])
    assume(scale * max(widths) ** -alpha > 1e-6)  # below, 100 - A is mostly rounding
    assert law.alpha == pytest.approx(alpha, rel=1e-3)
    assert law.scale == pytest.approx(scale, rel=1e-2)
    assert law.predict(500) == pytest.approx(100 - scale * 500**-alpha, abs=1e-2)
    assert law.error(law.width_for_error(2.0)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_and_std([]), r"values must hold at least one number, got shape \(0,\)"),
        (lambda: mean_and_std([1.0, math.nan]), r"values must be finite numbers"),
        (lambda: mean_and_std([[1.0], [2.0]]), r"got shape \(2, 1\)"),
        (lambda: paired_t_test([1, 2], [1, 2, 3]), r"a and b must be pairs, got 2 and 3 numbers"),
        (lambda: paired_t_test([1], [2]), r"a must hold at least 2 numbers"),
        (lambda: paired_t_test([0.3, 0.7], [0.2, 0.6]), r"all 2 differences are 0.1: without spread there is no t"),
        (lambda: sign_test(-1, 2), r"wins must be a whole number >= 0, got -1"),
        (lambda: sign_test(1, 2.5), r"losses must be a whole number >= 0, got 2.5"),
        (lambda: sign_test(0, 0), r"at least one comparison that is not a tie"),
        (lambda: pearson([1, 2], [1, 2]), r"x must hold at least 3 numbers"),
        (lambda: pearson([1, 2, 3], [4, 4, 4]), r"y is 4 throughout: a constant correlates with nothing"),
        (lambda: pearson([1, 2, 3], [4, 4]), r"x and y must be pairs, got 3 and 2"),
        (lambda: power_law([8000], [90]), r"widths must hold at least 2 numbers"),
        (lambda: power_law([8000, 8000], [90, 91]), r"at least two different widths, got 8000 only"),
        (lambda: power_law([1, 2, 3], [90, 100, 91]), r"accuracies must be below 100 %, got 100"),
        (lambda: power_law([0, 2, 3], [90, 91, 92]), r"widths must be > 0, got 0"),
        (lambda: power_law([1, 2], [90, math.inf]), r"accuracies must be finite numbers"),
        (lambda: power_law([1, 2], [95, 90]).width_for_error(1), r"does not fall with width \(alpha = -1\)"),
        (lambda: power_law([1, 2], [90, 95]).width_for_error(0), r"an error is a finite number > 0 of per cent, got 0"),
        (lambda: power_law([1, 2], [90, 95]).predict(-3), r"a width is a finite number > 0, got -3"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_statistics_need_no_torch_and_load_scipy_when_used():
    import subprocess
    import sys

    code = "import sys, gatefit.paper.statistics; print([m for m in ('torch', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
