"""Measurement of a newcomer's first minutes in the studio: clicks, seconds, and CPU time of all its processes.

``python -m tools.first_minutes`` starts an empty studio and drives its pages in Chromium, as the README says: the first
screen, a network for the handwritten digits, a prediction for an image, an evaluation. ``python -m tools.first_minutes
FOLDER IMAGE`` then does the same in another empty studio with a folder of images, one subfolder a class, and an image.
A choice in a file dialog counts as a click; what is typed does not.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from PIL import Image
from sklearn.datasets import load_digits

from bench.parts.chromium import FLAGS, path_of_chromium
from bench.parts.report import machine

__all__ = ["main"]

_BEFORE: Final = 19
"""Clicks from an empty studio to an evaluation and a prediction before there was a first screen."""

_WITHIN_MS: Final = 600_000
_NEXT: Final = "#next-action:visible"


class _Visit:
    """A page that counts clicks, and prints what was reached when.

    Args:
        page: of Playwright.
    """

    def __init__(self, page: Any) -> None:
        page.set_default_timeout(_WITHIN_MS)
        self.page = page
        self.clicks = 0
        self._began_s = time.monotonic()

    def click(self, place: str) -> None:
        """Click an element when it is there."""
        self.page.locator(place).first.click()
        self.clicks += 1

    def choose(self, place: str, file: Path) -> None:
        """Choose a file in the dialog of a field."""
        self.page.locator(place).set_input_files(file)
        self.clicks += 1

    def reach(self, what: str, place: str, text: str = "") -> None:
        """Wait until an element is visible, with a text in it, and print what that means."""
        self.page.locator(place).filter(has_text=text).first.wait_for()
        print(f"  {time.monotonic() - self._began_s:6.1f} s  {self.clicks:2} clicks  {what}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Walk one way, or both; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.first_minutes", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", help="of images, one subfolder a class")
    parser.add_argument("image", type=Path, nargs="?", help="to predict for")
    given = parser.parse_args(arguments)
    if given.folder and not given.image:
        parser.error("FOLDER needs an IMAGE.")
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        digit = Path(scratch) / "digit.png"
        digits: Any = load_digits()
        Image.fromarray((digits.images[0] * 15).astype("uint8")).resize((28, 28)).save(digit)
        print("\nhandwritten digits")
        _measure(Path(scratch) / "digits", _train_digits, digit)
        if given.folder:
            folder = given.folder.resolve()
            print(f"\n{folder.name}")
            _measure(
                Path(scratch) / "folder", lambda visit: _train_folder(visit, folder), given.image.resolve(), folder
            )
    return 0


def _measure(workspace: Path, train: Callable[[_Visit], None], image: Path, allowed: Path | None = None) -> None:
    """Start an empty studio, walk through its pages, end it, and print what that took."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "ziggurat", "--workspace", str(workspace)]
    if allowed is not None:
        subprocess.run([*command, "settings", "allow", str(allowed)], check=True, capture_output=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path_of_chromium(), args=list(FLAGS))
        before_s = _ended_cpu_s()
        with subprocess.Popen([*command, "up", "--port", "0", "--no-open", "--json"], stdout=subprocess.PIPE) as studio:
            assert studio.stdout is not None
            address = json.loads(studio.stdout.readline())["address"]
            try:
                visit = _Visit(browser.new_context(viewport={"width": 1440, "height": 900}).new_page())
                visit.page.goto(address)
                visit.reach("first screen", "#first-starts")
                train(visit)
                _try(visit, image)
            finally:
                studio.send_signal(signal.SIGTERM)
        # The browser still runs: of the processes that have ended, only the studio's came since.
        cpu_s = _ended_cpu_s() - before_s
        browser.close()
    print(f"  {visit.clicks} clicks ({_BEFORE} before); {cpu_s:.1f} CPU s of the studio and all of its processes")


def _train_digits(visit: _Visit) -> None:
    visit.click("#first-digits")
    visit.reach("first point of a curve", "#job-best-value", "%")
    visit.reach("trained", _NEXT)


def _train_folder(visit: _Visit, folder: Path) -> None:
    visit.page.locator("#source").fill(str(folder))
    visit.click("#start-images-go")
    visit.reach("preview", "#preview-stats")
    visit.click("#create")
    visit.reach("dataset", "#dataset-train")
    visit.click("#dataset-train")
    visit.click("#start:enabled")
    visit.reach("first point of a curve", "#job-best-value", "%")
    visit.reach("trained", _NEXT)


def _try(visit: _Visit, image: Path) -> None:
    """Predict for an image, and evaluate on the validation split."""
    visit.click("#job-test:visible")
    visit.page.locator("#one-form[data-mounted]").wait_for()
    visit.choose("#picture", image)
    visit.reach("prediction for an image", "#test-one .said li")
    visit.click("a[href*='tab=splits']")
    visit.click("#evaluate-val")
    visit.reach("evaluation", "table.confusion")


def _ended_cpu_s() -> float:
    """Return the CPU seconds of the processes below this one that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
