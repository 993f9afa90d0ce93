"""A report for people, with the same figures as its JSON.

text    tables that fit a terminal
HTML    one file: no script, no request to anywhere, light or dark as the reader's system is
"""

from collections.abc import Sequence
from typing import Any, Final

from gatefit.backends.templates import render

PARTS: Final = ("encoder", "gates", "popcount", "argmax", "harness")
_BAR: Final = 26
"""Height of a bar and the space below it."""


def text_report(report: dict[str, Any]) -> str:
    """All of a report."""
    circuit, vectors = report["circuit"], report["vectors"]
    about = [
        ("model", str(report["model"])),
        (
            "circuit",
            f"{circuit['inputs']:,} input bits, {circuit['gates']:,} gates in {circuit['gate_levels']} levels, "
            f"{circuit['outputs']:,} outputs, {circuit['classes']} classes",
        ),
        ("inputs", report["inputs"]),
        ("vectors", f"{vectors['count']:,}: {vectors['source']}"),
        *([("accuracy", f"{100 * report['accuracy']:.2f} % on the test set")] if "accuracy" in report else []),
        ("tools", _tools(report)),
    ]
    width = max(len(name) for name, _ in about)
    blocks = ["\n".join(f"{name:<{width}}   {value}" for name, value in about)]
    titles, rows = build_rows(report)
    blocks.append("Whole circuit, without the harness\n" + table(titles, rows))
    titles, rows = part_rows(report)
    if rows:
        blocks.append("LUTs / flip-flops of the parts\n" + table(titles, rows))
    titles, rows = step_rows(report)
    blocks.append("Steps\n" + table(titles, rows))
    blocks.append(f"Verdict: {report['verdict']['status']}\n{report['verdict']['text']}")
    return "\n\n".join(blocks) + "\n"


def html_report(report: dict[str, Any]) -> str:
    """All of a report."""
    circuit, vectors = report["circuit"], report["vectors"]
    about = [
        *([("accuracy", f"{100 * report['accuracy']:.2f} % on the test set")] if "accuracy" in report else []),
        ("inputs", f"{circuit['inputs']:,} bits"),
        ("gates", f"{circuit['gates']:,} in {circuit['gate_levels']} levels"),
        ("outputs", f"{circuit['outputs']:,} for {circuit['classes']} classes"),
        ("input ports", report["inputs"]),
        ("vectors", f"{vectors['count']:,}: {vectors['source']}"),
        ("tools", _tools(report)),
    ]
    drawn = [build for build in report["builds"] if build.get("parts")]
    return render(
        "gatefit.hardware",
        "report.html.jinja",
        title=f"{report['model']} on hardware",
        verdict=report["verdict"],
        about=about,
        builds=build_rows(report),
        parts=part_rows(report),
        steps=step_rows(report),
        numeric=_numeric,
        bars=_bars(drawn),
        bar_height=_BAR,
        legend=[part for part in PARTS if any(part in build["parts"] for build in drawn)],
    )


def _bars(builds: Sequence[dict[str, Any]]) -> list[tuple[str, list[tuple[str, str, float, float]]]]:
    """For each build its name and its parts: name, LUTs in words, where the bar begins, how long it is."""
    largest = max((sum(part["tables"] for part in build["parts"].values()) for build in builds), default=0) or 1
    bars = []
    for build in builds:
        x, shapes = 190.0, []
        for part, cells in build["parts"].items():
            width = 760 * cells["tables"] / largest
            shapes.append((part, f"{part}: {cells['tables']:,} LUTs", x, width))
            x += width
        bars.append((f"{name_of(build)}, {build['pipeline_stages'] or 'no'} stages", shapes))
    return bars


def _tools(report: dict[str, Any]) -> str:
    return ", ".join(f"{tool['name']} {tool['version']} ({tool['origin']})" for tool in report["tools"])


def _numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether a column holds numbers, which are aligned to the right."""
    return bool(rows) and all(row[column][:1].isdigit() or row[column] == "-" for row in rows)


def name_of(build: dict[str, Any]) -> str:
    """Target and device."""
    return f"{build['target']} {build['device']}" if build["device"] else str(build["target"])


def build_rows(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """One row a build: size, depth and speed; "-" where a step did not come to it."""
    titles = [
        "target",
        "stages",
        "LUTs",
        "flip-flops",
        "levels",
        "logic cells",
        "MHz",
        "latency",
        "routing",
        "gates/LUT",
    ]
    rows = []
    for build in report["builds"]:
        core, routed = build.get("core"), build.get("routed")
        rows.append(
            [
                name_of(build),
                str(build["pipeline_stages"]) if build["pipeline_stages"] else "combinational",
                f"{core['tables']:,}" if core else "-",
                f"{core['flip_flops']:,}" if core else "-",
                str(build.get("levels", "-")),
                f"{routed['cells']:,} of {routed['available']:,}" if routed else _why(build),
                f"{routed['megahertz']:.1f}" if routed else "-",
                f"{routed['latency_ns']:.1f} ns" if routed else "-",
                f"{routed['routing_share']:.0%}" if routed and routed["routing_share"] is not None else "-",
                f"{build['gates_per_table']:.2f}" if "gates_per_table" in build else "-",
            ]
        )
    return titles, rows


def _why(build: dict[str, Any]) -> str:
    for step in build["steps"]:
        if step["step"] == "place and route" and step["status"] != "done":
            return str(step["status"])
    return "not routed"


def part_rows(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """One row a build: what each part costs when nothing is shared across its border."""
    shown = [part for part in PARTS if any(part in _parts(build) for build in report["builds"])]
    rows = []
    for build in report["builds"]:
        parts = _parts(build)
        if parts:
            cells = [f"{parts[p]['tables']:,} / {parts[p]['flip_flops']:,}" if p in parts else "-" for p in shown]
            rows.append([name_of(build), str(build["pipeline_stages"]) or "0", *cells])
    return ["target", "stages", *shown], rows


def _parts(build: dict[str, Any]) -> dict[str, Any]:
    return {**build.get("parts", {}), **({"harness": build["harness"]} if "harness" in build else {})}


def step_rows(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """One row a step of every build."""
    rows = [
        [name_of(build), str(build["pipeline_stages"]), s["step"], s["status"], f"{s['seconds']:.1f} s", s["detail"]]
        for build in report["builds"]
        for s in build["steps"]
    ]
    return ["target", "stages", "step", "status", "time", ""], rows


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under titles; columns of numbers are aligned to the right."""
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    right = [_numeric(rows, i) for i in range(len(titles))]
    lines = []
    for row in [titles, *rows]:
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("   ".join(cells).rstrip())
    return "\n".join(lines)
