"""Folders that are named after classes become samples, and what does not fit is listed."""

import os

import pytest

from tests.unit.datasets.folder_sets import SHARED, Scanned, put
from ziggurat.datasets.formats.class_folders.importer import ClassFolders
from ziggurat.datasets.formats.shared.folder_walk import ImageWalk
from ziggurat.datasets.formats.shared.text_files import SeenKeys
from ziggurat.datasets.samples import Sample
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError


def test_a_folder_for_each_class(tmp_path):
    put(tmp_path, "dog/b.jpg", "dog/a.JPG", "cat/deep/er/2.png", "cat/1.webp")
    found = Scanned(ClassFolders(), tmp_path)
    assert found.classes == {"cat/1.webp": "cat", "cat/deep/er/2.png": "cat", "dog/a.JPG": "dog", "dog/b.jpg": "dog"}
    assert list(found.labels) == ["cat/1.webp", "cat/deep/er/2.png", "dog/a.JPG", "dog/b.jpg"]
    assert set(found.splits.values()) == {""}
    assert found.problems == []
    size = os.path.getsize(tmp_path / "cat/1.webp")
    assert found.samples[0] == Sample(key="cat/1.webp", parts=("cat/1.webp",), label=0, size_bytes=size)


def test_folders_of_splits_stand_above(tmp_path):
    put(tmp_path, "Training/cat/1.png", "Training/cat/2.png", "Training/dog/1.png", "Training/dog/2.png")
    put(tmp_path, "valid/dog/1.png", "validation/cat/1.png", "test/cat/1.png")
    found = Scanned(ClassFolders(), tmp_path)
    assert list(found.splits.items())[3:] == [
        ("Training/dog/2.png", "train"),
        ("valid/dog/1.png", "val"),
        ("validation/cat/1.png", "val"),
        ("test/cat/1.png", "test"),
    ]
    assert found.classes["validation/cat/1.png"] == "cat"


def test_a_class_may_be_called_train(tmp_path):
    put(tmp_path, *(f"{name}/{number}.png" for name in ("bus", "train") for number in range(2)))
    assert Scanned(ClassFolders(), tmp_path).schema.class_names == ("bus", "train")
    put(tmp_path, "test/bus/1.png", "train/old/1.png", "train/new/1.png")
    assert Scanned(ClassFolders(), tmp_path, splits="no").schema.class_names == ("bus", "train")


def test_classes_that_only_val_has_are_listed(tmp_path):
    put(tmp_path, *(f"train/{name}/{number}.png" for name in ("a", "b") for number in range(2)))
    put(tmp_path, "train/rare/1.png", "val/rare/1.png", "val/new/1.png", "val/new/2.png", "val/a/1.png", "val/x.png")
    found = Scanned(ClassFolders(), tmp_path)
    assert found.listed == {
        "train/rare": "small-class",
        "val/new/1.png": "unknown-class",
        "val/new/2.png": "unknown-class",
        "val/rare/1.png": "unknown-class",
        "val/x.png": "no-label",
    }
    lost = {problem.key: problem for problem in found.problems}
    assert lost["val/new/1.png"].reason == "Its class is not in the first split."
    assert (lost["val/rare/1.png"].class_name, lost["val/rare/1.png"].split) == ("rare", "val")
    assert [key for key in found.labels if key.startswith("val")] == ["val/a/1.png"]


# ---- few and many images


def test_31_small_classes_are_left_out_and_get_no_number(tmp_path):
    put(tmp_path, "a/1.png", *(f"{name}/{number}.png" for name in "bc" for number in range(3)))
    found = Scanned(ClassFolders(), tmp_path)
    assert found.schema.class_names == ("b", "c")
    assert set(found.labels.values()) == {0, 1}
    [problem] = found.problems
    assert (problem.key, problem.kind, problem.left_out) == ("a", "small-class", True)
    assert problem.reason == "The class has 1 of the at least 2 images, and is left out."
    assert Scanned(ClassFolders(), tmp_path, min_per_class=1).schema.class_names == ("a", "b", "c")


def test_31_pictures_of_a_class_are_limited_by_a_seed(tmp_path):
    put(tmp_path, *(f"{name}/{number:02}.png" for name in "ab" for number in range(20)))
    chosen = [list(Scanned(ClassFolders(), tmp_path, max_per_class=5, seed=seed).labels) for seed in (0, 0, 1)]
    assert [len(keys) for keys in chosen] == [10, 10, 10]
    assert chosen[0] == chosen[1] == sorted(chosen[0])
    assert chosen[0] != chosen[2]
    assert chosen[0] != [f"{name}/{number:02}.png" for name in "ab" for number in range(5)]
    found = Scanned(ClassFolders(), tmp_path, max_per_class=5)
    assert found.listed == {"a": "large-class", "b": "large-class"}
    put(tmp_path, "a/new.png")
    assert len(set(Scanned(ClassFolders(), tmp_path, max_per_class=5).labels) - set(chosen[0])) <= 1


