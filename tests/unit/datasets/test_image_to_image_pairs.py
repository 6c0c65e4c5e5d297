"""Images to images: folders, lists, auto-encoders, and the way out and back."""

import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, kinds_of, read_back

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.image_pairs.exporter import export_image_pairs
from ziggurat.datasets.formats.image_pairs.importer import ImagePairsImporter
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema


def picture(value, file_format="png"):
    return encode_image(np.full((4, 5, 3), value, np.uint8), file_format)


def put(folder, *paths):
    for number, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(picture(number))
    return folder


def test_two_folders_with_the_same_names(tmp_path):
    put(tmp_path, "noisy/a.png", "noisy/b.png", "clean/a.jpg", "clean/c.png")
    assert guessed(tmp_path) == ("image_pairs", "image-to-image")
    found = read_back(ImagePairsImporter(), tmp_path)
    assert found.samples == {"noisy/a.png": ("", (picture(0), picture(2)), None)}
    assert found.schema.parts == ("image", "target")
    assert kinds_of(found.problems) == {"noisy/b.png": "no-partner", "clean/c.png": "no-partner"}
    assert found.problems[0].reason == "`clean` has no image of the same name."


def test_50_a_separate_validation_folder_gives_the_right_counts(tmp_path):
    put(tmp_path, *(f"features/{number}.png" for number in range(7)), *(f"labels/{number}.png" for number in range(7)))
    put(tmp_path, *(f"vf/{number}.png" for number in range(3)), *(f"vl/{number}.png" for number in range(3)))
    options = {"inputs": "features", "targets": "labels", "val_inputs": "vf", "val_targets": "vl"}
    splits = [split for split, _parts, _label in read_back(ImagePairsImporter(), tmp_path, **options).samples.values()]
    assert (splits.count("train"), splits.count("val"), len(splits)) == (7, 3, 10)


def test_folders_may_stand_elsewhere(tmp_path):
    put(tmp_path, "here/a.png", "there/a.png")
    found = read_back(ImagePairsImporter(), tmp_path / "here", inputs=".", targets=str(tmp_path / "there"))
    assert [parts for _split, parts, _label in found.samples.values()] == [(picture(0), picture(1))]


def test_partners_may_stand_inside_the_folder_of_the_pictures(tmp_path):
    put(tmp_path, "a.png", "deep/b.png", "want/a.png", "want/deep/b.png")
    found = read_back(ImagePairsImporter(), tmp_path, inputs=".", targets="./want")
    assert list(found.samples) == ["a.png", "deep/b.png"]
    assert found.problems == []


def test_classes_that_are_called_like_it_are_left_to_others(tmp_path):
    put(tmp_path / "two", "a/1.png", "b/1.png")
    put(tmp_path / "three", "noisy/1.png", "clean/1.png", "broken/1.png")
    for name in ("two", "three"):
        assert ImagePairsImporter().guess(tmp_path / name).confidence == 0.4


def test_splits_inside_or_above(tmp_path):
    put(tmp_path / "one", "input/train/a.png", "target/train/a.png", "input/val/b.png", "target/val/b.png")
    put(tmp_path / "two", "train/input/a.png", "train/target/a.png", "testing/input/b.png", "testing/target/b.png")
    for source, splits in (("one", ["train", "val"]), ("two", ["test", "train"])):
        found = read_back(ImagePairsImporter(), tmp_path / source)
        assert [split for split, _parts, _label in found.samples.values()] == splits


def test_one_folder_is_for_an_auto_encoder(tmp_path):
    put(tmp_path, "train/a.png", "val/b.png")
    assert ImagePairsImporter().guess(tmp_path) is None
    found = read_back(ImagePairsImporter(), tmp_path, auto_encoder=True)
    assert found.samples == {
        "train/a.png": ("train", (picture(0),), None),
        "val/b.png": ("val", (picture(1),), None),
    }
    assert found.schema.parts == ("image",)


def test_nothing_at_all_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="Name the folders with the options `inputs` and `targets`"):
        read_back(ImagePairsImporter(), tmp_path)


def test_what_was_written_comes_back(tmp_path):
    splits = {
        "train": [("a/1.png", (picture(1), picture(2)), None), ("a/1.jpg", (picture(3), picture(4, "jpeg")), None)],
        "test": [("b", (picture(5), picture(6)), None)],
    }
    with dataset_with(tmp_path / "set", splits, "image-to-image") as dataset:
        report = export_image_pairs(dataset, tmp_path / "out")
    assert (report.counts, report.problems, report.notes) == ({"train": 2, "test": 1}, [], [])
    assert guessed(tmp_path / "out") == ("image_pairs", "image-to-image")
    assert read_back(ImagePairsImporter(), tmp_path / "out").samples == expected(splits)


def test_what_was_written_of_an_auto_encoder_comes_back(tmp_path):
    splits = {"train": [("a.png", (picture(1),), None)], "val": [("b.png", (picture(2),), None)]}
    schema = Schema(kind="image-to-image", parts=("image",))
    with dataset_with(tmp_path / "set", splits, schema) as dataset:
        export_image_pairs(dataset, tmp_path / "out")
    found = read_back(ImagePairsImporter(), tmp_path / "out")
    assert found.samples == expected(splits)
    assert found.schema == schema
    assert guessed(tmp_path / "out")[0] == "image_pairs"
