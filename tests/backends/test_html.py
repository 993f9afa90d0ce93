"""The page as text: the same bytes every time, nothing loaded from elsewhere, and names that can do nothing."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import gatefit.backends
from gatefit.backends.html import Samples, to_html
from gatefit.backends.html.page import SCRIPTS
from gatefit.circuit.ir import Circuit
from gatefit.circuit.readout import Affine, GroupSum, Linear
from gatefit.encoders import Identity, Table, Thermometer, Threshold
from gatefit.gates import FORMULAS, Gate
from strategies import layered_circuit

ASSETS = Path(gatefit.backends.__file__).parent / "html" / "assets"
NASTY = "</script><script>alert(1)</script><!-- ]]> &amp; \"'@MODEL@ \u2028 \x00 é"


class Reader(HTMLParser):
    """The page's elements with their attributes, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self._open = tag

    def handle_data(self, data):
        if self._open:
            self.texts[self._open][-1] += data

    def handle_endtag(self, tag):
        self._open = ""

    @property
    def model(self):
        return json.loads(self.texts["script"][0])

    @property
    def policy(self) -> str:
        return next(a["content"] for t, a in self.tags if a.get("http-equiv") == "Content-Security-Policy")


def image_circuit(encoder=None, **fields) -> Circuit:
    encoder = encoder or Threshold(127.5).fit(np.zeros((1, 64)))
    circuit = layered_circuit(np.random.default_rng(0), encoder.bits, 40, 2)
    parts = {name: getattr(circuit, name) for name in ("inputs", "gates", "operands", "outputs", "readout")}
    return Circuit(**{**parts, "encoder": encoder, **fields})


