"""Forms and toggles: whatever they are set to, the page computes what the engine computes."""

import json

import numpy as np
import pytest

from gatefit.backends.html import Samples
from gatefit.circuit.engine import Engine
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import GroupSum
from gatefit.circuit.simulate import scores as reference_scores
from gatefit.circuit.simulate import simulate
from gatefit.datasets import load_dataset
from gatefit.encoders import Encoder, Table
from strategies import layered_circuit, random_circuit

pytestmark = pytest.mark.outside

SET_CONTROLS = """
(rows) => rows.map((row) => {
  for (const [name, value] of Object.entries(row)) {
    const line = [...document.querySelectorAll(".row")].find((each) => each.dataset.feature === name);
    const missing = line.querySelector(".missing input");
    const tell = (field, change) => { Object.assign(field, change); field.dispatchEvent(new Event("input"));
      field.dispatchEvent(new Event("change")); };
    const select = line.querySelector("select"), number = line.querySelector("input[type=number]");
    if (missing && missing.checked !== (value === null)) missing.click();
    if (value === null && !select) continue;
    if (select) {
      const text = value === null ? "(missing)" : String(value);
      const option = [...select.options].find((each) => each.textContent === text)
        ?? [...select.options].find((each) => each.textContent === "(none of these)");
      tell(select, { value: option.value });
    } else if (number) tell(number, { value: String(value) });
    else tell(line.querySelector("input[type=checkbox]"), { checked: value });
  }
  return [gatefit.bits(), gatefit.scores(), gatefit.answer()];
})
"""


def random_over(encoder: Encoder, classes: int = 2, **fields) -> Circuit:
    plain = layered_circuit(np.random.default_rng(5), encoder.bits, 60, 3, classes=classes)
    return Circuit(plain.inputs, plain.gates, plain.operands, plain.outputs, plain.readout, encoder=encoder, **fields)


def compare(page, circuit: Circuit, names, rows) -> None:
    """Set every control to every row; bits, scores and class must be the engine's."""
    given = json.dumps([dict(zip(names, row, strict=True)) for row in rows.tolist()])
    found = page.run(f"({SET_CONTROLS})({given})")
    bits = circuit.encoder.transform(rows)
    engine = Engine(circuit, threads=1)
    assert [row[0] for row in found] == bits.astype(int).tolist()
    assert [row[1] for row in found] == engine.scores(bits).tolist()
    assert [row[2] for row in found] == engine.predict(bits).tolist()


def test_every_kind_of_column(show):
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(18, 90, 40).tolist(),
        "height": [*rng.normal(1.7, 0.1, 39).round(3).tolist(), None],
        "job": rng.choice(["cook", "smith", "<b>baker</b>"], 40).tolist(),
        "town": [*rng.choice(["Ulm", "Köln"], 39).tolist(), None],
        "member": rng.choice([True, False], 40).tolist(),
        "same": [1] * 40,
    }
    encoder = Table(thresholds=6).fit(columns)
    circuit = random_over(encoder, class_names=("no", "yes"))
    rows = np.array([*columns.values()], dtype=object).T
    page = show(circuit, samples=Samples(rows[:4], np.array([0, 1, 0, 1])))
    names = list(columns)[:5]
    assert page.run("[...document.querySelectorAll('.row')].map((row) => row.dataset.feature)") == names
    unseen = np.array([[19, None, "sailor", None, False, 1]], dtype=object)
    everything = np.concatenate([rows, unseen])
    given = json.dumps([dict(zip(names, row[:5], strict=True)) for row in everything.tolist()])
    found = page.run(f"({SET_CONTROLS})({given})")
    bits = encoder.transform(everything)
    assert [row[0] for row in found] == bits.astype(int).tolist()
    assert [row[1] for row in found] == Engine(circuit, threads=1).scores(bits).tolist()
    assert "same" in page.run("document.querySelector('#notes').textContent")


