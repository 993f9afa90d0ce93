"""A circuit as one HTML page that needs nothing else: the gates are inside, and run in the browser by bit operations.

    model     JSON: gates, wiring and outputs as typed arrays in base64; readout, names, controls, samples
    proofs    what was proved about the samples when the page was written, where that was asked for
    script    the files of assets, one after the other, in one function
    policy    default-src 'none'; only this script and this style, named by their SHA-256, may be used

Names come from data files: they reach the page as JSON in which no character can end the element that holds it, and
the script sets them as text, never as markup. The same circuit gives the same bytes.
"""

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gatefit.backends.html import inputs as page_inputs
from gatefit.backends.html.inputs import ImageShape, Samples, View
from gatefit.backends.names import bit_names, class_names, given_names
from gatefit.backends.templates import render
from gatefit.circuit.ir import Circuit
from gatefit.circuit.provenance import origin_lines
from gatefit.circuit.readout import Readout
from gatefit.gates import Gate

if TYPE_CHECKING:
    from gatefit.backends.html.proofs import Progress

SCRIPTS: Final = (
    "bits.js", "encode.js", "why.js", "theme.js", "pad.js", "grid.js", "form.js", "answer.js", "proofs.js",
    "reasons.js", "layout.js", "draw.js", "view.js", "words.js", "inspect.js", "app.js",
)  # fmt: skip
"""The files of the script, each of which uses only those before it when it is read."""

MAX_EXACT: Final = 2**53
"""Integers beyond this are not exact in a browser."""


def to_html(
    circuit: Circuit,
    *,
    title: str | None = None,
    samples: Samples | None = None,
    view: View = "auto",
    image_shape: ImageShape | None = None,
    why: float | None = None,
    tolerance: float | None = None,
    progress: "Progress | None" = None,
) -> str:
    """The circuit as one page.

    Arguments:
        title: the page's heading; the data set's name or "Logic gate network" if there is none.
        samples: rows to choose from, as the encoder reads them (bits, if there is none), with their classes or values.
        view: how inputs are set: ``"image"`` to draw, ``"table"`` for controls, ``"bits"`` for toggles; ``"auto"``
            takes unnamed numeric features that fill a square for an image, named ones for a table.
        image_shape: (rows, columns, channels) of an image that is not square.
        why: prove about each sample what forces its answer, how many features cannot change it and what would, in
            about so many seconds each; what is not decided then is shown as undecided.
        tolerance: with ``why``, of a regression: the values that count as the same answer.
        progress: with ``why``, told after each sample how many of them are done.
    """
    if why is None and tolerance is not None:
        raise ValueError("tolerance says what proofs are about; ask for them with why=seconds, or leave it out")
    if why is not None and samples is None:
        raise ValueError("why=seconds proves something about each sample of the page, and there are none; give samples")
    shown, shape = page_inputs.choose_view(circuit, view, image_shape)
    if samples is not None:
        samples = _checked(samples, circuit)
    title = title or circuit.metadata.get("dataset") or "Logic gate network"
    inputs, rows, notes = _inputs(circuit, shown, shape, samples)
    model = {
        "title": title,
        "inputs": circuit.inputs,
        "gates": _array(circuit.gates),
        "operands": [_array(side) for side in circuit.operands],
        "outputs": _array(circuit.outputs),
        "readout": _readout(circuit.readout),
        "classes": [name if circuit.class_names else f"class {name}" for name in class_names(circuit)],
        "names": None if shown == "image" else list(bit_names(circuit)),
        "input": inputs,
        "samples": None if samples is None else {"labels": _labels(samples, circuit), **rows},
        "proofs": None,
        "kinds": [
            {"name": gate.name, "formula": gate.formula, "kind": gate.kind.value, "a": gate.depends_on_a,
             "b": gate.depends_on_b}
            for gate in Gate
        ],
        "notes": [*notes, *_missing_names(circuit)],
        "metadata": dict(sorted(circuit.metadata.items())),
    }  # fmt: skip
    if why is not None and samples is not None:
        from gatefit.backends.html.proofs import Places, prove_samples

        controls = page_inputs.controls(circuit, samples) if inputs["kind"] == "table" else None
        places = Places(circuit, shape, controls)
        model["proofs"] = prove_samples(circuit, samples, places, seconds=why, tolerance=tolerance, progress=progress)
    return _page(title, model, origin_lines(circuit))


