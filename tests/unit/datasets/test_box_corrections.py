"""Shows that corrected boxes are saved, undone, kept apart from outdated ones, and made a version of."""

from __future__ import annotations

import json
import threading

import pytest
from small_datasets_for_versions import datasets_are_closed, opened, picture, png, write_dataset

from ziggurat.datasets.versions import history
from ziggurat.errors import DataError, MissingEntryError, OutdatedError, UsageError
from ziggurat.records.schema import Schema
from ziggurat.workspace.box_corrections import BoxCorrections
from ziggurat.workspace.datasets import Datasets

assert datasets_are_closed  # a fixture of each test

SCHEMA = Schema(kind="detection", class_names=("cat", "dog"))
OBJECTS = [
    {
        "class": 0,
        "box": [1, 1, 5, 4],
        "polygons": [[1, 1, 5, 1, 5, 4]],
        "difficult": True,
        "details": {"id": 7, "area": 9},
    },
    {"class": 1, "box": [2, 2, 4, 5], "mask": {"size": [6, 8], "counts": "abc"}, "crowd": True},
    {"class": -1, "box": [-1, 0, 9, 6], "details": {"type": "DontCare"}},
]


@pytest.fixture
def folder(tmp_path):
    """Return a dataset of two images of 8 x 6 px for training and one for validation."""
    samples = [(f"{number}.png", (png(picture(number)),), OBJECTS if number != 1 else []) for number in range(3)]
    write_dataset(tmp_path / "set", {"train": samples[:2], "val": samples[2:]}, SCHEMA)
    return tmp_path / "set"


@pytest.fixture
def boxes(folder):
    """Return the use cases, at a time that does not move, with the name of the dataset filled in."""
    return Bound(BoxCorrections(Datasets(), clock=lambda: 5.0), str(folder))


class Bound:
    """The use cases for one dataset."""

    def __init__(self, corrections, name):
        self.corrections = corrections
        self.name = name

    def __getattr__(self, verb):
        return lambda *words, **named: getattr(self.corrections, verb)(self.name, *words, **named)


def sent(found):
    """Return objects in the form that a save takes."""
    return [{name: each[name] for name in ("source", "class", "box")} for each in found.as_json()["objects"]]


def new(left, top, right, bottom, number=0):
    return {"class": number, "box": [left, top, right, bottom]}


def test_boxes_are_those_of_the_dataset_at_first(boxes, folder):
    found = boxes.get("train/0").as_json()

    assert (found["version"], found["changes"], found["size"], found["can_undo"]) == (0, "", [8, 6], False)
    assert found["objects"][0] == {
        "source": 0,
        "class": 0,
        "box": [1, 1, 5, 4],
        "difficult": True,
        "polygons": True,
    }
    assert not list(folder.glob("pending*"))


def test_a_sample_is_named_by_its_key_too(boxes):
    assert boxes.get("2.png").split == "val"
    with pytest.raises(MissingEntryError, match="SPLIT/ROW or by its key"):
        boxes.get("nine.png")


def test_saved_boxes_wait_for_their_version(boxes):
    objects = [*sent(boxes.get("train/0"))[:2], new(0, 0, 3, 3, 1)]

    saved = boxes.save("train/0", objects, version=0, user="ada")

    assert (saved.state.version, saved.state.user, str(saved.changes)) == (1, "ada", "1 added, 1 deleted")
    (pending,) = boxes.pending()
    assert (pending.split, pending.row, pending.key, pending.changes) == ("train", 0, "0.png", "1 added, 1 deleted")
    assert boxes.places() == ["train/0"]


def test_a_class_is_given_by_name_too(boxes):
    saved = boxes.save("train/1", [{"class": "dog", "box": [0, 0, 1, 1]}], version=0)

    assert saved.boxes[0].class_number == 1


def test_an_outdated_save_is_refused_and_offers_the_newer(boxes):
    boxes.save("train/1", [new(0, 0, 3, 3)], version=0, user="ada")

    with pytest.raises(OutdatedError, match="state 1 was saved by ada meanwhile") as refused:
        boxes.save("train/1", [new(1, 1, 2, 2)], version=0, user="ben")

    current = refused.value.details["current"]
    assert (current["version"], current["user"], current["objects"][0]["box"]) == (1, "ada", [0, 0, 3, 3])
    kept = boxes.save("train/1", [new(1, 1, 2, 2)], version=current["version"], user="ben")
    assert boxes.undo("train/1", version=kept.state.version).as_json()["objects"] == current["objects"]