def test_samples_fill_the_form(show):
    columns = {"x": [1.0, None, 3.0, 4.5], "c": ["a", "b", None, "a"]}
    encoder = Table().fit(columns)
    circuit = random_over(encoder, class_names=("no", "yes"))
    rows = np.array([*columns.values()], dtype=object).T
    page = show(circuit, samples=Samples(rows, np.array([0, 1, 0, 1])))
    for i, bits in enumerate(encoder.transform(rows).astype(int).tolist()):
        page.run(f"""(() => {{ const s = document.querySelector("#sample"); s.value = "{i}";
            s.dispatchEvent(new Event("change")); }})()""")
        assert page.run("gatefit.bits()") == bits


def test_monks_are_chosen_by_attribute(show):
    dataset = load_dataset("monks-1")
    circuit = random_over(dataset.encoder, class_names=dataset.class_names)
    page = show(circuit)
    values = (3, 3, 2, 3, 4, 2)
    attributes = np.stack([np.arange(60) * step % n for step, n in zip((1, 3, 5, 7, 11, 13), values, strict=True)], 1)
    rows = np.zeros((60, 17), bool)
    np.put_along_axis(rows, attributes + np.cumsum((0, *values[:-1])), True, axis=1)
    given = json.dumps([{f"a{i + 1}": int(v) + 1 for i, v in enumerate(row)} for row in attributes])
    found = page.run(f"({SET_CONTROLS})({given})")
    assert [row[0] for row in found] == rows.astype(int).tolist()
    assert [row[2] for row in found] == Engine(circuit, threads=1).predict(rows).tolist()


@pytest.mark.data
def test_iris_by_sliders(show, data_dir):
    dataset = load_dataset("iris", data_dir=data_dir, download=False)
    circuit = random_over(dataset.encoder, 3, class_names=dataset.class_names)
    page = show(circuit)
    compare(page, circuit, dataset.feature_names, dataset.x_test)


def test_sliders_move_by_keys(show):
    encoder = Table().fit({"a": list(range(10)), "b": [0.5, 1.0] * 5})
    page = show(random_over(encoder))
    before = page.run("gatefit.values()")
    page.run("document.querySelector('input[type=range]').focus()")
    page.key("ArrowRight")
    after = page.run("gatefit.values()")
    assert after == [before[0] + 1, before[1]]
    assert page.run("document.querySelector('input[type=number]').value") == str(int(after[0]))


@pytest.mark.parametrize("seed", [0, 1, 5, 6, 7])
def test_any_circuit_computes_its_scores(show, seed):
    rng = np.random.default_rng(seed)
    circuit = random_circuit(rng, max_inputs=12, max_gates=60, max_outputs=12)
    bits = rng.random((24, circuit.inputs)) < 0.5
    page = show(circuit)
    results = "(row) => { gatefit.set(row); return [gatefit.outputs(), gatefit.scores()]; }"
    outputs, found = zip(*page.run(f"{bits.astype(int).tolist()}.map({results})"), strict=True)
    assert list(outputs) == simulate(circuit, bits).astype(int).tolist()
    assert np.array_equal(np.array(found), reference_scores(circuit, bits).astype(np.float64))
    notes = page.run("document.querySelector('#notes').textContent")
    assert "saved without its encoder" in notes


def test_toggles_by_mouse_and_keys(show):
    circuit = layered_circuit(np.random.default_rng(0), 10, 20, 2)
    page = show(circuit)
    left, top, width, height = page.box(".pad")  # 4 columns, 3 rows
    page.drag([(left + 0.1 * width, top + 0.1 * height), (left + 0.4 * width, top + 0.1 * height)])
    page.drag([(left + 0.1 * width, top + 0.1 * height)])
    for key in ("ArrowDown", " ", "ArrowDown", "ArrowDown", "ArrowRight", " "):
        page.key(key)
    assert np.flatnonzero(page.run("gatefit.bits()")).tolist() == [1, 4, 9]


def test_a_circuit_without_gates_or_outputs(show):
    page = show(Circuit(2, [], np.empty((2, 0), int), [], GroupSum([], [3, 5])))
    assert page.run("gatefit.scores()") == [3, 5]
    assert page.run("document.querySelector('#prediction').textContent") == "class 1"