def test_31_the_most_is_not_below_the_least(tmp_path):
    importer = ClassFolders()
    with pytest.raises(ConfigurationError, match=r"`max_per_class` is not below it \(received: 5 and 3\)."):
        importer.scan(tmp_path, importer.checked_options({"min_per_class": 5, "max_per_class": 3}))


def test_one_class_is_no_classification(tmp_path):
    put(tmp_path, "cat/1.png", "cat/2.png", "dog/1.png")
    with pytest.raises(DataError, match=r"at least two folders .* \(received: 1 in .* \(1 too small\)\)"):
        Scanned(ClassFolders(), tmp_path)


def test_32_underscores_become_blanks(tmp_path):
    put(tmp_path, *(f"{name}/{number}.png" for name in ("t_shirt", "hat") for number in range(2)))
    schema = Scanned(ClassFolders(), tmp_path).schema
    assert schema.class_names == ("hat", "t shirt")
    assert schema.details == {"class_folders": ["hat", "t_shirt"]}


def test_32_unless_two_classes_would_become_one(tmp_path):
    put(tmp_path, *(f"{name}/{number}.png" for name in ("a_b", "a b") for number in range(2)))
    assert Scanned(ClassFolders(), tmp_path).schema.class_names == ("a b", "a_b")


# ---- odd files


def test_what_is_no_picture_is_listed(tmp_path):
    put(tmp_path, *(f"{name}/{number}.png" for name in "ab" for number in range(2)))
    tmp_path.joinpath("a/Thumbs.db").touch()
    tmp_path.joinpath("a/note.txt").touch()
    tmp_path.joinpath("a/._1.png").touch()  # macOS leaves such files
    tmp_path.joinpath("a/empty.png").touch()
    tmp_path.joinpath("a/gone.png").symlink_to("nowhere.png")
    tmp_path.joinpath("a/folder.png").mkdir()
    os.mkfifo(tmp_path / "b/pipe.png")
    found = Scanned(ClassFolders(), tmp_path)
    assert len(found.samples) == 4
    assert found.listed == {
        "a/empty.png": "unreadable",
        "a/gone.png": "no-picture",
        "a": "other-files",
        "b/pipe.png": "no-picture",
    }
    assert "2 of its files have no name of an image, such as `note.txt`." in [each.reason for each in found.problems]


def test_names_in_any_script_and_names_that_are_no_text(tmp_path):
    put(tmp_path, "łąka zielona/ü ñ.png", "łąka zielona/2.png", "b/1.png", "b/2.png")
    os.close(os.open(os.fsencode(tmp_path) + b"/b/caf\xe9.png", os.O_CREAT | os.O_WRONLY))
    os.mkdir(os.fsencode(tmp_path) + b"/b/\xff")
    found = Scanned(ClassFolders(), tmp_path)
    assert found.classes["łąka zielona/ü ñ.png"] == "łąka zielona"
    assert found.listed == {"b/caf\\xe9.png": "bad-name", "b/\\xff": "bad-name"}


def test_links_to_folders_are_entered_once_and_loops_are_not(tmp_path):
    put(tmp_path, "far/x/1.png", "far/x/2.png", "set/a/1.png", "set/a/2.png")
    source = tmp_path / "set"
    source.joinpath("b").symlink_to(tmp_path / "far/x")
    source.joinpath("c").symlink_to(tmp_path / "far/x")
    source.joinpath("a/up").symlink_to(source)
    source.joinpath("a/self").symlink_to(".")
    found = Scanned(ClassFolders(), source)
    assert found.classes == {"a/1.png": "a", "a/2.png": "a", "b/1.png": "b", "b/2.png": "b"}
    assert found.listed == {"a/self": "link-loop", "a/up": "link-loop", "c": "small-class"}
    assert [problem.kind for problem in found.problems if problem.key == "c"] == ["link-loop", "small-class"]


def test_a_walk_ends_where_folders_link_to_each_other(tmp_path):
    for name in "abcdef":
        put(tmp_path, f"{name}/1.png")
        for other in "abcdef":
            tmp_path.joinpath(name, f"to-{other}").symlink_to(tmp_path / other)
    assert 6 <= len(list(ImageWalk(tmp_path).images())) < 200


