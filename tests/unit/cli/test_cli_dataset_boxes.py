"""Boxes are shown, corrected, undone and made a version of by ``ziggurat dataset boxes``."""

import json

import pytest

from tests.shapes import write_shapes
from ziggurat.datasets.creation import CreationRequest, create_dataset


@pytest.fixture
def folder(tmp_path):
    write_shapes(tmp_path / "shapes", 2, 1, size=32)
    create_dataset(CreationRequest(source=str(tmp_path / "shapes"), name="shapes", workers=0), tmp_path / "set")
    return tmp_path / "set"


def test_boxes_make_a_version(ziggurat, folder, tmp_path):
    shown = ziggurat("dataset", "boxes", "show", folder, "train/0", "--json").content
    count = len(shown["objects"])
    shown["objects"].append({"class": "square", "box": [0, 0, 9, 9]})
    (tmp_path / "boxes.json").write_text(json.dumps(shown))

    saved = ziggurat("dataset", "boxes", "set", folder, "train/0", tmp_path / "boxes.json")
    assert (saved.code, "state 1: 1 added" in saved.out) == (0, True)
    assert "train/0" in ziggurat("dataset", "boxes", "list", folder).out

    made = ziggurat("dataset", "boxes", "version", folder, "--out", tmp_path / "new", "--name", "better").out
    assert "Corrected the boxes of 1 sample of train: 1 added." in made
    new = ziggurat("dataset", "boxes", "show", tmp_path / "new", "train/0", "--json").content
    assert (len(new["objects"]), new["objects"][-1]["box"]) == (count + 1, [0, 0, 9, 9])
    assert ziggurat("dataset", "boxes", "list", folder).out.startswith("No boxes are corrected.")


def test_boxes_are_undone_and_discarded(ziggurat, folder, tmp_path):
    (tmp_path / "none.json").write_text("[]")
    ziggurat("dataset", "boxes", "set", folder, "val/0", tmp_path / "none.json")

    assert "state 2: as in the dataset" in ziggurat("dataset", "boxes", "undo", folder, "val/0").out
    ziggurat("dataset", "boxes", "set", folder, "val/0", tmp_path / "none.json")
    assert "state 4: as in the dataset" in ziggurat("dataset", "boxes", "discard", folder, "val/0").out


def test_an_outdated_file_is_refused(ziggurat, folder, tmp_path):
    (tmp_path / "old.json").write_text(json.dumps({"version": 0, "objects": []}))
    ziggurat("dataset", "boxes", "set", folder, "val/0", tmp_path / "old.json")

    again = ziggurat("dataset", "boxes", "set", folder, "val/0", tmp_path / "old.json", "--json")

    assert (again.code, again.content["error"]) == (2, "outdated")
    assert again.content["details"]["current"]["version"] == 1


def test_a_file_of_boxes_has_their_form(ziggurat, folder, tmp_path):
    (tmp_path / "wrong.json").write_text('{"boxes": 3}')

    answer = ziggurat("dataset", "boxes", "set", folder, "val/0", tmp_path / "wrong.json")

    assert (answer.code, "wrong.json` has no boxes" in answer.err) == (4, True)
