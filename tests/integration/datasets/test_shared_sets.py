"""Every real dataset goes in through the shell: its format is recognized, and its counts are those of its README."""

import shutil

import pytest
from dataset_shell import shared

pytestmark = pytest.mark.nightly

SETS = {
    "clothing-small": ("class_folders", {"train": 750, "val": 146}, {}),
    "raccoon-voc": ("voc", {"train": 200}, {"duplicate": 4, "other-channels": 3}),
    "bccd-voc": ("voc", {"train": 205, "val": 87, "test": 72}, {"zero-size-box": 2}),
    "carparts-coco": ("coco", {"train": 100, "val": 100}, {}),
    "coco8-yolo": ("yolo", {"train": 4, "val": 4}, {}),
    "kitti-sample": ("kitti", {"train": 3}, {}),
    "camvid": ("masks", {"train": 100, "val": 40}, {}),
    "text-sms-spam": ("text", {"train": 5574}, {"duplicate": 403}),
    "text-rt-polarity": ("text", {"train": 10662}, {}),
}
OBJECTS = {
    "raccoon-voc": 217,
    "bccd-voc": 4888 - 2,
    "carparts-coco": 767 + 811,
    "coco8-yolo": 30,
    "kitti-sample": 10 - 4,
}
CLASSES = {
    "clothing-small": 10,
    "raccoon-voc": 1,
    "bccd-voc": 3,
    "carparts-coco": 19,
    "coco8-yolo": 80,
    "kitti-sample": 5,
}
TABLES = {
    "abalone": (4177, "column-9", {}),
    "auto_imports": (201, "column-26", {"missing-value": 6}),
    "bikeshare": (10886, "count", {}),
    "hitters": (322 - 59, "Salary", {"missing-value": 2}),
    "housing": (506, "column-14", {}),
    "iris": (150, "column-5", {"duplicate": 3}),
    "pima-indians-diabetes": (768, "column-9", {}),
    "stock_goog_daily": (732, "Close", {}),
    "test_scores": (25, "column-4", {}),
    "titanic": (891, "Survived", {"missing-value": 3}),
    "wheat-seeds": (210, "column-8", {}),
    "wine": (178, "column-14", {}),
    "winequality-red": (1599, "column-12", {"duplicate": 240}),
    "winequality-white": (4898, "column-12", {"duplicate": 937}),
}
WHOLE = ("--val-share", 0)
"""As the source says: nothing is taken from training for validation."""


def made(ziggurat, tmp_path, source, *words):
    """Make a dataset without saying its format; return what it is."""
    guessed = ziggurat.json("dataset", "guess", source)[0]["format"]
    content = ziggurat.create(source, tmp_path / "set", *WHOLE, *words)
    assert content["source"]["format"] == guessed
    assert content["source"]["uri"] == str(source)
    return content


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_recognised_and_counted(ziggurat, tmp_path, name):
    form, splits, problems = SETS[name]
    content = made(ziggurat, tmp_path, shared(name))
    assert (content["source"]["format"], content["splits"], content["problems"]) == (form, splits, problems)
    if name in CLASSES:
        assert len(content["classes"]) == CLASSES[name]
    if name in OBJECTS:
        assert sum(each[split] for each in content["classes"] for split in splits) == OBJECTS[name]


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx_files_of_seventy_thousand_pictures(ziggurat, tmp_path, name):
    content = made(ziggurat, tmp_path, shared(name), "--near-duplicates", "false", "--check", "none")
    assert (content["source"]["format"], content["splits"]) == ("idx", {"train": 60000, "test": 10000})
    assert len(content["classes"]) == 10
    assert (content["image"]["height_px"], content["image"]["width_px"], content["image"]["channels"]) == (28, 28, 1)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_recognised_and_counted(ziggurat, tmp_path, name):
    rows, target, problems = TABLES[name]
    content = made(ziggurat, tmp_path, shared("tabular") / f"{name}.csv")
    assert (content["splits"], content["target"], content["problems"]) == ({"train": rows}, target, problems)


def test_the_irregular_pictures_of_raccoon_are_named(ziggurat, tmp_path):
    made(ziggurat, tmp_path, shared("raccoon-voc"))
    grey = ziggurat.json("dataset", "problems", tmp_path / "set", "--kind", "other-channels")
    assert len(grey) == 3
    assert not any(problem["left_out"] for problem in grey)
    twice = ziggurat.json("dataset", "problems", tmp_path / "set", "--kind", "duplicate")
    assert len(twice) == 4
    found = ziggurat.json("dataset", "explore", tmp_path / "set", "--problem", "other-channels")
    assert sorted(each["key"] for each in found["samples"]) == sorted(each["key"] for each in grey)


def test_the_boxes_without_size_of_bccd_are_named(ziggurat, tmp_path):
    made(ziggurat, tmp_path, shared("bccd-voc"))
    found = ziggurat.json("dataset", "problems", tmp_path / "set", "--kind", "zero-size-box")
    assert {problem["key"] for problem in found} == {f"JPEGImages/BloodImage_00{number}.jpg" for number in (338, 343)}


def test_missing_cells_are_said_by_column(ziggurat, tmp_path):
    made(ziggurat, tmp_path, shared("tabular") / "titanic.csv")
    reasons = [each["reason"] for each in ziggurat.json("dataset", "problems", tmp_path / "set")]
    assert reasons[0] == "The column `Age` has no value in 177 of 891 rows, the first in titanic.csv:7."


def test_pictures_that_are_cut_off_are_left_out_and_listed(ziggurat, tmp_path):
    source = tmp_path / "clothes"
    for name in ("dress", "hat"):
        shutil.copytree(shared("clothing-small") / "val" / name, source / name)
    hurt = sorted((source / "hat").iterdir())[:2]
    hurt[0].write_bytes(hurt[0].read_bytes()[:2000])
    hurt[1].write_bytes(b"")
    content = made(ziggurat, tmp_path, source)
    assert (content["splits"], content["problems"]) == ({"train": 27}, {"unreadable": 2})
    found = ziggurat.json("dataset", "problems", tmp_path / "set")
    assert {(each["key"], each["left_out"]) for each in found} == {(f"hat/{path.name}", True) for path in hurt}