# ---- images without classes


def test_pictures_without_classes(tmp_path):
    put(tmp_path, "train/1.png", "train/deep/2.png", "test/3.png", "4.png")
    found = Scanned(ClassFolders(), tmp_path, classes="none")
    assert found.schema.kind == "image-to-image"
    assert found.schema.parts == ("image",)
    assert found.splits == {"4.png": "", "test/3.png": "test", "train/1.png": "train", "train/deep/2.png": "train"}
    assert set(found.labels.values()) == {None}
    tmp_path.joinpath("none").mkdir()
    with pytest.raises(DataError, match="A source has images"):
        Scanned(ClassFolders(), tmp_path / "none", classes="none")


def test_options_are_checked():
    with pytest.raises(UnknownNameError, match="Did you mean `min_per_class`"):
        ClassFolders().checked_options({"min_per_clas": 3})
    with pytest.raises(ConfigurationError, match=r"`max_per_class` must be a whole number \(received: 'many'\)."):
        ClassFolders().checked_options({"max_per_class": "many"})


# ---- guessing


def test_guess_says_what_was_found(tmp_path):
    put(tmp_path, *(f"{name}/{number}.png" for name in ("x", "y", "z") for number in range(2)))
    guess = ClassFolders().guess(tmp_path)
    assert guess is not None
    assert (guess.reason, guess.kind) == ("3 folders with images", "image-classification")
    put(tmp_path / "set", *(f"{split}/{name}/1.png" for name in ("x", "y") for split in ("train", "val")))
    guess = ClassFolders().guess(tmp_path / "set")
    assert guess is not None
    assert guess.reason == "2 folders with images in each of train, val"
    assert guess.confidence > 0.8


def test_guess_takes_pictures_alone_with_less_confidence(tmp_path):
    put(tmp_path, "1.png", "2.png")
    guess = ClassFolders().guess(tmp_path)
    assert guess is not None
    assert (guess.kind, guess.options) == ("image-to-image", {"classes": "none"})
    assert guess.confidence == 0.3
    for number in range(2):
        tmp_path.joinpath(f"{number}.txt").touch()
    guess = ClassFolders().guess(tmp_path)
    assert guess is not None
    assert guess.confidence < 0.3


@pytest.mark.parametrize(
    "folders",
    [
        ("JPEGImages", "Annotations", "SegmentationClass"),
        ("images", "masks"),
        ("train", "trainannot", "val", "valannot"),
        ("image_2", "label_2"),
        ("input", "target"),
        ("trainA", "trainB"),
    ],
)
def test_guess_does_not_take_folder_names_of_other_formats(tmp_path, folders):
    put(tmp_path, *(f"{folder}/{number}.png" for folder in folders for number in range(3)))
    guess = ClassFolders().guess(tmp_path)
    assert guess is None or guess.confidence < 0.3


@pytest.mark.parametrize(
    "name", ["raccoon-voc", "bccd-voc", "carparts-coco", "coco8-yolo", "kitti-sample", "camvid", "mnist"]
)
def test_guess_does_not_take_real_data_of_other_formats(name):
    if not (SHARED / name).is_dir():
        pytest.skip(f"the shared dataset {name} is not here")
    guess = ClassFolders().guess(SHARED / name)
    assert guess is None or guess.confidence < 0.3


def test_real_class_folders():
    source = SHARED / "clothing-small"
    if not source.is_dir():
        pytest.skip("the shared dataset clothing-small is not here")
    found = Scanned(ClassFolders(), source)
    counts = {split: list(found.splits.values()).count(split) for split in ("train", "val")}
    assert counts == {"train": 750, "val": 146}
    assert len(found.schema.class_names) == 10
    assert found.problems == []
    guess = ClassFolders().guess(source)
    assert guess is not None
    assert guess.confidence > 0.8


def test_a_file_is_no_source_of_class_folders(tmp_path):
    tmp_path.joinpath("a.png").touch()
    assert ClassFolders().guess(tmp_path / "a.png") is None
    with pytest.raises(DataError, match="read from a folder"):
        Scanned(ClassFolders(), tmp_path / "a.png")


def test_keys_that_came_are_known():
    seen = SeenKeys()
    keys = [f"key-{number}" for number in range(10_000)]
    assert all(seen.is_new(key) for key in keys)
    assert not any(seen.is_new(key) for key in keys)
