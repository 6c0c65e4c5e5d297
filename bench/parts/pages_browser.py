"""Pages in Chromium for the page benchmark: time until one is usable, and bytes transferred.

The browser tells afterwards: a page of the studio marks in its timeline when it is usable, and the rest is there.
Nothing watches a page while it comes, as a driver would, which took 5 to 30 ms of each visit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bench.parts.chromium import Chromium

__all__ = ["Tab", "Visit"]

_WIDTH, _HEIGHT = 1440, 900
_WITHIN_S: Final = 30.0
_QUIET_S: Final = 0.25
"""After so long without a further answer, all that a page asks for by itself has come."""
_IDLE_SHARE: Final = 0.1
"""A browser that needs less of one core is at rest."""
_IDLE_LOOK_S: Final = 0.1
_IDLE_LOOKS: Final = 50

_MEASURED: Final = """((address) => {
  if (location.href !== new URL(address).href || document.readyState !== "complete") return null;
  const [page] = performance.getEntriesByType("navigation");
  const marked = (name) => performance.getEntriesByName(name, "mark")[0]?.startTime;
  const usable = document.scripts.length ? marked("usable") : page.domInteractive;
  const shown = SHOWN;
  const painted = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  if (!usable || !shown || !painted) return null;
  const come = [page, ...performance.getEntriesByType("resource")];
  return {
    status: page.responseStatus,
    usable,
    shown: Math.max(usable, shown),
    painted,
    bytes: come.reduce((sum, each) => sum + each.transferSize, 0),
  };
})(ADDRESS)"""

_COME: Final = "performance.getEntriesByType('resource').map((each) => each.transferSize)"

_FOLLOW: Final = """((address) => {
  const link = document.body.appendChild(document.createElement("a"));
  link.href = address;
  link.click();
})(ADDRESS)"""

_ACT: Final = """(([selector, value, changes]) => new Promise((resolve, reject) => {
  const before = document.querySelector(changes)?.textContent;
  const began = performance.now();
  document.addEventListener("htmx:after:swap", function swapped({ detail }) {
    if (document.querySelector(changes)?.textContent === before) return;
    document.removeEventListener("htmx:after:swap", swapped);
    resolve({ took: performance.now() - began, text: detail.ctx.text });
  });
  setTimeout(() => reject(new Error(`nothing changed: ${selector}`)), 30000);
  const element = document.querySelector(selector);
  if (value === null) element.click();
  else {
    element.value = value;
    element.form.requestSubmit();
  }
}))(ASKED)"""

_FETCH: Final = """(async (address) => {
  const began = performance.now();
  const answer = await fetch(address, { cache: "no-store" });
  document.querySelector("main").innerHTML = await answer.text();
  return performance.now() - began;
})(ADDRESS)"""

_CONTENT: Final = "fetch(location.href, { cache: 'no-store' }).then((answer) => answer.text())"


@dataclass(frozen=True)
class Visit:
    """What one visit of a page, or one act on it, took.

    Args:
        interactive_ms: until it could be used: the document is there, htmx and all islands are at work.
        shown_ms: until all that it shows at first was there too.
        painted_ms: until the first of its contents was painted; of an act the same as ``interactive_ms``.
        transferred_bytes: of everything that it asked for, headers included, as the network carried it.
    """

    interactive_ms: float
    shown_ms: float
    painted_ms: float
    transferred_bytes: int


class Tab:
    """A tab with its own cache.

    Args:
        opened: the browser.
        shown: an expression of JavaScript: when a page showed all that it shows at first, in ms of its timeline;
            0 or undefined where it does not yet.
    """

    def __init__(self, opened: Chromium, shown: str = "1") -> None:
        self._opened = opened
        self._context: str = opened.send("Target.createBrowserContext")["browserContextId"]
        blank = {"url": "about:blank", "browserContextId": self._context, "width": _WIDTH, "height": _HEIGHT}
        target = opened.send("Target.createTarget", blank)["targetId"]
        attached = opened.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session: str = attached["sessionId"]
        screen = {"width": _WIDTH, "height": _HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", screen)
        self._measured = _MEASURED.replace("SHOWN", shown)
        self._part = ""

    def visit(self, address: str) -> Visit:
        """Open a page, as from a bookmark.

        Raises:
            RuntimeError: where the answer is no page.
        """
        self._open("about:blank")
        self._rest()
        self._open(address)
        return self._arrived(address)

    def follow(self, address: str, before: str) -> Visit:
        """Open a page by a link on another page of the same server: the browser makes no new process for it.

        Raises:
            RuntimeError: where the answer is no page.
        """
        self._open(before)
        self._arrived(before, "1")
        self._rest()
        self._run(_FOLLOW, ADDRESS=address)
        return self._arrived(address)

    def act(self, selector: str, value: str | None, changes: str) -> Visit:
        """Press something on the page, or send the form of a field, and wait until the page has changed.

        Args:
            selector: of what is pressed, or of the field.
            value: for the field; None to press.
            changes: selector of the element whose text must be another one afterwards.
        """
        changed, come_bytes = self._counted(lambda: self._run(_ACT, ASKED=[selector, value, changes]))
        took_ms, self._part = changed["took"], changed["text"]
        return Visit(took_ms, took_ms, took_ms, come_bytes)

    def fetch(self, address: str) -> Visit:
        """Let the page fetch an address and show it, with nothing else: the floor of what an act takes."""
        took_ms, come_bytes = self._counted(lambda: self._run(_FETCH, ADDRESS=address))
        return Visit(took_ms, took_ms, took_ms, come_bytes)

    def content(self) -> str:
        """Return what the last visit or act was answered by."""
        # Not the first answer since an act: a page also asks for parts by itself, such as its strip.
        return self._part or str(self._run(_CONTENT))

    def close(self) -> None:
        """Forget the tab and its cache."""
        self._opened.send("Target.disposeBrowserContext", {"browserContextId": self._context})

    def _open(self, address: str) -> None:
        self._part = ""
        failed = self._send("Page.navigate", {"url": address}).get("errorText")
        if failed:
            raise RuntimeError(f"{address}: {failed}")

    def _arrived(self, address: str, shown: str = "") -> Visit:
        """Wait until a page is there and asks for nothing more; it is first looked at when it should be usable."""
        expression = _MEASURED.replace("SHOWN", shown) if shown else self._measured
        end_s = time.monotonic() + _WITHIN_S
        before: dict[str, Any] | None = None
        while time.monotonic() < end_s:
            time.sleep(_QUIET_S)
            measured = self._run(expression, ADDRESS=address)
            if measured is not None and measured["status"] != 200:
                raise RuntimeError(f"{address} was answered by {measured['status']}")
            if measured is not None and measured == before:
                return Visit(measured["usable"], measured["shown"], measured["painted"], measured["bytes"])
            before = measured
        raise RuntimeError(f"{address} did not become usable within {_WITHIN_S:.0f} s")

    def _counted(self, act: Callable[[], Any]) -> tuple[Any, int]:
        """Return what an act gives, and the bytes that came during it, when no more come."""
        self._quiet()
        known = len(self._run(_COME))
        given = act()
        return given, sum(self._quiet()[known:])

    def _quiet(self) -> list[int]:
        come: list[int] = self._run(_COME)
        while True:
            time.sleep(_QUIET_S)
            before, come = come, self._run(_COME)
            if before == come:
                return come

    def _rest(self) -> None:
        """Wait until the browser is at rest: a new window makes parts of its own, which are no part of our pages."""
        used = self._used_s()
        for _ in range(_IDLE_LOOKS):
            time.sleep(_IDLE_LOOK_S)
            before, used = used, self._used_s()
            if used - before < _IDLE_SHARE * _IDLE_LOOK_S:
                return

    def _used_s(self) -> float:
        """Return the CPU time of all processes of the browser."""
        processes = self._opened.send("SystemInfo.getProcessInfo")["processInfo"]
        return float(sum(each["cpuTime"] for each in processes))

    def _run(self, expression: str, **values: Any) -> Any:
        """Return what an expression of JavaScript gives; words in it stand for values.

        Raises:
            RuntimeError: what it throws.
        """
        for name, value in values.items():
            expression = expression.replace(name, json.dumps(value))
        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._send("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"]
            raise RuntimeError(thrown.get("exception", {}).get("description", thrown["text"]))
        return answer["result"].get("value")

    def _send(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        return self._opened.send(method, values, session=self._session)
