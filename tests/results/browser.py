"""A real browser for tests of the page: Chromium without a window, spoken to through two pipes.

Its DevTools protocol (--remote-debugging-pipe) is JSON, each message ended by a NUL: commands go
to its file 3, answers and events come from its file 4. It ends when its file 3 does.
"""

from __future__ import annotations

import base64
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.waiting import wait_for

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "no browser here to open the page with: apt-get install chromium"
PATIENCE_S = 60
DESK, PHONE = (1300, 800), (420, 900)
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe"),
)
CTRL, SHIFT = 2, 8  # the protocol's numbers
_KEY_CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """`folder`: for its profile."""
    assert CHROMIUM is not None
    its_input, commands = os.pipe()
    answers, its_output = os.pipe()
    pipes = 'exec "$@" 3<"$LOCKCHECK_IN" 4>"$LOCKCHECK_OUT"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", pipes, "sh", CHROMIUM, *OPTIONS, f"--user-data-dir={folder}"],
        env={
            **os.environ,
            "LOCKCHECK_IN": f"/dev/fd/{its_input}",
            "LOCKCHECK_OUT": f"/dev/fd/{its_output}",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(its_input, its_output),
        start_new_session=True,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(answers)


class Browser:
    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._unread = b""
        self._sent = 0
        self._tabs: dict[str, Tab] = {}

    def open(self, page: Path, link: str = "", size: tuple[int, int] = DESK, **media: str) -> Tab:
        """A page that has loaded, in a tab of its own; `media`: features, such as
        `prefers_color_scheme="dark"`."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        tab = self._tabs[attached["sessionId"]] = Tab(self, attached["sessionId"], target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.resize(*size)
        tab.prefer(**{"prefers_reduced_motion": "reduce", **media})
        tab.load("Page.navigate", url=f"{page.resolve().as_uri()}{link}")
        return tab

    def call(self, method: str, session: str | None = None, **parameters: object) -> Any:
        """The result of one command of the protocol."""
        self._sent += 1
        message: dict[str, object] = {"id": self._sent, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while (answer := self._next(deadline, method)).get("id") != self._sent:
            if (tab := self._tabs.get(answer.get("sessionId", ""))) is not None:
                tab.happened(answer["method"], answer["params"])
        assert "error" not in answer, f"{method}: {answer['error']['message']}"
        return answer["result"]

    def _write(self, message: bytes) -> None:
        while message:
            message = message[os.write(self._commands, message) :]

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._answers, selectors.EVENT_READ)
            while b"\0" not in self._unread:
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                assert ready, f"the browser did not answer {what} within {PATIENCE_S} s"
                chunk = os.read(self._answers, 1 << 20)
                assert chunk, f"the browser ended before it answered {what}"
                self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read


@dataclass
class Tab:
    _browser: Browser
    _session: str
    _target: str
    errors: list[str] = field(default_factory=list)  # exceptions, and all that the console shows
    requests: list[str] = field(default_factory=list)  # every address that was asked for
    _loads: int = 0

    def call(self, method: str, **parameters: object) -> Any:
        return self._browser.call(method, self._session, **parameters)

    def load(self, method: str = "Page.reload", **parameters: object) -> None:
        before = self._loads
        self.call(method, **parameters)
        wait_for(lambda: self.call("Page.getFrameTree") and self._loads > before, "the page loads")

    def happened(self, event: str, what: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loads += 1
        elif event == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif event == "Runtime.consoleAPICalled":
            said = (str(each.get("value", each.get("description"))) for each in what["args"])
            self.errors.append(f"console.{what['type']}: {' '.join(said)}")
        elif event == "Log.entryAdded":  # violations of the content security policy, too
            self.errors.append(what["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])

    def js(self, expression: str) -> Any:
        """Its value, which must be one that JSON has; that of a promise once it is kept."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        failed = answer.get("exceptionDetails")
        assert failed is None, f"{expression}: {failed}"
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Its value, once that is true."""
        return wait_for(lambda: self.js(expression), expression)

    def text(self, selector: str) -> str:
        """What a reader sees of it."""
        seen: str = self.js(f"document.querySelector({json.dumps(selector)}).innerText")
        return seen

    def press(self, key: str, modifiers: int = 0) -> None:
        code = _KEY_CODES.get(key, ord(key[0].upper()))
        typed = {"Enter": "\r"}.get(key, key) if len(key) == 1 or key == "Enter" else ""
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", **common, **({"text": typed} if typed else {})
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def wheel(self, x: float, y: float, down: float, modifiers: int = 0) -> None:
        self.call(
            "Input.dispatchMouseEvent",
            type="mouseWheel",
            x=x,
            y=y,
            deltaX=0,
            deltaY=down,
            modifiers=modifiers,
        )

    def click_on(self, selector: str) -> None:
        """In its middle, where it has been scrolled into view."""
        x, y = self.js(
            f"""(() => {{ const it = document.querySelector({json.dumps(selector)});
            it.scrollIntoView({{ block: 'center', behavior: 'instant' }});
            const box = it.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
        )
        self.click(x, y)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, **media: str) -> None:
        features = [{"name": n.replace("_", "-"), "value": v} for n, v in media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def screenshot(self, *, whole: bool = False) -> bytes:
        """What is in view, or the whole page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(picture["data"])

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


def pages_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))
