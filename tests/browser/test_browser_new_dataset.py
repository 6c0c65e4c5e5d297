"""Shows in a real browser that a folder is sent, looked at while the form is filled in, and made into a dataset."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def source(server: Any, digit_folders: Path) -> Path:
    """Return class folders on the studio's own machine."""
    place = server.workspace / "uploads" / "small digits"
    if not place.is_dir():
        for name in ("0", "1"):
            shutil.copytree(digit_folders / name, place / name)
    return place


@pytest.mark.smoke
def test_a_folder_is_sent_and_made_into_a_data_set(
    page: Page, server: Any, tmp_path: Path, digit_folders: Path
) -> None:
    folder = tmp_path / "two digits"
    for name in ("0", "1"):
        shutil.copytree(digit_folders / name, folder / name)
    (folder / "0" / ".DS_Store").write_bytes(b"x")
    count = len(list(folder.rglob("*.png")))
    page.goto(server.address + "/datasets/new")
    expect(page.get_by_role("button", name="Choose a folder")).to_be_visible()
    page.locator("#folder").set_input_files(folder)
    expect(page.locator("#upload")).to_contain_text(f"{count} files sent")
    expect(page.locator("#upload")).to_contain_text("1 file of the system was left out.")
    expect(page.get_by_label("Folder, file or archive")).not_to_have_value("")
    expect(page.get_by_label("Name", exact=True)).to_have_value("two digits")
    expect(page.locator("#preview")).to_contain_text("Image classification")
    expect(page.locator("#preview .stats")).to_contain_text(str(count))
    page.expected.append("status of 405")  # type: ignore[attr-defined] - where it leads to is tested elsewhere
    page.get_by_role("button", name="Create the dataset").click()
    page.wait_for_url("**/datasets/2*")
    job_id = page.url.rpartition("/")[2]
    job = server.client.job(job_id)
    assert (job["name"], job["kind"]) == ("two digits", "dataset")


