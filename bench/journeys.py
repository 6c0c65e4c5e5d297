"""Journeys through the pages, counted: clicks to a goal, heights of the forms, position of the first run."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from sklearn.datasets import load_digits

from bench.parts.chromium import FLAGS, path_of_chromium, why_no_chromium
from bench.parts.report import Options, machine
from bench.parts.studio_processes import serve
from ziggurat.client import Client

__all__ = ["JourneysReport", "main", "run"]

_WITHIN_MS: Final = 120_000
_WITHIN_S: Final = 300.0
_SHARES: Final = {"val_share": 0.2, "test_share": 0.2}
_SPEC: Final = {"kind": "train", "version": 1, "backend": "tensorflow", "network": "lenet", "batch_size": 32}


@dataclass
class JourneysReport:
    """What was counted.

    Args:
        clicks: goal → clicks that led to it; keys that fill a field are not counted.
        pixels: what was measured → CSS pixels in a window of 1440 x 900.
        left_out: why nothing was counted.
    """

    clicks: dict[str, int] = field(default_factory=dict)
    pixels: dict[str, int] = field(default_factory=dict)
    left_out: str = ""

    def text(self) -> str:
        """Return the report for people."""
        if self.left_out:
            return f"Journeys: not counted, {self.left_out}"
        lines = ["Journeys from the runs page, in a window of 1440 x 900", "", "| goal | clicks |", "|---|--:|"]
        lines += [f"| {goal} | {count} |" for goal, count in self.clicks.items()]
        lines += ["", "| measured | px |", "|---|--:|"]
        return "\n".join([*lines, *(f"| {name} | {height} |" for name, height in self.pixels.items())])

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {"clicks": self.clicks, "pixels": self.pixels, "left_out": self.left_out}


@dataclass
class Hand:
    """Clicks and counts.

    Args:
        page: that is used.
        clicks: so far.
    """

    page: Page
    clicks: int = 0

    def click(self, target: Locator) -> None:
        """Click the first element that fits."""
        target.first.click(timeout=_WITHIN_MS)
        self.clicks += 1

    def button(self, name: str) -> None:
        """Click a button by its name."""
        self.click(self.page.get_by_role("button", name=name))

    def link(self, name: str) -> None:
        """Click a link by its name."""
        self.click(self.page.get_by_role("link", name=name))


@dataclass(frozen=True, kw_only=True)
class Studio:
    """A studio with a dataset, two trained models and a run that is at work.

    Args:
        address: of its pages.
        folder: of images in class folders, which it may read.
        image: a file to predict for.
    """

    address: str
    folder: Path
    image: Path


def run(_options: Options) -> JourneysReport:
    """Make a studio, and walk each journey once: counts do not vary."""
    report = JourneysReport(left_out=why_no_chromium())
    if report.left_out:
        return report
    with tempfile.TemporaryDirectory(prefix="ziggurat-bench-journeys-") as place:
        workspace = Path(place, "workspace")
        folder = _digit_folders(workspace / "uploads" / "digits")
        with serve(workspace, None) as server, Client(server.address) as client, _browser() as opened:
            _fill(client, folder)
            studio = Studio(address=server.address, folder=folder, image=next(folder.glob("7/*.png")))
            try:
                for goal, walk in _JOURNEYS.items():
                    report.clicks[goal] = _walked(opened, studio, walk)
                report.pixels = _measured(opened, studio)
            finally:
                for state in ("queued", "running"):
                    for job in client.jobs(state=state):
                        client.stop(job["id"], now=True)
    return report


def main(words: Sequence[str] | None = None) -> None:
    """Run this benchmark alone."""
    argparse.ArgumentParser(prog="python -m bench.journeys", description=__doc__).parse_args(words)
    print(machine(), flush=True)
    print(f"\n{run(Options()).text()}", flush=True)


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path_of_chromium(), args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()


def _digit_folders(folder: Path) -> Path:
    digits = load_digits()
    for number, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        place = folder / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 255 / 16).astype("uint8")).resize((28, 28)).save(place / f"{number:04d}.png")
    return folder


def _fill(client: Client, folder: Path) -> None:
    spec = {"kind": "dataset", "version": 1, "name": "digits", "source": str(folder), "splits": _SHARES}
    dataset = client.datasets.create(spec)["id"]
    client.wait(dataset, timeout_s=_WITHIN_S)
    for name, rate in (("LeNet", 0.01), ("LeNet, lower rate", 0.002)):
        job = client.train({**_SPEC, "name": name, "epochs": 2, "learning_rate": rate}, dataset=dataset)[0]["id"]
        client.wait(job, timeout_s=_WITHIN_S)
    client.train({**_SPEC, "name": "at work", "epochs": 5000, "learning_rate": 0.001}, dataset=dataset)


def _walked(opened: Browser, studio: Studio, walk: Callable[[Hand, Studio], None]) -> int:
    context = opened.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.goto(studio.address)
        hand = Hand(page)
        walk(hand, studio)
        return hand.clicks
    finally:
        context.close()


def _create_dataset(hand: Hand, studio: Studio) -> None:
    hand.link("New dataset")
    hand.page.locator("#source").fill(str(studio.folder))
    hand.page.locator("#source").press("Tab")
    hand.page.locator("#preview .stats").wait_for(timeout=_WITHIN_MS)
    hand.button("Create dataset")
    hand.page.wait_for_url("**/datasets/2*", timeout=_WITHIN_MS)


def _train(hand: Hand, _studio: Studio) -> None:
    hand.link("New model")
    hand.click(hand.page.locator("#start"))
    hand.page.wait_for_url("**/models/2*", timeout=_WITHIN_MS)


def _predict(hand: Hand, studio: Studio) -> None:
    hand.click(hand.page.get_by_role("link", name="LeNet", exact=True))
    hand.link("Predict")
    hand.page.locator("input[type=file]").first.set_input_files(studio.image)
    hand.clicks += 1  # the file dialog
    hand.page.locator("#test-one .said").wait_for(timeout=_WITHIN_MS)


def _compare(hand: Hand, _studio: Studio) -> None:
    for box in hand.page.locator("input[name=ids]").all()[-2:]:
        hand.click(box)
    hand.button("Compare")
    hand.page.wait_for_url("**/compare*", timeout=_WITHIN_MS)


def _failed(hand: Hand, _studio: Studio) -> None:
    hand.link("Failed this week")


_JOURNEYS: Final[dict[str, Callable[[Hand, Studio], None]]] = {
    "dataset from a folder": _create_dataset,
    "training with the recommended settings": _train,
    "prediction for an image file": _predict,
    "two runs compared": _compare,
    "failed runs": _failed,
}


def _measured(opened: Browser, studio: Studio) -> dict[str, int]:
    """Return heights and positions in CSS pixels."""
    context = opened.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    found = {}
    try:
        for name, path, ready in (
            ("height of the new-model form, closed", "/models/new", "#start"),
            (
                "height of the new-dataset form with a preview, closed",
                f"/datasets/new?source={studio.folder}",
                "#preview .stats",
            ),
        ):
            page.goto(studio.address + path)
            page.locator(ready).first.wait_for(timeout=_WITHIN_MS)
            found[name] = page.evaluate("() => document.documentElement.scrollHeight")
        page.goto(studio.address)
        row = page.locator("[data-row]").first
        row.wait_for(timeout=_WITHIN_MS)
        found["first run on the runs page, with one at work"] = round((row.bounding_box() or {})["y"])
    finally:
        context.close()
    return found


if __name__ == "__main__":
    main()
