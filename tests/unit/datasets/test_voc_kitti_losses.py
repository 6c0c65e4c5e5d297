"""Nothing of VOC's and KITTI's files is lost without a count, and images are found by the names that files give."""

import unicodedata

import numpy as np
import pytest
from detection_sources import save_picture, save_text, scan
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.importer import VocImporter

VOC = VocImporter()
KITTI = KittiImporter()


def xml(*objects, name="", size="<size><width>100</width><height>80</height></size>"):
    return f"<annotation><filename>{name}</filename>{size}{''.join(objects)}</annotation>"


def thing(name, *corners, box=""):
    sides = zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=False)
    inner = box or f"<bndbox>{''.join(f'<{side}>{value}</{side}>' for side, value in sides)}</bndbox>"
    return f"<object><name>{name}</name>{inner}</object>"


def car(kind="Car", box="10 20 60 70", columns=15):
    return " ".join(f"{kind} 0.5 1 -1.57 {box} 1 2 3 4 5 6 7".split()[:columns])


def lost(found):
    return sum(problem.objects for problem in found.problems)


def told(found):
    return [(each.kind, each.class_name, each.objects, each.left_out) for each in found.problems]


def test_the_image_of_an_xml_file_is_the_one_that_it_names(tmp_path):
    for number in range(3):
        save_picture(tmp_path / f"JPEGImages/{number}.jpg")
        save_text(
            tmp_path / f"Annotations/{number}.xml",
            xml(thing("abc"[number], 1, 2, 3, 4), name=f"{(number + 1) % 3}.jpg"),
        )
    found = scan(VOC, tmp_path)
    assert [found.names(f"JPEGImages/{number}.jpg") for number in range(3)] == [["c"], ["a"], ["b"]]
    assert [(each.kind, each.objects) for each in found.problems] == [("other-name", 0)]
    assert found.problems[0].reason.startswith("3 XML files name another image than that of the same name")


def test_a_name_that_is_missing_or_copied_counts_for_nothing(tmp_path):
    for number, name in enumerate(("0.jpg", "0.jpg", "gone.jpg", "2.png")):
        save_picture(tmp_path / f"images/{number}.jpg")
        save_text(tmp_path / f"annotations/{number}.xml", xml(thing("abcd"[number], 1, 2, 3, 4), name=name))
    found = scan(VOC, tmp_path)
    assert [found.names(f"images/{number}.jpg") for number in range(3)] == [["a"], ["b"], ["c"]]
    assert found.names("images/3.jpg") == ["d"]


def test_two_xml_files_of_one_image_give_it_both_their_objects(tmp_path):
    save_picture(tmp_path / "images/photo.jpg")
    for name in "ab":
        save_text(tmp_path / f"annotations/{name}.xml", xml(thing(name, 1, 2, 3, 4), name="C:\\pics\\photo.jpg"))
    assert scan(VOC, tmp_path).names("images/photo.jpg") == ["a", "b"]


@pytest.mark.parametrize(
    ("image", "label", "rule"),
    [
        ("IMG_1.JPG", "img_1", "upper and lower case"),
        (unicodedata.normalize("NFD", "ä.jpg"), unicodedata.normalize("NFC", "ä"), "Unicode form"),
        ("a b.jpg", "a%20b", "percent-decoded"),
    ],
)
@pytest.mark.parametrize("importer", [VOC, KITTI])
def test_label_files_whose_names_differ_a_little_are_found(tmp_path, importer, image, label, rule):
    if importer is VOC:
        save_picture(tmp_path / "images" / image)
        save_text(tmp_path / f"annotations/{label}.xml", xml(thing("cat", 1, 2, 3, 4)))
    else:
        save_picture(tmp_path / "training/image_2" / image)
        save_text(tmp_path / f"training/label_2/{label}.txt", car())
    found = scan(importer, tmp_path)
    assert found.count() == 1
    assert [each.kind for each in found.problems] == ["other-name"]
    assert rule in found.problems[0].reason


def test_voc_boxes_are_those_around_outlines_and_rotated_boxes(tmp_path):
    save_picture(tmp_path / "images/a.jpg")
    rotated = "<robndbox><cx>50</cx><cy>40</cy><w>40</w><h>20</h><angle>1.5707963267948966</angle></robndbox>"
    outline = "<polygon><x1>1</x1><y1>2</y1><x2>30</x2><y2>5</y2><x3>9</x3><y3>60</y3></polygon>"
    save_text(tmp_path / "annotations/a.xml", xml(thing("ship", box=rotated), thing("car", box=outline)))
    found = scan(VOC, tmp_path)
    assert [tuple(map(round, each)) for each in found.boxes("images/a.jpg")] == [(40, 20, 60, 60), (1, 2, 30, 60)]
    assert found.kinds() == ["box-of-outline"] * 2


