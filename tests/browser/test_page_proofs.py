"""What the page says is proved: by whom and when, of which input, and with an input that shows how far it goes."""

import itertools

import numpy as np
import pytest

from gatefit.backends.html import Samples
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum
from gatefit.encoders import Threshold
from gatefit.gates import Gate
from strategies import layered_circuit
from verify_cases import loans

pytestmark = pytest.mark.outside

PEOPLE = Samples(np.array([[50, 5, "baker"], [90, 40, "clerk"], [20, 5, "baker"]], object), np.array([1, 1, 0]))
PATIENT = 600


def votes(pixels: int, encoder=None) -> Circuit:
    """Ink if more than half of the first ``pixels`` bits are set: it takes many changes to turn an answer."""
    inputs = pixels if encoder is None else encoder.bits
    gates = np.full(pixels, Gate.NOT_A)
    operands = np.stack([np.arange(pixels), np.zeros(pixels, int)])
    outputs = np.concatenate([np.arange(pixels), inputs + np.arange(pixels)])
    readout = GroupSum(np.repeat([1, 0], pixels), [0, 0])
    return Circuit(inputs, gates, operands, outputs, readout, class_names=("blank", "ink"), encoder=encoder)


def text(page, place: str) -> str:
    return page.run(f"document.querySelector('{place}').textContent")


def settled(page) -> None:
    page.wait_for("gatefit.findings() !== null")
    page.wait_for("!document.querySelector('#basis').textContent.includes('Trying')")


def test_a_sample_is_shown_with_what_was_proved_of_it(show):
    page = show(loans(), samples=PEOPLE, why=PATIENT)
    settled(page)
    assert "2 of 3 features force the answer yes, whatever the others are." in text(page, "#reason")
    assert "Each of them is needed (proved when this page was made)." in text(page, "#reason")
    conditions = "[...document.querySelectorAll('#reason li')].map((line) => line.textContent)"
    assert page.run(conditions) == ["income >= 31", "debt <= 10"]
    assert text(page, "#nearest strong") == "1 change turns it into no."
    assert page.run("document.querySelector('#badge').hidden")
    page.click("#try-nearest")
    assert page.run("gatefit.answer()") == 0


def test_a_reason_covers_the_inputs_inside_it_and_no_others(show):
    page = show(loans(), samples=Samples(PEOPLE.x[:1], PEOPLE.y[:1]), why=PATIENT)
    for income, debt, job in itertools.product([20, 35, 55, 75], [5, 15, 25], [0, 1]):
        page.run(f"gatefit.set([{income}, {debt}, {job}])")
        inside = income >= 31 and debt <= 10
        said = text(page, "#reason")
        assert bool(said) is inside, (income, debt, job)
        if inside and (income, job) != (35, 0):  # that one has the bits of the sample: between 30 and 50, a baker
            assert said.startswith("What forces itWhat was proved for sample 1 when this page was made covers this")
            assert page.run("gatefit.answer()") == 1


def test_the_badge_of_an_image_and_the_nearest_one_beside_it(show):
    circuit = votes(9, Threshold(127.5).fit(np.zeros((1, 64))))
    x = np.zeros((2, 64), np.uint8)
    x[0, :9] = x[1, :5] = 255
    page = show(circuit, samples=Samples(x, np.array([1, 1])), why=PATIENT)
    settled(page)
    assert text(page, "#badge") == "No 4 pixels can change this"
    assert text(page, "#basis").startswith("Proved when this page was made: ")
    assert "undecided" not in text(page, "#basis")
    assert "5 of 64 pixels force the answer ink" in text(page, "#reason")
    assert text(page, "#nearest strong") == "5 changes turn it into blank."
    assert "Fewer do not (proved when this page was made)." in text(page, "#nearest")
    assert page.run("document.querySelectorAll('#nearest canvas').length") == 2
    assert page.run("[...document.querySelectorAll('#proofs canvas')].every((each) => each.getAttribute('aria-label'))")
    marked = page.run("gatefit.proved().nearest.changed.flatMap(({ f }) => f)")
    assert len(marked) == 5
    page.click("#try-nearest")
    assert page.run("gatefit.answer()") == 0
    page.run("document.querySelectorAll('.sample')[1].click()")
    settled(page)
    # What is shown of the sample before goes first.
    page.wait_for("document.querySelector('#nearest strong')?.textContent === '1 change turns it into blank.'")
    assert page.run("document.querySelector('#badge').hidden")


def test_pairs_of_any_input_are_tried_in_the_page(show):
    page = show(votes(7))
    for ones, badge in ((7, "No 2 bits can change this"), (5, "No single bit can change this")):
        page.run(f"gatefit.set({[1] * ones + [0] * (7 - ones)})")
        settled(page)
        assert text(page, "#badge") == badge
        if ones == 7:
            assert text(page, "#basis") == "All 21 pairs were tried in this page just now."
        else:
            assert text(page, "#nearest strong") == "2 changes turn it into blank."
            assert "Every single change was tried in this page before: none does." in text(page, "#nearest")
    page.run("gatefit.set([1, 1, 1, 1, 0, 0, 0])")
    settled(page)
    assert page.run("document.querySelector('#badge').hidden")


