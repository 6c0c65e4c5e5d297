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
from ziggurat.web.pages.new_dataset.field_texts import LISTS
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
    parts = [
        field.path for field in describe_fields(DatasetSpec) if field.kind != "object" and field.path != "again_of"
    ]
    missing = [name for name in (*parts, *LISTS) if f'name="{name}"' not in html]
    assert missing == []
    for name in ("project", "tags", "notes", "priority", "files"):
        assert f'name="{name}"' in html


def test_defaults_are_shown_and_no_problem_is(visit: Any) -> None:
    html = visit.get(PAGE).text
    assert shown(html, "splits.val_share") == "0.25"
    assert shown(html, "hung_after_s") == "600"
    assert not html_of(html).has(".problem")
    assert html_of(html).one(".share-fields").attributes.get("hidden") == ""  # there is nothing yet that they divide


def test_a_viewer_may_not_open_it(visit_as: Any) -> None:
    assert visit_as("viewer").get(PAGE).status_code == 403


def test_the_format_is_guessed_and_its_options_are_fields(visit: Any, folder: Path) -> None:
    html = visit.post(f"{PAGE}/form", data={"source": str(folder), "seed": "0"}).text
    page = html_of(html)
    assert page.one("#detected-format").text == "Class folders"
    assert page.one("#detected-about").text.startswith(", Image classification")
    assert page.one("#detected-reason").text.startswith("2 folders with images")
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
        ("priority", "soon", "A priority must be a whole number"),
        ("priority", "\u00b2", "A priority must be a whole number"),
        ("priority", "9" * 5000, "A priority must be a whole number"),
        ("size", "[" * 20000, "Size must be"),
        ("options.min_per_class", "[" * 20000, "Min per class must be a whole number."),
        ("options.min_per_class", "few", "Min per class must be a whole number."),
        ("splits.lists.val", "/etc/passwd", "/etc/passwd is in no folder that is allowed in this studio"),
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
    wrong = html_of(answer).one(f"#{name}-problem")
    assert wrong.text.startswith(expected), wrong.text
    assert html_of(answer).one("#name")["value"] == "kept <b>"
    assert "kept too</textarea>" in answer.text
    if name != "format":
        assert html_of(answer).one(f"#{name}")["value"] == text


