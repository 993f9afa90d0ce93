"""A headless Chromium, spoken to over its own pipe: DevTools messages are JSON ended by a zero byte.

browser.open(path)              a page; what it logs and requests is collected
page.run("1 + 1")               the value of an expression in it
page.drag([(x, y), …])          a stroke of the mouse, as real input events
"""

import base64
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gatefit.backends.html import to_html
from gatefit.circuit.ir import Circuit
from gatefit.datasets import Dataset, load_dataset
from patience import HANG
from tools import require_tool

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--mute-audio",
    "--force-device-scale-factor=1", "--remote-debugging-pipe",
)  # fmt: skip
LAUNCH = """
import fcntl, os, sys
# The browser reads commands from descriptor 3 and writes answers to 4.
ends = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One process; pages are its targets."""

    def __init__(self, program: str, profile: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(to_read), str(to_write), program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.pages: dict[str, Page] = {}

    def post(self, method: str, session: str | None = None, **parameters: Any) -> int:
        """Send a command without waiting; returns its number."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to a command; an error in it is an error here."""
        deadline = time.monotonic() + HANG
        while number not in self._answers:
            self._receive(deadline)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        return self.answer(self.post(method, session, **parameters))

    def _receive(self, deadline: float) -> None:
        ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError("the browser does not answer")
        data = os.read(self._read, 1 << 20)
        if not data:
            raise RuntimeError(f"the browser ended with code {self._process.wait(HANG)}")
        *messages, self._buffer = (self._buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].hear(message["method"], message["params"])

    def open(self, path: Path, *, width: int = 1280, height: int = 900, **emulation: Any) -> "Page":
        """A new page that has loaded the file."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.emulate(**emulation)
        page.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + HANG
        while not page.loaded:
            self._receive(deadline)
        return page

    def close(self) -> None:
        try:
            # On a busy machine the browser may be gone before it could be asked to go.
            with suppress(BrokenPipeError, RuntimeError):
                self.call("Browser.close")
        finally:
            os.close(self._write)
            os.close(self._read)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Page:
    """A page: what it computes, what it was told by input events, and what it said."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.loaded = False
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._posted: list[int] = []

    def hear(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"{parameters['type']}: {parameters['args']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"{parameters['entry']['level']}: {parameters['entry']['text']}")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression: str) -> Any:
        """The value of an expression, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def frames(self, count: int = 2) -> None:
        """Wait until so many frames have been drawn."""
        for _ in range(count):
            self.run("new Promise((drawn) => requestAnimationFrame(() => drawn(0)))")

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + HANG
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition} is still false")
            time.sleep(0.01)

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def emulate(self, **features: str) -> None:
        """Media features, such as prefers_color_scheme="dark"."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element on the screen, after scrolling it there."""
        script = f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "nearest"}}); const r = e.getBoundingClientRect();
            return [r.left, r.top, r.width, r.height]; }})()"""
        left, top, width, height = self.run(script)
        return left, top, width, height

    def drag(self, points: Sequence[tuple[float, float]], *, wait: bool = True) -> None:
        """Press the mouse at the first point, move over the others, let go at the last."""
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1), "mouseReleased"]
        for kind, (x, y) in zip(kinds, [*points, points[-1]], strict=True):
            event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
            self._posted.append(self.browser.post("Input.dispatchMouseEvent", self.session, **event))
        if wait:
            self.settle()

    def settle(self) -> None:
        """Wait until every event has been handled."""
        for number in self._posted:
            self.browser.answer(number)
        self._posted.clear()

    def click(self, selector: str) -> None:
        left, top, width, height = self.box(selector)
        self.drag([(left + width / 2, top + height / 2)])

    def touch(self, points: Sequence[tuple[float, float]]) -> None:
        """A stroke of one finger."""
        for kind, place in [("touchStart", points[0]), *(("touchMove", p) for p in points[1:]), ("touchEnd", None)]:
            spots = [] if place is None else [{"x": place[0], "y": place[1]}]
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=spots)

    def key(self, name: str, *, shift: bool = False) -> None:
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, " ": 32, "Tab": 9, "Enter": 13}
        text = {"text": name} if name == " " else {"text": "\r"} if name == "Enter" else {}
        shared = {"key": name, "code": "Space" if name == " " else name, "windowsVirtualKeyCode": codes.get(name, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", modifiers=8 * shift, **shared, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", modifiers=8 * shift, **shared)

    def screenshot(self, path: Path, *, selector: str | None = None, **options: Any) -> None:
        if selector is not None:
            left, top, width, height = self.box(selector)
            x, y = left + self.run("scrollX"), top + self.run("scrollY")
            scale = options.pop("scale", 1)
            options["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": scale}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, **options)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self.browser.pages.pop(self.session, None)
        self.browser.call("Target.closeTarget", targetId=self.target)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, started once."""
    started = Browser(require_tool("chromium"), tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a circuit's page; afterwards it must have complained about nothing and asked for nothing but itself."""
    opened: list[tuple[Page, str]] = []

    def open_page(circuit: Circuit, *, emulation: dict[str, str] | None = None, size=(1280, 900), **options) -> Page:
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(to_html(circuit, **options), encoding="utf-8")
        page = browser.open(path, width=size[0], height=size[1], **(emulation or {}))
        opened.append((page, path.as_uri()))
        return page

    yield open_page
    for page, address in opened:
        page.frames(1)
        assert page.complaints == []
        assert page.requests == [address]
        page.close()


@pytest.fixture(scope="session")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Circuit]:
    """A network of a few seconds' training, hardened: with wires, inverters and constants."""
    from gatefit.harden import harden
    from gatefit.training.config import RunConfig
    from gatefit.training.runs import execute

    def run(dataset: Dataset, **options: Any) -> Circuit:
        config = RunConfig(dataset=dataset.name, evaluate_every=options["steps"], **options)
        folder = tmp_path_factory.mktemp("training") / dataset.name
        return harden(execute(config, folder=folder, dataset=dataset, threads=1).network)

    return run


@pytest.fixture(scope="session")
def digits() -> Dataset:
    """The digits data set."""
    return load_dataset("digits")


@pytest.fixture(scope="session")
def digits_circuit(digits: Dataset, train: Callable[..., Circuit]) -> Circuit:
    """A circuit that reads digits."""
    return train(digits, width=500, depth=2, steps=150)
