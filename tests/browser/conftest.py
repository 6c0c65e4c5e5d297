"""What the tests in a real browser share: a studio in a process of its own, Chromium, and what every page must be."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright
from sklearn.datasets import load_digits

from bench.parts.chromium import FLAGS, path_of_chromium
from tests.integration.studio.studio_process import StudioProcess
from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client

FRONTEND = Path(__file__).parents[2] / "frontend"
AXE = FRONTEND / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = path_of_chromium()
UNTOLD = (
    # A test that holds scripts back looks for elements while the content waits for them; a console shows this only to
    # those who ask for verbose messages.
    "verbose: Rendering was performed in a subtree hidden by content-visibility",
    # What a logout is for.
    "info: Clear-Site-Data header on ",
)
"""How messages of the console begin that say nothing about a page."""
SLOWER = float(os.environ.get("TESTS_BROWSER_SLOWER", "1"))
"""How many times slower the pages compute than they could: ``6`` shows here what fails on a small machine."""

WIDTHS = (1440, 1024, 400)
SETTLED_MS = 60_000
"""How long anything that is expected may take: a guard against what never comes, no measure of speed."""

expect.set_options(timeout=SETTLED_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here, and skip all where there is no Chromium."""
    here = str(Path(__file__).parent)
    for item in items:
        if not str(item.path).startswith(here):
            continue
        item.add_marker(pytest.mark.browser)
        if CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="needs Chromium; on Debian: apt-get install chromium"))


UNFINISHED = ["running", "queued", "stopping"]


class RunningStudio:
    """A studio with its own workspace, which a test may end and start again."""

    def __init__(self, workspace: Path, *words: str) -> None:
        self.workspace = workspace
        self._words = words
        self._process = StudioProcess(workspace, *words)
        self.address = self._process.address.rstrip("/")
        self.client = Client(self.address)

    def kill(self) -> None:
        """End the server as a crash would; its workers go on."""
        self._process.end(signal.SIGKILL)

    def start_again(self) -> None:
        """Start the server at the same address."""
        port = self.address.rpartition(":")[2].partition("/")[0]
        self._process = StudioProcess(self.workspace, *self._words, "--port", port)

    def close(self) -> None:
        """End what runs, then the server."""
        for job in list(self.client.jobs(state=UNFINISHED)):
            self.client.delete(job["id"], force=True)
        wait_until(lambda: not list(self.client.jobs(state=UNFINISHED)), PROCESS_S)
        self.client.close()
        self._process.end(signal.SIGTERM)


@dataclass(frozen=True)
class Furnished:
    """A workspace with a dataset and a training, made once; it is copied to its place for each file that needs them.

    Args:
        copy: folder with its content.
        place: folder where it was made, and must be when a studio opens it.
        digits: id of the dataset.
        tiny_model: id of a training on images of its own.
        model: id of a training on the dataset.
    """

    copy: Path
    place: Path
    digits: str
    tiny_model: str
    model: str


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory, digit_folders: Path) -> Furnished:
    """Return a workspace with handwritten digits in all three splits, and trainings of the null backend."""
    folder = tmp_path_factory.mktemp("furnished")
    place = folder / "workspace"
    running = RunningStudio(place)
    source = place / "uploads" / "digits"
    shutil.copytree(digit_folders, source)
    splits = {"val_share": 0.2, "test_share": 0.2}
    spec = {"kind": "dataset", "version": 1, "name": "digits", "source": str(source), "splits": splits}
    made = httpx.post(f"{running.address}/api/v1/datasets", json={"spec": spec}, timeout=60)
    assert made.status_code == 201, made.text
    digits = made.json()["id"]
    spec = {"kind": "train", "version": 1, "backend": "null", "network": "mlp"}
    (tiny,) = running.client.train({**spec, "name": "tiny", "data": "digits", "epochs": 3, "heartbeat_s": 0.2})
    (model,) = running.client.train({**spec, "name": "on digits", "epochs": 10}, dataset=digits)
    for job_id in (digits, tiny["id"], model["id"]):
        finished(running, job_id)
    running.close()
    place.rename(folder / "copy")
    return Furnished(folder / "copy", place, digits, tiny["id"], model["id"])


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Return a studio, shared by the tests of a file; its workspace is empty where no test asks for what was made."""
    tests = (item for item in request.session.items if item.path == request.path)
    if any("furnished" in test.fixturenames for test in tests):  # type: ignore[attr-defined]
        made = request.getfixturevalue("furnished")
        shutil.copytree(made.copy, made.place)
        studio = RunningStudio(made.place)
        yield studio
        studio.close()
        made.place.rename(tmp_path_factory.mktemp("left") / "workspace")
    else:
        studio = RunningStudio(tmp_path_factory.mktemp("studio") / "workspace")
        yield studio
        studio.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light", reduced_motion="reduce")
    made.set_default_timeout(SETTLED_MS)
    if SLOWER > 1:
        made.on("page", lambda opened: _slow_down(made, opened))
    yield made
    made.close()


def _slow_down(context: BrowserContext, opened: Page) -> None:
    context.new_cdp_session(opened).send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})


_SEEN = """() => new Promise((resolve) => {
  const main = document.querySelector("main");
  const isSeen = () => main.getAnimations().every((each) => each.playState === "finished");
  const look = () => (isSeen() ? resolve() : setTimeout(look, 20));
  requestAnimationFrame(() => setTimeout(look, 20));
})"""
"""The content waits a moment for its script, from the first frame on."""


class HeldScripts:
    """Scripts of a page that do not come before a test lets them, as on a slow machine.

    Args:
        page: that asks for them.
        names: pattern of their addresses.
    """

    def __init__(self, page: Page, names: str) -> None:
        self._page = page
        self._held: list[Route] | None = []
        page.route(names, self._hold)

    def _hold(self, route: Route) -> None:
        if self._held is None:
            route.fallback()
        else:
            self._held.append(route)

    def open(self, address: str) -> None:
        """Open a page, and wait until a person sees all that comes without scripts."""
        self._page.goto(address, wait_until="commit")
        expect(self._page.locator("#sayings")).to_be_attached()
        self._page.evaluate(_SEEN)

    def let_go(self) -> None:
        """Let them come now, and later ones at once."""
        held, self._held = self._held or [], None
        for route in held:
            route.continue_()


@pytest.fixture
def held_scripts(page: Page) -> Callable[..., HeldScripts]:
    """Return what holds the scripts of the page back: all of them, or those whose addresses have a pattern."""
    return lambda names="**/static/vendor/**": HeldScripts(page, names)


@pytest.fixture
def page(context: BrowserContext, server: RunningStudio) -> Iterator[Page]:
    """Return a tab; at the end, its console must be empty and no request may have left the host.

    A test that kills the server, or wants an error of the server, puts what it expects into ``page.expected``, as parts
    of messages.
    """
    opened = context.new_page()
    said: list[str] = []
    expected: list[str] = []
    opened.expected = expected  # type: ignore[attr-defined]
    opened.on("console", lambda message: note_console(f"{message.type}: {message.text}", said))
    opened.on("pageerror", lambda error: said.append(f"error: {error}"))
    opened.on("request", lambda request: _note_foreign(request.url, server.address, said))
    yield opened
    left = [text for text in said if not any(each in text for each in expected)]
    assert left == []


def note_console(text: str, said: list[str]) -> None:
    """Note a message of a page's console, unless it says nothing about the page."""
    if not text.startswith(UNTOLD):
        said.append(text)


