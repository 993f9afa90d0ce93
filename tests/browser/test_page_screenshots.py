"""Pictures of the page for the documentation: taken where GATEFIT_SCREENSHOTS names a folder, always checked."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gatefit.backends.html import Samples
from gatefit.circuit.ir import Circuit
from gatefit.datasets import load_dataset
from gatefit.datasets.adult import load_adult_frame

pytestmark = pytest.mark.outside

THREE = [(0.3, 0.25), (0.4, 0.15), (0.55, 0.15), (0.65, 0.25), (0.6, 0.4), (0.45, 0.48), (0.6, 0.55), (0.68, 0.68),
         (0.6, 0.82), (0.42, 0.85), (0.28, 0.75)]  # fmt: skip
LARGEST = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    wanted = os.environ.get("GATEFIT_SCREENSHOTS")
    return Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")


@pytest.fixture(scope="module")
def mnist():
    data = os.environ.get("GATEFIT_DATA")
    if not data:
        pytest.skip("needs real data: set GATEFIT_DATA to the folder that holds mnist/")
    return load_dataset("mnist", data_dir=data, download=False)


@pytest.fixture(scope="module")
def mnist_circuit(train, mnist):
    return train(mnist, width=4000, depth=4, steps=500)


def few(dataset, count):
    chosen = np.sort(np.concatenate([np.flatnonzero(dataset.y_test == k)[:count] for k in range(dataset.classes)]))
    return Samples(dataset.x_test[chosen], dataset.y_test[chosen])


def draw(page, points):
    page.run("document.querySelector('#clear').click()")
    left, top, width, height = page.box(".pad")
    places = [(left + x * width, top + y * height) for x, y in points]
    dense = [
        (a[0] + (b[0] - a[0]) * i / 6, a[1] + (b[1] - a[1]) * i / 6) for a, b in pairwise(places) for i in range(6)
    ]
    page.drag([*dense, places[-1]])


def save(page, path, **options):
    page.wait_for("gatefit.findings() !== null")
    page.run("document.activeElement.blur()")
    page.run("scrollTo(0, 0)")
    page.frames(3)
    page.screenshot(path, **options)
    Image.open(path).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    assert 5_000 < path.stat().st_size < LARGEST, path


@pytest.mark.slow
@pytest.mark.data
def test_a_drawn_digit(show, mnist, mnist_circuit, folder):
    page = show(mnist_circuit, title="MNIST handwritten digits", samples=few(mnist, 2))
    draw(page, THREE)
    assert page.run("document.querySelector('#prediction').textContent") == "3"
    clip = {"x": 0, "y": 0, "width": 1280, "height": 830, "scale": 0.75}
    save(page, folder / "browser-digit.png", clip=clip)


@pytest.mark.slow
@pytest.mark.data
def test_the_circuit_in_the_dark(show, mnist, mnist_circuit, folder):
    dark = {"prefers_color_scheme": "dark"}
    page = show(mnist_circuit, title="MNIST handwritten digits", samples=few(mnist, 2), emulation=dark)
    draw(page, THREE)
    clip = {"x": 0, "y": 0, "width": 1280, "height": 830, "scale": 0.75}
    save(page, folder / "browser-dark.png", clip=clip)
    page.run("gatefit.select({chosen: 3})")
    save(page, folder / "browser-circuit.png", selector=".wide-card", scale=0.8)


@pytest.mark.slow
@pytest.mark.data
def test_a_phone(show, mnist, mnist_circuit, folder):
    page = show(mnist_circuit, title="MNIST handwritten digits", samples=few(mnist, 2), size=(390, 844))
    draw(page, THREE)
    save(page, folder / "browser-phone.png", clip={"x": 0, "y": 0, "width": 390, "height": 1180, "scale": 0.8})


@pytest.mark.slow
@pytest.mark.data
def test_a_form(show, data_dir, folder):
    from gatefit import LogicGateClassifier

    x, y, x_test, y_test = load_adult_frame(data_dir=data_dir, download=False)
    model = LogicGateClassifier(width=400, depth=3, steps=400, random_state=0).fit(x, y)
    circuit: Circuit = model.circuit_
    classes = np.array([list(circuit.class_names).index(label) for label in y_test[:8]])
    rows = x_test.iloc[:8].to_numpy(dtype=object)
    page = show(circuit, title="Adult: who earns more than 50,000 dollars?", samples=Samples(rows, classes))
    clip = {"x": 0, "y": 0, "width": 1280, "height": 1010, "scale": 0.75}
    save(page, folder / "browser-table.png", clip=clip)
    assert page.run("gatefit.scores()") == circuit.scores(x_test.iloc[:1])[0].tolist()


@pytest.mark.slow
def test_what_is_proved(show, digits, folder):
    committed = Path(__file__).parents[2] / "benchmarks" / "results" / "hardware" / "digits.gate"
    samples = Samples(digits.x_test[1:2], digits.y_test[1:2])
    page = show(Circuit.load(committed), title="Digits", samples=samples, why=600)
    page.wait_for("gatefit.findings() !== null")
    assert page.run("document.querySelector('#badge').textContent") == "No single pixel can change this"
    assert page.run("gatefit.proved().nearest.changed.length") == 2
    assert page.run("document.querySelectorAll('#reason li').length") > 10
    save(page, folder / "browser-why.png", selector="#proofs")
