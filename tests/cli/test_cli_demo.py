"""The demo's second process: it compiles what circuits need, and is gone when the demo is."""

import os
import subprocess
import sys

import pytest

from gatefit.cli import demo


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found = []

    class Noted(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return found


def test_nothing_is_left_of_it(monkeypatch, started):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with demo._circuits_meanwhile():
        (helper,) = started
        assert helper.poll() is None
    assert helper.returncode is not None


def test_nor_when_the_demo_is_stopped(monkeypatch, started):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def stopped():
        with demo._circuits_meanwhile():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert started[0].returncode is not None


@pytest.mark.parametrize("processors", [1, None])
def test_a_single_processor_is_left_to_the_demo(monkeypatch, started, processors):
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    with demo._circuits_meanwhile():
        assert not started


def test_it_does_what_it_is_asked_for_without_torch():
    code = (
        "from gatefit.warm_up import simple_circuits; simple_circuits(); import sys; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
