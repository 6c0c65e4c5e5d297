"""Shows that the page for new datasets takes every field, loses nothing typed, and says what is wrong at its place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.web.html_page import html_of
from ziggurat.specs import DatasetSpec, describe_fields
from ziggurat.web.pages.dataset.samples import MASK_PALETTE
from ziggurat.web.pages.new_dataset.form import LISTS
from ziggurat.workspace.new_jobs import JobRequest

PAGE = "/datasets/new"
HTMX = {"HX-Request": "true", "HX-Target": "div#preview"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return class folders: twelve images of two classes, one of them damaged."""
    root = tmp_path / "animals"
    for number in range(12):
        file = root / ("cat", "dog")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(cv2.imencode(".png", np.full((20, 30, 3), 20 * number, np.uint8))[1].tobytes())
    (root / "cat" / "damaged.png").write_bytes(b"no image")
    return root


def shown(html: str, name: str) -> str:
    """Return the value of an input."""
    found = re.search(rf'<input [^>]*?id="{re.escape(name)}"[^>]*? value="([^"]*)"', html)
    assert found, name
    return found.group(1)


def problem(html: str, name: str) -> str:
    """Return what stands as the problem of a field; empty where it has none."""
    found = re.search(rf'id="{re.escape(name)}-problem">([^<]*)<', html)
    return found.group(1) if found else ""


def test_every_field_of_the_spec_is_reachable(visit: Any) -> None:
    html = visit.get(PAGE).text
    parts = [field.path for field in describe_fields(DatasetSpec) if field.kind != "object"]
    missing = [name for name in (*parts, *LISTS) if f'name="{name}"' not in html]
    assert missing == []
    for name in ("project", "tags", "notes", "priority", "files"):
        assert f'name="{name}"' in html


def test_defaults_are_shown_and_no_problem_is(visit: Any) -> None:
    html = visit.get(PAGE).text
    assert shown(html, "splits.val_share") == "0.25"
    assert shown(html, "hung_after_s") == "600"
    assert 'class="problem"' not in html
    assert "Training 75\u202f%" in html


def test_a_viewer_may_not_open_it(visit_as: Any) -> None:
    assert visit_as("viewer").get(PAGE).status_code == 403


def test_the_format_is_guessed_and_its_options_are_fields(visit: Any, folder: Path) -> None:
    html = visit.post(f"{PAGE}/form", data={"source": str(folder), "seed": "0"}).text
    assert html_of(html).one('label[for="format-guess"]').text.endswith("Class folders")
    assert "2 folders with images" in html
    assert html_of(html).one("#format-guess-hint strong").text == "Image classification"
    assert 'name="options.min_per_class" value="2"' in html
    assert 'name="options_of" value="class_folders"' in html


def test_options_of_another_format_are_not_kept(visit: Any, folder: Path, studio: Any) -> None:
    typed = {"source": str(folder), "options_of": "class_folders", "options.min_per_class": "5", "format": "arrays"}
    html = visit.post(f"{PAGE}/form", data=typed).text
    assert 'name="options.force_same_shape" value="true" checked' in html
    assert "options.min_per_class" not in html


def test_create_makes_the_job_and_goes_to_it(visit: Any, folder: Path, studio: Any) -> None:
    typed = {
        "source": str(folder),
        "name": "animals",
        "options_of": "class_folders",
        "options.classes": "folders",
        "options.splits": "no",
        "options.min_per_class": "3",
        "options.seed": "0",
        "splits.method": "stem",
        "splits.pattern": "(.+)=[0-9]+",
        "splits.val_share": "0.2",
        "splits.test_share": "0.1",
        "splits.stratify": "true",
        "size": "28",
        "channels": "1",
        "resize_mode": "half_crop",
        "encoding": "jpeg",
        "quality": "85",
        "store": "tfrecord",
        "near_duplicates": "true",
        "project": "zoo",
        "tags": "small, gray,small",
        "notes": "From the zoo.\r\nTwo animals.",
        "priority": "3",
    }
    answer = visit.post(PAGE, data=typed)
    assert answer.status_code == 303, answer.text
    job_id = answer.headers["location"].removeprefix("/datasets/")
    job = studio.jobs.get(job_id)
    assert job.spec["source"] == str(folder)
    assert job.spec["options"] == {"min_per_class": 3, "splits": "no"}
    assert job.spec["splits"]["method"] == "stem"
    assert job.spec["splits"]["pattern"] == "(.+)=[0-9]+"
    assert (job.spec["splits"]["val_share"], job.spec["splits"]["test_share"]) == (0.2, 0.1)
    assert (job.spec["size"], job.spec["channels"], job.spec["quality"]) == ([28, 28], 1, 85)
    assert (job.spec["resize_mode"], job.spec["encoding"], job.spec["store"]) == ("half_crop", "jpeg", "tfrecord")
    assert job.spec["mean"] is False  # a box that is not ticked
    assert (job.project, job.tags, job.priority) == ("zoo", ("small", "gray"), 3)
    assert job.notes == "From the zoo.\nTwo animals."
    assert [each.action for each in studio.people.audit(limit=1).entries] == ["dataset.create"]


