"""Chromium without a window and without a network, asked over a pipe by the DevTools protocol: what a page logs, loads and paints."""

from __future__ import annotations

import base64
import fcntl
import io
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from matplotlib.image import imread

from tests.yardstick import seconds

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: No window, no network (no name resolves, and the proxy is a port that nobody listens to), and no traffic of the browser's own.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--no-default-browser-check",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe",
)  # fmt: skip
#: Equal ids are no fault any more since WCAG 2.2, and pictures that show the same image have them; what passes is not listed.
_AXE = """axe.run(document, {runOnly: RULES, rules: {"duplicate-id": {enabled: false}}, resultTypes: ["violations"]}).then(
    found => found.violations.map(each => `${each.id}: ${each.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")}`))"""
#: Seconds that an answer may take.
_PATIENCE = 60.0


class Browser:
    """One running Chromium, as a context; it reads commands from descriptor 3 and answers on 4, each message ended by a zero byte.

    Parameters
    ----------
    program
        The executable.
    folder
        For its profile; an empty one.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._received = bytearray()
        self._number = 0
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        # A shell puts the pipes where Chromium wants them; numbers above 9 cannot collide with those.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out)]
        line = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}'
        with (self._folder / "stderr").open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", line, self._program, *_FLAGS, f"--user-data-dir={self._folder / 'profile'}", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=ends, start_new_session=True,
                env=dict(os.environ) | {"HOME": str(self._folder)},
            )  # fmt: skip
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._in, self._out = ours_in, ours_out
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._out)  # Chromium ends when its pipe does
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds(10))
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session: the browser and its helpers, nothing else
        self._process.wait()
        os.close(self._in)

    def open(self, path: Path, width: int, height: int = 900, *, dark: bool = False, print_media: bool = False) -> Page:
        """Load a file in a new tab so many CSS pixels wide; the page is back once it is loaded and painted."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.command(f"{domain}.enable")
        page.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.command("Emulation.setEmulatedMedia", media="print" if print_media else "", features=[scheme])
        page.command("Page.navigate", url=path.absolute().as_uri())
        self._until(page.is_loaded)
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its result."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._out, text) :]
        answers: list[dict[str, Any]] = []
        self._until(lambda: bool(answers), lambda answer: answers.append(answer) if answer["id"] == number else None)
        if "error" in answers[0]:
            raise RuntimeError(f"{method}: {answers[0]['error']}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def _until(self, is_done: Callable[[], bool], take: Callable[[dict[str, Any]], None] | None = None) -> None:
        """Read messages until a condition holds; events are kept, answers are handed to `take`."""
        deadline = time.monotonic() + seconds(_PATIENCE)
        while not is_done():
            while b"\0" not in self._received:
                readable, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
                received = os.read(self._in, 1 << 20) if readable else b""
                if not received:
                    said = (self._folder / "stderr").read_text(errors="replace")[-1500:]
                    raise RuntimeError(f"Chromium {'ended' if readable else 'did not answer in time'}; it said: {said}")
                self._received += received
            text, _, rest = self._received.partition(b"\0")
            self._received = bytearray(rest)
            message = json.loads(text)
            if "id" not in message:
                self._events.append(message)
            elif take:
                take(message)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What a tab has told so far."""
        return [event for event in self._events if event.get("sessionId") == session]


class Page:
    """A loaded page in its tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    @property
    def events(self) -> list[dict[str, Any]]:
        """DevTools events since the page was asked for."""
        return self._browser.events(self._session)

    def is_loaded(self) -> bool:
        """Whether all of it is there; the empty page that a tab begins with does not count."""
        frames = [event["params"].get("frame", {}) for event in self.events]
        begun = [number for number, frame in enumerate(frames) if frame.get("url", "about:blank") != "about:blank"]
        return bool(begun) and any(event["method"] == "Page.loadEventFired" for event in self.events[begun[0] :])

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A DevTools command to this tab."""
        return self._browser.command(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The JSON-ready value of a JavaScript expression, awaited."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def messages(self) -> list[str]:
        """All that the page or the browser wrote to the console, exceptions included."""
        told = []
        for event in self.events:
            values = event["params"]
            if event["method"] == "Runtime.consoleAPICalled":
                told.append(f"{values['type']}: {[argument.get('value') for argument in values['args']]}")
            elif event["method"] == "Runtime.exceptionThrown":
                told.append(f"exception: {values['exceptionDetails']['text']}")
            elif event["method"] == "Log.entryAdded":
                told.append(f"{values['entry']['level']}: {values['entry']['text']}")
        return told

    def requests(self) -> list[str]:
        """Every address that the page asked for, itself included."""
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """Where the matching elements stand on the whole page (CSS pixels): x, y, width, height."""
        script = """[...document.querySelectorAll(SELECTOR)].map(element => { const box = element.getBoundingClientRect();
            return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}; })"""
        boxes: list[dict[str, float]] = self.evaluate(script.replace("SELECTOR", json.dumps(selector)))
        return boxes

    def picture(self, box: Mapping[str, float] | None = None) -> bytes:
        """A PNG of the whole page, or of a part of it."""
        if box is None:
            size = self.command("Page.getLayoutMetrics")["cssContentSize"]
            box = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        self.command("Page.bringToFront")  # tabs behind another are not painted
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=dict(box) | {"scale": 1})
        return base64.b64decode(answer["data"])

    def pixels(self, box: Mapping[str, float] | None = None) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The same as rows of pixels of red, green and blue, 0 to 255."""
        shades = np.asarray(imread(io.BytesIO(self.picture(box)), format="png"))[:, :, :3]
        return np.round(shades * 255).astype(np.uint8)

    def violations(self, *rules: str) -> list[str]:
        """What axe finds by some rules, or all of WCAG 2 at its levels A and AA: a rule and the first elements that break it."""
        (folder,) = find_spec("axe_core_python").submodule_search_locations  # type: ignore[union-attr, misc]
        self.evaluate((Path(folder) / "axe.min.js").read_text(encoding="utf-8") + "; 0")
        broken: list[str] = self.evaluate(_AXE.replace("RULES", json.dumps(rules or ["wcag2a", "wcag2aa"])))
        return broken

    def close(self) -> None:
        """Close the tab."""
        self._browser.command("Target.closeTarget", targetId=self._target)
