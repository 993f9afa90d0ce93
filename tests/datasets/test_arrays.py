"""Decoded arrays in the cache: reused, checked, never trusted when damaged, never in the way."""

import numpy as np
import pytest

from gatefit.datasets.files import cached_array


class Decoder:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return np.arange(12, dtype=np.uint8).reshape(3, 4)


def test_decoded_once(cache):
    decode = Decoder()
    for _ in range(3):
        assert cached_array("small", "ab" * 32, decode).tolist() == decode().tolist()
        decode.calls -= 1
    assert decode.calls == 1
    assert sorted(path.suffix for path in (cache / "decoded").iterdir()) == [".npy", ".sha256"]
    cached_array("small", "cd" * 32, decode)
    assert decode.calls == 2


@pytest.mark.parametrize("suffix", [".npy", ".sha256"])
@pytest.mark.parametrize("damage", [lambda c: c[:-1], lambda c: c[:-1] + b"?", lambda c: b""])
def test_damaged_cache_is_decoded_again(cache, suffix, damage):
    decode = Decoder()
    cached_array("small", "ab" * 32, decode)
    (path,) = (cache / "decoded").glob(f"*{suffix}")
    path.write_bytes(damage(path.read_bytes()))
    assert cached_array("small", "ab" * 32, decode).tolist() == Decoder()().tolist()
    assert decode.calls == 2
    cached_array("small", "ab" * 32, decode)
    assert decode.calls == 2


def test_cache_that_cannot_be_written(cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the directory should be")
    decode = Decoder()
    assert cached_array("small", "ab" * 32, decode).shape == (3, 4)
    assert decode.calls == 1


def test_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert cached_array("small", "ab" * 32, Decoder()).shape == (3, 4)
    assert list((cache / "decoded").iterdir()) == []
