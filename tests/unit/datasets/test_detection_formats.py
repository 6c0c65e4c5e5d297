"""Each source is taken by the importer of its own format, and by no other with the same trust."""

import pytest
from detection_sources import save_picture, save_text, shared

from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.errors import UnknownNameError

IMPORTERS = [CocoImporter(), VocImporter(), YoloImporter(), KittiImporter()]


def guesses(source):
    found = [guess for each in IMPORTERS if (guess := each.guess(source)) is not None]
    return [guess.format for guess in sorted(found, key=lambda guess: -guess.confidence)]


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("carparts-coco", ["coco"]),
        ("raccoon-voc", ["voc", "kitti"]),
        ("bccd-voc", ["voc", "yolo"]),
        ("coco8-yolo", ["yolo"]),
        ("kitti-sample", ["kitti"]),
        ("mnist", []),
        ("camvid", []),
        ("clothing-small", []),
        ("tabular", []),
        ("text-rt-polarity", []),
    ],
)
def test_shared_data_is_recognised(name, formats):
    assert guesses(shared(name)) == formats


def test_what_a_guess_says_makes_the_scan_it_means():
    source = shared("bccd-voc")
    yolo = next(each for each in IMPORTERS if each.name == "yolo")
    guess = yolo.guess(source)
    assert guess.options == {"labels": "labels-yolo-derived"}
    assert guess.confidence < 0.9
    assert "labels-yolo-derived" in guess.reason
    assert sum(1 for _ in yolo.scan(source, yolo.checked_options(guess.options))) == 364


def test_folders_of_classes_are_nobodys(tmp_path):
    for name in ("cat/1.jpg", "dog/1.jpg", "train/cat/1.jpg", "images/1.jpg", "masks/1.png"):
        save_picture(tmp_path / name)
    save_text(tmp_path / "train.txt", "cat/1.jpg 0\ndog/1.jpg 1\n")
    save_text(tmp_path / "labels.txt", "cat\ndog\n")
    assert guesses(tmp_path) == []


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda each: each.name)
def test_a_file_and_an_empty_folder_are_nobodys(importer, tmp_path):
    assert importer.guess(tmp_path) is None
    for name in ("a.jpg", "b.zip", "c.json", "d.xml", "e.txt"):
        save_text(tmp_path / name, "")
        assert importer.guess(tmp_path / name) is None


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda each: each.name)
def test_options_are_checked(importer):
    assert importer.checked_options({})["zero_size_boxes"] == "drop"
    with pytest.raises(UnknownNameError, match="`zero_size_boxes`"):
        importer.checked_options({"zero_size_boxes": "hide"})
