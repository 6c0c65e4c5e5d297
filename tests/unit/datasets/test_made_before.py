"""Datasets of an earlier release: what their source would become today is found, and they can be created again."""

import dataclasses
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.unit.datasets.small_sources import photo
from ziggurat.datasets import rules
from ziggurat.datasets.checks import CheckReport, check_dataset, why_not_again
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.format_registry import importers
from ziggurat.datasets.rules import RULES
from ziggurat.datasets.versions import history
from ziggurat.errors import DataError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.specs import DatasetSpec
from ziggurat.worker.dataset_job import creation_request
from ziggurat.workspace import dataset_versions
from ziggurat.workspace.datasets import Datasets


def boxes(folder: Path, *, orientation: int = 6) -> Path:
    """Write COCO with an image that EXIF turns, and three upright ones; the boxes are those of the stored images."""
    folder.mkdir(parents=True)
    images, annotations = [], []
    for number in range(1, 5):
        exif = Image.Exif()
        exif[0x0112] = orientation if number == 1 else 1
        Image.fromarray(photo(number, 30, 50)).save(folder / f"{number}.jpg", exif=exif)
        images.append({"id": number, "file_name": f"{number}.jpg", "width": 50, "height": 30})
        annotations.append({"id": number, "image_id": number, "category_id": 1, "bbox": [5, 4, 30, 10]})
    content = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": annotations}
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def made(folder: Path, source: Path, **fields: Any) -> Path:
    spec = DatasetSpec(source=str(source), name="cats", **fields)
    create_dataset(creation_request(spec.model_copy(update={"workers": 0})), folder)
    return folder


