"""Pascal VOC's XML files become samples with objects; splits come from ImageSets; hostile XML is refused."""

import cv2
import numpy as np
import pytest
from detection_sources import confidence, save_picture, save_text, scan, shared
from PIL import Image

from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.errors import DataError

VOC = VocImporter()
CORNERS = ("xmin", "ymin", "xmax", "ymax")


def xml_object(name, box, extra=""):
    corners = "".join(f"<{corner}>{value}</{corner}>" for corner, value in zip(CORNERS, box, strict=True))
    return f"<object><name>{name}</name>{extra}<bndbox>{corners}</bndbox></object>"


def save_xml(path, *objects, encoding="utf-8"):
    size = "<size><width>100</width><height>80</height><depth>3</depth></size>"
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    save_text(path, f"{head}\r\n<annotation>{size}{''.join(objects)}</annotation>", encoding)


@pytest.fixture
def farm(tmp_path):
    for stem in ("a", "b", "c d", "ß"):
        save_picture(tmp_path / f"JPEGImages/{stem}.jpg")
    extra = "<pose>Left</pose><truncated>1</truncated><difficult>1</difficult><occluded>0</occluded>"
    extra += "<part><name>head</name></part><part><name>leg</name></part>"
    save_xml(tmp_path / "Annotations/a.xml", xml_object("sheep", (1, 2, 30.5, 40), extra))
    save_xml(tmp_path / "Annotations/b.xml", xml_object("cow", (1, 2, 3, 4)), xml_object("sheep", (5, 6, 7, 8)))
    save_xml(tmp_path / "Annotations/c d.xml")
    save_xml(tmp_path / "Annotations/ß.xml", xml_object("Kälbchen", (1, 2, 3, 4)), encoding="latin-1")
    for split, stems in (("train", "a"), ("val", "b\r\nc d"), ("trainval", "a\nb\nc d\nß"), ("test", "")):
        save_text(tmp_path / f"ImageSets/Main/{split}.txt", stems)
    save_text(tmp_path / "ImageSets/Main/cow_train.txt", "a -1")
    return tmp_path


def test_lists_make_the_splits_and_names_are_numbered_sorted(farm):
    found = scan(VOC, farm)
    assert found.schema.class_names == ("Kälbchen", "cow", "sheep")
    assert found.splits() == {
        "JPEGImages/a.jpg": "train",
        "JPEGImages/b.jpg": "val",
        "JPEGImages/c d.jpg": "val",
        "JPEGImages/ß.jpg": "train",
    }
    assert found.names("JPEGImages/b.jpg") == ["cow", "sheep"]
    assert found.problems == []
    (sheep,) = found.objects("JPEGImages/a.jpg")
    assert sheep.box == (1, 2, 30.5, 40)
    assert sheep.difficult
    assert sheep.details == {
        "pose": "Left", "truncated": 1, "occluded": 0, "part": [{"name": "head"}, {"name": "leg"}],
    }  # fmt: skip


def test_pixels_may_be_numbered_from_one(farm):
    assert scan(VOC, farm, one_based=True).boxes("JPEGImages/a.jpg") == [(0, 1, 30.5, 40)]


def test_classes_that_are_given_decide_and_others_are_listed(farm):
    found = scan(VOC, farm, classes=["sheep", "goat", "cow"])
    assert found.schema.class_names == ("sheep", "goat", "cow")
    assert [each.class_number for each in found.objects("JPEGImages/b.jpg")] == [2, 0]
    assert [(problem.key, problem.reason) for problem in found.problems] == [
        ("JPEGImages/ß.jpg", "No class is called 'Kälbchen'.")
    ]


def test_a_stem_in_two_lists_is_never_trained_on(farm):
    save_text(farm / "ImageSets/Main/test.txt", "a\ngone")
    found = scan(VOC, farm)
    assert found.samples["JPEGImages/a.jpg"].split == "test"
    assert [(problem.key, problem.kind) for problem in found.problems] == [("a", "two-splits"), ("gone", "no-picture")]


def test_folders_of_any_case_nested_and_side_by_side(tmp_path):
    for year in ("VOC2007", "VOC2012"):
        save_picture(tmp_path / f"VOCdevkit/{year}/JPEGImages/1.jpg")
        save_xml(tmp_path / f"VOCdevkit/{year}/Annotations/1.xml", xml_object("cow", (1, 2, 3, 4)))
    assert list(scan(VOC, tmp_path).samples) == [
        f"VOCdevkit/{year}/JPEGImages/1.jpg" for year in ("VOC2007", "VOC2012")
    ]


def test_xml_files_beside_the_pictures_in_folders_of_splits(tmp_path):
    for split in ("train", "valid"):
        save_picture(tmp_path / split / "1.PNG")
        save_xml(tmp_path / split / "1.xml", xml_object("cow", (1, 2, 3, 4)))
    assert confidence(VOC, tmp_path) > 0.9
    assert scan(VOC, tmp_path).splits() == {"train/1.PNG": "train", "valid/1.PNG": "val"}


def test_pictures_and_files_without_partner_are_listed(farm):
    (farm / "Annotations/a.xml").rename(farm / "Annotations/e.xml")
    (farm / "JPEGImages/dangling.jpg").symlink_to(farm / "nowhere.jpg")
    found = scan(VOC, farm)
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("JPEGImages/a.jpg", "no-label", False),
        ("JPEGImages/dangling.jpg", "no-picture", True),
        ("Annotations/e.xml", "no-picture", True),
    ]
    assert found.samples["JPEGImages/a.jpg"].label == []


ENTITIES = """<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<annotation><object><name>&c;</name></object></annotation>"""
OUTSIDE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><annotation><folder>&b;</folder></annotation>'


