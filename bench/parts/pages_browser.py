"""Chromium for the page benchmark: time until a page is usable, and bytes transferred."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

try:
    from playwright.sync_api import Browser, BrowserContext, Page, Response, sync_playwright
except ImportError:  # the benchmark says so
    sync_playwright = None  # type: ignore[assignment]

__all__ = ["Tab", "Visit", "browser", "why_no_browser"]

_CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WITHIN_MS: Final = 60_000
_QUIET_MS: Final = 250
"""After so long without a further answer, all that a page asks for by itself has come."""
_IDLE_SHARE: Final = 0.1
"""A browser that needs less of one core is at rest."""
_IDLE_LOOK_MS: Final = 100
_IDLE_LOOKS: Final = 50

_WATCH: Final = """(() => {
  const found = { interactive: 0, shown: 0 };
  window.measured = found;
  const isShown = () => Boolean(SHOWN);
  const isInteractive = () =>
    document.querySelector("main h1") &&
    [...document.querySelectorAll("[data-island]:not([data-when])")].every((each) => each.dataset.mounted) &&
    (!document.querySelector("[hx-get], [hx-post]") || document.querySelector("[data-htmx-powered]"));
  const look = () => {
    if (document.readyState === "loading") return;
    if (!found.interactive && isInteractive()) found.interactive = performance.now();
    if (found.interactive && !found.shown && isShown()) found.shown = performance.now();
    if (found.shown) watcher.disconnect();
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document, { attributes: true, childList: true, subtree: true });
  document.addEventListener("readystatechange", look);
  document.addEventListener("load", look, true);
})();"""

_AWAIT: Final = """() => new Promise((resolve, reject) => {
  const look = () => (window.measured.shown ? resolve(window.measured) : setTimeout(look, 20));
  look();
  setTimeout(() => reject(new Error(`not shown yet: ${JSON.stringify(window.measured)}`)), 30000);
})"""

_PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"

_FOLLOW: Final = """(address) => {
  const link = document.body.appendChild(document.createElement("a"));
  link.href = address;
  link.click();
}"""

_ACT: Final = """([act, gone]) => new Promise((resolve, reject) => {
  const before = document.querySelector(gone)?.textContent;
  const began = performance.now();
  document.addEventListener("htmx:after:swap", function swapped({ detail }) {
    if (document.querySelector(gone)?.textContent === before) return;
    document.removeEventListener("htmx:after:swap", swapped);
    resolve({ took: performance.now() - began, text: detail.ctx.text });
  });
  setTimeout(() => reject(new Error(`nothing changed: ${act.selector}`)), 30000);
  const element = document.querySelector(act.selector);
  if (act.value === undefined) element.click();
  else {
    element.value = act.value;
    element.form.requestSubmit();
  }
})"""

_FETCH: Final = """async (address) => {
  const began = performance.now();
  const answer = await fetch(address, { cache: "no-store" });
  document.querySelector("main").innerHTML = await answer.text();
  return performance.now() - began;
}"""


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
    """A tab with its own cache, which counts what comes.

    Args:
        opened: the browser.
        shown: an expression of JavaScript that holds once a page shows all that it shows at first.
    """

    def __init__(self, opened: Browser, shown: str = "true") -> None:
        self._context: BrowserContext = opened.new_context(viewport={"width": 1440, "height": 900})
        self._context.set_default_timeout(_WITHIN_MS)
        self._context.add_init_script(_WATCH.replace("SHOWN", shown))
        self._page: Page = self._context.new_page()
        self._page.on("response", self._note)
        self._answer: Response | None = None
        self._part = ""
        self._bytes = 0
        self._browser = opened.new_browser_cdp_session()
        network = self._context.new_cdp_session(self._page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", self._count)
        self._settle()

    def visit(self, address: str) -> Visit:
        """Open a page, as from a bookmark.

        Raises:
            RuntimeError: where the answer is no page.
        """
        self._page.goto("about:blank")
        self._rest()
        self._begin()
        self._page.goto(address, wait_until="domcontentloaded")
        return self._arrived(address)

    def follow(self, address: str, before: str) -> Visit:
        """Open a page by a link on another page of the same server: the browser makes no new process for it.

        Raises:
            RuntimeError: where the answer is no page.
        """
        self._page.goto(before)
        self._settle()
        self._rest()
        self._begin()
        with self._page.expect_navigation(wait_until="domcontentloaded"):
            self._page.evaluate(_FOLLOW, address)
        return self._arrived(address)

    def _arrived(self, address: str) -> Visit:
        if self._answer is None or not self._answer.ok:
            raise RuntimeError(f"{address} was answered by {self._answer.status if self._answer else 'nothing'}")
        measured = self._page.evaluate(_AWAIT)
        self._settle()
        painted_ms = self._page.evaluate(_PAINTED)
        return Visit(measured["interactive"], measured["shown"], painted_ms, self._bytes)

    def act(self, selector: str, value: str | None, changes: str) -> Visit:
        """Press something on the page, or send the form of a field, and wait until the page has changed.

        Args:
            selector: of what is pressed, or of the field.
            value: for the field; None to press.
            changes: selector of the element whose text must be another one afterwards.
        """
        self._settle()
        self._begin()
        asked: dict[str, Any] = {"selector": selector, **({} if value is None else {"value": value})}
        changed = self._page.evaluate(_ACT, [asked, changes])
        self._settle()
        took_ms, self._part = changed["took"], changed["text"]
        return Visit(took_ms, took_ms, took_ms, self._bytes)

    def fetch(self, address: str) -> Visit:
        """Let the page fetch an address and show it, with nothing else: the floor of what an act takes."""
        self._begin()
        took_ms = self._page.evaluate(_FETCH, address)
        self._settle()
        return Visit(took_ms, took_ms, took_ms, self._bytes)

    def content(self) -> str:
        """Return what the last visit or act was answered by."""
        if self._part:  # not the first answer since the act: a page also asks for parts by itself, such as its strip
            return self._part
        if self._answer is None:
            raise RuntimeError("nothing was answered")
        return self._answer.text()

    def close(self) -> None:
        """Forget the tab and its cache."""
        self._browser.detach()
        self._context.close()

    def _begin(self) -> None:
        self._bytes, self._answer, self._part = 0, None, ""

    def _note(self, response: Response) -> None:
        if self._answer is None and response.request.resource_type == "document":
            self._answer = response

    def _count(self, event: dict[str, Any]) -> None:
        self._bytes += int(event["encodedDataLength"])

    def _rest(self) -> None:
        """Wait until the browser is at rest: a new window makes parts of its own, which are no part of our pages."""
        used = self._used_s()
        for _ in range(_IDLE_LOOKS):
            self._page.wait_for_timeout(_IDLE_LOOK_MS)
            before, used = used, self._used_s()
            if used - before < _IDLE_SHARE * _IDLE_LOOK_MS / 1000:
                return

    def _used_s(self) -> float:
        """Return the CPU time of all processes of the browser."""
        return sum(each["cpuTime"] for each in self._browser.send("SystemInfo.getProcessInfo")["processInfo"])

    def _settle(self) -> None:
        counted = -1
        while counted != self._bytes:
            counted = self._bytes
            self._page.wait_for_timeout(_QUIET_MS)


def why_no_browser() -> str:
    """Return why there is no browser to measure with; empty where there is one."""
    if sync_playwright is None:
        return "playwright is not installed"
    return "" if _CHROMIUM else "there is no Chromium"


@contextmanager
def browser() -> Iterator[Browser]:
    """Give Chromium, without a window."""
    assert sync_playwright is not None, why_no_browser()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_FLAGS))
        try:
            yield opened
        finally:
            opened.close()
