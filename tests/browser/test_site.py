"""The documentation as a site: it builds without a warning, its links lead somewhere, and a browser shows it whole.

Pictures are taken where GATEFIT_SCREENSHOTS names a folder: of pages, to be looked at, and of the live circuit, for the
home page and the README.
"""

import os
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag

import pytest
from PIL import Image

from gatefit.circuit.ir import Circuit
from page_checks import Page

pytestmark = pytest.mark.outside

ROOT = Path(__file__).parents[2]
LARGEST = 200_000
LOADED = "[...document.images].every((image) => image.complete)"
SHOWN = "[...document.images].filter((image) => image.offsetParent && !image.naturalWidth).map((image) => image.src)"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DARK, LIGHT = {"prefers_color_scheme": "dark"}, {"prefers_color_scheme": "light"}


class Tags(Page):
    """The tags of a page that others wrote: what they leave open is not ours to check."""

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def close(self):
        super().close()
        self.open.clear()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Address(str):
    """Where a page is served; ``Browser.open`` asks for nothing else of a path."""

    def as_uri(self):
        return str(self)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def served(site):
    """The address of the site, served as a web server does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    wanted = os.environ.get("GATEFIT_SCREENSHOTS")
    return Path(wanted) if wanted else tmp_path_factory.mktemp("screenshots")


def test_every_link_and_every_picture_leads_somewhere(site):
    pages = {path: Tags(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    names = {
        path: {attributes.get(key) for _, attributes in page.tags for key in ("id", "name")}
        for path, page in pages.items()
    }
    wrong = []
    for path, page in pages.items():
        for _, attributes in page.tags:
            for target in (attributes.get("href"), attributes.get("src")):
                if not target or re.match(r"[a-z]+:", target):
                    continue
                address, anchor = urldefrag(target)
                file = (path.parent / unquote(address)).resolve() if address else path
                file = file / "index.html" if file.is_dir() else file
                if not file.is_file() or (
                    anchor and file in names and unquote(anchor) not in names[file] | {"only-dark"}
                ):
                    wrong.append(f"{path.relative_to(site)}: {target}")
    assert wrong == []
    assert len(pages) > 60


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        page = Tags(path.read_text(encoding="utf-8"))
        for tag, attributes in page.tags:
            if tag in {"script", "img", "link", "iframe"} and attributes.get("rel") != "canonical":
                assert not re.match(r"(https?:)?//", attributes.get("src") or attributes.get("href") or ""), path


def test_the_page_of_commands_has_every_verb(site):
    from gatefit.cli import app

    text = (site / "commands.html").read_text(encoding="utf-8")
    for command in app.registered_commands:
        verb = command.name or command.callback.__name__
        assert f"gatefit {verb}" in text


SEEN = {
    "home-light": ("index.html", (1280, 900), LIGHT),
    "home-dark": ("index.html", (1280, 900), DARK),
    "home-phone": ("index.html", (390, 844), LIGHT),
    "tutorial-light": ("tutorials/own-method.html", (1280, 900), LIGHT),
    "tutorial-dark": ("tutorials/mnist-to-fpga.html", (1280, 900), DARK),
    "reference-light": ("reference.html", (1280, 900), LIGHT),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_browser_shows_it(browser, served, pictures, name):
    address, (width, height), colours = SEEN[name]
    page = browser.open(Address(served + address), width=width, height=height, **colours)
    page.run("scrollTo(0, document.body.scrollHeight)")
    page.wait_for(LOADED)
    page.run("scrollTo(0, 0)")
    page.frames(3)
    assert page.run(SHOWN) == []
    assert page.run(WIDER) <= 0, "the page is wider than the window"
    scheme = page.run("document.body.getAttribute('data-md-color-scheme')")
    assert scheme == ("slate" if colours == DARK else "default")
    assert page.complaints == []
    assert all(request.startswith((served, "data:", "blob:")) for request in page.requests)
    page.screenshot(pictures / f"site-{name}.png")
    page.run("localStorage.clear()")  # the colours are remembered, and the next one asks for others
    page.close()


def test_the_home_page_leads_to_the_live_circuit_also_from_a_disk(browser, site):
    page = browser.open(site / "index.html", **LIGHT)
    link = page.run("document.querySelector('a.md-button').href")
    live = browser.open(site / "live" / "mnist-1k.html")
    assert live.run("location.href") == link
    assert live.complaints == []
    live.close()
    page.close()


THREE = [(0.3, 0.25), (0.4, 0.15), (0.55, 0.15), (0.65, 0.25), (0.6, 0.4), (0.45, 0.48), (0.6, 0.55), (0.68, 0.68),
         (0.6, 0.82), (0.42, 0.85), (0.28, 0.75)]  # fmt: skip


@pytest.mark.parametrize(("name", "colours"), [("live-light", LIGHT), ("live-dark", DARK)])
def test_the_live_circuit_reads_a_digit(show, pictures, name, colours):
    page = show(Circuit.load("mnist-1k"), title="MNIST in 1,000 gates", emulation=colours, size=(1280, 900))
    page.frames(2)
    left, top, width, height = page.box(".pad")
    places = [(left + x * width, top + y * height) for x, y in THREE]
    steps = [
        (a[0] + (b[0] - a[0]) * i / 6, a[1] + (b[1] - a[1]) * i / 6) for a, b in pairwise(places) for i in range(6)
    ]
    page.drag([*steps, places[-1]])
    page.wait_for("document.querySelector('#prediction').textContent === '3'")
    page.wait_for("gatefit.findings() !== null")
    page.run("document.activeElement.blur()")
    page.run("scrollTo(0, 0)")
    page.frames(3)
    path = pictures / f"{name}.png"
    page.screenshot(path, selector=".wide-card canvas")
    Image.open(path).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    assert 5_000 < path.stat().st_size < LARGEST
