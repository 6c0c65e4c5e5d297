"""Shows in a real browser that boxes are drawn, corrected, proposed, undone and made a version of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import RunningStudio, finished
from tests.shapes import SHAPES, write_shapes
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.entities import NewJob
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.worker.results import write_results
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio

EVALUATED, TRAINED, EVALUATION, SHAPES_ID = (f"20260101-000000-000{number}" for number in (1, 2, 3, 4))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Return a studio with datasets of shapes, and an evaluation of a detection model on one of them."""
    folder = tmp_path_factory.mktemp("studio")
    write_shapes(folder / "evaluated", 1, 0, seed=4)
    write_shapes(folder / "shapes", 8, 2)
    with open_studio(Settings(workspace=folder / "workspace"), start=False) as studio:
        _add_dataset(studio, SHAPES_ID, folder / "shapes")
        _add_evaluation(studio, folder / "evaluated")
    running = RunningStudio(folder / "workspace")
    yield running
    running.close()


def _add_evaluation(studio: Studio, source: Path) -> None:
    """Add a dataset and what a worker leaves of an evaluation: its boxes, and two others of the size of two px."""
    dataset = _add_dataset(studio, EVALUATED, source)
    _add(studio, TRAINED, "train", "detector", parent=EVALUATED)
    _add(studio, EVALUATION, "evaluate", "detector on train", parent=TRAINED, spec={"split": "train"})
    known = studio.datasets.boxes.get(EVALUATED, "train/0").boxes
    found = [(*each.box, 0.95, each.class_number) for each in known]
    detections = np.zeros((1, 100, 6), np.float32)
    detections[0, : len(found) + 2] = [*found, (0, 0, 2, 2, 0.9, 0), (0, 125, 2, 127, 0.4, 1)]
    arrays = {
        "rows": np.zeros(1, np.int32),
        "key_offsets": np.array([0, 6]),
        "detections": detections,
        "size": np.full((1, 2), 128, np.float32),
    }
    about = {"split": "train", "count": 1, "classifier": False, "task": "detection", "classes": list(SHAPES)}
    results = JobFolder(studio.root / "jobs" / EVALUATION).results
    write_results(results, {**about, "data": str(dataset)}, arrays, b"0.png\n")


def _add_dataset(studio: Studio, job_id: str, source: Path) -> Path:
    """Add a dataset of the name of its source, and return its folder."""
    folder = studio.root / "datasets" / job_id
    create_dataset(CreationRequest(source=str(source), name=source.name, workers=0), folder)
    _add(studio, job_id, "dataset", source.name, spec={"source": str(source)})
    return folder


def _add(studio: Studio, job_id: str, kind: str, name: str, *, parent: str = "", spec: Any = None) -> None:
    folder = studio.root / ("datasets" if kind == "dataset" else "jobs") / job_id
    folder.mkdir(parents=True, exist_ok=True)
    needs = (parent,) if parent else ()
    new = NewJob(
        id=job_id, kind=kind, name=name, folder=str(folder), spec=spec or {}, parent=parent, depends_on=needs, created=2
    )
    studio.datasets.take_in(new, {})


@pytest.fixture(scope="module")
def evaluated() -> str:
    """Return the id of the dataset that a model was evaluated on."""
    return EVALUATED


def imported(server: Any, folder: Path, name: str) -> str:
    body = {"spec": {"kind": "dataset", "version": 1, "name": name, "source": str(folder)}}
    made = httpx.post(f"{server.address}/api/v1/datasets", json=body, timeout=60)
    assert made.status_code == 201, made.text
    return finished(server, made.json()["id"])


@pytest.fixture(scope="module")
def shapes() -> str:
    """Return the id of a dataset of shapes with their boxes, whose images are of 128 x 128 px."""
    return SHAPES_ID