def as_before(folder: Path, *statements: str, **changes: Any) -> Path:
    """Make a dataset one of an earlier release, with what that read otherwise."""
    manifest = Manifest.load(folder)
    (folder / MANIFEST_NAME).unlink()
    dataclasses.replace(manifest, rules=0, **changes).save(folder)
    with closing(sqlite3.connect(folder / manifest.index)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return folder


def checked(folder: Path, *, verify: bool = False) -> CheckReport:
    with Dataset(folder) as dataset:
        return check_dataset(dataset, verify=verify)


UNTURNED = """UPDATE samples SET label = '[{"class": 0, "box": [5, 4, 35, 14]}]' WHERE key = '1.jpg'"""


def test_boxes_in_another_frame_are_found(tmp_path):
    folder = as_before(made(tmp_path / "set", boxes(tmp_path / "source")), UNTURNED)
    finding = checked(folder)["made-before"]
    assert finding.severity == "warning"
    said = "An earlier release made the dataset. Today it would be otherwise: 1 sample has another label."
    assert finding.text == said
    assert [(case.key, case.note) for case in finding.cases] == [("1.jpg", "Another label.")]
    assert finding.advice.startswith("Create it again")


def test_a_dataset_that_would_be_the_same_is_not_mentioned(tmp_path):
    folder = made(tmp_path / "set", boxes(tmp_path / "source"))
    assert Manifest.load(folder).rules == RULES
    assert "made-before" not in checked(as_before(folder))


def test_a_dataset_of_this_release_is_not_compared(tmp_path):
    folder = made(tmp_path / "set", boxes(tmp_path / "source"))
    (tmp_path / "source" / "annotations.json").unlink()
    assert "made-before" not in checked(folder)


def test_splits_and_samples_that_come_otherwise_are_found(tmp_path):
    for split in ("train", "valid"):
        for name in ("cat", "dog"):
            for number in range(3):
                place = tmp_path / "source" / split / name / f"{number}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(photo(len(split) + len(name) + number, 20, 20)).save(place)
    folder = made(tmp_path / "set", tmp_path / "source")
    moved = "UPDATE samples SET split = 'train' WHERE key = 'valid/cat/0.png'"
    fewer = "DELETE FROM samples WHERE key = 'train/dog/2.png'"
    finding = checked(as_before(folder, moved, fewer))["made-before"]
    assert "1 sample has another split (val, not train)" in finding.text
    assert "1 sample has no place in the dataset" in finding.text
    assert finding.count == 2


def test_samples_that_were_left_out_on_request_are_no_difference(tmp_path):
    for name, count in (("cat", 6), ("dog", 6), ("cow", 1)):
        for number in range(count):
            place = tmp_path / "source" / name / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(photo(number, 20, 20)).save(place)
    folder = made(tmp_path / "set", tmp_path / "source", splits={"method": "share", "min_per_class": 2})
    assert "made-before" not in checked(as_before(folder))


def test_a_catalog_with_sizes_before_the_turn_is_found(tmp_path):
    folder = made(tmp_path / "set", boxes(tmp_path / "source"), encoding="reference")
    finding = checked(as_before(folder, "UPDATE samples SET width = 50, height = 30"))["made-before"]
    assert "1 of 4 that were looked at are listed by the size before EXIF turns them" in finding.text
    assert [case.key for case in finding.cases] == ["1.jpg"]


def test_values_of_16_bits_are_found(tmp_path):
    for number in range(4):
        place = tmp_path / "deep" / ("a", "b")[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(photo(number, 20, 20)[:, :, 0].astype(np.uint16) << 2).save(place)
    folder = made(tmp_path / "deep-set", tmp_path / "deep")
    image = Manifest.load(folder).image
    assert image is not None
    finding = checked(as_before(folder, image=dataclasses.replace(image, bits=16)))["made-before"]
    assert "4 of 4 that were looked at have 16 bits a value" in finding.text


def test_a_source_that_is_refused_today_is_said(tmp_path):
    source = boxes(tmp_path / "source")
    folder = as_before(made(tmp_path / "set", source))
    content = json.loads((source / "annotations.json").read_text())
    (source / "annotations.json").write_text(json.dumps({**content, "categories": []}))
    assert "its source is refused (Every one of the boxes was lost)" in checked(folder)["made-before"].text


def test_without_its_source_it_is_said_what_may_be_otherwise(tmp_path):
    folder = as_before(made(tmp_path / "set", boxes(tmp_path / "source")))
    shutil.rmtree(tmp_path / "source")
    finding = checked(folder)["made-before"]
    assert finding.severity == "note"
    assert "boxes, outlines and masks of images that EXIF turns" in finding.text
    assert finding.advice == f"Its source `{tmp_path / 'source'}` is not there any more."
    with pytest.raises(DataError, match="is not there any more"):
        Datasets().again(str(folder))


def test_an_archive_is_read_by_the_full_check_alone(tmp_path):
    archive = shutil.make_archive(str(tmp_path / "source"), "zip", boxes(tmp_path / "folder"))
    folder = as_before(made(tmp_path / "set", Path(archive)), UNTURNED)
    quick, full = checked(folder)["made-before"], checked(folder, verify=True)["made-before"]
    assert (quick.severity, full.severity) == ("note", "warning")
    assert quick.text.endswith("The full check reads the source again and says whether they are.")
    assert "1 sample has another label" in full.text


def test_a_version_names_what_is_to_be_created_again(tmp_path):
    folder = as_before(made(tmp_path / "set", boxes(tmp_path / "source")))
    version = tmp_path / "version"
    dataset_versions.exclude(folder, ["2.jpg"], version, name="fewer cats")
    assert Manifest.load(version).rules == 0
    finding = checked(version)["made-before"]
    assert finding.severity == "note"
    assert finding.advice == "It is a version: create cats, which it was made of, again, and make its changes again."


def test_created_again_it_has_the_spec_and_keeps_the_parent(tmp_path):
    folder = as_before(made(tmp_path / "set", boxes(tmp_path / "source"), splits={"val_share": 0.5}, seed=3), UNTURNED)
    spec = Datasets().again(str(folder))
    old = Manifest.load(folder)
    assert (spec.again_of, spec.seed, spec.splits.val_share, spec.name) == (f"{old.id} cats", 3, 0.5, "cats")
    new = create_dataset(
        creation_request(spec.model_copy(update={"workers": 0, "name": "new cats"})), tmp_path / "again"
    )
    assert [(parent.id, parent.name) for parent in new.parents] == [(old.id, "cats")]
    assert [note.folder for note in history(tmp_path / "again")] == [tmp_path / "again", folder]
    assert "made-before" not in checked(tmp_path / "again")
    assert why_not_again(new) == ""


def test_every_rule_is_of_formats_that_there_are():
    known = {each.name for each in importers()}
    assert {name for _, formats, _ in rules._CHANGES for name in formats} <= known