def test_an_htmx_request_is_sent_on_by_a_header(visit: Any, folder: Path) -> None:
    answer = visit.post(PAGE, data={"source": str(folder)}, headers={"HX-Request": "true"})
    assert answer.status_code == 204
    assert answer.headers["hx-redirect"].startswith("/datasets/2")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("source", "", "Folder, file or archive must be given."),
        ("splits.val_share", "1.5", "Validation share must be less than 1."),
        ("splits.val_share", "many", "Validation share must be a number."),
        ("splits.test_share", "0.9", "Test share and the validation share must leave something for training."),
        ("size", "28x28x28", "Size must have at most 2 entries."),
        ("seed", "-1", "Seed must be at least 0."),
        ("quality", "101", "JPEG quality must be at most 100."),
        ("priority", "soon", "Priority must be a whole number."),
        ("options.min_per_class", "few", "min_per_class must be int."),
        ("splits.lists.val", "/etc/passwd", "A path lies below one of the folders that this studio offers."),
        ("format", "cocoa", "cocoa is not a known"),
    ],
)
def test_what_is_wrong_is_at_its_field_and_nothing_is_lost(
    visit: Any, folder: Path, name: str, text: str, expected: str
) -> None:
    typed = {
        "source": str(folder),
        "name": "kept <b>",
        "notes": "kept too",
        "options_of": "class_folders",
        "options.min_per_class": "2",
        "splits.method": "list" if "lists" in name else "source",
    }
    answer = visit.post(PAGE, data={**typed, name: text})
    assert answer.status_code == 422, answer.text
    assert problem(answer.text, name).startswith(expected), problem(answer.text, name)
    assert shown(answer.text, "name") == "kept &lt;b&gt;"
    assert "kept too</textarea>" in answer.text
    if name != "format":
        assert shown(answer.text, name) == text


def test_an_error_of_making_it_stands_at_its_field(visit: Any, folder: Path) -> None:
    answer = visit.post(PAGE, data={"source": str(folder), "encoding": "original", "size": "28"})
    assert answer.status_code == 422
    assert problem(answer.text, "encoding").startswith("Images with encoding original stay as they are.")


def test_a_source_that_is_not_there_is_said_while_it_is_typed(visit: Any, tmp_path: Path) -> None:
    html = visit.post(f"{PAGE}/form", data={"source": str(tmp_path / "nothing")}).text
    assert problem(html, "source").startswith("A path lies below one of the folders")
    assert problem(visit.post(f"{PAGE}/form", data={"source": ""}).text, "source") == ""


def test_files_of_the_form_become_the_source(visit: Any, folder: Path, studio: Any) -> None:
    files = [("files", (f"{name}/1.png", (folder / name / f"{number}.png").read_bytes())) for name, number in
             (("cat", 0), ("dog", 1))]  # fmt: skip
    hidden = [("files", ("cat/.DS_Store", b"x")), ("files", ("__MACOSX/1.png", b"x"))]
    answer = visit.post(f"{PAGE}/preview", data={"source": ""}, files=[*files, *hidden])
    assert answer.status_code == 200
    source = Path(shown(answer.text, "source"))
    assert source.is_relative_to(studio.root / "uploads")
    assert sorted(path.relative_to(source).as_posix() for path in source.rglob("*.*")) == ["cat/1.png", "dog/1.png"]


def test_a_bad_name_of_a_file_stands_at_the_source(visit: Any) -> None:
    answer = visit.post(PAGE, data={"source": "", "name": "kept"}, files=[("files", ("../../x.png", b"x"))])
    assert answer.status_code == 422
    assert problem(answer.text, "source").startswith("Every file of a source lies in its folder.")
    assert shown(answer.text, "name") == "kept"