def test_boxes_lie_where_the_objects_of_the_picture_are(page: Page, server: Any, check_page: Any) -> None:
    place = server.workspace / "uploads" / "boxes"
    for name in ("images", "labels"):
        (place / name / "train").mkdir(parents=True)
    assert cv2.imwrite(str(place / "images" / "train" / "1.png"), np.full((200, 400, 3), 90, np.uint8))
    (place / "labels" / "train" / "1.txt").write_text("0 0.75 0.5 0.5 1\n")
    (place / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/train\nnames: [cat]\n")
    page.goto(f"{server.address}/datasets/new?source={place}")
    box = page.locator("#preview .marks rect").first
    expect(box).to_be_visible()
    expect(page.locator("#preview img").first).to_have_js_property("naturalWidth", 160)
    drawn, picture = box.bounding_box(), page.locator("#preview img").first.bounding_box()
    assert drawn is not None
    assert picture is not None
    assert abs(drawn["x"] - (picture["x"] + picture["width"] / 2)) < 3  # the right half of the image, all its height
    assert abs(drawn["width"] - picture["width"] / 2) < 4
    assert abs(drawn["height"] - drawn["width"]) < 4
    check_page(page)


def test_the_form_is_checked_while_it_is_typed(page: Page, server: Any, source: Path, check_page: Any) -> None:
    page.goto(server.address + "/datasets/new")
    field = page.get_by_label("Folder, file or archive")
    field.press_sequentially(str(source), delay=5)
    expect(page.locator("#preview")).to_contain_text("2 classes")
    expect(page.locator("#preview img").first).to_be_visible()
    expect(page.locator("#preview img").first).to_have_js_property("naturalWidth", 28)
    expect(field).to_have_value(str(source))
    expect(field).to_be_focused()
    check_page(page)

    test_share = page.get_by_label("Test share")
    test_share.fill("0.9")
    expect(page.locator('[id="splits.test_share-problem"]')).to_contain_text("must leave something for training")
    expect(test_share).to_be_focused()
    expect(test_share).to_have_attribute("aria-invalid", "true")
    check_page(page)
    test_share.fill("0.5")
    expect(page.locator('[id="splits.test_share-problem"]')).to_have_count(0)
    expect(page.locator("#shares")).to_contain_text("Test 50")

    page.get_by_text("Options of Class folders").click()
    page.get_by_label("Min per class").fill("3")
    page.get_by_text("The same as a command").click()
    expect(page.locator("#as-command")).to_contain_text("--option min_per_class=3")
    expect(page.get_by_label("Min per class")).to_be_visible()  # what was opened stays open
    expect(page.get_by_label("Maximum distance")).to_be_hidden()
    page.get_by_label("By likeness").check()
    expect(page.get_by_label("Maximum distance")).to_be_visible()


def test_a_send_that_is_cancelled_leaves_nothing(page: Page, server: Any, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(3_000_000))
    page.expected.append("Failed to load resource")  # type: ignore[attr-defined]
    page.route("**/api/v1/uploads?*", lambda _route: None)  # an answer that never comes
    page.goto(server.address + "/datasets/new")
    page.locator("#files").set_input_files(large)
    cancel = page.get_by_role("button", name="Cancel")
    cancel.click()
    expect(page.locator("#upload")).to_contain_text("Canceled")
    expect(cancel).to_be_hidden()
    expect(page.get_by_label("Folder, file or archive")).to_have_value("")


def test_a_file_that_cannot_be_sent_is_named_and_sent_again(page: Page, server: Any, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text("a text", encoding="utf-8")
    page.expected.append("500")  # type: ignore[attr-defined]
    # The batch is refused, so each file is tried alone: then it is known which one it is.
    page.route("**/api/v1/uploads/files?*", lambda route: route.fulfill(status=500, json={"rule": "One of them."}))
    page.route("**/api/v1/uploads?*3.txt*", lambda route: route.fulfill(status=500, json={"rule": "No room here."}))
    page.goto(server.address + "/datasets/new")
    page.locator("#files").set_input_files([tmp_path / f"{number}.txt" for number in range(6)])
    expect(page.locator("#upload")).to_contain_text("5 files sent")
    expect(page.locator("#upload")).to_contain_text("3.txt: No room here.")
    page.unroute("**/api/v1/uploads?*3.txt*")
    page.get_by_role("button", name="Send those again").click()
    expect(page.locator("#upload")).to_contain_text("1 file sent")
    expect(page.locator("#upload")).not_to_contain_text("No room here.")


def test_what_was_typed_outlives_the_server(page: Page, server: Any, source: Path) -> None:
    page.goto(server.address + "/datasets/new")
    page.get_by_label("Notes").fill("typed before")
    page.expected += ["ERR_", "Failed to load resource", "Failed to fetch"]  # type: ignore[attr-defined]
    server.kill()
    page.get_by_label("Name", exact=True).fill("kept")
    server.start_again()
    page.get_by_label("Folder, file or archive").fill(str(source))
    expect(page.locator("#preview")).to_contain_text("2 classes")
    expect(page.get_by_label("Notes")).to_have_value("typed before")
    expect(page.get_by_label("Name", exact=True)).to_have_value("kept")


def test_without_a_script_it_is_a_plain_form(browser: Any, server: Any, source: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.address + "/datasets/new")
    page.get_by_label("Folder, file or archive").fill(str(source))
    page.get_by_role("button", name="Show preview").click()
    expect(page.locator("#preview")).to_contain_text("2 classes")
    page.get_by_label("Files or an archive").set_input_files(next(source.rglob("*.png")))
    page.locator("#format-class_folders").check()  # one image without a label: its format is not clear
    page.get_by_label("Priority").fill("5")
    page.get_by_role("button", name="Create the dataset").click()
    page.wait_for_url("**/datasets/2*")
    context.close()
