"""Shows that texts and specs become each other, that previews are kept and given up, and that leaks are suspected."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import Any

import pytest

from ziggurat.entities.trash import Trash
from ziggurat.errors import MissingEntryError, SpecError
from ziggurat.specs import DatasetSpec
from ziggurat.web.pages.new_dataset.form import (
    given_options,
    option_text,
    said_content,
    spec_of,
    start_texts,
    texts_of,
    usual_options,
)
from ziggurat.web.pages.new_dataset.preview import Preview, Previews, SupersededError
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.uploads import Uploads

FOUND: dict[str, Any] = {
    "format": "class_folders",
    "title": "Class folders",
    "confidence": 0.7,
    "kind": "image-classification",
    "counts": {"train": 1, "val": 0, "test": 0, "total": 1, "is_complete": True},
    "is_random": True,
    "classes": [{"name": "cat", "count": 1}],
    "colours": [],
    "ignore_class": None,
    "samples": [
        {
            "key": "cat/1.png",
            "label": "cat",
            "png": base64.b64encode(b"PNG").decode(),
            "text": None,
            "objects": None,
            "mask_png": None,
        }
    ],
    "problems": [],
    "warnings": [],
}


def test_every_field_survives_the_way_through_texts() -> None:
    content = {
        "source": "/data/pets",
        "name": "pets",
        "seed": 7,
        "heartbeat_s": 2.5,
        "hung_after_s": 90.0,
        "format": "coco",
        "splits": {
            "method": "list",
            "val_share": 0.125,
            "test_share": 0.5,
            "stratify": False,
            "pattern": "(a=b)+",
            "lists": {"val": "/data/val.txt"},
            "max_distance": 4,
            "min_per_class": 3,
            "max_per_class": 900,
        },
        "size": [240, 320],
        "resize_mode": "fill",
        "channels": 3,
        "encoding": "jpeg",
        "quality": 77,
        "check": "header",
        "near_duplicates": False,
        "store": "tfrecord",
        "mean": False,
        "workers": 2,
    }
    spec = DatasetSpec.model_validate(content)
    texts = texts_of(JobRequest(spec=spec.model_dump(mode="json")))
    assert spec_of(texts, {}) == spec
    assert said_content(spec) == content


def test_an_untouched_form_says_nothing_but_the_source() -> None:
    assert said_content(spec_of({**start_texts(), "source": "/data"}, {})) == {"source": "/data"}


def test_an_empty_field_has_its_default() -> None:
    assert spec_of({**start_texts(), "source": "/data", "splits.val_share": "", "quality": " "}, {}).quality == 90


def test_a_wrong_text_names_its_field() -> None:
    with pytest.raises(SpecError) as caught:
        spec_of({**start_texts(), "source": "/data", "quality": "high"}, {})
    assert caught.value.details["field"] == "quality"


FORMAT = {
    "name": "many",
    "options": [
        {"name": "names", "type": "list", "default": []},
        {"name": "missing", "type": "list", "default": ["", "NA"]},
        {"name": "types", "type": "dict", "default": {}},
        {"name": "most", "type": "int", "default": None},
        {"name": "share", "type": "float", "default": 0.5},
        {"name": "yes", "type": "bool", "default": False},
        {"name": "text", "type": "str", "default": "a"},
    ],
}


def test_options_that_are_not_touched_are_not_given() -> None:
    usual = usual_options(FORMAT)
    texts = {name: option_text(value) for name, value in usual.items()}
    assert given_options(FORMAT, texts, usual) == {}


def test_options_get_their_types() -> None:
    usual = usual_options(FORMAT)
    texts = {
        "names": "cat, dog",
        "missing": '["", "-"]',
        "types": '{"age": "number"}',
        "most": "7",
        "share": "0.25",
        "yes": "true",
        "text": "",
    }
    assert given_options(FORMAT, texts, usual) == {
        "names": ["cat", "dog"],
        "missing": ["", "-"],
        "types": {"age": "number"},
        "most": 7,
        "share": 0.25,
        "yes": True,
        "text": "",
    }


def test_a_list_that_commas_cannot_say_has_brackets() -> None:
    assert option_text(["a", "b"]) == "a, b"
    assert option_text(["a, b"]) == '["a, b"]'
    assert option_text([[1, 2, 3]]) == "[[1, 2, 3]]"


def test_the_same_is_looked_at_once_and_pictures_are_kept() -> None:
    asked: list[Any] = []
    now = [0.0]

    def look(spec: Any) -> Any:
        asked.append(spec)
        return FOUND

    previews = Previews(look, lambda: now[0])
    first = previews.of({"source": "/a", "name": "x"})
    assert previews.of({"source": "/a", "name": "y"}) is first
    assert asked == [{"source": "/a"}]
    assert previews.picture(first.token, 0) == b"PNG"
    with pytest.raises(MissingEntryError):
        previews.picture(first.token, 1)
    again = previews.of({"source": "/a"}, again=True)
    assert again is not first
    assert again.token == first.token, "the same images keep their addresses"
    now[0] = 1000.0
    previews.of({"source": "/a"})
    assert len(asked) == 3
    for number in range(20):
        previews.of({"source": f"/{number}"})
    with pytest.raises(MissingEntryError):
        previews.picture(first.token, 0)


def test_a_question_that_nobody_waits_for_is_given_up() -> None:
    go_on, has_begun = threading.Event(), threading.Semaphore(0)
    asked: list[Any] = []

    def look(spec: Any) -> Any:
        asked.append(spec["source"])
        has_begun.release()
        assert go_on.wait(60)
        return FOUND

    previews = Previews(look)
    results: dict[str, Any] = {}

    def ask(source: str, form_id: str) -> None:
        try:
            results[source] = previews.of({"source": source}, form_id)
        except SupersededError as error:
            results[source] = error

    busy = [threading.Thread(target=ask, args=(f"/busy{number}", "")) for number in range(2)]
    for each in busy:
        each.start()
    for _ in busy:
        assert has_begun.acquire(timeout=60)
    old = threading.Thread(target=ask, args=("/old", "form"))
    old.start()
    while previews.questions("form") < 1:
        old.join(0.01)
    new = threading.Thread(target=ask, args=("/new", "form"))
    new.start()
    while previews.questions("form") < 2:
        new.join(0.01)
    go_on.set()
    for each in (*busy, old, new):
        each.join(60)
    assert isinstance(results["/old"], SupersededError)
    assert isinstance(results["/new"], Preview)
    assert "/old" not in asked


def preview_of(*keys: str, **said: Any) -> Preview:
    found = {**FOUND, "samples": [{"key": key} for key in keys], **said}
    return Preview(token="t", found=found, pictures=(None,) * len(keys), made=0)


FRAMES = [f"cars/{video}_{frame:03}.png" for video in ("left", "right", "up") for frame in range(4)]


def test_preview_suspects_frames_of_videos() -> None:
    warning = preview_of(*FRAMES).leak_warning()
    assert "begin alike" in warning
    assert "“left…”" in warning


@pytest.mark.parametrize("said", [{"is_random": False}, {"kind": "text-classification"}, {"kind": "table"}])
def test_preview_suspects_only_random_splits_of_pictures(said: dict[str, Any]) -> None:
    assert preview_of(*FRAMES, **said).leak_warning() == ""


@pytest.mark.parametrize(
    "keys",
    [
        [f"cat/{number}.png" for number in range(8)],
        [f"{name}/{name}.{number}.jpg" for name in ("cat", "dog") for number in range(6)],
        [f"all/word{letter}.png" for letter in "abcdef"],
        [f"all/{split}{number}.jpg" for split in ("train", "val", "Test_") for number in range(6)],
    ],
)
def test_preview_does_not_suspect_plain_numbers(keys: list[str]) -> None:
    assert preview_of(*keys).leak_warning() == ""


def test_an_upload_counts_its_files_also_the_replaced(tmp_path: Path) -> None:
    def add(uploads: Uploads, name: str, content: bytes, upload_id: str = "") -> Any:
        incoming = uploads.add(name, upload_id)
        with incoming:
            incoming.write(content)
        return incoming.result()

    uploads = Uploads(tmp_path, lambda: 1_700_000_000.0, Trash(tmp_path.parent))
    first = add(uploads, "pets.zip", b"12345")
    assert (first.files, first.size_bytes, Path(first.source).name) == (1, 5, "pets.zip")
    second = add(uploads, "cat/1.png", b"123", first.id)
    assert (second.files, second.size_bytes, Path(second.source).name) == (2, 8, "content")
    third = add(uploads, "cat/1.png", b"1", first.id)
    assert (third.files, third.size_bytes) == (2, 6)
    with pytest.raises(RuntimeError), uploads.add("cat/2.png", first.id) as incoming:
        incoming.write(b"half")
        raise RuntimeError
    assert uploads.describe(first.id) == third
    assert Uploads(tmp_path, lambda: 1_700_000_000.0, Trash(tmp_path.parent)).describe(first.id) == third