def test_a_clone_is_filled_in_and_marks_what_differs(visit: Any, pets: str, studio: Any) -> None:
    source = studio.jobs.get(pets).spec["source"]
    content = {"source": source, "name": "first", "size": [20, 30], "options": {"min_per_class": 1}}
    parent = studio.datasets.create(JobRequest(spec=content, tags=("a", "b"), project="zoo", notes="why"), owner="x")
    html = visit.get(PAGE, params={"clone": parent.id}).text
    assert (shown(html, "name"), shown(html, "size"), shown(html, "tags")) == ("first", "20x30", "a, b")
    assert shown(html, "options.min_per_class") == "1"
    assert shown(html, "parent") == parent.id
    assert "field changed" not in html
    typed = {"source": source, "name": "second", "size": "20x30", "tags": "a, b", "project": "zoo", "notes": "why"}
    on = {"near_duplicates": "true", "mean": "true", "splits.stratify": "true"}
    options = {"options_of": "class_folders", "options.min_per_class": "4", "options.seed": "0",
               "options.classes": "folders", "options.splits": "auto"}  # fmt: skip
    html = visit.post(f"{PAGE}/form", data={**typed, **on, **options, "parent": parent.id}).text
    changed = re.findall(r'class="field changed" id="([^"]+)-field"', html)
    assert changed == ["options.min_per_class", "name"]
    made = visit.post(PAGE, data={**typed, **on, "parent": parent.id}).headers["location"].rpartition("/")[2]
    assert studio.jobs.get(made).parent == parent.id


def test_a_clone_of_nothing_is_not_found(visit: Any) -> None:
    assert visit.get(PAGE, params={"clone": "nothing"}).status_code == 404


def test_the_same_is_shown_as_command_json_and_python(visit: Any, folder: Path) -> None:
    on = {"near_duplicates": "true", "mean": "true", "splits.stratify": "true"}
    html = visit.post(f"{PAGE}/form", data={"source": str(folder), "size": "28", "tags": "new one", **on}).text
    command = f"ziggurat job dataset {folder} --size &#39;[28, 28]&#39; --tag &#39;new one&#39;"
    assert command in html
    assert "&#34;size&#34;: [" in html
    assert "client.datasets.create(spec, tags=[&#39;new one&#39;])" in html


def test_paths_are_offered_below_the_roots_alone(visit: Any, folder: Path, tmp_path: Path) -> None:
    found = visit.get(f"{PAGE}/paths", params={"source": f"{tmp_path}/ani"}).text
    assert f'<option value="{folder}/"></option>' in found
    assert visit.get(f"{PAGE}/paths", params={"source": "/etc/pass"}).text.strip() == ""


