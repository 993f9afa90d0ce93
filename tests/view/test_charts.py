"""Charts of a run's page: values where they belong, gaps as gaps, and their numbers inside."""

import json
import math
import re
from xml.etree import ElementTree

import pytest

from gatefit.view.charts import Chart, area_chart, bar_chart, line_chart, short_number


def parsed(figure: str) -> tuple[ElementTree.Element, dict]:
    root = ElementTree.fromstring(figure)
    return root, json.loads(root.get("data-chart", ""))


def test_a_line_goes_where_its_values_are():
    root, data = parsed(line_chart(Chart("t", "step", "y", [0.0, 10.0], [("a", [0.0, 1.0]), ("b", [0.5, 0.5])])))
    (a, b) = data["series"]
    assert a["text"] == ["0", "1"]
    assert data["at"] == ["step 0", "step 10"]
    assert data["top"] <= a["y"][1] < b["y"][1] == b["y"][0] < a["y"][0] <= data["bottom"]
    assert b["y"][0] == pytest.approx((a["y"][0] + a["y"][1]) / 2, abs=0.2)
    path = next(node for node in root.iter("path") if node.get("stroke-width") == "1.8").get("d", "")
    assert path == f"M{data['x'][0]} {a['y'][0]}L{data['x'][1]} {a['y'][1]}"


def test_missing_values_break_the_line():
    root, data = parsed(line_chart(Chart("t", "x", "y", [0, 1, 2, 3], [("a", [1.0, None, math.nan, 4.0])])))
    path = next(node for node in root.iter("path") if node.get("stroke-width") == "1.8").get("d", "")
    assert path.count("M") == 2
    assert data["series"][0]["y"][1:3] == [None, None]
    assert data["series"][0]["text"] == ["1", "–", "–", "4"]


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show():
    _, data = parsed(line_chart(Chart("t", "x", "y", [0, 1, 2, 3], [("a", [0.0, 1.0, 10.0, 100.0])], log=True)))
    heights = data["series"][0]["y"]
    assert heights[0] is None
    assert heights[1] - heights[2] == pytest.approx(heights[2] - heights[3], abs=0.2)


@pytest.mark.parametrize("values", [[5.0, 5.0], [0.0, 0.0], [-1.0, 1.0], [1e-9, 2e-9], [1e9, 2e9]])
def test_any_range_has_ticks_inside(values):
    root, data = parsed(line_chart(Chart("t", "x", "y", [0, 1], [("a", values)])))
    heights = [float(m) for node in root.iter("path") for m in re.findall(r"M60 ([\d.]+)H", node.get("d") or "")]
    assert 1 <= len(heights) <= 8
    assert all(data["top"] <= height <= data["bottom"] for height in heights)


def test_nothing_known_is_no_chart():
    assert line_chart(Chart("t", "x", "y", [], [("a", [])])) == ""
    assert line_chart(Chart("t", "x", "y", [0, 1], [("a", [None, math.nan])])) == ""
    assert line_chart(Chart("t", "x", "y", [0, 1], [])) == ""
    assert area_chart(Chart("t", "x", "y", [0], [("a", [1.0])])) == ""
    assert bar_chart(Chart("t", "x", "y", [], []), []) == ""


def test_one_point_is_drawn():
    _, data = parsed(line_chart(Chart("t", "x", "y", [7], [("a", [1.0])])))
    assert data["at"] == ["x 7"]


def test_shares_are_stacked():
    _, data = parsed(area_chart(Chart("t", "x", "%", [0, 1], [("a", [25.0, 50.0]), ("b", [75.0, None])])))
    a, b = (series["y"] for series in data["series"])
    assert b[0] == data["top"]
    assert b[1] == a[1]
    _, bars = parsed(bar_chart(Chart("t", "x", "%", range(2), [("a", [25.0, 50.0]), ("b", [75.0, 50.0])]), ["p", "q"]))
    assert bars["series"][1]["y"] == [data["top"], data["top"]]
    assert bars["at"] == ["p", "q"]


def test_names_are_escaped():
    root, data = parsed(line_chart(Chart("<t> & 'u'", "x", "y", [0, 1], [("<a>", [0.0, 1.0]), ('"b"', [1.0, 0.0])])))
    assert [series["name"] for series in data["series"]] == ["<a>", '"b"']
    assert root.find("figcaption").text == "<t> & 'u'"
    assert root.find(".//svg").get("aria-label").startswith("<t> & 'u': y by x. Last values: <a> 1")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.inf, "–"), (3.0, "3"), (12345.0, "12,345"), (0.12345, "0.123"), (1234.5, "1,234")],
)
def test_values_in_words(value, text):
    assert short_number(value) == text