def array(spec):
    kinds = {"u1": "u1", "u2": "<u2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}
    return np.frombuffer(base64.b64decode(spec["data"]), kinds[spec["type"]])


def test_the_same_circuit_gives_the_same_bytes():
    circuit = image_circuit()
    assert to_html(circuit, title="t") == to_html(circuit, title="t")


def test_the_model_is_all_there():
    circuit = image_circuit(class_names=tuple("abcdefghij"))
    model = Reader(to_html(circuit)).model
    assert array(model["gates"]).tolist() == circuit.gates.tolist()
    assert [array(side).tolist() for side in model["operands"]] == circuit.operands.tolist()
    assert array(model["outputs"]).tolist() == circuit.outputs.tolist()
    assert array(model["readout"]["groups"]).tolist() == circuit.readout.groups.tolist()
    assert model["classes"] == list("abcdefghij")
    assert [kind["formula"] for kind in model["kinds"]] == [FORMULAS[gate] for gate in Gate]
    assert model["notes"] == []


def test_readouts_are_exact():
    fields = {"inputs": 1, "gates": [], "operands": np.empty((2, 0), int), "outputs": [0]}
    linear = Reader(to_html(Circuit(**fields, readout=Linear([[0.1], [2.0]], [0.3, 0])))).model["readout"]
    assert array(linear["weights"]).tolist() == np.float32([0.1, 2.0]).tolist()
    assert array(linear["bias"]).tolist() == np.float32([0.3, 0]).tolist()
    affine = Reader(to_html(Circuit(**fields, readout=Affine(1, -3, 0.1, 1e-7)))).model["readout"]
    assert affine == {"kind": "affine", "offset": -3, "scale": 0.1, "intercept": 1e-7}


@pytest.mark.parametrize("readout", [GroupSum([0], [2**53, 0]), Affine(1, -(2**53))])
def test_offsets_that_a_browser_cannot_hold_are_refused(readout):
    with pytest.raises(
        ValueError, match=r"a browser counts exactly up to 2\*\*53, and an offset of the readout is 9007"
    ):
        to_html(Circuit(1, [], np.empty((2, 0), int), [0], readout))


def test_names_can_do_nothing():
    encoder = Table().fit({NASTY: ["a", NASTY, "b"], "n": [1.0, 2.0, 3.0]})
    circuit = image_circuit(encoder, class_names=tuple(f"{NASTY}{k}" for k in range(10)), metadata={NASTY: NASTY})
    plain = Reader(to_html(image_circuit(encoder)))
    nasty = Reader(to_html(circuit, title=NASTY))
    assert [tag for tag, _ in nasty.tags] == [tag for tag, _ in plain.tags]
    assert nasty.texts["script"][1] == plain.texts["script"][1]
    assert nasty.model["classes"][3] == f"{NASTY}3"
    assert nasty.model["metadata"] == {NASTY: NASTY}
    assert nasty.model["input"]["features"][0]["name"] == NASTY
    assert nasty.texts["h1"] == [NASTY]


def test_a_title_of_half_a_character_can_be_written():
    assert "<h1>?</h1>" in to_html(image_circuit(), title="\ud800")


def test_nothing_is_loaded_from_elsewhere():
    text = to_html(image_circuit())
    assert not re.search(r"(?i)https?:|//[a-z0-9-]+\.|url\(|@import|\bsrc\s*=|wss?://", text.replace("default-src", ""))
    links = [attributes["href"] for _, attributes in Reader(text).tags if "href" in attributes]
    assert links == ["data:,", "#answer"]
    for forbidden in ("eval(", "Function(", "innerHTML", "outerHTML", "document.write", "fetch(", "XMLHttpRequest"):
        assert forbidden not in text


def test_the_policy_allows_this_script_and_this_style_only():
    page = Reader(to_html(image_circuit()))
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["default-src"] == "'none'"
    for kind, text in (("script-src", page.texts["script"][1]), ("style-src", page.texts["style"][0])):
        assert rules[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert not any("style" in a or any(name.startswith("on") for name in a) for _, a in page.tags)


def test_fifty_thousand_gates_are_half_a_megabyte():
    circuit = layered_circuit(np.random.default_rng(0), 784, 10_000, 5)
    assert len(to_html(circuit)) < 600_000


def test_samples_are_kept_exactly():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (5, 64)).astype(np.uint8), np.arange(5)
    model = Reader(to_html(image_circuit(class_names=tuple("abcdefghij")), samples=Samples(x, y))).model
    assert array(model["samples"]["values"]).reshape(5, 64).tolist() == x.tolist()
    assert model["samples"]["labels"] == list("abcde")


def test_samples_of_another_shape_are_refused():
    with pytest.raises(
        ValueError, match=r"samples must be rows of 64 features and one class or value each, got \(2, 3\)"
    ):
        to_html(image_circuit(), samples=Samples(np.zeros((2, 3)), np.zeros(2)))


def test_what_is_missing_is_said():
    bare = layered_circuit(np.random.default_rng(0), 20, 10, 1)
    assert Reader(to_html(bare)).model["notes"] == [
        "The circuit was saved without its encoder: the inputs are the bits that the gates read.",
        "Its inputs have no names; they are numbered x0, x1, …",
        "Its classes have no names; they are numbered.",
    ]
    assert Reader(to_html(bare)).model["classes"][:2] == ["class 0", "class 1"]
    table = Table().fit({"same": [1.0, 1.0], "other": [1.0, 2.0]})
    circuit = Circuit(1, [], np.empty((2, 0), int), [0], GroupSum([0], [0, 0]), class_names=("n", "y"), encoder=table)
    assert Reader(to_html(circuit)).model["notes"] == [
        "Not read, because they never varied in the training data: same."
    ]


def test_a_form_of_too_many_features_becomes_bits():
    encoder = Identity().fit(np.zeros((1, 501), bool), [f"is {i}" for i in range(501)])
    model = Reader(to_html(image_circuit(encoder))).model
    assert model["input"] == {"kind": "bits"}
    assert model["notes"][0].startswith("501 features are too many for a form")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"view": "chart"}, "view must be 'auto', 'image', 'table' or 'bits', got 'chart'"),
        ({"view": "table", "image_shape": (8, 8, 1)}, "image_shape is for images, got view='table'"),
        ({"image_shape": (8, 9, 1)}, r"image_shape must be \(rows, columns, 1 or 3\) with 64 pixel values in all"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        to_html(image_circuit(), **arguments)


def test_views_that_a_circuit_does_not_allow():
    with pytest.raises(ValueError, match="an image needs the encoder that reads its pixels"):
        to_html(layered_circuit(np.random.default_rng(0), 64, 10, 1), view="image")
    with pytest.raises(ValueError, match="the 3 features are not the unnamed pixels of a square of 8 rows or more"):
        to_html(image_circuit(Thermometer(4, low=0, high=1).fit(np.zeros((1, 3)))), view="image")
    table = Table().fit({f"x{i}": ["a", "b"] for i in range(64)})
    with pytest.raises(ValueError, match="pixels are numbers, and the encoder reads categories"):
        to_html(image_circuit(table), view="image", image_shape=(8, 8, 1))


def test_every_script_is_there_and_short():
    files = sorted(path.name for path in ASSETS.glob("*.js"))
    assert files == sorted(SCRIPTS)
    for name in files:
        lines = (ASSETS / name).read_text().splitlines()
        assert len(lines) < 300, name
        assert lines[0].startswith("/* "), name


def test_the_script_is_well_formed():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs the program 'node'; the tests in a browser run the script too")
    script = Reader(to_html(image_circuit())).texts["script"][1]
    subprocess.run([node, "--check", "-"], input=script, text=True, check=True)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(theme):
    css = (ASSETS / "style.css").read_text()
    block = css.split(':root[data-theme="dark"] {')[1] if theme == "dark" else css
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block.split("}")[0]))
    mixed = [
        round(0.22 * int(colours["on"][i : i + 2], 16) + 0.78 * int(colours["card"][i : i + 2], 16)) for i in (1, 3, 5)
    ]
    colours["lit"] = "#" + "".join(f"{part:02x}" for part in mixed)
    pairs = [(text, ground) for text in ("text", "muted") for ground in ("page", "card")]
    pairs += [("text", "field"), ("text", "off"), ("accent", "card"), ("on-text", "lit")]
    for text, ground in pairs:
        light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (theme, text, ground)


def test_both_dark_themes_are_the_same():
    css = (ASSETS / "style.css").read_text()
    by_system = css.split(':root:not([data-theme="light"]) {')[1].split("}")[0]
    by_choice = css.split(':root[data-theme="dark"] {')[1].split("}")[0]
    assert by_system.split() == by_choice.split()