def test_the_preview_shows_counts_classes_and_pictures(visit: Any, folder: Path) -> None:
    asked = {"source": str(folder), "splits.val_share": "0.5", "splits.stratify": "true"}
    answer = visit.post(f"{PAGE}/preview", data=asked, headers={"HX-Request": "true", "HX-Target": "div#preview"})
    assert answer.status_code == 200, answer.text
    assert "<html" not in answer.text
    assert re.search(r"<dt>Samples</dt><dd>13</dd>", answer.text)
    assert "<td>cat</td>" in answer.text
    assert "damaged.png" in answer.text
    picture = re.search(r'src="(/datasets/new/pictures/[^"]+)"', answer.text)
    assert picture
    sent = visit.get(picture.group(1))
    assert sent.headers["content-type"] == "image/png"
    pixels = cv2.imdecode(np.frombuffer(sent.content, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    assert pixels.shape == (20, 30, 3)
    assert visit.get("/datasets/new/pictures/nothing/0").status_code == 404


def test_the_preview_draws_boxes_over_their_pictures(visit: Any, tmp_path: Path) -> None:
    root = tmp_path / "boxes"
    for name in ("images", "labels"):
        (root / name / "train").mkdir(parents=True)
    content = cv2.imencode(".png", np.full((200, 400, 3), 90, np.uint8))[1].tobytes()
    (root / "images" / "train" / "1.png").write_bytes(content)
    (root / "labels" / "train" / "1.txt").write_text("1 0.5 0.5 0.5 0.25\n0 0.25 0.25 0.5 0.5\n")
    (root / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/train\nnames: [cat, '<dog>']\n")
    html = visit.post(f"{PAGE}/preview", data={"source": str(root)}, headers=HTMX).text
    assert '<svg class="marks" viewBox="0 0 400 200" aria-hidden="true">' in html
    assert '<rect x="100.0" y="75.0" width="200.0" height="50.0"><title>&lt;dog&gt;</title></rect>' in html
    assert '<rect x="0.0" y="0.0" width="200.0" height="100.0"><title>cat</title></rect>' in html
    assert 'alt="&lt;dog&gt;, cat"' in html


def test_the_preview_lays_masks_on_their_pictures(visit: Any, tmp_path: Path) -> None:
    root = tmp_path / "masks"
    mask = np.zeros((20, 30), np.uint8)
    mask[:, 15:] = 1
    for name, content in (("images", np.full((20, 30, 3), 90, np.uint8)), ("masks", mask)):
        (root / name).mkdir(parents=True)
        (root / name / "1.png").write_bytes(cv2.imencode(".png", content)[1].tobytes())
    asked = {"source": str(root), "format": "masks"}
    html = visit.post(f"{PAGE}/preview", data=asked, headers=HTMX).text
    found = re.search(r'<img class="mask" src="(/datasets/new/pictures/[^"]+/0\?mask=true)" alt=""', html)
    assert found, html
    sent = cv2.imdecode(np.frombuffer(visit.get(found.group(1)).content, np.uint8), cv2.IMREAD_UNCHANGED)
    assert sent is not None
    assert (sent.shape, sent[0, 0, 3], sent[0, 29].tolist()) == ((20, 30, 4), 0, [*MASK_PALETTE[0][::-1], 255])
    assert visit.get(found.group(1).replace("/0?", "/1?")).status_code == 404


def test_the_preview_asks_for_mending_first(visit: Any, folder: Path) -> None:
    htmx = {"HX-Request": "true", "HX-Target": "div#preview"}
    wrong = visit.post(f"{PAGE}/preview", data={"source": str(folder), "seed": "x"}, headers=htmx).text
    assert html_of(wrong).has("#preview-mend")
    assert html_of(visit.post(f"{PAGE}/preview", data={"source": ""}, headers=htmx)).has("#preview-none")


# ---- a format that is not clear


def _pictures(folder: Path, count: int = 4) -> Path:
    """Write images that nothing says anything of."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        pixels = np.full((20, 30, 3), 20 * number, np.uint8)
        (folder / f"{number}.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    return folder


def test_an_unclear_format_must_be_chosen(visit: Any, tmp_path: Path, studio: Any) -> None:
    folder = _pictures(tmp_path / "unlabelled")
    html = visit.post(f"{PAGE}/form", data={"source": str(folder), "seed": "0"}).text
    assert problem(html, "format").endswith("drops no labels. Choose one of the formats below.")
    assert re.search(r'id="create"[^>]* disabled', html)
    refused = visit.post(PAGE, data={"source": str(folder)})
    assert refused.status_code == 422
    assert problem(refused.text, "format")
    assert studio.jobs.kind_counts() == {}

    typed = {"source": str(folder), "format": "class_folders", "options_of": "class_folders", "options.classes": "none"}
    html = visit.post(f"{PAGE}/form", data=typed).text
    assert not re.search(r'id="create"[^>]* disabled', html)
    assert visit.post(PAGE, data=typed).status_code == 303


def test_the_preview_lists_the_likely_formats(visit: Any, tmp_path: Path) -> None:
    folder = _pictures(tmp_path / "boxes")
    (folder / "annotations.xml").write_text("<annotations><image/></annotations>")
    html = visit.post(f"{PAGE}/preview", data={"source": str(folder), "seed": "0"}, headers=HTMX).text
    assert "Likely formats" in html
    assert '<label class="button" for="format-class_folders">Class folders</label>' in html
    assert "annotations.xml" in html


def test_an_archive_of_an_unclear_format_is_refused(visit: Any, tmp_path: Path, studio: Any) -> None:
    _pictures(tmp_path / "unlabelled")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "unlabelled")
    refused = visit.post(PAGE, data={"source": archive, "seed": "0"})
    assert refused.status_code == 422
    assert "Choose one of the formats below." in problem(refused.text, "format")
    assert studio.jobs.kind_counts() == {}


def test_the_folder_that_alone_fits_is_named(visit: Any, folder: Path) -> None:
    above = folder.parent / "above"
    shutil.move(folder, above / "animals")
    html = visit.post(f"{PAGE}/form", data={"source": str(above), "seed": "0"}).text
    assert html_of(html).one("#format-guess-hint code").text == "animals"
    html = visit.post(f"{PAGE}/preview", data={"source": str(above), "seed": "0"}, headers=HTMX).text
    assert "animals" in [each.text for each in html_of(html).all("code")]