@pytest.mark.parametrize(
    "content",
    [
        ENTITIES.encode(),
        OUTSIDE.encode(),
        b"",
        b"<annotation><object>",
        b"<html></html>",
        b'<?xml version="1.0" encoding="klingon"?><annotation/>',
        "<annotation><name>é</name></annotation>".encode("latin-1"),
        bytes(range(256)),
    ],
)
def test_hostile_and_damaged_xml_leaves_one_sample_out(farm, content):
    (farm / "Annotations/a.xml").write_bytes(content)
    found = scan(VOC, farm)
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("JPEGImages/a.jpg", "unreadable", True)
    ]
    assert "`a.xml`" in found.problems[0].reason
    assert len(found.samples) == 3


def test_boxes_that_cannot_be_right_are_listed_with_their_place(farm):
    boxes = [(9, 9, 9, 12), (9, 9, 3, 12), ("nan", 1, 2, 3), ("1e400", 1, 2, 3), (1, 2, "x", 4), (50, 50, 120, 60)]
    save_xml(farm / "Annotations/a.xml", *(xml_object("cow", each) for each in boxes), "<object><name/></object>")
    found = scan(VOC, farm)
    assert found.kinds() == [
        "zero-size-box",
        "swapped-corners",
        "bad-box",
        "bad-box",
        "bad-box",
        "box-outside",
        "bad-box",
    ]
    assert found.problems[0].reason == "Annotations/a.xml, object 1 (cow): box 9, 9 to 9, 12 has no area."
    assert found.boxes("JPEGImages/a.jpg") == [(3, 9, 9, 12), (50, 50, 120, 60)]
    assert len(scan(VOC, farm, zero_size_boxes="keep").boxes("JPEGImages/a.jpg")) == 3


def test_masks_are_read_as_numbers_of_the_palette(farm):
    mask = Image.fromarray(np.array([[0, 1], [15, 255]], np.uint8))
    mask.putpalette([value for number in range(256) for value in (number, 0, 255 - number)])
    (farm / "SegmentationClass").mkdir()
    mask.save(farm / "SegmentationClass/b.png")
    save_picture(farm / "JPEGImages/b.jpg", 2, 2)
    save_text(farm / "ImageSets/Segmentation/val.txt", "b\nc d\n")
    found = scan(VOC, farm, task="segmentation")
    assert (found.schema.kind, found.schema.ignore_class) == ("segmentation", 255)
    assert found.schema.class_names[15] == "person"
    assert found.schema.colours[15] == (15, 0, 240)
    assert found.splits() == {"JPEGImages/b.jpg": "val"}
    assert found.kinds() == ["no-label"]
    reader = VOC.reader(farm, VOC.checked_options({"task": "segmentation"}))
    picture, address = found.samples["JPEGImages/b.jpg"].parts
    assert reader.read(str(picture)) == (farm / "JPEGImages/b.jpg").read_bytes()
    decoded = cv2.imdecode(np.frombuffer(reader.read(str(address)), np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.asarray(decoded).tolist() == [[0, 1], [15, 255]]


def test_a_source_without_masks_or_xml_is_refused(farm, tmp_path):
    with pytest.raises(DataError, match="SegmentationClass"):
        VOC.scan(farm, VOC.checked_options({"task": "segmentation"}))
    with pytest.raises(DataError, match=r"Annotations/\*\.xml"):
        VOC.scan(tmp_path / "ImageSets", VOC.checked_options({}))


def test_raccoons_are_what_their_readme_says():
    found = scan(VOC, shared("raccoon-voc"))
    assert confidence(VOC, shared("raccoon-voc")) >= 0.9
    assert (len(found.samples), found.count(), found.schema.class_names) == (200, 217, ("raccoon",))
    assert found.problems == []


def test_blood_cells_are_what_their_readme_says():
    found = scan(VOC, shared("bccd-voc"), zero_size_boxes="keep")
    splits = list(found.splits().values())
    assert [splits.count(split) for split in ("train", "val", "test")] == [205, 87, 72]
    names = [name for key in found.samples for name in found.names(key)]
    assert {name: names.count(name) for name in set(names)} == {"RBC": 4155, "WBC": 372, "Platelets": 361}
    assert [(problem.key, problem.kind) for problem in found.problems] == [
        ("JPEGImages/BloodImage_00338.jpg", "zero-size-box"),
        ("JPEGImages/BloodImage_00343.jpg", "zero-size-box"),
    ]
    assert scan(VOC, shared("bccd-voc")).count() == 4886


@pytest.mark.parametrize("folder", ["annots", "Annots", "annotation", "ANNOTATIONS", "xmls", "labels"])
def test_folders_of_xml_files_have_many_names(tmp_path, folder):
    for stem in ("a", "b"):
        save_picture(tmp_path / f"images/{stem}.jpg")
        save_xml(tmp_path / folder / f"{stem}.xml", xml_object("raccoon", (1, 2, 30, 40)))
    assert confidence(VOC, tmp_path) == 0.95
    found = scan(VOC, tmp_path)
    assert list(found.samples) == ["images/a.jpg", "images/b.jpg"]
    assert found.boxes("images/a.jpg") == [(1, 2, 30, 40)]
    assert found.problems == []


def test_xml_files_are_found_beside_other_annotations(tmp_path):
    save_picture(tmp_path / "pictures/a.jpg")
    save_text(tmp_path / "annotations/a.txt", "a note")
    save_xml(tmp_path / "annots/a.xml", xml_object("kangaroo", (1, 2, 30, 40)))
    assert scan(VOC, tmp_path).names("pictures/a.jpg") == ["kangaroo"]