def _note_foreign(url: str, address: str, said: list[str]) -> None:
    if not url.startswith((address, "blob:", "data:")):
        said.append(f"foreign request: {url}")


@pytest.fixture
def check_page() -> Callable[..., None]:
    """Return what raises where axe finds something wrong with a page, or a part of it, in light or dark."""

    def check(opened: Page, part: str = "html") -> None:
        if not AXE.is_file():
            pytest.skip("needs axe-core; `make setup` installs it where there is Node")
        opened.evaluate(AXE.read_text(encoding="utf-8"))  # through the debugger, which no policy holds back
        assert _violations(opened, part, {}) == []
        opened.emulate_media(color_scheme="dark")
        assert _violations(opened, part, _COLORS) == [], "dark"
        opened.emulate_media(color_scheme="light")

    return check


_COLORS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""What axe can find in the dark alone; nothing else of a page differs there."""


def _violations(opened: Page, part: str, options: dict[str, Any]) -> list[str]:
    run = "async ([part, options]) => (await axe.run(part, {resultTypes: ['violations'], ...options})).violations"
    return [_told(each) for each in opened.evaluate(run, [part, options])]


def _told(violation: dict[str, Any]) -> str:
    places = "; ".join(node["html"][:160] for node in violation["nodes"][:4])
    return f"{violation['id']}: {violation['help']}: {places}"


@pytest.fixture(scope="session")
def digit_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return class folders of real handwritten digits, 400 images of 28 by 28 pixels."""
    root = tmp_path_factory.mktemp("pictures") / "digits"
    pictures, labels = load_digits(return_X_y=True)
    for number, (values, label) in enumerate(zip(pictures[:400], labels[:400], strict=True)):
        folder = root / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        picture = np.rint(values.reshape(8, 8) * (255 / 16)).astype(np.uint8)
        large = cv2.resize(picture, (28, 28), interpolation=cv2.INTER_LINEAR)
        assert cv2.imwrite(str(folder / f"{number:04d}.png"), large)
    return root


@pytest.fixture(scope="module")
def digits(furnished: Furnished, server: RunningStudio) -> str:
    """Return the id of a dataset of handwritten digits that is done, in all three splits."""
    return furnished.digits


@pytest.fixture(scope="module")
def tiny_model(furnished: Furnished, server: RunningStudio) -> str:
    """Return the id of a training of the null backend that is done."""
    return furnished.tiny_model


@pytest.fixture(scope="module")
def model(furnished: Furnished, server: RunningStudio) -> str:
    """Return the id of a training of the null backend on the dataset of digits that is done."""
    return furnished.model


def take_pictures(page: Page, name: str) -> None:
    """Write images of a page in every width, light and dark, if `tools.screenshots` asks for them."""
    folder = os.environ.get("DOCS_SCREENSHOTS", "")
    for scheme in ("light", "dark") if folder else ():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            settle(page)
            page.screenshot(path=Path(folder) / f"{name}-{scheme}-{width}.png", full_page=True)
    if folder:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})


def settle(page: Page) -> None:
    """Wait until a page is drawn as its window and its colors are now: no transition goes on, and frames passed."""
    page.evaluate(
        """async () => {
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            await frame();
            const ends = (each) => each.effect.getComputedTiming().endTime < Infinity;
            await Promise.allSettled(document.getAnimations().filter(ends).map((each) => each.finished));
            await frame();
            await frame();
        }"""
    )


def finished(server: RunningStudio, job_id: str, within_s: float = 120) -> str:
    """Wait until a job is done, and return its id."""

    def is_done() -> bool:
        job = server.client.job(job_id)
        assert job["state"] != "failed", job["error"]
        return job["state"] == "done"

    wait_until(is_done, within_s)
    return job_id