def test_a_folder_of_several_tables_asks_for_one(visit: Any, tmp_path: Path) -> None:
    for name in ("one.csv", "two.CSV"):
        (tmp_path / "tables" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tables" / name).write_text("a,b\n1,2\n")
    (tmp_path / "tables" / "notes.md").write_text("text")
    page = html_of(visit.get(f"{PAGE}?source={tmp_path / 'tables'}"))
    assert page.one("#format-problem").text == "This folder holds several tables. Choose one of its files."


def test_an_error_of_making_it_stands_at_its_field(visit: Any, folder: Path) -> None:
    answer = visit.post(PAGE, data={"source": str(folder), "encoding": "original", "size": "28"})
    assert answer.status_code == 422
    assert problem(answer.text, "encoding").startswith(
        "encoding is original, with which images stay as they are, and size is set."
    )


def test_a_missing_source_is_said_while_it_is_typed(visit: Any, tmp_path: Path) -> None:
    page = html_of(visit.post(f"{PAGE}/form", data={"source": str(tmp_path / "nothing")}))
    assert page.one("#source-problem").text.endswith("/nothing does not exist. Check it.")
    assert page.one("#source")["aria-describedby"] == "source-problem"
    assert not html_of(visit.post(f"{PAGE}/form", data={"source": ""})).has("#source-problem")


# ---- folders that are not allowed yet


def _outside(studio: Any, folder: Path) -> None:
    """Leave only the studio's own folders allowed."""
    studio.paths.choose([])
    assert folder.is_dir()


def test_an_admin_allows_the_folder_at_the_refusal(visit: Any, folder: Path, studio: Any) -> None:
    _outside(studio, folder)
    typed = {"source": str(folder), "notes": "kept"}
    page = html_of(visit.post(f"{PAGE}/form", data=typed))
    assert page.one("#source-problem code").text == str(folder)
    assert page.one("#allow")["formaction"] == f"{PAGE}/allow"
    assert visit.post(PAGE, data=typed).status_code == 422

    allowed = visit.post(f"{PAGE}/allow", data=typed)
    assert (allowed.status_code, allowed.headers["location"]) == (303, PAGE)
    assert studio.paths.chosen == (str(folder),)
    assert studio.people.audit(action="settings.roots").entries[0].details == {"allowed": str(folder)}
    page = html_of(visit.get(PAGE))  # the draft goes on
    assert page.one("#detected-format").text == "Class folders"
    assert page.one("#notes").text == "kept"
    assert page.one("#preview")["hx-trigger"].startswith("load,")


def test_a_tilde_is_a_path(visit: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    page = html_of(visit.post(f"{PAGE}/form", data={"source": f"~/{folder.name}"}))
    assert page.one("#detected-format").text == "Class folders"
    assert page.one("#source")["value"] == str(folder)
    assert "disabled" not in page.one("#create").attributes


@pytest.mark.parametrize("name", ["nothing", "../elsewhere"])
def test_a_wrong_source_cannot_be_created(visit: Any, folder: Path, studio: Any, name: str) -> None:
    page = html_of(visit.post(f"{PAGE}/form", data={"source": str(folder / name)}))
    assert "disabled" in page.one("#create").attributes
    assert page.one("#create")["aria-describedby"] == "to-mend"
    assert page.has("#to-mend")
    empty = html_of(visit.post(f"{PAGE}/form", data={"source": ""}))
    assert "disabled" not in empty.one("#create").attributes, "it says what is missing"


def test_only_an_admin_may_allow_a_folder(visit_as: Any, folder: Path, studio: Any) -> None:
    _outside(studio, folder)
    trainer = visit_as("trainer")
    for source in (folder, folder / "nothing"):  # whether something is there is not said
        page = html_of(trainer.post(f"{PAGE}/form", data={"source": str(source)}))
        assert page.one("#source-problem").text.endswith("Ask an admin to allow it, or upload the files.")
        assert not page.has("#allow")
    assert trainer.post(f"{PAGE}/allow", data={"source": str(folder)}).status_code == 403
    assert studio.paths.chosen == ()


@pytest.mark.parametrize("name", ["nothing", ".hidden", "relative"])
def test_what_cannot_be_allowed_has_no_button(visit: Any, folder: Path, studio: Any, name: str) -> None:
    _outside(studio, folder)
    (folder / ".hidden").mkdir()
    source = name if name == "relative" else str(folder / name)
    page = html_of(visit.post(f"{PAGE}/form", data={"source": source}))
    assert page.has("#source-problem")
    assert not page.has("#allow")
    refused = visit.post(f"{PAGE}/allow", data={"source": source})
    assert refused.status_code == 400
    assert studio.paths.chosen == ()


def test_the_folder_chooser_stays_in_allowed_folders(visit: Any, folder: Path, tmp_path: Path) -> None:
    (folder / "out").symlink_to("/etc")
    (folder / ".secret").mkdir()
    tops = html_of(visit.get(f"{PAGE}/folders"))
    assert [each.text for each in tops.all(".browse-entries button")] == [str(tmp_path)]
    page = html_of(visit.get(f"{PAGE}/folders", params={"folder": str(folder)}))
    assert [each.text for each in page.all(".browse-entries button")] == ["cat", "dog"]
    assert page.one("#browse-use")["data-path"] == str(folder)
    outside = html_of(visit.get(f"{PAGE}/folders", params={"folder": str(folder / "out")}))
    assert outside.has('[role="alert"]')
    assert not outside.has("#browse-use")


# ---- drafts


def test_what_was_typed_outlives_a_reload(visit: Any, folder: Path) -> None:
    assert not html_of(visit.get(PAGE)).has("#draft-state time")
    typed = {"source": str(folder), "name": "draft", "splits.method": "stem", "near_duplicates": "true"}
    assert html_of(visit.post(f"{PAGE}/form", data=typed)).has("#draft-state time")
    page = html_of(visit.get(PAGE))
    assert (page.one("#source")["value"], page.one("#name")["value"]) == (str(folder), "draft")
    assert "checked" in page.one("#method-stem").attributes
    assert "checked" in page.one("#near_duplicates").attributes
    assert "checked" not in page.one("#mean").attributes
    assert page.has("#draft-state time")


def test_what_the_address_names_wins_over_a_draft(visit: Any, folder: Path, tmp_path: Path) -> None:
    visit.post(f"{PAGE}/form", data={"source": str(folder), "name": "draft"})
    other = html_of(visit.get(PAGE, params={"source": str(tmp_path)}))
    assert (other.one("#source")["value"], other.one("#name")["value"]) == (str(tmp_path), "")
    same = html_of(visit.get(PAGE, params={"source": str(folder)}))
    assert same.one("#name")["value"] == "draft"


def test_a_draft_ends_with_reset_and_with_creation(visit: Any, folder: Path) -> None:
    typed = {"source": str(folder), "name": "draft"}
    visit.post(f"{PAGE}/form", data=typed)
    assert visit.post(f"{PAGE}/reset").headers["location"] == PAGE
    assert html_of(visit.get(PAGE)).one("#source")["value"] == ""
    visit.post(f"{PAGE}/form", data=typed)
    assert visit.post(PAGE, data=typed).status_code == 303
    assert html_of(visit.get(PAGE)).one("#source")["value"] == ""


def test_a_finished_upload_is_in_the_draft(visit: Any, folder: Path) -> None:
    content = (folder / "cat" / "0.png").read_bytes()
    answer = visit.post(f"{PAGE}/preview", data={"source": ""}, files=[("files", ("cat/1.png", content))])
    source = html_of(answer).one("#source")["value"]
    page = html_of(visit.get(PAGE))
    assert page.one("#source")["value"] == source
    assert "checked" in page.one("#source-upload").attributes
    assert page.has("#uploaded")


def test_a_name_on_the_hub_becomes_an_address(visit: Any) -> None:
    typed = {"source_kind": "hub", "hub": "owner/name", "source": ""}
    page = html_of(visit.post(f"{PAGE}/form", data=typed))
    assert page.one("#source")["value"] == "hf://datasets/owner/name"
    assert page.one("#hub")["value"] == "owner/name"


def test_files_of_the_form_become_the_source(visit: Any, folder: Path, studio: Any) -> None:
    files = [("files", (f"{name}/1.png", (folder / name / f"{number}.png").read_bytes())) for name, number in
             (("cat", 0), ("dog", 1))]  # fmt: skip
    hidden = [("files", ("cat/.DS_Store", b"x")), ("files", ("__MACOSX/1.png", b"x"))]
    answer = visit.post(f"{PAGE}/preview", data={"source": ""}, files=[*files, *hidden])
    assert answer.status_code == 200
    source = Path(html_of(answer).one("#source")["value"])
    assert source.is_relative_to(studio.root / "uploads")
    assert sorted(path.relative_to(source).as_posix() for path in source.rglob("*.*")) == ["cat/1.png", "dog/1.png"]


def test_a_bad_name_of_a_file_stands_at_the_source(visit: Any) -> None:
    answer = visit.post(PAGE, data={"source": "", "name": "kept"}, files=[("files", ("../../x.png", b"x"))])
    assert answer.status_code == 422
    assert html_of(answer).one("#source-problem").text.startswith("Every file of a source lies in its folder.")
    assert html_of(answer).one("#name")["value"] == "kept"


def test_a_clone_is_filled_in_and_marks_what_differs(visit: Any, pets: str, studio: Any) -> None:
    source = studio.jobs.get(pets).spec["source"]
    content = {"source": source, "name": "first", "size": [20, 30], "options": {"min_per_class": 1}}
    parent = studio.datasets.create(JobRequest(spec=content, tags=("a", "b"), project="zoo", notes="why"), owner="x")
    html = visit.get(PAGE, params={"clone": parent.id}).text
    assert html_of(html).one("#name")["value"] == "first"
    assert (shown(html, "size"), shown(html, "tags")) == ("20x30", "a, b")
    assert shown(html, "options.min_per_class") == "1"
    assert shown(html, "parent") == parent.id
    assert "field changed" not in html
    typed = {"source": source, "name": "second", "size": "20x30", "tags": "a, b", "project": "zoo", "notes": "why"}
    on = {"near_duplicates": "true", "mean": "true", "splits.stratify": "true"}
    options = {"options_of": "class_folders", "options.min_per_class": "4", "options.seed": "0",
               "options.classes": "folders", "options.splits": "auto"}  # fmt: skip
    html = visit.post(f"{PAGE}/form", data={**typed, **on, **options, "parent": parent.id}).text
    changed = re.findall(r'class="field changed" id="([^"]+)-field"', html)
    assert changed == ["options.min_per_class"]
    made = visit.post(PAGE, data={**typed, **on, "parent": parent.id}).headers["location"].rpartition("/")[2]
    assert studio.jobs.get(made).parent == parent.id


def test_a_clone_of_nothing_is_not_found(visit: Any) -> None:
    assert visit.get(PAGE, params={"clone": "nothing"}).status_code == 404


def test_the_same_is_shown_as_command_json_and_python(visit: Any, folder: Path) -> None:
    on = {"near_duplicates": "true", "mean": "true", "splits.stratify": "true"}
    html = visit.post(f"{PAGE}/form", data={"source": str(folder), "size": "28", "tags": "new one", **on}).text
    command = f"ziggurat job dataset {folder} --size 28 --tag &#39;new one&#39;"
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
    found = html_of(answer)
    assert found.all("#preview-stats dd")[0].text == "13"
    assert [each.text for each in found.all("#class-bars li")] == ["cat 7", "dog 6"]
    assert "damaged.png" in found.one("#preview-problems").text
    picture = re.search(r'src="(/datasets/new/pictures/[^"]+)"', answer.text)
    assert picture
    sent = visit.get(picture.group(1))
    assert sent.headers["content-type"] == "image/png"
    pixels = cv2.imdecode(np.frombuffer(sent.content, np.uint8), cv2.IMREAD_COLOR)
    assert pixels is not None
    assert pixels.shape == (20, 30, 3)
    assert visit.get("/datasets/new/pictures/nothing/0").status_code == 404


@pytest.fixture
def lost_class(tmp_path: Path) -> Path:
    """Return boxes of two classes; those of the second have no area."""
    root = tmp_path / "lost"
    for name in ("images", "labels"):
        (root / name / "train").mkdir(parents=True)
    content = cv2.imencode(".png", np.full((20, 40, 3), 90, np.uint8))[1].tobytes()
    for number in range(2):
        (root / "images" / "train" / f"{number}.png").write_bytes(content)
        (root / "labels" / "train" / f"{number}.txt").write_text(
            "0 0.5 0.5 0.5 0.25\n1 0.25 0.25 0 0\n7 0.5 0.5 0.1 0.1\n"
        )
    (root / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/train\nnames: [cat, dog]\n")
    return root


def test_what_would_lose_a_class_is_not_created(visit: Any, lost_class: Path) -> None:
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": str(lost_class)}))
    assert "All boxes of the class dog were lost." in page.one("#preview-refused").text
    said = [each.text for each in page.all("#preview .note.warning li")]
    assert all("2 of 6 boxes were dropped" in each for each in said[:2])
    button = page.one("#create")
    assert "disabled" in button.attributes
    assert button["aria-describedby"] == "refused"
    assert "choose what may be lost under Quality checks" in page.one("#refused").text
    assert not page.has("#use")


def test_what_may_be_lost_is_chosen_on_the_page(visit: Any, lost_class: Path) -> None:
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": str(lost_class), "losses": "any"}))
    assert not page.has("#refused")
    assert not page.has("#preview-refused")
    assert "disabled" not in page.one("#create").attributes


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
    names = [each.text for each in html_of(html).all("#class-bars .cut")]
    assert names == ["class 0", "class 1"], "as the explorer calls classes without names"
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
    visit.post(f"{PAGE}/reset")
    assert html_of(visit.post(f"{PAGE}/preview", data={"source": ""}, headers=htmx)).has("#preview-none")


def test_the_split_bar_has_the_counts_of_the_source(visit: Any, folder: Path) -> None:
    (folder / "cat" / "damaged.png").unlink()
    asked = {"source": str(folder), "splits.method": "share", "splits.val_share": "0.5", "splits.stratify": "true"}
    page = html_of(visit.post(f"{PAGE}/preview", data=asked, headers=HTMX))
    assert [each.text for each in page.all("#split-key li b")] == ["6", "6", "0"]
    assert [each["class"] for each in page.all("#split-key .swatch")] == [
        "swatch split-train",
        "swatch split-val",
        "swatch split-test",
    ]
    assert "hidden" not in page.one(".share-fields").attributes


def test_shares_without_effect_are_hidden(visit: Any, folder: Path) -> None:
    place = folder.parent / "split"
    for split in ("train", "val"):
        shutil.copytree(folder, place / split)
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": str(place), "seed": "0"}, headers=HTMX))
    assert "hidden" in page.one(".share-fields").attributes
    assert [each.text for each in page.all("#split-key li b")] == ["13", "13", "0"]


def test_cost_and_use_stand_beside_the_button(visit: Any, folder: Path, tmp_path: Path) -> None:
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": str(folder), "size": "64"}, headers=HTMX))
    assert page.one("#cost").text.startswith("About 3 s, ")
    assert "LeNet" in page.one("#use").text
    table = tmp_path / "table.csv"
    table.write_text("a,b,target\n" + "".join(f"{number},{number % 3},{number % 2}\n" for number in range(40)))
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": str(table), "format": "table"}, headers=HTMX))
    assert not page.has("#use[data-untrainable]")
    assert "tables" in page.one("#use").text


def test_an_archive_says_its_format_after_the_preview(visit: Any, folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    before = html_of(visit.post(f"{PAGE}/form", data={"source": archive, "seed": "0"}))
    assert before.has("#detected .mark-unknown")
    page = html_of(visit.post(f"{PAGE}/preview", data={"source": archive, "seed": "0"}, headers=HTMX))
    assert page.one("#detected-format").text == "Class folders"
    assert page.has("#detected .mark-ok")
    after = html_of(visit.post(f"{PAGE}/form", data={"source": archive, "seed": "0"}))
    assert after.one("#detected-format").text == "Class folders"


def test_other_samples_are_shown_on_request(visit: Any, folder: Path) -> None:
    def keys(**query: Any) -> list[str]:
        asked = {"source": str(folder), "seed": "0"}
        answer = visit.post(f"{PAGE}/preview", data=asked, headers=HTMX, params=query)
        return [each["title"] for each in html_of(answer).all(".tiles figcaption .soft")]

    first, second = keys(), keys(tiles=1)
    assert first
    assert second
    assert not set(first) & set(second)


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
    assert problem(html, "format").startswith("The format of")
    assert html_of(html).has("#detected .mark-warning")
    assert re.search(r'id="create"[^>]* disabled', html)
    refused = visit.post(PAGE, data={"source": str(folder)})
    assert refused.status_code == 422
    assert problem(refused.text, "format")
    assert studio.jobs.totals().kinds == {}

    typed = {"source": str(folder), "format": "class_folders", "options_of": "class_folders", "options.classes": "none"}
    html = visit.post(f"{PAGE}/form", data=typed).text
    assert not re.search(r'id="create"[^>]* disabled', html)
    assert visit.post(PAGE, data=typed).status_code == 303


def test_an_open_encoding_must_be_named(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes("text,label\n这部电影很好看,正\n太无聊了浪费时间,负\n".encode("gbk"))
    html = visit.post(f"{PAGE}/preview", data={"source": str(path), "seed": "0"}, headers=HTMX).text
    assert "As gb18030 it reads “这部电影很好看”" in html
    assert re.search(r'id="create"[^>]* disabled', html)
    asked = {"source": str(path), "seed": "0", "options_of": "text"}
    html = visit.post(f"{PAGE}/preview", data=asked).text
    assert "Set the option encoding to gb18030" in problem(html, "options.encoding")
    html = visit.post(f"{PAGE}/preview", data={**asked, "options.encoding": "gb18030"}, headers=HTMX).text
    assert "太无聊了浪费时间" in html
    assert not re.search(r'id="create"[^>]* disabled', html)


def test_the_preview_lists_the_likely_formats(visit: Any, tmp_path: Path) -> None:
    folder = _pictures(tmp_path / "boxes")
    (folder / "annotations.xml").write_text("<annotations><image/></annotations>")
    html = visit.post(f"{PAGE}/preview", data={"source": str(folder), "seed": "0"}, headers=HTMX).text
    assert "Likely formats" in html
    assert '<label class="button small" for="format-class_folders">Class folders</label>' in html
    assert "annotations.xml" in html


def test_a_question_about_the_labels_must_be_answered(visit: Any, tmp_path: Path) -> None:
    folder = _pictures(tmp_path / "boxes/images")
    for path in folder.iterdir():
        label = folder.parent / "labels" / f"{path.stem}.txt"
        label.parent.mkdir(exist_ok=True)
        label.write_text("0 0.5 0.5 0.4 0.5\n")
    (folder.parent / "data.yaml").write_text("train: images\ntest: gone\nnames: [cat]\n")
    asked = {"source": str(folder.parent), "seed": "0"}
    html = visit.post(f"{PAGE}/preview", data=asked, headers=HTMX).text
    assert "missing_splits=drop" in html
    assert re.search(r'id="create"[^>]* disabled', html)
    answer = {"format": "yolo", "options_of": "yolo", "options.missing_splits": "drop"}
    html = visit.post(f"{PAGE}/preview", data=asked | answer, headers=HTMX).text
    assert not re.search(r'id="create"[^>]* disabled', html)


def test_an_archive_of_an_unclear_format_is_refused(visit: Any, tmp_path: Path, studio: Any) -> None:
    _pictures(tmp_path / "unlabelled")
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "unlabelled")
    refused = visit.post(PAGE, data={"source": archive, "seed": "0"})
    assert refused.status_code == 422
    assert "Choose one of the likely formats." in problem(refused.text, "format")
    assert studio.jobs.totals().kinds == {}


@pytest.mark.parametrize("name", ["empty", "junk", "note.log", "junk.zip"])
def test_a_source_of_no_known_format_is_refused(visit: Any, tmp_path: Path, studio: Any, name: str) -> None:
    for folder in ("empty", "junk"):
        (tmp_path / folder).mkdir()
    (tmp_path / "junk" / "a.xyz").write_text("junk")
    (tmp_path / "note.log").write_text("a note")
    shutil.make_archive(str(tmp_path / "junk"), "zip", tmp_path / "junk")
    asked = {"source": str(tmp_path / name), "seed": "0"}
    page = html_of(visit.post(f"{PAGE}/preview", data=asked, headers=HTMX))
    assert page.has("#preview-unknown")
    assert page.has("#detected .mark-warning")
    assert "disabled" in page.one("#create").attributes
    refused = visit.post(PAGE, data=asked)
    assert refused.status_code == 422
    assert html_of(refused).has("#format-problem")
    assert studio.jobs.totals().kinds == {}


@pytest.mark.parametrize("name", ["broken.zip", "broken.tar.gz"])
def test_a_broken_archive_is_one_error_at_once(visit: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8bno archive")
    page = html_of(visit.post(f"{PAGE}/form", data={"source": str(tmp_path / name), "seed": "0"}))
    assert "damaged" in page.one("#source-problem").text
    assert not page.has("#format-problem")


def test_a_source_elsewhere_has_no_preview(visit: Any) -> None:
    asked = {"source": "https://example.org/pets.zip", "seed": "0"}
    page = html_of(visit.post(f"{PAGE}/preview", data=asked, headers=HTMX))
    assert page.has("#preview-elsewhere")
    assert page.has("#detected .mark-unknown")


def test_the_folder_that_alone_fits_is_named(visit: Any, folder: Path) -> None:
    above = folder.parent / "above"
    shutil.move(folder, above / "animals")
    html = visit.post(f"{PAGE}/form", data={"source": str(above), "seed": "0"}).text
    assert html_of(html).one("#detected code").text == "animals"
    html = visit.post(f"{PAGE}/preview", data={"source": str(above), "seed": "0"}, headers=HTMX).text
    assert "animals" in [each.text for each in html_of(html).all("code")]


def test_a_clone_may_begin_with_another_method_of_splitting(visit: Any, pets: str) -> None:
    page = html_of(visit.get("/datasets/new", params={"clone": pets, "method": "cluster"}))

    assert page.has("#method-cluster[checked]")