@pytest.mark.slow
def test_many_pairs_are_tried_when_asked_for(show):
    page = show(votes(3000))
    page.run(f"gatefit.set({[1] * 3000})")
    page.wait_for("document.querySelector('#pairs') !== null")
    assert text(page, "#badge") == "No single bit can change this"
    assert text(page, "#pairs").startswith("Try all 4,498,500 pairs (about ")
    page.click("#pairs")
    page.wait_for("document.querySelector('#basis').textContent.startsWith('All 4,498,500 pairs were tried')")
    assert text(page, "#badge") == "No 2 bits can change this"
    assert page.run("document.querySelector('#pairs') === null")
    page.run(f"gatefit.set({[1] * 1501 + [0] * 1499})")
    settled(page)
    assert page.run("document.querySelector('#badge').hidden")


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_what_the_engine_says(show, seed):
    rng = np.random.default_rng(seed)
    circuit = layered_circuit(rng, 20, 400, 2, classes=2)
    page = show(circuit)
    engine = Engine(circuit, threads=1)
    near = [np.eye(20, dtype=bool)[list(pair)].any(axis=0) for pair in itertools.combinations(range(20), 2)]
    for bits in rng.random((12, 20)) < 0.5:
        page.run(f"gatefit.set({bits.astype(int).tolist()})")
        settled(page)
        answer = engine.scores(bits[None])[0].argmax()
        alone = (engine.scores(bits ^ np.eye(20, dtype=bool)).argmax(axis=1) != answer).any()
        pairs = (engine.scores(bits ^ np.array(near)).argmax(axis=1) != answer).any()
        changes = page.run("gatefit.proved()?.changes ?? 0")
        assert changes == (0 if alone else 1 if pairs else 2)
        if changes == 1:
            page.click("#try-nearest")
            assert page.run("gatefit.answer()") != answer


def test_a_regression_is_proved_within_its_tolerance(show):
    n = loans().inputs
    value = loans(outputs=[n + 1], readout=Affine(1, scale=2.0, intercept=1.0), class_names=())
    page = show(value, samples=Samples(PEOPLE.x, np.array([3.0, 3.0, 1.0])), why=PATIENT, tolerance=0.5)
    settled(page)
    assert "2 of 3 features force the answer 3 ± 0.5" in text(page, "#reason")
    assert text(page, "#nearest strong") == "1 change turns it into 1."


def test_undecided_is_shown_as_undecided(show, monkeypatch):
    from gatefit.backends.html import proofs
    from gatefit.circuit.verify import Undecided

    unknown = Undecided("the answer stays", 1.0, "not decided in 1.0 s; raise timeout")
    for question in ("closest", "robust", "explain"):
        monkeypatch.setattr(proofs, question, lambda *_, **__: unknown)
    page = show(loans(), samples=PEOPLE, why=1)
    settled(page)
    assert page.run("gatefit.findings().some(({ flips }) => flips.length)")
    assert page.run("document.querySelector('#badge').hidden")
    assert text(page, "#basis") == "Undecided within 1 s whether a single feature can change this."
    assert "Undecided within 1 s: no reason was proved." in text(page, "#reason")
    assert "Undecided: none was found within 1 s." in text(page, "#nearest")


def test_what_was_undecided_is_tried_in_the_page(show, monkeypatch):
    from gatefit.backends.html import proofs
    from gatefit.circuit.verify import Undecided

    unknown = Undecided("the answer stays", 1.0, "not decided in 1.0 s; raise timeout")
    for question in ("closest", "robust", "explain"):
        monkeypatch.setattr(proofs, question, lambda *_, **__: unknown)
    page = show(votes(7), samples=Samples(np.array([[True] * 7]), np.array([1])), why=1)
    settled(page)
    assert text(page, "#badge") == "No 2 bits can change this"
    assert text(page, "#basis") == "All 21 pairs were tried in this page just now."
    assert "Undecided within 1 s: no reason was proved." in text(page, "#reason")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read_in_the_light_and_in_the_dark(show, scheme):
    """Contrast of the badge and of what is said: 4.5 or more against the card, as everywhere on the page."""
    script = """(() => {
      const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
      const linear = (v) => (v <= 0.03928 * 255 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
      const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
      const ground = light(rgb(getComputedStyle(document.querySelector("#why")).backgroundColor));
      return ["#badge", "#basis", "#reason p", "#nearest p"].map((place) => {
        const text = light(rgb(getComputedStyle(document.querySelector(place)).color));
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05); });
    })()"""
    x = np.array([[True] * 7])
    emulation = {"prefers_color_scheme": scheme}
    page = show(votes(7), samples=Samples(x, np.array([1])), why=PATIENT, emulation=emulation)
    settled(page)
    assert text(page, "#badge") == "No 3 bits can change this"
    assert min(page.run(script)) >= 4.5
