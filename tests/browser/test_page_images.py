"""Drawing on the page: what is recognised is what the engine recognises, stroke by stroke."""

from itertools import groupby

import numpy as np
import pytest

from gatefit.backends.html import Samples
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.datasets import load_dataset
from gatefit.encoders import Thermometer
from strategies import layered_circuit

pytestmark = pytest.mark.outside


def check(page, circuit: Circuit) -> tuple[np.ndarray, int]:
    """The page's pixels and class, after its scores were compared with the engine's."""
    values, scores, answer = page.run("[gatefit.values(), gatefit.scores(), gatefit.answer()]")
    pixels = np.array([values]).astype(np.uint8)
    assert pixels[0].tolist() == values
    engine = Engine(circuit, threads=1)
    bits = circuit.encoder.transform(pixels)
    assert engine.scores(bits)[0].tolist() == scores
    assert engine.predict(bits)[0] == answer
    return pixels[0], answer


def strokes(image: np.ndarray, box, threshold: float):
    """Horizontal strokes over the runs of dark pixels, as points on the screen."""
    left, top, width, height = box
    rows, columns = image.shape
    for row in range(rows):
        for dark, run in groupby(range(columns), key=lambda column: image[row, column] > threshold):
            places = list(run)
            if dark:
                ends = sorted({places[0], places[-1]})
                yield [(left + (c + 0.5) * width / columns, top + (row + 0.5) * height / rows) for c in ends]


def test_a_hundred_digits_drawn_by_mouse_get_the_engines_answer(show, digits, digits_circuit):
    page = show(digits_circuit, title="Digits")
    box = page.box(".pad")
    right = 0
    for image, label in zip(digits.x_test[:100], digits.y_test[:100], strict=True):
        page.run("document.querySelector('#clear').click()")
        for stroke in strokes(image.reshape(8, 8), box, 6):
            page.drag(stroke, wait=False)
        page.settle()
        pixels, answer = check(page, digits_circuit)
        assert pixels.max() > 8
        right += answer == label
    assert right >= 60  # coarse strokes, all equally dark, of digits that were grey


def test_test_images_pass_through_the_canvas_unchanged(show, digits, digits_circuit):
    x = digits.x_test[:100]
    page = show(digits_circuit, samples=Samples(x[:10], digits.y_test[:10]))
    expected = Engine(digits_circuit, threads=1).scores(digits_circuit.encoder.transform(x))
    script = f"{x.tolist()}.map((image) => {{ gatefit.set(image); return [gatefit.values(), gatefit.scores()]; }})"
    values, scores = zip(*page.run(script), strict=True)
    assert np.array_equal(values, x)
    assert np.array_equal(scores, expected)
    page.click(".samples button:nth-child(4)")
    assert page.run("gatefit.values()") == x[3].tolist()


@pytest.mark.data
def test_mnist_images_drawn_and_loaded(show, train, data_dir):
    mnist = load_dataset("mnist", data_dir=data_dir, download=False)
    circuit = train(mnist, width=2000, depth=2, steps=60)
    page = show(circuit, samples=Samples(mnist.x_test[:10], mnist.y_test[:10]))
    x = mnist.x_test[:100]
    expected = Engine(circuit, threads=1).scores(circuit.encoder.transform(x))
    script = f"{x.tolist()}.map((image) => {{ gatefit.set(image); return gatefit.scores(); }})"
    assert np.array_equal(page.run(script), expected)
    box = page.box(".pad")
    for image in mnist.x_test[:3]:
        page.run("document.querySelector('#clear').click()")
        for stroke in strokes(image.reshape(28, 28), box, 127):
            page.drag(stroke, wait=False)
        page.settle()
        check(page, circuit)


def test_centring_moves_and_scales_a_drawing(show, digits_circuit):
    page = show(digits_circuit)
    left, top, width, height = page.box(".pad")
    page.drag([(left + 0.1 * width, top + 0.1 * height), (left + 0.1 * width, top + 0.3 * height)])
    small, _ = check(page, digits_circuit)
    inked = np.argwhere(small.reshape(8, 8) > 4)
    assert inked[:, 0].max() - inked[:, 0].min() >= 4  # it was two pixels high
    assert 2 <= inked[:, 1].mean() <= 5
    page.click("#centre")
    plain, _ = check(page, digits_circuit)
    assert np.argwhere(plain.reshape(8, 8) > 4)[:, 1].max() <= 1


