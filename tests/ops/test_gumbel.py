"""Gumbel noise: the right distribution, independent draws, and a state of two numbers."""

import numpy as np
import pytest
import torch
from scipy import stats

from gatefit.ops.gumbel import GumbelNoise, noisy
from gatefit.ops.gumbel.numba import SHARE, _minus_log
from gatefit.ops.implementations import NUMBA
from gatefit.ops.threads import training_threads


def draw(seed=1, gates=4000, steps=1):
    stream, parts = GumbelNoise(seed), []
    for _ in range(steps):
        part = torch.empty(gates, 16)
        stream.fill(part, implementation=NUMBA)
        parts.append(part.numpy())
    return np.concatenate(parts)


@pytest.mark.parametrize("seed", [0, 1, 2**61])
def test_noise_is_gumbel(seed):
    assert stats.kstest(draw(seed).ravel(), stats.gumbel_r.cdf).pvalue > 1e-3


def test_the_largest_of_sixteen_is_uniform_over_the_places():
    # What Gumbel-ST uses it for: argmax over equal logits must choose every gate equally often.
    counts = np.bincount(draw(3, gates=20_000).argmax(1), minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_draws_of_different_places_steps_and_seeds_are_uncorrelated():
    noise = draw(5, gates=3000, steps=2)
    first, second = noise[:3000], noise[3000:]
    pairs = [(first, second), (first, draw(6, gates=3000)), (first[:, :8], first[:, 8:]), (first[:-1], first[1:])]
    for one, two in pairs:
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.02


def test_logarithm_is_exact_to_a_few_units_in_the_last_place():
    x = np.concatenate([np.random.default_rng(0).random(100_000), [2.0**-25, 1 - 2.0**-24, 0.70710678, 1.5, 17.3]])
    floats = x.astype(np.float32)
    expected = -np.log(floats.astype(np.float64))
    _minus_log(floats.view(np.int32), floats, np.empty_like(floats), floats.size)
    np.testing.assert_allclose(floats, expected, rtol=5e-7, atol=1e-12)


def test_state_resumes_the_stream():
    stream, one, two = GumbelNoise(9), torch.empty(50, 16), torch.empty(50, 16)
    stream.fill(one, implementation=NUMBA)
    saved = stream.get_state()
    stream.fill(one, implementation=NUMBA)
    other = GumbelNoise(0)
    other.set_state(saved)
    other.fill(two, implementation=NUMBA)
    assert torch.equal(one, two)


@pytest.mark.parametrize("gates", [1, 17, SHARE // 16 - 1, SHARE // 16, SHARE // 16 + 1, 3 * SHARE // 16 + 5])
def test_noise_is_the_same_on_any_number_of_threads(gates):
    drawn = []
    for threads in (1, 2, 3):
        with training_threads(threads):
            drawn.append(draw(11, gates, steps=2))
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_on_logits_is_what_the_streams_draw_for_their_parts(dtype):
    logits, streams = torch.randn(2 * 5000, 16, dtype=dtype), [GumbelNoise(7), GumbelNoise(8)]
    drawn = torch.cat([torch.from_numpy(draw(seed, gates=5000)) for seed in (7, 8)])
    for threads in (1, 3):
        with training_threads(threads):
            found = noisy(logits, streams, 1.0, implementation=NUMBA)
        assert torch.equal(found, logits + drawn)
        assert [stream.step for stream in streams] == [1, 1]
        streams = [GumbelNoise(7), GumbelNoise(8)]
    with pytest.raises(ValueError, match="3 streams draw for equal parts, got 10000 gates"):
        noisy(logits, [*streams, GumbelNoise(9)], 1.0, implementation=NUMBA)


def test_noise_of_a_place_does_not_depend_on_how_many_follow():
    assert np.array_equal(draw(12, gates=3 * SHARE // 16)[: SHARE // 16 + 16], draw(12, gates=SHARE // 16 + 16))