def _page(title: str, model: dict[str, Any], origin: list[str]) -> str:
    from markupsafe import Markup

    folder = files("gatefit.backends.html") / "assets"
    style = (folder / "style.css").read_text(encoding="utf-8")
    parts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "\n})();\n"
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return render(
        "gatefit.backends.html",
        "page.html.jinja",
        title=title.encode("utf-8", "replace").decode("utf-8"),
        policy=Markup(policy),
        style=Markup(style),
        script=Markup(script),
        model=Markup(_json(model)),
        origin=origin,
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(model: dict[str, Any]) -> str:
    """JSON in ASCII without <, > or &: no name can close the element that it stands in."""
    text = json.dumps(model, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _array(values: np.ndarray) -> dict[str, str]:
    """An array in the narrowest type that holds it, little-endian, in base64."""
    if values.dtype.kind == "f":
        kind = "f4" if values.dtype == np.float32 else "f8"
    else:
        largest = int(values.max(initial=0))
        kind = "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def _readout(readout: Readout) -> dict[str, Any]:
    floats = readout.float_terms()
    if floats is not None:
        return {"kind": "linear", "weights": _array(floats.weights.ravel()), "bias": _array(floats.bias)}
    sums = readout.sums_for("a page", compares_totals=False)
    offsets = [int(value) for value in sums.offsets]
    _require_exact("an offset", offsets)
    _require_exact("a sum", [*sums.low, *sums.high])
    owners = sums.owners(readout.outputs)
    line = {"scale": float(sums.scale), "intercept": float(sums.intercept)}
    if owners is not None and readout.gives_value:
        return {"kind": "affine", "offset": offsets[0], **line}
    if owners is not None and readout.dtype is np.int64:
        temperature = float(readout.temperature)
        return {"kind": "group_sum", "groups": _array(owners), "offsets": offsets, "temperature": temperature}
    terms = {"starts": _array(sums.starts), "outputs": _array(sums.outputs), "weights": sums.weights.tolist()}
    how = {"value": readout.gives_value, "temperature": float(readout.temperature)}
    return {"kind": "weighted", **terms, "offsets": offsets, **line, **how}


def _require_exact(what: str, numbers: list[int]) -> None:
    largest = max((abs(value) for value in numbers), default=0)
    if largest >= MAX_EXACT:
        raise ValueError(f"a browser counts exactly up to 2**53, and {what} of the readout is {largest}")


def _checked(samples: Samples, circuit: Circuit) -> Samples:
    x, y = np.asarray(samples.x), np.asarray(samples.y)
    features = circuit.inputs if circuit.encoder is None else circuit.encoder.features
    if x.ndim != 2 or x.shape[1] != features or y.shape != (len(x),):
        raise ValueError(
            f"samples must be rows of {features} features and one class or value each, got {x.shape} and {y.shape}"
        )
    return Samples(x, y)


def _labels(samples: Samples, circuit: Circuit) -> list[str]:
    """What the samples are, in words."""
    if circuit.readout.gives_value:
        return [f"{value:g}" for value in samples.y.tolist()]
    names = class_names(circuit)
    return [names[int(k)] for k in samples.y.tolist()]


_Shown = tuple[dict[str, Any], dict[str, Any], list[str]]
"""How the page sets the inputs, the samples in the same form, and what is to be said about it."""


def _inputs(circuit: Circuit, view: str, shape: ImageShape | None, samples: Samples | None) -> _Shown:
    if shape is not None:
        return _image(circuit, shape, samples)
    notes = []
    if view == "table":
        controls = page_inputs.controls(circuit, samples)
        if len(controls) <= page_inputs.MAX_CONTROLS:
            return _table(circuit, controls, samples)
        notes = [f"{len(controls)} features are too many for a form; they are shown as the bits that the gates read."]
    rows = {}
    if samples is not None:
        bits = samples.x if circuit.encoder is None else circuit.encoder.transform(samples.x)
        rows = {"values": _array(np.asarray(bits).astype(np.uint8).ravel())}
    return {"kind": "bits"}, rows, notes


def _image(circuit: Circuit, shape: ImageShape, samples: Samples | None) -> _Shown:
    assert circuit.encoder is not None
    features, levels, thresholds = page_inputs.image_levels(circuit.encoder)
    low, high = page_inputs.image_range(circuit.encoder, thresholds, samples)
    content = {
        "kind": "image",
        "rows": shape[0],
        "columns": shape[1],
        "channels": shape[2],
        "low": low,
        "high": high,
        "whole": high > 1 and (samples is None or samples.x.dtype.kind in "biu"),
        "fit": page_inputs.image_fit(shape, samples),
        "feature": _array(features),
        "level": _array(levels),
        "levels": thresholds,
    }
    if samples is None:
        return content, {}, []
    unsigned = samples.x.dtype.kind in "bu"
    return content, {"values": _array((samples.x if unsigned else samples.x.astype(np.float64)).ravel())}, []


def _table(circuit: Circuit, controls: list[page_inputs.Control], samples: Samples | None) -> _Shown:
    columns = [[] if samples is None else page_inputs.control_values(control, samples.x) for control in controls]
    features = []
    for control, column in zip(controls, columns, strict=True):
        content: dict[str, Any] = {"kind": control.kind, "name": control.name, "bits": control.bits}
        if control.kind == "number":
            content |= {"levels": control.values} | page_inputs.slider(control, column)
        elif control.kind == "choice":
            content["options"] = control.labels
        features.append(content | ({} if control.missing < 0 else {"missing": control.missing}))
    notes = []
    if circuit.encoder is not None:
        read = {feature for control in controls for feature in control.features}
        unread = [name for i, name in enumerate(circuit.encoder.feature_names) if i not in read]
        if unread:
            notes.append(f"Not read, because they never varied in the training data: {', '.join(unread)}.")
    return {"kind": "table", "features": features}, {"rows": [list(row) for row in zip(*columns, strict=True)]}, notes


def _missing_names(circuit: Circuit) -> list[str]:
    notes = []
    if circuit.encoder is None:
        notes.append("The circuit was saved without its encoder: the inputs are the bits that the gates read.")
        if not given_names(circuit):
            notes.append("Its inputs have no names; they are numbered x0, x1, …")
    if not circuit.class_names and not circuit.readout.gives_value:
        notes.append("Its classes have no names; they are numbered.")
    return notes
