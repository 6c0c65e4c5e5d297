"""Journeys from files to an exported model in a real browser: one for each task and form of data."""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from playwright.sync_api import Page, expect

from tests.tensorflow.task_datasets import MAKERS

__all__ = ["CHOSEN", "JOURNEYS", "NIGHTLY", "Journey", "Walk", "write_files"]

LONG_MS: Final = 180_000
"""How long a job may take on a machine that is busy."""


@dataclass(frozen=True, kw_only=True)
class Journey:
    """What is seen on the way of one task.

    Args:
        files: name in ``MAKERS`` of the files that it begins with.
        kind: how the form names the data that it found.
        trained_for: what the page of the dataset says it is for.
        network: that is chosen.
        unfit: another one, which the form must not offer.
        metric: that the page of the training shows as its best value.
        baseline: part of the line with the baseline; empty where there is none.
        seen: selector of what the page of the evaluation shows of the samples.
        answer: what the page of a prediction shows, as a selector.
        parity: metric that the report of the export compares.
        format: of the export on TensorFlow.
    """

    files: str
    kind: str
    trained_for: str
    network: str
    unfit: str
    metric: str
    baseline: str = ""
    seen: str
    answer: str
    parity: str
    format: str = "ONNX"


_SEEN_PIXELS = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, at) => at % 4 === 3 && value > 0).length;
}"""
_TEXTS = "#samples .task-text, #samples .empty"
_MASKS = "#samples img[data-mask]"
_CHART = ".task-chart canvas"
_CLASSES = "#test-one .said li, #test-one .answer li"

JOURNEYS: Final[dict[str, Journey]] = {
    "classification of images": Journey(
        files="class folders", kind="Image classification", trained_for="classification", network="lenet",
        unfit="unet_small", metric="accuracy", baseline="most frequent class", seen="table.confusion",
        answer=_CLASSES, parity="Accuracy", format="SavedModel",
    ),
    "classification of rows": Journey(
        files="classified rows", kind="Table", trained_for="classification", network="table_mlp", unfit="lenet",
        metric="accuracy", baseline="against", seen="#samples .task-row, #samples .empty", answer=_CLASSES,
        parity="Accuracy",
    ),
    "classification of texts": Journey(
        files="texts", kind="Text classification", trained_for="classification", network="text_cnn",
        unfit="table_mlp", metric="accuracy", baseline="most frequent class", seen=_TEXTS,
        answer=_CLASSES, parity="Accuracy", format="LiteRT",
    ),
    "regression of rows": Journey(
        files="measured rows", kind="Table", trained_for="regression", network="table_linear", unfit="lenet",
        metric="RMSE", baseline="linear regression", seen=_CHART, answer="#test-one .answer-values dd", parity="RMSE",
    ),
    "regression of images": Journey(
        files="measured images", kind="Numbers from images", trained_for="regression", network="image_regression",
        unfit="lenet", metric="RMSE", baseline="mean", seen=_CHART, answer="#test-one .answer-values dd", parity="RMSE",
    ),
    "multi-label": Journey(
        files="several labels", kind="Numbers from images", trained_for="multi-label classification",
        network="multilabel", unfit="lenet", metric="mean AP", seen="#samples .label-bars", answer="#test-one li",
        parity="Mean AP", format="SavedModel",
    ),
    "segmentation": Journey(
        files="masks", kind="Segmentation", trained_for="image segmentation", network="unet_small", unfit="lenet",
        metric="mean IoU", baseline="most frequent class", seen=_MASKS, answer="#test-one img.mask", parity="Mean IoU",
        format="SavedModel",
    ),
    "detection": Journey(
        files="objects", kind="Object detection", trained_for="object detection", network="detector_nano",
        unfit="lenet", metric="mAP 50:95", seen="#samples .boxes-over svg", answer="#test-one .detected",
        parity="mAP 50:95",
        format="SavedModel",
    ),
    "image to image": Journey(
        files="noisy pairs", kind="Image to image", trained_for="image to image", network="denoiser", unfit="lenet",
        metric="PSNR", baseline="mean image", seen="#samples .task-figures img", answer="#test-one .task-figures img",
        parity="PSNR",
    ),
    "images as their own targets": Journey(
        files="class folders", kind="Image classification", trained_for="classification", network="autoencoder",
        unfit="unet_small", metric="PSNR", baseline="mean image", seen="#samples .task-figures img",
        answer="#test-one .task-figures img", parity="PSNR",
    ),
    "pairs": Journey(
        files="pairs", kind="Pairs of images", trained_for="pairs of images", network="siamese", unfit="lenet",
        metric="accuracy", seen=_CHART, answer="#test-one .answer", parity="Accuracy",
    ),
    "pairs of classes": Journey(
        files="class folders", kind="Image classification", trained_for="classification", network="siamese16",
        unfit="unet_small", metric="accuracy", seen=_CHART, answer="#test-one .answer", parity="Accuracy",
    ),
    "free": Journey(
        files="class folders", kind="Image classification", trained_for="classification", network="gan",
        unfit="unet_small", metric="loss", seen="#samples img", answer="#generated img", parity="", format="SavedModel",
    ),
}  # fmt: skip
"""Name → journey; every task, and every form of data."""

CHOSEN: Final = (("segmentation", "torch"),)
"""What the build server walks, beside the classification of images on TensorFlow in ``test_browser_journey``."""

NIGHTLY: Final = (
    ("regression of rows", "tensorflow"),
    ("segmentation", "tensorflow"),
    ("classification of texts", "tensorflow"),
    ("classification of images", "torch"),
    ("detection", "torch"),
)
"""What ``make test-nightly`` walks: with the others each form of data, kind of result and framework."""

_TORCH_FORMATS: Final = {"SavedModel": "PyTorch program (.pt2)", "LiteRT": "PyTorch program (.pt2)"}
"""Format of the export on TensorFlow → the one that PyTorch has instead."""


def write_files(journey: Journey, folder: Path) -> Path:
    """Write the files that a journey begins with, and return what the form names as the source."""
    folder.mkdir(parents=True)
    made = MAKERS[journey.files](folder, np.random.default_rng(5))
    return Path(made.get("source", folder))


def _picture(source: Path) -> Path:
    """Return an image of the files; one in a shard is written beside it."""
    found = sorted(source.rglob("*.png"))
    if not found:
        with tarfile.open(min(source.glob("*.tar"))) as shard:
            name = next(each for each in sorted(shard.getnames()) if each.endswith(".png"))
            content = shard.extractfile(name)
            assert content is not None
            found = [source / name]
            found[0].write_bytes(content.read())
    return found[0]


class Walk:
    """One journey on one tab.

    Args:
        page: the tab.
        address: of the studio.
        journey: to walk.
        framework: name of the backend that trains.
        check_page: raises where axe finds something.
    """

    def __init__(self, page: Page, address: str, journey: Journey, framework: str, check_page: Any) -> None:
        self._page = page
        self._address = address
        self._journey = journey
        self._framework = framework
        self._check_page = check_page
        self.model = ""

    def make_dataset(self, source: Path) -> None:
        """Create the dataset in its form, and look at its page."""
        page, journey = self._page, self._journey
        page.goto(f"{self._address}/datasets/new?source={source}")
        expect(page.locator("#detected-about")).to_contain_text(journey.kind)
        page.get_by_label("Name", exact=True).fill(f"Data of {journey.network}")
        page.get_by_role("button", name="Create dataset").click()
        page.wait_for_url("**/datasets/2*")
        expect(page.locator("#samples-title")).to_be_visible(timeout=LONG_MS)
        expect(page.locator("#dataset-train")).to_have_attribute("title", f"Train a network for {journey.trained_for}")
        self._check_page(page)

    def train(self) -> None:
        """Choose the network, train it, and look at the page of the training."""
        page, journey = self._page, self._journey
        page.locator("#dataset-train").click()
        shown = page.locator(f"#shown-{self._framework}")
        if shown.get_attribute("aria-pressed") != "true":
            shown.click()
            expect(shown).to_have_attribute("aria-pressed", "true")
        of_framework = f"network-{self._framework}-"
        expect(page.locator(f"#{of_framework}{journey.unfit}")).to_be_disabled()
        expect(page.locator(f"label[for='{of_framework}{journey.unfit}'] .network-why")).not_to_be_empty()
        chosen = page.locator(f"label[for='{of_framework}{journey.network}']")
        if not chosen.is_visible():
            page.locator("#more-networks summary").click()
        chosen.click()
        expect(page.locator(f"#{of_framework}{journey.network}")).to_be_checked()
        expect(page.get_by_label("Name", exact=True)).to_have_value(re.compile(journey.network))
        expect(page.locator(".frameworks-shown")).to_have_count(1)
        page.get_by_label("Epochs", exact=True).fill("2")
        page.get_by_label("Batch size", exact=True).fill("10")
        self._check_page(page)
        page.get_by_role("button", name="Train", exact=True).click()
        page.wait_for_url("**/models/2*")
        self.model = page.url.rpartition("/")[2]
        expect(page.locator("#job-chip .is-done")).to_be_visible(timeout=LONG_MS)
        expect(page.locator("#job-best-value")).to_contain_text(f"validation {journey.metric}")
        if journey.baseline:
            told = page.locator("#job-baselines, #next-step").filter(has_text=journey.baseline)
            expect(told.first).to_be_visible()
        expect(page.locator("[data-curve] canvas").first).to_be_visible()
        self._check_page(page)

    def evaluate(self) -> None:
        """Evaluate on the validation split, and look at its samples."""
        page = self._page
        page.goto(f"{self._address}/models/{self.model}/test?tab=splits")
        page.locator("#evaluate-val").click()
        page.wait_for_url("**/evaluations/2*")
        expect(page.locator(self._journey.seen).first).to_be_visible(timeout=LONG_MS)
        self._check_page(page)
        if page.locator("#field-confidence").count():
            self._choose_samples()
        if page.locator("[data-mask-color]").count():
            self._choose_masks()

    def _choose_samples(self) -> None:
        """Look at other figures, and at the images that have objects of a size."""
        page = self._page
        page.locator("#field-confidence").fill("0.5")
        page.wait_for_url("**confidence=0.5*")
        expect(page.locator("#measure-precision")).to_contain_text("at 0.50")
        expect(page.locator("#by-confidence text.at")).to_have_text("0.50")
        self._check_page(page)
        page.locator("#show-all").click()
        expect(page.locator("#field-confidence")).to_have_value("0.5")
        page.locator("#field-size").select_option("large")
        page.locator("#filter-go").click()
        page.wait_for_url("**size=large*")
        expect(page.locator("#field-size")).to_have_value("large")
        self._check_page(page)

    def _choose_masks(self) -> None:
        """Take all classes out of the masks, bring them back, and make the masks faint."""
        controls, drawn = self._page.locator("[data-mask-controls]").first, self._page.locator("#samples canvas").first
        expect(controls).to_be_visible()
        for box in controls.locator("[data-mask-color]").all():
            box.uncheck()
        assert drawn.evaluate(_SEEN_PIXELS) == 0
        for box in controls.locator("[data-mask-color]").all():
            box.check()
        assert drawn.evaluate(_SEEN_PIXELS) > 0
        controls.locator("[data-mask-opacity]").fill("20")
        expect(drawn).to_have_css("opacity", "0.2")

    def predict(self, source: Path) -> None:
        """Predict one image, or a row or a text of the validation split."""
        page = self._page
        page.goto(f"{self._address}/models/{self.model}/test")
        if page.locator("#picture").count():
            page.locator("#picture").set_input_files(_picture(source))
        elif page.locator("#one-fill").count():
            page.locator("#one-fill").click()
            expect(page.locator("#filled")).to_contain_text("actual")
            page.locator("#one-predict").click()
        else:
            page.locator("main button.primary").first.click()
        expect(page.locator(self._journey.answer).first).to_be_visible(timeout=LONG_MS)
        self._check_page(page)
        if page.locator("[data-confidence]").count():
            self._predict_frames(_picture(source))

    def _predict_frames(self, picture: Path) -> None:
        """Predict the frames of a short video; the sliders of all of them move together."""
        page, clip, frame = self._page, picture.with_name("clip.avi"), cv2.imread(str(picture))
        video = cv2.VideoWriter(str(clip), cv2.VideoWriter_fourcc(*"MJPG"), 10, frame.shape[1::-1])
        for _ in range(12):
            video.write(frame)
        video.release()
        page.goto(f"{self._address}/models/{self.model}/test?tab=many")
        page.locator("#pictures").set_input_files(clip)
        page.locator("#few-predict").click(timeout=LONG_MS)
        expect(page.locator(".few .file")).to_have_text(["clip.avi 0:00.00", "clip.avi 0:00.50", "clip.avi 0:01.00"])
        page.locator("[data-confidence]").nth(1).fill("0.5")
        expect(page.locator("[data-confidence-text]")).to_have_text(["50 %"] * 3)
        self._check_page(page)

    def export(self) -> None:
        """Export, and read the parity report in the metric of the task."""
        page, chosen = self._page, self._journey.format
        page.goto(f"{self._address}/models/{self.model}/take-away")
        page.get_by_label(_TORCH_FORMATS.get(chosen, chosen) if self._framework == "torch" else chosen).check()
        page.locator("#export-go").click()
        exports = page.locator("#take-exports")
        expect(exports.get_by_role("link", name="(zip)")).to_be_visible(timeout=LONG_MS)
        expect(exports).to_contain_text("Same results")
        exports.get_by_text("Parity report and files").click()
        expect(exports.get_by_role("table")).to_contain_text(self._journey.parity)
        self._check_page(page)