@pytest.fixture(scope="module")
def crowded(server: Any) -> str:
    """Return the id of a dataset of one image with 500 boxes."""
    folder = server.workspace / "uploads" / "crowded"
    (folder / "train").mkdir(parents=True)
    cv2.imwrite(str(folder / "train" / "many.png"), np.full((1000, 1600, 3), 120, np.uint8))
    boxes = [[10 + 60 * (number % 25), 10 + 48 * (number // 25), 40, 30] for number in range(500)]
    annotations = [
        {"id": number + 1, "image_id": 1, "category_id": number % 3 + 1, "bbox": box, "area": 1200, "iscrowd": 0}
        for number, box in enumerate(boxes)
    ]
    content = {
        "images": [{"id": 1, "file_name": "many.png", "width": 1600, "height": 1000}],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(SHAPES)],
        "annotations": annotations,
    }
    (folder / "instances_train.json").write_text(json.dumps(content))
    return imported(server, folder, "crowded")


def opened(page: Page, server: Any, dataset: str, place: str) -> Locator:
    """Open the editor of an image, and return the image."""
    page.goto(f"{server.address}/datasets/{dataset}/boxes/{place}")
    expect(page.locator("#boxes")).to_have_attribute("data-mounted", "true")
    return page.locator("#boxes-svg")


def screen(stage: Locator, x: float, y: float) -> tuple[float, float]:
    """Return where a px of the image is on the screen."""
    found = stage.evaluate(
        "(svg, [x, y]) => { const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM()); return [at.x, at.y]; }",
        [x, y],
    )
    return found[0], found[1]


def drag(page: Page, stage: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*screen(stage, *start))
    page.mouse.down()
    page.mouse.move(*screen(stage, (start[0] + end[0]) / 2, (start[1] + end[1]) / 2))
    page.mouse.move(*screen(stage, *end))
    page.mouse.up()


def stored(server: Any, dataset: str, place: str) -> dict[str, Any]:
    return httpx.get(f"{server.address}/api/v1/datasets/{dataset}/boxes/{place}").json()


def saved(page: Page) -> None:
    expect(page.locator("#boxes-state")).to_have_attribute("data-state", "saved")


def clean(server: Any, dataset: str, place: str) -> dict[str, Any]:
    """Return the boxes of an image as the dataset has them."""
    version = stored(server, dataset, place)["version"]
    path = f"{server.address}/api/v1/datasets/{dataset}/boxes/{place}?version={version}"
    return httpx.delete(path).json()


def test_boxes_are_drawn_corrected_undone_and_applied(
    page: Page, server: Any, shapes: str, check_page: Callable[[Page], None]
) -> None:
    before = stored(server, shapes, "train/0")["objects"]
    page.goto(f"{server.address}/datasets/{shapes}/explore")
    expect(page.locator("#explorer")).to_have_attribute("data-mounted", "true")
    page.locator("#drawer-boxes").click()
    page.wait_for_url("**/boxes/train/0**")
    stage = page.locator("#boxes-svg")
    expect(page.locator("#boxes")).to_have_attribute("data-mounted", "true")
    expect(page.locator("#boxes-list li")).to_have_count(len(before))

    page.locator("[data-class='2']").click()
    page.locator("#tool-new").click()
    drag(page, stage, (4, 6), (30, 40))
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    saved(page)
    drawn = stored(server, shapes, "train/0")["objects"][-1]
    assert drawn == {"source": None, "class": 2, "box": [4, 6, 30, 40]}

    drag(page, stage, (30, 40), (50, 60))  # by its corner
    drag(page, stage, (25, 30), (35, 32))  # by its middle
    page.keyboard.press("1")
    expect(page.locator("#box-class")).to_have_value("0")
    saved(page)
    drawn = stored(server, shapes, "train/0")["objects"][-1]
    assert drawn == {"source": None, "class": 0, "box": [14, 8, 60, 62]}

    page.locator("#boxes-list li").first.click()
    page.locator("#tool-delete").click()
    expect(page.locator("#boxes-list li")).to_have_count(len(before))
    page.keyboard.press("u")
    page.locator("#tool-undo").click()
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    page.keyboard.press("y")
    expect(page.locator("#box-class")).to_have_value("0")
    saved(page)
    check_page(page)
    page.reload()
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    page.keyboard.press("u")  # what was saved before the reload: the redone deletion's undo
    expect(page.locator("#boxes-list [aria-selected=true]")).to_have_count(0)
    page.locator("#tool-redo").click()
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    saved(page)

    page.locator("#boxes-done").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("1 added")
    check_page(page)
    page.locator("#pending-name").fill("shapes corrected")
    page.locator("#pending-save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shapes corrected")
    expect(page.locator("#made-of li")).to_contain_text("Corrected the boxes of 1 sample of train: 1 added.")
    version = page.url.rpartition("/")[2]
    found = httpx.get(f"{server.address}/api/v1/datasets/{version}/samples").json()["samples"][0]["label"]
    assert [each["box"] for each in found] == [*(each["box"] for each in before), [14, 8, 60, 62]]
    opened(page, server, shapes, "train/0")
    expect(page.locator("#boxes-applied")).to_contain_text("shapes corrected")
    expect(page.locator("#boxes-list li")).to_have_count(len(before))
    page.locator("#tool-undo").click()  # takes the correction out of the version again
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    assert stored(server, shapes, "train/0")["changes"] == "1 added"


def test_two_people_at_one_image_lose_nothing(page: Page, context: BrowserContext, server: Any, shapes: str) -> None:
    page.expected.append("409 (Conflict)")  # type: ignore[attr-defined]
    clean(server, shapes, "train/1")
    other = context.new_page()
    opened(page, server, shapes, "train/1")
    opened(other, server, shapes, "train/1")
    count = other.locator("#boxes-list li").count()
    for each in (page, other):
        each.bring_to_front()
        each.keyboard.press("n")
        each.keyboard.press("Enter")
        if each is page:
            saved(page)
    expect(other.locator("#boxes-conflict")).to_contain_text("saved newer boxes of this image")
    other.keyboard.press("ArrowRight")  # goes on, and still saves nothing
    assert len(stored(server, shapes, "train/1")["objects"]) == count + 1
    mine = other.locator("#box-left").input_value()
    other.reload()  # what was not saved is still there
    expect(other.locator("#conflict-mine")).to_be_visible()
    other.locator("#conflict-mine").click()
    saved(other)
    assert stored(server, shapes, "train/1")["objects"][-1]["box"][0] == float(mine)

    page.bring_to_front()
    page.locator("#boxes-list li").last.click()
    page.keyboard.press("Delete")
    page.locator("#conflict-theirs").click()
    expect(page.locator("#boxes-conflict")).to_be_hidden()
    expect(page.locator("#boxes-list li")).to_have_count(count + 1)
    saved(page)
    page.keyboard.press("u")  # and the own ones come back
    expect(page.locator("#boxes-list li")).to_have_count(count)
    saved(page)
    other.close()


@pytest.mark.nightly
def test_500_boxes_are_walked_and_moved(page: Page, server: Any, crowded: str) -> None:
    stage = opened(page, server, crowded, "train/0")
    expect(page.locator("#boxes-list li")).to_have_count(500)
    expect(stage.locator(".drawn rect.under")).to_have_count(500)
    for _ in range(60):
        page.keyboard.press("Tab")
    expect(page.locator("#boxes-list [aria-selected=true]")).to_have_count(1)
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    saved(page)
    moved = stored(server, crowded, "train/0")["objects"]
    assert moved[59]["box"] == [10 + 60 * 9 + 30, 10 + 48 * 2, 10 + 60 * 9 + 70, 10 + 48 * 2 + 30]
    page.keyboard.press("u")  # thirty presses, one step
    saved(page)
    assert stored(server, crowded, "train/0")["changes"] == ""


def test_the_editor_works_by_keyboard_alone(page: Page, server: Any, shapes: str) -> None:
    before = clean(server, shapes, "train/2")["objects"]
    stage = opened(page, server, shapes, "train/2")
    expect(stage).to_be_focused()
    page.keyboard.press("2")  # the class of new boxes
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    left = float(page.locator("#box-left").input_value())
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator("#box-left")).to_have_value(f"{left - 11:g}")
    width = float(page.locator("#box-width").input_value())
    for key in ("r", "r", "r", "ArrowRight"):  # top left, top right, bottom right
        page.keyboard.press(key)
    expect(page.locator("#box-width")).to_have_value(f"{width + 1:g}")
    expect(page.locator("#boxes-said")).to_have_text("The arrows move the bottom right corner")
    page.keyboard.press("Escape")
    expect(page.locator("#boxes-list")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#boxes-list [aria-selected=true]")).to_have_attribute("id", re.compile("object-"))
    page.keyboard.press("Delete")
    expect(page.locator("#boxes-list li")).to_have_count(len(before))
    page.keyboard.press("Control+z")
    expect(page.locator("#boxes-list li")).to_have_count(len(before) + 1)
    saved(page)

    stage.focus()
    for _ in range(len(before) + 2):  # from the selected box to the last one, then out of the image
        page.keyboard.press("Tab")
    expect(stage).not_to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#shortcuts-page")).to_contain_text("Draw a new box")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.wait_for_url("**/boxes/train/3**")
    expect(page.locator("#boxes")).to_have_attribute("data-mounted", "true")
    page.keyboard.press("k")
    page.wait_for_url("**/boxes/train/2**")


def test_one_click_on_done_waits_for_all_that_is_saved(page: Page, server: Any, shapes: str) -> None:
    clean(server, shapes, "train/4")
    opened(page, server, shapes, "train/4")
    held: list[Any] = []
    page.route("**/boxes/train/4", lambda route: held.append(route) if not held else route.fallback())
    with page.expect_request("**/boxes/train/4"):
        page.keyboard.press("n")
        page.keyboard.press("Enter")
    page.keyboard.press("ArrowLeft")  # while the box is being saved
    page.evaluate("new Promise((done) => setTimeout(done, 500))")  # until this waits to be saved, too
    page.locator("#boxes-done").click()
    held[0].continue_()
    expect(page.locator("#pending-name")).to_be_visible()


def test_fields_refuse_what_is_no_box(page: Page, server: Any, shapes: str) -> None:
    opened(page, server, shapes, "train/3")
    page.locator("#boxes-list li").first.click()
    field = page.locator("#box-width")
    field.fill("0")
    field.press("Enter")
    assert "A box has an area" in field.evaluate("(each) => each.validationMessage")
    field.fill("5")
    field.press("Enter")
    saved(page)
    box = stored(server, shapes, "train/3")["objects"][0]["box"]
    assert box[2] - box[0] == 5


def test_proposals_are_accepted_and_rejected(
    page: Page, server: Any, evaluated: str, check_page: Callable[[Page], None]
) -> None:
    count = len(clean(server, evaluated, "train/0")["objects"])
    stage = opened(page, server, evaluated, "train/0")
    expect(page.locator("#proposals-source")).to_contain_text("detector, evaluation on train")
    page.locator("#propose").click()
    expect(page.locator("#proposals-said")).to_contain_text(f"{count} of them are boxes of the image already")
    expect(stage.locator(".proposed text")).to_have_text(["circle 0.90", "square 0.40"])
    check_page(page)
    page.locator("#proposals-shown").fill("0.5")
    expect(stage.locator(".proposed text")).to_have_text(["circle 0.90"])
    page.locator("#proposals-shown").fill("0.3")
    page.locator("#accept-above").click()
    expect(page.locator("#boxes-list li")).to_have_count(count + 1)
    page.mouse.click(*screen(stage, 1, 126))  # the one that is left
    expect(page.locator("#proposal-name")).to_have_text("square, 0.40")
    page.keyboard.press("Delete")
    expect(stage.locator(".proposed text")).to_have_count(0)
    saved(page)
    assert stored(server, evaluated, "train/0")["objects"][-1]["box"] == [0, 0, 2, 2]


def test_boxes_are_corrected_without_a_script(browser: Browser, server: Any, shapes: str) -> None:
    before = clean(server, shapes, "val/0")["objects"]
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{server.address}/datasets/{shapes}/boxes/val/0")
    number = len(before)
    page.locator(f"[name=class-{number}]").select_option(label="triangle")
    for side, value in zip(("left", "top", "right", "bottom"), (1, 2, 30, 300), strict=True):
        page.locator(f"[name={side}-{number}]").fill(str(value))
    page.locator("#boxes-save").click()
    expect(page.get_by_role("alert")).to_contain_text("A box lies within its image (")
    page.locator(f"[name=bottom-{number}]").fill("40")
    page.locator("[name=delete-0]").check()
    page.locator("#boxes-save").click()
    expect(page.locator("#boxes-who")).to_contain_text("1 added, 1 deleted")
    assert stored(server, shapes, "val/0")["objects"][-1] == {"source": None, "class": 2, "box": [1, 2, 30, 40]}
    page.locator("#boxes-undo").click()
    expect(page.locator("#boxes-who")).to_have_count(0)
    context.close()


def test_the_editor_fits_a_phone(context: BrowserContext, server: Any, shapes: str, check_page: Any) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 400, "height": 800})
    stage = opened(page, server, shapes, "train/5")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    count = page.locator("#boxes-list li").count()
    drag(page, stage, (1, 1), (12, 9))
    page.locator("#tool-new").click()
    drag(page, stage, (2, 100), (20, 120))
    expect(page.locator("#boxes-list li")).not_to_have_count(count)
    saved(page)
    check_page(page)
