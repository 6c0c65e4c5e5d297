"""YOLO's text files become samples with objects in pixels; YAML files and usual folders say where everything is."""

import os

import cv2
import numpy as np
import pytest
from detection_sources import confidence, save_picture, save_text, scan, shared
from PIL import Image

from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.datasets.image_size import image_size
from ziggurat.errors import DataError

YOLO = YoloImporter()
NAMES = "train: images/train\nval: images/val\nnames: [cat, dog]\n"


@pytest.fixture
def pets(tmp_path):
    for split in ("train", "val"):
        save_picture(tmp_path / f"images/{split}/a b.jpg")
        save_text(tmp_path / f"labels/{split}/a b.txt", "1 0.5 0.5 0.2 0.25\r\n0 0.1 0.1 0.2 0.2\r\n\r\n")
    save_text(tmp_path / "data.yaml", NAMES)
    return tmp_path


def test_boxes_are_pixels_of_the_picture(pets):
    found = scan(YOLO, pets)
    assert confidence(YOLO, pets) == 0.95
    assert found.schema.class_names == ("cat", "dog")
    assert found.splits() == {"images/train/a b.jpg": "train", "images/val/a b.jpg": "val"}
    assert found.names("images/val/a b.jpg") == ["dog", "cat"]
    assert found.boxes("images/val/a b.jpg")[0] == pytest.approx((40, 30, 60, 50))


@pytest.mark.parametrize(
    "text",
    [
        "path: ../datasets/pets\ntrain: images/train\nval: images/val\nnames: {0: cat, 1: dog}",
        "path: .\ntrain: [images/train]\nval: ../images/val\nnc: 2\nnames:\n- cat\n- dog",
        "path: /content/pets\ntrain: ./images/train/\nvalid: /content/pets/images/val\nnames: {1: dog, 0: cat}",
        "path:\ntrain: train.txt\nval: images/val\nnames: [cat, dog]",
        "names: [cat, dog]\nnc: 2",
    ],
)
def test_yaml_files_say_the_same_in_many_ways(pets, text):
    save_text(pets / "data.yaml", text)
    save_text(pets / "train.txt", "./images/train/a b.jpg\r\n")
    found = scan(YOLO, pets)
    assert found.schema.class_names == ("cat", "dog")
    assert found.splits() == {"images/train/a b.jpg": "train", "images/val/a b.jpg": "val"}
    assert found.count() == 4


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system ['x']", "a: [", "- 1\n- 2", "\0", "names: {9999999999: x}\nnc: 1"]
)
def test_a_yaml_file_that_is_none_of_yolo_says_nothing(pets, text):
    save_text(pets / "data.yaml", text)
    found = scan(YOLO, pets)
    assert found.schema.class_names == ("class 0", "class 1")
    assert found.count() == 4


def test_names_that_are_lists_of_lists_are_no_names(pets):
    levels = "\n".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 30))
    save_text(pets / "data.yaml", f"a0: &a0 [x]\n{levels}\ntrain: images/train\nnames: [*a29, dog]")
    assert scan(YOLO, pets).schema.class_names == ("class 0", "dog")


def test_a_yaml_file_leads_nowhere_outside(pets):
    outside = pets.parent / "outside"
    save_picture(outside / "pics/b.jpg")
    save_text(
        pets / "data.yaml",
        f"path: ..\ntrain: ../outside/pics\nval: {outside}/pics\ntest: {pets}/../outside/pics\nnames: [a, b]",
    )
    with pytest.raises(DataError, match="is not in the source") as caught:
        scan(YOLO, pets)
    assert caught.value.details["field"] == "options.missing_splits"
    found = scan(YOLO, pets, missing_splits="drop")
    assert sorted(found.samples) == ["images/train/a b.jpg", "images/val/a b.jpg"]
    assert [(each.names, each.split) for each in found.problems if each.kind == "no-split"] == [(1, "test")]


def test_a_picture_is_in_one_split_only(pets):
    save_text(pets / "data.yaml", "train: images\nval: images/val\nnames: [cat, dog]")
    found = scan(YOLO, pets)
    assert found.splits() == {"images/train/a b.jpg": "train", "images/val/a b.jpg": "train"}
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("images/val/a b.jpg", "duplicate-key", True)
    ]


def test_folders_of_splits_that_hold_both(tmp_path):
    for split in ("train", "valid"):
        save_picture(tmp_path / split / "images/1.png")
        save_text(tmp_path / split / "labels/1.txt", "0 0.5 0.5 0.2 0.25")
    assert scan(YOLO, tmp_path).splits() == {"train/images/1.png": "train", "valid/images/1.png": "val"}


def test_one_folder_with_a_list_of_names(tmp_path):
    for name in ("1", "2", "3"):
        save_picture(tmp_path / f"{name}.jpg")
    save_text(tmp_path / "1.txt", "1 0.5 0.5 0.2 0.25")
    save_text(tmp_path / "2.txt", "")
    save_text(tmp_path / "4.txt", "1 0.5 0.5 0.2 0.25")
    save_text(tmp_path / "classes.txt", "cat\r\ndog\r\n")
    assert confidence(YOLO, tmp_path) == 0.9
    found = scan(YOLO, tmp_path)
    assert found.names("1.jpg") == ["dog"]
    assert found.samples["2.jpg"].label == []
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("3.jpg", "no-label", False),
        ("4.txt", "no-picture", True),
    ]