def test_of_many_saves_at_once_one_is_taken(boxes):
    outcomes = []

    def save(side):
        try:
            outcomes.append(boxes.save("train/1", [new(0, 0, side, side)], version=0).state.version)
        except OutdatedError:
            outcomes.append("refused")

    threads = [threading.Thread(target=save, args=(side,)) for side in range(1, 6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(map(str, outcomes)) == ["1", *["refused"] * 4]


def test_undo_goes_back_step_by_step(boxes):
    for version, side in enumerate((1, 2, 3)):
        boxes.save("train/1", [new(0, 0, side, side)], version=version)

    sides = [boxes.undo("train/1", version=version).as_json()["objects"] for version in (3, 4, 5)]

    assert [each[0]["box"][2] if each else None for each in sides] == [2, 1, None]
    with pytest.raises(UsageError, match="Undo needs a change of this image"):
        boxes.undo("train/1", version=6)
    assert boxes.pending() == []


def test_discarded_corrections_come_back_by_undo(boxes):
    boxes.save("train/1", [new(0, 0, 3, 3)], version=0)

    assert boxes.discard("train/1", version=1).boxes == []
    assert [each.box for each in boxes.undo("train/1", version=2).boxes] == [(0, 0, 3, 3)]


def test_boxes_as_in_the_dataset_are_no_correction(boxes):
    boxes.save("train/0", sent(boxes.get("train/0"))[:1], version=0)
    boxes.save("train/0", sent(boxes.get("val/0")), version=1)

    assert boxes.pending() == []
    with pytest.raises(UsageError, match="needs images with corrected boxes"):
        boxes.states()


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([1, 1, 1, 4], "A box has an area"),
        ([3, 1, 2, 4], "A box has an area"),
        ([1, 1, 9, 4], r"within its image.*right 9, bottom 4; the image is 8 x 6 px.*Cut it off"),
        ([-1, 1, 2, 4], "within its image"),
        ([1, 1, 2], "and perhaps a `source`:"),
        ([1, 1, 2, float("nan")], "A box has an area"),
    ],
)
def test_an_impossible_box_is_refused(boxes, box, said):
    with pytest.raises(DataError, match=said):
        boxes.save("train/1", [{"class": 0, "box": box}], version=0)
    assert boxes.get("train/1").state.version == 0


def test_unknown_class_and_source_are_refused(boxes):
    with pytest.raises(DataError, match="from 0 to 1, or -1"):
        boxes.save("train/1", [new(0, 0, 1, 1, 2)], version=0)
    for sources in ([3], [0, 0]):
        with pytest.raises(DataError, match="named at most once"):
            boxes.save("train/0", [{**new(0, 0, 1, 1), "source": each} for each in sources], version=0)


def test_a_box_beside_the_image_stays_where_untouched(boxes):
    assert boxes.save("train/0", sent(boxes.get("train/0"))[2:], version=0).boxes[0].box == (-1, 0, 9, 6)


def test_other_kinds_have_no_boxes(tmp_path):
    write_dataset(tmp_path / "set", {"train": [("0.png", (png(picture(0)),), 0)]})

    with pytest.raises(DataError, match="of kind detection"):
        BoxCorrections(Datasets()).get(str(tmp_path / "set"), "train/0")


def test_a_version_keeps_what_nobody_touched(boxes, folder, tmp_path):
    boxes.save("train/0", [*sent(boxes.get("train/0"))[1:], new(0, 0, 3, 3, 1)], version=0)

    boxes.apply(tmp_path / "new", new_name="corrected")

    version = opened(tmp_path / "new")
    label = version.sample("train", 0).label
    assert label == [*OBJECTS[1:], {"class": 1, "box": [0, 0, 3, 3]}]
    assert version.entry("train", 0).label == label
    assert version.entry("train", 0).objects == 3
    assert version.sample("val", 0).label == OBJECTS
    assert opened(folder).sample("train", 0).label == OBJECTS


