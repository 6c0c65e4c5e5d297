"""Losses: what stands in a source and not in the dataset is counted, said, and refused where every label went."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.unit.datasets.small_sources import photo, request
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.creation.losses import losses_of
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError
from ziggurat.records.manifest import Manifest
from ziggurat.records.schema import Schema
from ziggurat.worker.commands.dataset_previews import preview_dataset


def coco(folder: Path, boxes: int, lost: int, **lost_as: Any) -> Path:
    """Write one image with boxes of two classes, of which some cannot come."""
    folder.mkdir()
    Image.fromarray(photo(1, 40, 40)).save(folder / "one.png")
    good = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}
    annotations = [{**good, "category_id": 1 + number % 2} for number in range(boxes - lost)]
    annotations += [{**good, **lost_as} for _ in range(lost)]
    content = {
        "images": [{"id": 1, "file_name": "one.png", "width": 40, "height": 40}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [{"id": number, **each} for number, each in enumerate(annotations, 1)],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def catalog_of(path: Path, found: list[Sample | Problem]) -> Catalogue:
    with CatalogueWriter(path) as writer:
        for number, each in enumerate(found):
            writer.add_problem(each) if isinstance(each, Problem) else writer.add(Entry.of_sample(number, each))
    return Catalogue(path)


def test_lost_boxes_are_said_with_their_reason(tmp_path):
    source = coco(tmp_path / "source", 40, 3, category_id=9)
    manifest = create_dataset(request(source), tmp_path / "set")
    (loss,) = manifest.losses
    assert loss["text"] == "3 of 40 boxes were dropped: their category is not in `categories`."
    assert (loss["unit"], loss["lost"], loss["total"], loss["warns"]) == ("objects", 3, 40, True)
    assert Manifest.load(tmp_path / "set").losses == (loss,)


def test_less_than_one_percent_is_no_warning(tmp_path):
    source = coco(tmp_path / "source", 201, 2, bbox=[1, 1, 0, 5])
    (loss,) = create_dataset(request(source), tmp_path / "set").losses
    assert (loss["lost"], loss["total"], loss["warns"]) == (2, 201, False)


def test_all_reasons_together_make_the_share(tmp_path):
    found = [Sample(key=str(number), parts=("a",), label=0) for number in range(150)]
    found += [
        Problem(key="x", kind="unreadable", reason="", left_out=True),
        Problem(key="y", kind="no-label", reason="", left_out=True),
    ]
    with catalog_of(tmp_path / "seen", found) as catalog:
        losses = losses_of(catalog, Schema(kind="image-classification", class_names=("a",)))
    assert losses.warnings == [
        "1 of 152 images was dropped: they cannot be read.",
        "1 of 152 images was dropped: they have no label.",
    ]


@pytest.mark.parametrize("kind", ["small-class", "not-listed", "duplicate-key"])
def test_what_was_asked_for_is_no_loss(tmp_path, kind):
    found = [Sample(key="a", parts=("a",), label=0), Problem(key="x", kind=kind, reason="", left_out=True)]
    with catalog_of(tmp_path / "seen", found) as catalog:
        assert losses_of(catalog, Schema(kind="image-classification", class_names=("a",))).items == ()


def test_the_loss_of_every_box_is_refused_and_can_be_accepted(tmp_path):
    source = coco(tmp_path / "source", 4, 4, category_id=9)
    with pytest.raises(DataError, match="Every one of the boxes was lost") as caught:
        create_dataset(request(source), tmp_path / "set")
    assert "losses=any" in caught.value.advice
    assert caught.value.details["field"] == "losses"
    assert create_dataset(request(source, losses="any"), tmp_path / "accepted").losses[0]["lost"] == 4


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (Problem(key="x", kind="no-picture", reason="", left_out=True, objects=2, split="val"), "the split val"),
        (Problem(key="x", kind="zero-size-box", reason="", objects=1, class_name="dog"), "the class dog"),
        (Problem(key="b", kind="zero-size-box", reason="", objects=1), "the split test"),
    ],
)
def test_a_split_or_class_that_lost_every_box_is_refused(tmp_path, lost, said):
    box = {"class": 0, "box": [0, 0, 5, 5]}
    found = [
        Sample(key="a", parts=("a",), label=[box], split="train"),
        Sample(key="b", parts=("b",), label=[], split="test"),
        lost,
    ]
    with catalog_of(tmp_path / "seen", found) as catalog:
        losses = losses_of(catalog, Schema(kind="detection", class_names=("cat", "dog")))
    assert losses.whole == (f"All boxes of {said} were lost.",)


def test_strict_refuses_one_lost_box(tmp_path):
    source = coco(tmp_path / "source", 400, 1, category_id=9)
    with pytest.raises(DataError, match="Data would be lost") as caught:
        create_dataset(request(source, losses="none"), tmp_path / "set")
    assert "1 of 400 boxes was dropped" in str(caught.value)


def test_a_damaged_image_loses_its_boxes_and_its_split(tmp_path):
    source = coco(tmp_path / "source", 10, 0)
    content = json.loads((source / "annotations.json").read_text())
    content["images"].append({"id": 2, "file_name": "two.png", "width": 40, "height": 40})
    content["annotations"].append({"id": 99, "image_id": 2, "category_id": 1, "bbox": [1, 1, 5, 5]})
    (source / "annotations.json").write_text(json.dumps(content))
    (source / "two.png").write_bytes((source / "one.png").read_bytes()[:60])
    texts = [each["text"] for each in create_dataset(request(source), tmp_path / "set").losses]
    assert texts == [
        "1 of 2 images was dropped: they cannot be read.",
        "1 of 11 boxes was dropped: they cannot be read.",
    ]


def test_the_preview_says_the_same(tmp_path):
    source = coco(tmp_path / "source", 40, 3, category_id=9)
    seen = _preview(tmp_path / "looked", source)
    losses = create_dataset(request(source), tmp_path / "set").losses
    assert [*seen["losses"]] == [*losses]
    assert losses[0]["text"] in seen["warnings"]
    assert not seen["refused"]
    whole = _preview(tmp_path / "again", coco(tmp_path / "nothing", 4, 4, category_id=9))
    assert whole["refused"].startswith("Every one of the boxes was lost.")


def test_a_catalog_of_0_2_has_no_losses(tmp_path):
    """Its table of problems ends with ``left_out``."""
    with catalog_of(tmp_path / "seen", [Problem(key="x", kind="unreadable", reason="why", left_out=True)]) as catalog:
        assert catalog.problems()[0].left_out
    import sqlite3

    connection = sqlite3.connect(tmp_path / "seen")
    for name in ("objects", "names", "why", "class_name", "split"):
        connection.execute(f"ALTER TABLE problems DROP COLUMN {name}")
    connection.commit()
    connection.close()
    with Catalogue(tmp_path / "seen") as catalog:
        assert catalog.problems() == [Problem(key="x", kind="unreadable", reason="why", left_out=True)]


def _preview(folder: Path, source: Path) -> dict[str, Any]:
    folder.mkdir()
    spec = {"kind": "dataset", "version": 1, "source": str(source)}
    return preview_dataset({"spec": spec, "samples": 2, "time_limit_s": 60, "at_most": 10_000, "folder": str(folder)})