def test_outlines_have_their_bounding_boxes(pets):
    save_text(pets / "labels-seg/train/a b.txt", "1 0.1 0.25 0.5 0.25 0.3 0.75\n0 0.5 0.5 0.2 0.25 0.875\n")
    found = scan(YOLO, pets, labels="labels-seg")
    outline, scored = found.objects("images/train/a b.jpg")
    assert outline.polygons[0] == pytest.approx((10, 20, 50, 20, 30, 60))
    assert outline.box == pytest.approx((10, 20, 50, 60))
    assert scored.details == {"score": 0.875}


def test_lines_that_cannot_be_right_are_listed_with_their_number(pets):
    lines = ["cat 0.5 0.5 0.1 0.1", "0 0.5", "0 0.5 0.5 nan 0.1", "2 0.5 0.5 0.1 0.1", "-1 0.5 0.5 0.1 0.1",
             "0 0.5 0.5 0 0.1", "0 0.5 0.5 -0.2 0.1", "0.5 0.5 0.5 0.1 0.1", "0 1 0.5 0.5 0.1",
             "0 1 2 3 4 5 6 7"]  # fmt: skip
    save_text(pets / "labels/train/a b.txt", "\n".join(lines), "utf-16")
    found = scan(YOLO, pets)
    assert found.kinds() == [
        *["bad-line"] * 3, *["unknown-class"] * 2, "zero-size-box", "swapped-corners",
        "bad-line", "box-outside", "bad-line",
    ]  # fmt: skip
    assert found.problems[0].reason == "labels/train/a b.txt, line 1: its words are no numbers."
    assert found.problems[3].reason == "labels/train/a b.txt, line 4: class 2, and 2 classes have names."
    assert len(found.boxes("images/train/a b.jpg")) == 2


def test_a_class_of_a_huge_number_makes_no_huge_list(pets):
    (pets / "data.yaml").unlink()
    save_text(pets / "labels/train/a b.txt", "999999999 0.5 0.5 0.1 0.1")
    found = scan(YOLO, pets)
    assert found.kinds() == ["unknown-class"]
    assert found.schema.class_names == ("class 0", "class 1")


def test_pictures_without_a_size_are_left_out(pets):
    (pets / "images/train/a b.jpg").write_bytes(b"no image")
    (pets / "images/train/c.jpg").write_bytes(b"")
    listed = [(each.key, each.left_out, each.class_name, each.objects) for each in scan(YOLO, pets).problems]
    assert listed == [
        ("images/train/a b.jpg", True, "dog", 1),
        ("images/train/a b.jpg", False, "cat", 1),
        ("images/train/c.jpg", True, "", 0),
    ]


def test_sizes_are_read_from_headers_and_turned_as_exif_says(tmp_path):
    image = Image.new("RGB", (30, 20))
    turned = Image.Exif()
    turned[0x0112] = 6
    image.save(tmp_path / "turned.jpg", exif=turned)
    image.save(tmp_path / "plain.jpg", exif=Image.Exif())
    for ending in ("png", "bmp", "webp", "tiff"):
        image.save(tmp_path / f"plain.{ending}")
    assert image_size(tmp_path / "turned.jpg") == (20, 30)
    assert {image_size(path) for path in tmp_path.glob("plain.*")} == {(30, 20)}


def test_the_size_of_a_cut_off_picture_is_still_known(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (200, 300, 3), np.uint8)
    data = cv2.imencode(".jpg", noise)[1].tobytes()
    (tmp_path / "a.jpg").write_bytes(data[: len(data) // 2])
    assert image_size(tmp_path / "a.jpg") == (300, 200)


def test_other_sources_are_not_taken_for_yolo(tmp_path):
    for name in ("cat", "dog"):
        save_picture(tmp_path / name / "1.jpg")
        save_text(tmp_path / name / "notes.txt", "3 images of mine")
    os.makedirs(tmp_path / "labels")
    assert YOLO.guess(tmp_path) is None
    with pytest.raises(DataError, match="same names"):
        YOLO.scan(tmp_path / "labels", YOLO.checked_options({}))


def test_coco8_is_what_its_readme_says():
    source = shared("coco8-yolo")
    assert confidence(YOLO, source) >= 0.9
    for labels in ("labels", "labels-seg"):
        found = scan(YOLO, source, labels=labels)
        assert list(found.splits().values()) == ["train"] * 4 + ["val"] * 4
        assert (found.count(), len(found.schema.class_names), found.problems) == (30, 80, [])
    assert all(len(each.polygons) == 1 for key in found.samples for each in found.objects(key))


def test_blood_cells_have_yolo_labels_too():
    found = scan(YOLO, shared("bccd-voc"), labels="labels-yolo-derived")
    assert (len(found.samples), found.count(), found.schema.class_names) == (364, 4886, ("RBC", "WBC", "Platelets"))
    assert found.problems == []


@pytest.mark.parametrize(
    ("pictures", "labels"), [("images", "annots"), ("train/images", "train/annots"), ("imgs", "Annotations")]
)
def test_folders_of_labels_have_many_names(tmp_path, pictures, labels):
    for stem in ("a", "b"):
        save_picture(tmp_path / pictures / f"{stem}.jpg")
        save_text(tmp_path / labels / f"{stem}.txt", "0 0.5 0.5 0.2 0.25\n")
    guess = YOLO.guess(tmp_path)
    assert guess.confidence >= 0.5
    assert guess.options == {"labels": labels.rpartition("/")[2]}
    found = scan(YOLO, tmp_path, **guess.options)
    assert found.boxes(f"{pictures}/a.jpg")[0] == pytest.approx((40, 30, 60, 50))
