"""A guess that is unsure or would drop labels is a question with the likely formats; everything else is taken."""

import io
import json
import tarfile

import pytest

from tests.unit.datasets.folder_sets import Scanned, picture, put
from tests.unit.datasets.small_sources import request
from ziggurat.datasets import guess_format, recognize
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.errors import DataError

STRANGE = '<annotations><picture file="0.png"><region label="car" at="1 1 3 3"/></picture></annotations>'
"""Labels of no tool that an importer knows."""


def numbered(*folders, count=4):
    return [f"{folder}/{number}.png" for folder in folders for number in range(count)]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tar(path, members):
    """Write a tar file of name → content."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


# ---- what is asked


def test_an_unsure_guess_lists_the_likely_formats(tmp_path):
    put(tmp_path, "1.png", "2.png")
    with pytest.raises(DataError, match=r"is not clear; it may be.*Choose one with --format") as caught:
        guess_format(tmp_path)
    assert "class_folders (30% sure: images without classes" in str(caught.value)
    (option,) = caught.value.details["options"]
    assert (option["format"], option["confidence"], option["loses"]) == ("class_folders", 0.3, "")
    assert caught.value.details["field"] == "format"


@pytest.mark.parametrize("place", ["", "images/"])
def test_strange_labels_beside_test_and_train_are_not_lost(tmp_path, place):
    put(tmp_path, *numbered(f"{place}Train", f"{place}Test"))
    write(tmp_path / "annotations.xml", STRANGE)
    with pytest.raises(DataError, match=r"labels .*in `annotations.xml`"):
        guess_format(tmp_path)


def test_class_folders_with_labels_beside_are_a_question(tmp_path):
    put(tmp_path, *numbered("cat", "dog", "owl"))
    assert guess_format(tmp_path).format == "class_folders"
    write(tmp_path / "boxes/annotations.xml", STRANGE)
    with pytest.raises(DataError, match=r"would lose labels such as those in `boxes/annotations.xml`"):
        guess_format(tmp_path)


def test_a_named_format_is_obeyed(tmp_path):
    put(tmp_path / "source", "1.png", "2.png", "3.png", "4.png")
    with pytest.raises(DataError, match="is not clear; it may be"):
        create_dataset(request(tmp_path / "source"), tmp_path / "asked")
    named = request(tmp_path / "source", format="class_folders", options={"classes": "none"})
    made = create_dataset(named, tmp_path / "named")
    assert made.schema.kind == "image-to-image"
    assert sum(split.count for split in made.splits.values()) == 4


# ---- splits are no classes


def test_train_and_test_of_pictures_are_no_classes(tmp_path):
    put(tmp_path, *numbered("Train", "Test", "Validation"))
    with pytest.raises(DataError, match=r"at least two folders .* with splits=no only"):
        Scanned(ClassFolders(), tmp_path)
    assert [guess.options for guess in recognize(tmp_path).guesses] == [{"classes": "none"}]
    forced = Scanned(ClassFolders(), tmp_path, splits="no")
    assert forced.schema.class_names == ("Test", "Train", "Validation")


@pytest.mark.parametrize("names", [("train_images", "test_images"), ("TRAIN", "VAL"), ("Testing set", "Training set")])
def test_names_with_a_split_in_them_are_no_classes(tmp_path, names):
    put(tmp_path, *numbered(*names))
    assert recognize(tmp_path).chosen is None


def test_one_class_among_others_may_be_called_train(tmp_path):
    put(tmp_path, *numbered("bus", "car", "train"))
    assert guess_format(tmp_path).format == "class_folders"


# ---- one folder too high


def test_a_single_folder_that_fits_is_taken(tmp_path):
    put(tmp_path, *numbered("flowers/train/rose", "flowers/train/tulip", "flowers/val/rose"), "docs/logo.png")
    write(tmp_path / "README.md", "# Flowers")
    guess = guess_format(tmp_path)
    assert (guess.format, guess.folder) == ("class_folders", "flowers")


def test_a_folder_far_down_is_taken_where_nothing_else_is(tmp_path):
    put(tmp_path, *numbered("a/b/flowers/rose", "a/b/flowers/tulip"))
    assert guess_format(tmp_path).folder == "a/b/flowers"


def test_the_data_set_is_made_of_the_folder_that_fits(tmp_path):
    put(tmp_path / "source", *numbered("flowers/rose", "flowers/tulip", "flowers/lily"))
    made = create_dataset(request(tmp_path / "source"), tmp_path / "set")
    assert made.schema.class_names == ("lily", "rose", "tulip")
    assert sum(split.count for split in made.splits.values()) == 12


def test_several_folders_that_fit_are_a_question(tmp_path):
    for name in ("one", "two"):
        put(tmp_path / name, *numbered("train/rose", "train/tulip", "val/rose", "val/tulip"))
    with pytest.raises(DataError, match=r"class_folders in the folder `one`.*in the folder `two`.*path of a folder"):
        guess_format(tmp_path)


def test_a_folder_of_several_data_sets_is_a_question(tmp_path):
    put(tmp_path, *numbered("flowers/rose", "flowers/tulip", "flowers/lily", "signs/images"))
    pictures = [{"id": at, "file_name": f"images/{at}.png"} for at in range(4)]
    write(tmp_path / "signs/all.json", json.dumps({"images": pictures, "annotations": [], "categories": []}))
    assert guess_format(tmp_path / "signs").format == "coco"
    with pytest.raises(DataError, match=r"would lose the dataset \(class_folders\) in the folder `flowers`"):
        guess_format(tmp_path)


def test_a_folder_with_labels_beside_it_is_a_question(tmp_path):
    put(tmp_path, *numbered("crops/cat", "crops/dog", "crops/owl"))
    write(tmp_path / "annotations.xml", STRANGE)
    with pytest.raises(DataError, match=r"annotations.xml"):
        guess_format(tmp_path)


# ---- tar files


def test_a_shard_of_samples_is_read_as_it_is(tmp_path):
    members = {f"{number}.{part}": picture(number) if part == "png" else b"%d" % (number % 2)
               for number in range(8) for part in ("png", "cls")}  # fmt: skip
    shard = tar(tmp_path / "shard.tar", members)
    made = create_dataset(request(shard), tmp_path / "set")
    assert (made.schema.kind, made.source.format) == ("image-classification", "webdataset")
    assert sum(split.count for split in made.splits.values()) == 8


def test_an_archive_of_class_folders_is_unpacked(tmp_path):
    archive = tar(tmp_path / "pets.tar", {name: picture(at) for at, name in enumerate(numbered("cat", "dog", "owl"))})
    made = create_dataset(request(archive), tmp_path / "set")
    assert made.source.format == "class_folders"


def test_an_archive_of_pictures_and_boxes_is_unpacked(tmp_path):
    members = {f"{number}.{part}": picture(number) if part == "png" else b"0 0.5 0.5 0.2 0.2\n"
               for number in range(8) for part in ("png", "txt")}  # fmt: skip
    made = create_dataset(request(tar(tmp_path / "boxes.tar", members)), tmp_path / "set")
    assert (made.schema.kind, made.source.format) == ("detection", "yolo")


def test_texts_of_a_shard_of_pictures_are_not_lost(tmp_path):
    members = {"1.png": picture(), "1.txt": b"a red fox", "2.png": picture(2), "2.txt": b"two red foxes"}
    shards = tmp_path / "shards"
    shards.mkdir()
    tar(shards / "0.tar", members)
    with pytest.raises(DataError, match="would lose what the members txt of each sample say"):
        guess_format(shards)


# ---- the importer that came nearest


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("zeros.csv", b"a,b\n1,\x002\n", "zeros.csv` is no text"),
        ("empty.csv", b"", "table: A table has rows"),
        ("cut.json", b'{"images": [{"id": 1, "fi', "coco: "),
        ("no_pictures.json", b'{"images": [], "annotations": []}', "coco: "),
        ("numbers.json", b'{"images": 3, "annotations": [], "categories": [{"id": 1}]}', "coco: "),
        ("cut.tfrecord", b"\x05\x00\x00", "tfrecord: "),
    ],
)
def test_the_nearest_importer_says_its_reason(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        guess_format(tmp_path / name)
    assert "No importer recognizes" in str(caught.value)
    assert reason in str(caught.value)
    assert caught.value.details["obstacles"]
