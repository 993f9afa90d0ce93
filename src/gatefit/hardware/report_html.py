"""A report as one HTML file: no script, no request to anywhere, light or dark as the reader's system is."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from gatefit.hardware.report_text import PARTS, build_rows, name_of, part_rows, step_rows

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff; --line: #d0d7de; --panel: #f6f8fa;
  --good: #116329; --bad: #a40e26; --open: #7d4e00;
  --encoder: #8250df; --gates: #0969da; --popcount: #bc4c00; --argmax: #1a7f37; --harness: #8c959f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9ea7b3; --paper: #0d1117; --line: #30363d;
  --panel: #161b22; --good: #56d364; --bad: #ff7b72; --open: #e3b341;
  --encoder: #a371f7; --gates: #4493f8; --popcount: #f0883e; --argmax: #3fb950; --harness: #6e7681; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.note { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
.verdict { border-left: .3rem solid; padding: .5rem 1rem; background: var(--panel); }
.agrees { border-color: var(--good); } .differs { border-color: var(--bad); } .incomplete { border-color: var(--open); }
.agrees b { color: var(--good); } .differs b { color: var(--bad); } .incomplete b { color: var(--open); }
rect.encoder, i.encoder { fill: var(--encoder); background: var(--encoder); }
rect.gates, i.gates { fill: var(--gates); background: var(--gates); }
rect.popcount, i.popcount { fill: var(--popcount); background: var(--popcount); }
rect.argmax, i.argmax { fill: var(--argmax); background: var(--argmax); }
rect.harness, i.harness { fill: var(--harness); background: var(--harness); }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
.legend i { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 1em; }
"""


def html_report(report: dict[str, Any]) -> str:
    """All of a report."""
    circuit, verdict = report["circuit"], report["verdict"]
    about = [
        ("inputs", f"{circuit['inputs']:,} bits"),
        ("gates", f"{circuit['gates']:,} in {circuit['gate_levels']} levels"),
        ("outputs", f"{circuit['outputs']:,} for {circuit['classes']} classes"),
        ("input ports", report["inputs"]),
        ("vectors", f"{report['vectors']['count']:,}: {report['vectors']['source']}"),
        ("tools", ", ".join(f"{tool['name']} {tool['version']} ({tool['origin']})" for tool in report["tools"])),
    ]
    if "accuracy" in report:
        about.insert(0, ("accuracy", f"{100 * report['accuracy']:.2f} % on the test set"))
    pairs = "".join(f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in about)
    title = f"{escape(str(report['model']))} on hardware"
    sections = [
        f"<h1>{title}</h1>",
        f"<p class='verdict {verdict['status']}'><b>{escape(verdict['status'])}</b>: {escape(verdict['text'])}</p>",
        f"<table>{pairs}</table>",
        "<h2>Whole circuit</h2><p class='note'>Without the harness that loads and unloads it. Levels are LUTs on the "
        "longest path; latency is from the input register to the registered answer.</p>",
        _table(*build_rows(report)),
        "<h2>Parts</h2><p class='note'>LUTs / flip-flops of each part; the harness is not part of the circuit.</p>",
        _bars(report),
        _table(*part_rows(report)),
        "<h2>Steps</h2>",
        _table(*step_rows(report)),
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    numeric = [bool(rows) and all(row[i][:1].isdigit() or row[i] == "-" for row in rows) for i in range(len(titles))]
    kinds = [" class='number'" if number else "" for number in numeric]
    head = "".join(f"<th scope='col'{kind}>{escape(title)}</th>" for title, kind in zip(titles, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _bars(report: dict[str, Any]) -> str:
    """LUTs of the parts, one bar a build."""
    builds = [build for build in report["builds"] if build.get("parts")]
    if not builds:
        return "<p>No part was synthesised.</p>"
    largest = max(sum(part["tables"] for part in build["parts"].values()) for build in builds) or 1
    shapes = []
    for row, build in enumerate(builds):
        y, x = 26 * row, 190.0
        label = f"{name_of(build)}, {build['pipeline_stages'] or 'no'} stages"
        shapes.append(f"<text x='0' y='{y + 15}'>{escape(label)}</text>")
        for part, cells in build["parts"].items():
            width = 760 * cells["tables"] / largest
            tip = f"{part}: {cells['tables']:,} LUTs"
            shapes.append(
                f"<rect class='{part}' x='{x:.1f}' y='{y + 2}' width='{width:.1f}' height='18'>"
                f"<title>{escape(tip)}</title></rect>"
            )
            x += width
    shown = [part for part in PARTS if any(part in build["parts"] for build in builds)]
    legend = "".join(f"<i class='{part}'></i>{part}" for part in shown)
    picture = f"<svg viewBox='0 0 960 {26 * len(builds)}' width='100%' role='img' aria-label='LUTs of the parts'>"
    return f"<p class='legend'>{legend}</p>{picture}{''.join(shapes)}</svg>"
