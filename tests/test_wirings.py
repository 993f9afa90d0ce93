"""Wirings: the paper's scheme, uniqueness, balance, coverage, bad input."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from gatefit import LogicGateClassifier
from gatefit.cli import app
from gatefit.network import LogicNetwork
from gatefit.wirings import (
    WIRINGS,
    FixedWiring,
    WiringContext,
    WiringOptions,
    coverage,
    explicit_wiring,
    make_wiring,
    random_wiring,
    stride_wiring,
    unique_wiring,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def made(wiring, inputs, gates, seed=0, **place):
    return make_wiring(wiring, WiringContext(inputs, gates, generator(seed), **place))


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
    inputs = 120 if name == "tree" else 50
    one, two = (made(name, inputs, 60, seed=1).committed() for _ in range(2))
    assert torch.equal(one, two)
    assert one.dtype == torch.int32


@pytest.mark.parametrize("name", sorted({*WIRINGS} - {"learned", "tree"}))  # one chooses what it reads, one reads all
def test_fewer_gates_than_half_the_inputs_warn_and_report_the_coverage(name):
    with pytest.warns(UserWarning, match=r"10 gates read at most 20 of 100 inputs \(coverage 20.0%\); use 50 gates"):
        wiring = made(name, 100, 10)
    assert coverage(wiring.committed(), 100) == 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(name, 100, 50)


def test_sparse_unique_wiring_differs_between_seeds():
    one, two = (unique_wiring(100, 10, generator=generator(seed)) for seed in (1, 2))
    assert not torch.equal(one, two)


def test_explicit_wiring_is_kept():
    own = torch.tensor([[0, 1, 2], [3, 3, 3]])
    for choice in (own, FixedWiring(own, 4), lambda context: own):
        assert torch.equal(made(choice, 4, 3).committed(), own.int())


def test_a_wiring_reads_what_it_commits_to():
    wiring, x = made("unique", 6, 4), torch.rand(5, 6, generator=generator())
    a, b = wiring.read(x)
    assert torch.equal(a, x[:, wiring.committed()[0].long()])
    assert torch.equal(b, x[:, wiring.committed()[1].long()])


def test_auto_reads_every_pair_before_any_again_and_prefers_inputs():
    assert sorted(pairs(made("auto", 4, 13).committed())[:6]) == sorted(pairs(stride_wiring(4, 6)))
    assert made("auto", 1, 3).committed().tolist() == [[0, 0, 0], [0, 0, 0]]
    preferred = WiringOptions(preferred=np.array([3, 17, 40]))
    first = made("auto", 60, 100, depth=2, options=preferred).committed()
    assert np.isin(first.numpy(), preferred.preferred).all(axis=0).sum() >= 75
    second = made("auto", 60, 100, layer=1, depth=2, options=preferred).committed()
    assert torch.equal(second, made("unique", 60, 100).committed())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stride_wiring(4, 7), ValueError, r"4 inputs have 6 different pairs, got 7 gates; use width=6 or less"),
        (lambda: unique_wiring(3, 4, generator=generator()), ValueError, r"3 different pairs, got 4 gates"),
        (lambda: random_wiring(1, 4, generator=generator()), ValueError, r"reads two different inputs, got 1 in all"),
        (lambda: random_wiring(5, 0, generator=generator()), ValueError, r"at least one gate, got 0"),
        (lambda: made("grid", 4, 4), ValueError, r"unknown wiring 'grid'; choose one of"),
        (lambda: explicit_wiring(torch.zeros(2, 3), 4, 3), TypeError, r"must hold integers, got torch.float32"),
        (lambda: explicit_wiring(torch.zeros(2, 4).int(), 4, 3), ValueError, r"\(2, 3\), got \(2, 4\)"),
        (lambda: made(lambda _: 7, 4, 3), TypeError, r"a tensor \(2, gates\) or a gatefit.wirings.Wiring, got int"),
        (
            lambda: made(FixedWiring(torch.zeros(2, 3).int(), 9), 4, 3),
            ValueError,
            r"the layer has 4 inputs and 3 gates, got a wiring of 9 inputs for 3 gates",
        ),
        (lambda: explicit_wiring(torch.full((2, 3), 4), 4, 3), ValueError, r"inputs from 0 to 3, got 4 to 4"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", [name for name in WIRINGS if name != "tree"])  # which needs layers of half the width
def test_network_estimators_and_command_line_know_the_same_names(name, tmp_path):
    assert LogicNetwork(12, 2, 30, 2, wiring=name).configuration["wiring"] == name
    bits = np.random.default_rng(0).random((40, 6)) < 0.5
    model = LogicGateClassifier(width=12, depth=2, steps=2, wiring=name, random_state=0).fit(
        bits, bits[:, 0] ^ bits[:, 1]
    )
    # An estimator's own choice is learned; "fixed" is what the network calls "auto".
    assert model.network_.configuration["wiring"] == ("learned" if name == "auto" else name)
    options = f"train --dataset digits --width 230 --depth 2 --steps 2 --quiet --wiring {name} --out {tmp_path}"
    result = CliRunner().invoke(app, options.split())
    assert result.exit_code == 0, result.output
