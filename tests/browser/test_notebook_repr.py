"""What a notebook shows of circuits and estimators, in a browser; GATEFIT_SCREENSHOTS names a folder for a picture."""

import os
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from gatefit import Circuit, LogicGateClassifier

pytestmark = pytest.mark.outside


def opened(browser, folder, parts):
    path = folder / "notebook.html"
    path.write_text("<!doctype html><meta charset=utf-8><body>" + "<hr>".join(parts), encoding="utf-8")
    return browser.open(path, width=900, height=1100), path


@pytest.mark.parametrize("name", ["monks-1", "digits-400", "mnist-1k"])
def test_a_circuit_is_drawn_within_its_frame(browser, tmp_path, name):
    page, path = opened(browser, tmp_path, [Circuit.load(name)._repr_html_()])
    inside = """(() => {
      const frame = document.querySelector("svg").getBoundingClientRect();
      const parts = [...document.querySelectorAll("svg circle, svg rect, svg text")];
      return parts.length > 5 && parts.every((part) => {
        const box = part.getBoundingClientRect();
        return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
      });
    })()"""
    assert page.run(inside)
    assert page.run("document.querySelector('.gatefit-circuit').scrollWidth <= innerWidth")
    assert page.run("document.scripts.length") == 0
    assert page.complaints == []
    assert page.requests == [path.as_uri()]


def test_an_estimator_shows_its_circuit_below_its_parameters(browser, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = LogicGateClassifier(width=30, depth=2, steps=60, threads=1, random_state=0).fit(X, y)
    model.circuit_
    page, _ = opened(
        browser, tmp_path, [model._repr_mimebundle_()["text/html"], Circuit.load("mnist-1k")._repr_html_()]
    )
    assert page.run("document.body.innerText").count("4 features to 3 classes, 60 gates trained for 60 steps") == 1
    parameters, circuit = page.box("pre, .sk-top-container"), page.box(".gatefit-circuit")
    assert circuit[1] > parameters[1]
    wanted = os.environ.get("GATEFIT_SCREENSHOTS")
    picture = (Path(wanted) if wanted else tmp_path) / "notebook-repr.png"
    page.screenshot(picture)
    assert picture.stat().st_size > 5_000