def test_a_moved_box_takes_its_outline_along(boxes, tmp_path):
    first, second, third = sent(boxes.get("train/0"))
    boxes.save("train/0", [{**first, "box": [2, 2, 4, 5]}, {**second, "box": [2, 2, 4, 4.5]}, third], version=0)

    boxes.apply(tmp_path / "new")

    moved, other, _ = opened(tmp_path / "new").sample("train", 0).label
    assert moved == {
        "class": 0,
        "box": [2, 2, 4, 5],
        "polygons": [[2.0, 2.0, 4.0, 2.0, 4.0, 5.0]],
        "difficult": True,
        "details": {"id": 7},
    }
    assert other == {"class": 1, "box": [2, 2, 4, 4.5], "crowd": True}


def test_another_class_changes_nothing_else(boxes, tmp_path):
    first, *others = sent(boxes.get("train/0"))
    boxes.save("train/0", [{**first, "class": 1}, *others], version=0)

    boxes.apply(tmp_path / "new")

    assert opened(tmp_path / "new").sample("train", 0).label[0] == {**OBJECTS[0], "class": 1}


def test_a_version_knows_its_parent_and_what_was_done(boxes, folder, tmp_path):
    boxes.save("train/1", [new(0, 0, 3, 3), new(1, 1, 2, 2)], version=0)
    boxes.save("train/0", sent(boxes.get("train/0"))[:1], version=0)
    boxes.save("val/0", [], version=0)

    boxes.apply(tmp_path / "new", new_name="corrected")

    newest, oldest = history(tmp_path / "new")
    assert newest.changes == (
        "Corrected the boxes of 2 samples of train: 2 added, 2 deleted.",
        "Corrected the boxes of 1 sample of val: 3 deleted.",
    )
    assert (newest.name, newest.parents, oldest.folder) == ("corrected", (oldest.id,), folder)


def test_an_applied_correction_is_pending_no_more(boxes, tmp_path):
    boxes.save("train/1", [new(0, 0, 3, 3)], version=0)
    boxes.save("val/0", [], version=0)

    boxes.apply(tmp_path / "new", samples=["train/1"], new_name="corrected")

    assert [(each.split, each.row) for each in boxes.pending()] == [("val", 0)]
    found = boxes.get("train/1")
    assert (found.boxes, found.state.applied, found.state.version) == ([], "corrected", 2)
    assert len(boxes.undo("train/1", version=2).boxes) == 1


def test_a_correction_of_meanwhile_stays_pending(boxes):
    boxes.save("train/1", [new(0, 0, 3, 3)], version=0)
    states = boxes.states()
    boxes.save("train/1", [new(0, 0, 2, 2)], version=1)

    boxes.note_applied(states, "corrected")

    assert [each.version for each in boxes.pending()] == [2]


def test_a_version_can_be_corrected_again(boxes, tmp_path):
    boxes.save("train/1", [new(0, 0, 3, 3)], version=0)
    boxes.apply(tmp_path / "second")
    again = Bound(boxes.corrections, str(tmp_path / "second"))

    again.save("train/1", [{**new(0, 0, 4, 4), "source": 0}, new(1, 1, 2, 2)], version=0)
    again.apply(tmp_path / "third")

    assert [each["box"] for each in opened(tmp_path / "third").sample("train", 1).label] == [[0, 0, 4, 4], [1, 1, 2, 2]]
    assert len(history(tmp_path / "third")) == 3


def test_a_damaged_file_of_corrections_is_named(boxes, folder):
    (folder / "pending-boxes.sqlite").write_bytes(b"no database" * 100)

    with pytest.raises(DataError, match=r"pending-boxes.sqlite.*Move the file away"):
        boxes.get("train/0")


def test_pending_boxes_tells_of_an_emptied_file(boxes, folder):
    boxes.save("train/0", [], version=0)
    (folder / "pending-boxes.sqlite").write_bytes(b"")

    with pytest.raises(DataError, match=r"cannot be read \(received: .*pending-boxes.sqlite.*the file is empty"):
        boxes.get("train/0")
    with pytest.raises(DataError, match="the file is empty"):
        boxes.places()
    assert [each.name for each in folder.glob(".pending*")] == []


def test_corrections_are_json(boxes):
    assert json.loads(json.dumps(boxes.get("train/0").as_json()))["classes"] == ["cat", "dog"]
