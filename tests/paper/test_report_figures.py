"""Figures: the same bytes every time, every kind drawn, names escaped, labels apart."""

import math
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gatefit.paper.outcome import Figure, Outcome, Panel, Series
from gatefit.paper.report.figures import METHOD_STYLES, describe, draw, inline_svg, paper_styles, render_svg


def _texts(svg: bytes) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def test_the_same_figure_gives_the_same_bytes(outcome: Outcome, drawing: bytes):
    assert render_svg(outcome.figures[0]) == drawing
    assert b"<dc:date>" not in drawing
    assert b"matplotlib" not in drawing.lower()


def test_an_svg_file_says_what_it_shows(drawing: bytes):
    root = ElementTree.fromstring(drawing)
    words = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert words["title"] == "Curves, bars & points"
    assert "Soft-Mix from 50 at 1 to 70 at 3" in (words["desc"] or "")
    assert root.get("role") == "img"


@pytest.mark.parametrize("index", range(5))
def test_every_kind_is_drawn_with_its_words(outcome: Outcome, index: int):
    panel = outcome.figures[0].panels[index]
    svg = render_svg(Figure("one", (panel,)))
    texts = _texts(svg)
    assert panel.title in texts
    for words in filter(None, (panel.x_label, panel.y_label)):
        assert words in texts
    for label in panel.series[0].labels or ():
        assert label in texts


def test_a_legend_names_every_series_once(drawing: bytes):
    texts = _texts(drawing)
    assert all(texts.count(name) == 1 for name in ("Soft-Mix", "M-CovJac", "constant", "strong"))


@pytest.mark.parametrize(
    "panel",
    [
        Panel("empty", "lines", "x", "y", ()),
        Panel("nothing", "lines", "x", "y", (Series("a", (), ()),)),
        Panel("nan", "scatter", "x", "y", (Series("a", (1.0, 2.0), (math.nan, math.nan)),)),
        Panel("zero", "scatter", "x", "y", (Series("a", (1.0,), (1.0,), size=(0.0,)),)),
        Panel("log", "lines", "x", "y", (Series("a", (0.0, 10.0), (0.0, 1.0)),), x_scale="log", y_scale="log"),
        Panel("names", "lines", "", "y", (Series("a", ("p", "q"), (1.0, 2.0)), Series("b", ("q", "r"), (1.0, 2.0)))),
        Panel("hole", "stacked-bars", "", "y", (Series("a", ("p",), (math.nan,)), Series("b", ("q",), (1.0,)))),
    ],
    ids=lambda panel: panel.title,
)
def test_poor_data_are_drawn_without_a_word(panel):
    assert _texts(render_svg(Figure("poor", (panel,))))[-1] is not None
    assert describe(Figure("poor", (panel,))).startswith(f"{panel.title}: ")


def test_inline_drawings_share_no_id(drawing: bytes):
    one, two = inline_svg(drawing, "one"), inline_svg(drawing, "two")
    ids = [_ids(text) for text in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert "xmlns" not in one
    assert "http" not in one


def _ids(text: str) -> set[str]:
    return {node.get("id", "") for node in ElementTree.fromstring(text).iter() if node.get("id")}


def test_labels_of_points_do_not_cover_each_other():
    places = tuple((float(i % 4), float(i // 4)) for i in range(16))
    series = Series(
        "p", tuple(x for x, _ in places), tuple(y for _, y in places), labels=tuple(f"label {i}" for i in range(16))
    )
    canvas = draw(Figure("crowd", (Panel("crowd", "scatter", "x", "y", (series,)),)))
    canvas.draw_without_rendering()
    renderer = canvas.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in canvas.axes[0].texts if text.get_text().startswith("label")]
    assert len(boxes) == 16
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1 for a, b in pairs)


def test_points_at_one_place_share_a_label():
    series = Series("p", (0.0, 0.0), (1.0, 1.0), labels=("FALSE", "TRUE"))
    assert "FALSE, TRUE" in _texts(render_svg(Figure("f", (Panel("p", "scatter", "x", "y", (series,)),))))


def test_methods_look_the_same_in_every_figure():
    first, second = paper_styles(["M-STE", "Soft-Mix"]), paper_styles(["other", "Soft-Mix", "M-STE"])
    assert first["M-STE"] == second["M-STE"]
    assert first["Soft-Mix"] == second["Soft-Mix"]
    assert second["other"].colour not in {first["M-STE"].colour, first["Soft-Mix"].colour}
    paper = paper_styles(["M-STE", "M-STE (paper)"])
    assert paper["M-STE (paper)"] == replace(paper["M-STE"], dash=":", hollow=True)


def test_methods_differ_without_colour():
    styles = METHOD_STYLES.values()
    assert len({style.marker for style in styles}) == len(styles)
    assert len({style.dash for style in styles}) == len(styles)
    assert len({style.hatch for style in styles}) == len(styles)


def test_without_matplotlib_it_says_what_to_install(outcome: Outcome, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed; run: pip install 'gatefit\[plots\]'"):
        render_svg(outcome.figures[0])