def test_fingers_and_keys_draw_too(show, digits_circuit):
    page = show(digits_circuit, size=(390, 844))
    page.click("#centre")
    left, top, width, height = page.box(".pad")
    page.touch([(left + 0.2 * width, top + 0.5 * height), (left + 0.8 * width, top + 0.5 * height)])
    touched, _ = check(page, digits_circuit)
    assert (touched.reshape(8, 8)[3:5, 2:6].max(axis=0) > 4).all()
    page.run("document.querySelector('.pad').focus()")
    page.key("Backspace")
    assert not check(page, digits_circuit)[0].any()
    page.key(" ")
    dot, _ = check(page, digits_circuit)
    assert np.flatnonzero(dot > 4).tolist() == [4 * 8 + 4]
    page.key("ArrowLeft", shift=True)
    page.key("ArrowUp")
    page.key(" ")
    assert np.flatnonzero(check(page, digits_circuit)[0] > 4).tolist() == [3 * 8 + 3, 4 * 8 + 3, 4 * 8 + 4]


SAID = """[...["#prediction", "#detail", "#why-headline"].map((place) => document.querySelector(place).textContent),
    document.querySelectorAll(".winner").length, document.querySelectorAll(".reasons li").length]"""


def test_an_empty_canvas_gets_no_answer(show, digits_circuit):
    page = show(digits_circuit)
    nothing = ["–", "Nothing is drawn yet: draw something, and the answer follows every stroke."]
    assert page.run(SAID) == [*nothing, "Nothing is drawn yet.", 0, 0]
    assert page.run("document.querySelector('#search').disabled")
    left, top, width, height = page.box(".pad")
    page.drag([(left + 0.5 * width, top + 0.2 * height), (left + 0.5 * width, top + 0.8 * height)])
    _, answer = check(page, digits_circuit)
    page.wait_for("gatefit.findings() !== null")
    headline, detail, why, winners, reasons = page.run(SAID)
    assert (headline, winners) == (str(answer), 1)
    assert detail.startswith("leads by")
    assert "change this answer" in why
    assert reasons == 4
    assert not page.run("document.querySelector('#search').disabled")
    page.run("document.querySelector('#clear').click()")
    page.run("gatefit.values()")
    assert page.run(SAID) == [*nothing, "Nothing is drawn yet.", 0, 0]


def test_the_brush_erases_and_undoes(show, digits_circuit):
    page = show(digits_circuit)
    left, top, width, height = page.box(".pad")
    line = [(left + 0.1 * width, top + 0.5 * height), (left + 0.9 * width, top + 0.5 * height)]
    page.drag(line)
    drawn = page.run("gatefit.values()")
    page.run("[...document.querySelectorAll('#input button')].find((b) => b.textContent === 'Erase').click()")
    page.drag(line)
    assert max(page.run("gatefit.values()")) < max(drawn)
    page.run("[...document.querySelectorAll('#input button')].find((b) => b.textContent === 'Undo').click()")
    assert page.run("gatefit.values()") == drawn


def test_colour_images(show):
    encoder = Thermometer(3, order="threshold", low=0, high=255).fit(np.zeros((1, 192)))
    plain = layered_circuit(np.random.default_rng(3), encoder.bits, 300, 2)
    circuit = Circuit(plain.inputs, plain.gates, plain.operands, plain.outputs, plain.readout, encoder=encoder)
    images = np.random.default_rng(4).integers(0, 256, (20, 192)).astype(np.uint8)
    page = show(circuit, samples=Samples(images[:3], np.arange(3)))
    for image in images:
        page.run(f"gatefit.set({image.tolist()})")
        assert check(page, circuit)[0].tolist() == image.tolist()
    assert page.run("document.querySelector('input[type=color]') !== null")
    page.run("document.querySelector('#clear').click()")
    left, top, width, height = page.box(".pad")
    page.run("""(() => { const field = document.querySelector("input[type=color]"); field.value = "#ff0000";
        field.dispatchEvent(new Event("input")); })()""")
    page.drag([(left + 0.2 * width, top + 0.5 * height), (left + 0.8 * width, top + 0.5 * height)])
    red, green, blue = check(page, circuit)[0].reshape(3, 64)
    assert red.max() > 100
    assert not green.any()
    assert not blue.any()