@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "shift_jis", "big5"])
def test_xml_files_of_encodings_with_several_bytes_are_read(tmp_path, encoding):
    save_picture(tmp_path / "images/a.jpg")
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n'
    save_text(tmp_path / "annotations/a.xml", head + xml(thing("犬", 1, 2, 3, 4)), encoding)
    assert scan(VOC, tmp_path).names("images/a.jpg") == ["犬"]


def test_objects_of_lost_images_are_counted_by_class(tmp_path):
    save_picture(tmp_path / "VOC/images/a.jpg")
    save_text(
        tmp_path / "VOC/annotations/a.xml", xml(thing("cat", 1, 2, 3, 4), thing("cat", 1, 2, 3), thing("", 1, 2, 3, 4))
    )
    save_text(tmp_path / "VOC/annotations/b.xml", xml(thing("dog", 1, 2, 3, 4), thing("cat", 1, 2, 3, 4)))
    found = scan(VOC, tmp_path / "VOC")
    assert told(found) == [
        ("bad-box", "cat", 1, False),
        ("unknown-class", "", 1, False),
        ("no-picture", "dog", 1, True),
        ("no-picture", "cat", 1, False),
    ]
    assert found.schema.class_names == ("cat", "dog")  # so that the loss of a whole class is seen
    save_picture(tmp_path / "K/training/image_2/a.png")
    save_text(tmp_path / "K/training/label_2/a.txt", f"{car()}\n{car('Van', '5 5 5 9')}\n{car('Van', columns=9)}\n")
    save_text(tmp_path / "K/training/label_2/b.txt", f"{car()}\n{car('Van')}\n{car('DontCare')}\n")
    assert told(scan(KITTI, tmp_path / "K")) == [
        ("zero-size-box", "Van", 1, False),
        ("bad-line", "Van", 1, False),
        ("no-picture", "Car", 1, True),
        ("no-picture", "Van", 1, False),
    ]


def test_two_classes_of_one_name_are_one(tmp_path):
    save_picture(tmp_path / "images/a.jpg")
    save_text(tmp_path / "annotations/a.xml", xml(thing("cat", 1, 2, 3, 4)))
    save_text(tmp_path / "classes.txt", "cat\ndog\ncat\n")
    found = scan(VOC, tmp_path)
    assert (found.schema.class_names, found.kinds()) == (("cat", "dog"), ["same-name"])


def test_a_label_file_of_other_columns_is_named_with_its_line(tmp_path):
    save_picture(tmp_path / "train/images/0.png")
    save_text(tmp_path / "train/labels/0.txt", "\n139.4 195.2 0.02 11 1 0 127 151 152\n")
    assert KITTI.obstacle(tmp_path) == "`0.txt` in `labels`, line 2: it has 9 columns, and 15 are needed"


values = st.sampled_from(["1", "2", "30", "60", "-5", "nan", "x", "1e400"])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    written=st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.lists(values, min_size=3, max_size=4)), max_size=6)
)
def test_objects_in_are_objects_out_and_objects_lost(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("sets")
    things = [thing(name, *corners) for name, corners in written]
    for number in range(2):  # the second has no image
        save_text(folder / f"voc/annotations/{number}.xml", xml(*things))
        lines = "\n".join(car(name or "c", " ".join(corners)) for name, corners in written)
        save_text(folder / f"kitti/training/label_2/{number}.txt", lines)
    save_picture(folder / "voc/images/0.jpg")
    save_picture(folder / "kitti/training/image_2/0.png")
    save_text(folder / "kitti/training/label_2/good.txt", car("DontCare"))  # so that its format is known
    for importer, name in ((VOC, "voc"), (KITTI, "kitti")):
        found = scan(importer, folder / name)
        assert found.count() + lost(found) == 2 * len(written)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    files=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6),
    has_list=st.booleans(),
)
def test_images_of_masks_are_samples_or_lost(tmp_path_factory, files, has_list):
    root = tmp_path_factory.mktemp("voc")
    listed = []
    for number, (has_image, has_mask, is_listed) in enumerate([(True, True, True), *files]):
        if has_image:
            save_picture(root / f"JPEGImages/{number}.jpg", 2, 2)
        if has_mask:
            (root / "SegmentationClass").mkdir(exist_ok=True)
            Image.fromarray(np.zeros((2, 2), np.uint8)).save(root / f"SegmentationClass/{number}.png")
        listed += [str(number)] * (is_listed and has_list)
    save_text(root / "ImageSets/Segmentation/val.txt", "\n".join(listed))
    found = scan(VOC, root, task="segmentation")
    lost = [problem for problem in found.problems if problem.left_out]
    # A list says of which images there are masks; without one, an image without a mask is lost.
    count = sum(
        has_image or has_mask or (is_listed and has_list)
        for has_image, has_mask, is_listed in files
        if not (has_image and not has_mask and has_list and not is_listed)
    )
    assert len(found.samples) + len(lost) == count + 1
    if has_list and all(is_listed for *_, is_listed in files):
        assert {problem.split for problem in lost} <= {"val"}
