"""Wirings: the paper's scheme, uniqueness, balance, coverage, bad input."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatefit.wirings import WIRINGS, coverage, explicit_wiring, make_wiring, random_wiring, stride_wiring, unique_wiring


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pairs(wiring):
    return [tuple(pair) for pair in wiring.T.tolist()]


def test_stride_follows_the_papers_order():
    assert pairs(stride_wiring(6, 5)) == [(0, 1), (2, 3), (4, 5), (1, 2), (3, 4)]
    assert pairs(stride_wiring(6, 9)) == [(0, 1), (2, 3), (4, 5), (1, 2), (3, 4), (0, 2), (2, 4), (1, 3), (3, 5)]


def test_stride_spreads_a_block_that_is_only_partly_used():
    assert pairs(stride_wiring(12, 8))[6:] == [(3, 4), (9, 10)]
    assert pairs(stride_wiring(12, 3)) == [(2, 3), (6, 7), (10, 11)]


@given(st.integers(2, 40), st.data())
def test_stride_pairs_are_distinct_and_cover_all_inputs_as_soon_as_they_can(inputs, data):
    gates = data.draw(st.integers(1, inputs * (inputs - 1) // 2))
    wiring = stride_wiring(inputs, gates)
    assert wiring.dtype == torch.int32
    assert wiring.shape == (2, gates)
    assert len({frozenset(pair) for pair in pairs(wiring)}) == gates
    assert (wiring[0] != wiring[1]).all()
    if 2 * gates >= inputs:
        assert coverage(wiring, inputs) == 1


@given(st.integers(2, 40), st.data())
def test_unique_is_the_same_pairs_in_another_order(inputs, data):
    gates = data.draw(st.integers(-(-inputs // 2), max(-(-inputs // 2), inputs * (inputs - 1) // 2)))
    if gates > inputs * (inputs - 1) // 2:
        return
    unique = unique_wiring(inputs, gates, generator=generator())
    assert sorted(pairs(unique)) == sorted(pairs(stride_wiring(inputs, gates)))


def test_unique_serves_the_maximum_number_of_pairs():
    assert sorted(pairs(unique_wiring(3, 3, generator=generator()))) == [(0, 1), (0, 2), (1, 2)]
    assert len(set(pairs(unique_wiring(17, 136, generator=generator())))) == 136


@given(st.integers(2, 40), st.integers(1, 200), st.integers(0, 5))
def test_random_is_balanced_and_never_reads_one_input_twice(inputs, gates, seed):
    wiring = random_wiring(inputs, gates, generator=generator(seed))
    counts = wiring.flatten().bincount(minlength=inputs)
    assert counts.max() - counts.min() <= 1
    assert (wiring[0] != wiring[1]).all()


@pytest.mark.parametrize("name", WIRINGS)
def test_same_seed_same_wiring(name):
    assert torch.equal(
        make_wiring(name, 50, 60, generator=generator(1)), make_wiring(name, 50, 60, generator=generator(1))
    )


@pytest.mark.parametrize("name", WIRINGS)
def test_fewer_gates_than_half_the_inputs_warn_and_report_the_coverage(name):
    with pytest.warns(UserWarning, match=r"10 gates read at most 20 of 100 inputs \(coverage 20.0%\); use 50 gates"):
        wiring = make_wiring(name, 100, 10, generator=generator())
    assert coverage(wiring, 100) == 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_wiring(name, 100, 50, generator=generator())


def test_sparse_unique_wiring_differs_between_seeds():
    one, two = (unique_wiring(100, 10, generator=generator(seed)) for seed in (1, 2))
    assert not torch.equal(one, two)


def test_explicit_wiring_is_kept():
    own = torch.tensor([[0, 1, 2], [3, 3, 3]])
    assert torch.equal(make_wiring(own, 4, 3, generator=generator()), own.int())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stride_wiring(4, 7), ValueError, r"4 inputs have 6 different pairs, got 7 gates; use width=6 or less"),
        (lambda: unique_wiring(3, 4, generator=generator()), ValueError, r"3 different pairs, got 4 gates"),
        (lambda: random_wiring(1, 4, generator=generator()), ValueError, r"reads two different inputs, got 1 in all"),
        (lambda: random_wiring(5, 0, generator=generator()), ValueError, r"at least one gate, got 0"),
        (lambda: make_wiring("grid", 4, 4, generator=generator()), ValueError, r"unknown wiring 'grid'; choose one of"),
        (lambda: explicit_wiring(torch.zeros(2, 3), 4, 3), TypeError, r"must hold integers, got torch.float32"),
        (lambda: explicit_wiring(torch.zeros(2, 4).int(), 4, 3), ValueError, r"\(2, 3\), got \(2, 4\)"),
        (lambda: explicit_wiring(torch.full((2, 3), 4), 4, 3), ValueError, r"inputs from 0 to 3, got 4 to 4"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
