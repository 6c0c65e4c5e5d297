"""YOLO's labels of poses, rotated boxes and outlines are told apart, and layouts of many tools are read as they are."""

import pytest
from detection_sources import confidence, save_picture, save_text, scan
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.datasets.format_registry import recognize
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.errors import DataError

YOLO = YoloImporter()
BOX = "0 0.5 0.5 0.4 0.5"
SPLITS = "train: images/train\nval: images/val\n"


def save(folder, line=BOX, yaml="names: [cat, dog]\n", count=1):
    for split in ("train", "val"):
        for number in range(count):
            save_picture(folder / f"images/{split}/{number}.jpg")
            save_text(folder / f"labels/{split}/{number}.txt", line + "\n")
    save_text(folder / "data.yaml", SPLITS + yaml)


def boxes(found, key="images/train/0.jpg"):
    return [tuple(round(value, 3) for value in box) for box in found.boxes(key)]


def lost(found):
    return sum(problem.objects for problem in found.problems)


@pytest.mark.parametrize(
    ("points", "shape", "kept"),
    [
        ("0.4 0.4 0.6 0.6", "[2, 2]", [40, 32, 2, 60, 48, 2]),
        ("0.4 0.4 0.6 0.6 0 0", "[3, 2]", [40, 32, 2, 60, 48, 2, 0, 0, 0]),
        ("0.4 0.4 2 0.6 0.6 1", "[2, 3]", [40, 32, 2, 60, 48, 1]),
        ("0.4 0.4 2 0 0 0", "['2', 3.0]", [40, 32, 2, 0, 0, 0]),
        ("0.4 0.4 2 0.6 0.6 1", None, [40, 32, 2, 60, 48, 1]),
        ("0.4 0.4 2 0.6 0.6 1 0.5 0.5 2", None, [40, 32, 2, 60, 48, 1, 50, 40, 2]),
    ],
)
def test_boxes_with_key_points_are_boxes_and_keep_the_points(tmp_path, points, shape, kept):
    save(tmp_path, f"{BOX} {points}", "names: [person]\n" + (f"kpt_shape: {shape}\n" if shape else ""))
    assert confidence(YOLO, tmp_path) == 0.95
    found = scan(YOLO, tmp_path)
    assert (boxes(found), found.objects("images/train/0.jpg")[0].polygons) == ([(30, 20, 70, 60)], ())
    assert found.objects("images/train/0.jpg")[0].details["keypoints"] == pytest.approx(kept)


def test_lines_with_another_number_of_key_points_are_counted(tmp_path):
    save(tmp_path, f"{BOX} 0.4 0.4\n{BOX}\n{BOX} 0.4 0.4 0.5 0.5", "names: [person]\nkpt_shape: [2, 2]\n")
    found = scan(YOLO, tmp_path)
    assert len(boxes(found)) == 2
    assert "7 numbers, and 9 are needed" in found.problems[0].reason
    assert found.problems[0].objects == 1


@pytest.mark.parametrize(
    ("line", "box"),
    [
        ("0 0.4 0.4 0.6 0.4 0.6 0.6 0.4 0.6", (40, 32, 60, 48)),  # upright
        ("0 0.5 0.3 0.7 0.5 0.5 0.7 0.3 0.5", (30, 24, 70, 56)),  # turned by 45 degrees
        ("0 0.1 0.1 0.3 0.1 0.2 0.4", (10, 8, 30, 32)),
        ("0 0.1 0.1 0.3 0.1 0.2 0.4 0.15 0.3 0.12 0.2", (10, 8, 30, 32)),
    ],
)
def test_rotated_boxes_and_outlines_have_the_box_around_them(tmp_path, line, box):
    save(tmp_path, f"{line}\n" * 6)
    found = scan(YOLO, tmp_path)
    assert (boxes(found), found.problems) == ([box] * 6, [])


def test_what_may_be_outlines_or_key_points_is_asked(tmp_path):
    save(tmp_path, f"{BOX} 0.4 0.4 0.5 0.5 0.6 0.6\n" * 6)
    with pytest.raises(DataError, match="may be outlines, or boxes with key points") as caught:
        scan(YOLO, tmp_path)
    assert caught.value.details["field"] == "options.lines"
    assert "`labels/train/0.txt`, line 1" in str(caught.value)
    assert boxes(scan(YOLO, tmp_path, lines="keypoints"))[0] == (30, 20, 70, 60)
    assert boxes(scan(YOLO, tmp_path, lines="outlines"))[0] == (40, 32, 60, 48)


@pytest.mark.parametrize(
    "line",
    [
        "1.0 0.5 0.5 0.4 0.5",
        "1 0,5 0,5 0,4 0,5",
        "1,0.5,0.5,0.4,0.5",
        "1, 0.5, 0.5, 0.4, 0.5",
        "1.000000e+00 0.5 .5 4e-1 0.5",
    ],
)
def test_numbers_are_read_as_programs_write_them(tmp_path, line):
    save(tmp_path, line)
    assert confidence(YOLO, tmp_path) == 0.95
    found = scan(YOLO, tmp_path)
    assert (boxes(found), found.names("images/train/0.jpg")) == ([(30, 20, 70, 60)], ["dog"])


@pytest.mark.parametrize(
    "names",
    [
        "['cat', 'dog']",
        "{0: cat, 1: dog}",
        "{'0': cat, '1': dog}",
        "{0.0: cat, 1.0: dog}",
        "{cat: 0, dog: 1}",
        "|\n  cat\n  dog",
        "'cat, dog'",
    ],
)
def test_names_are_read_as_people_write_them(tmp_path, names):
    save(tmp_path, "1 0.5 0.5 0.4 0.5", f"nc: 2\nnames: {names}\n")
    found = scan(YOLO, tmp_path)
    assert (found.schema.class_names, found.problems) == (("cat", "dog"), [])


def test_names_that_cannot_be_read_are_a_loss(tmp_path):
    save(tmp_path, yaml="nc: 2\nnames: {a: {b: c}}\n")
    found = scan(YOLO, tmp_path)
    assert [(each.kind, each.names) for each in found.problems] == [("bad-value", 2)]


def test_two_classes_of_one_name_are_one(tmp_path):
    save(tmp_path, "2 0.5 0.5 0.4 0.5\n1 0.5 0.5 0.4 0.5", "names: [cat, dog, cat]\n")
    found = scan(YOLO, tmp_path)
    assert (found.schema.class_names, found.names("images/train/0.jpg")) == (("cat", "dog"), ["cat", "dog"])
    assert found.kinds() == ["same-name"]


def save_cvat(folder, lists=True):
    for split, inner in (("train", "obj_train_data"), ("valid", "obj_Validation_data")):
        for number in range(2):
            save_picture(folder / inner / f"{split}_{number}.jpg")
            save_text(folder / inner / f"{split}_{number}.txt", BOX)
        if lists:
            lines = [f"data/{inner}/{split}_{number}.jpg\n" for number in range(2)]
            save_text(folder / f"{split}.txt", "".join(lines))
    save_text(folder / "obj.names", "car\n")
    text = "classes = 1\ntrain = data/train.txt\nvalid = data/valid.txt\nnames = data/obj.names\nbackup = backup/\n"
    save_text(folder / "obj.data", text if lists else "classes = 1\nnames = data/obj.names\n")


@pytest.mark.parametrize("lists", [True, False])
def test_the_splits_of_cvat_are_kept(tmp_path, lists):
    save_cvat(tmp_path, lists)
    found = scan(YOLO, tmp_path)
    assert sorted(found.splits().values()) == ["train", "train", "val", "val"]
    assert (found.schema.class_names, found.count()) == (("car",), 4)
    chosen = recognize(tmp_path).chosen
    assert chosen is not None
    assert chosen.format == "yolo"


@pytest.mark.parametrize("folder", ["val", "valid", "validation"])
@pytest.mark.parametrize("entry", ["../val/images", "../valid/images", "validation/images", "/content/x/valid/images"])
def test_a_split_is_found_by_its_other_names(tmp_path, folder, entry):
    for split in ("train", folder):
        save_picture(tmp_path / split / f"images/{split}.jpg")
        save_text(tmp_path / split / f"labels/{split}.txt", BOX)
    save_text(tmp_path / "data.yaml", f"train: ../train/images\nval: {entry}\nnames: [cat]\n")
    found = scan(YOLO, tmp_path)
    assert sorted(found.splits().values()) == ["train", "val"]
    assert {each.kind for each in found.problems} <= {"other-name"}


def test_a_missing_split_is_an_error_that_names_the_option(tmp_path):
    save(tmp_path)
    save_text(tmp_path / "data.yaml", f"{SPLITS}test: images/test\nnames: [cat]\n")
    with pytest.raises(DataError, match=r"`images/test` \(test\) in `data.yaml`") as caught:
        scan(YOLO, tmp_path)
    assert caught.value.details["field"] == "options.missing_splits"
    found = scan(YOLO, tmp_path, missing_splits="drop")
    assert [(each.names, each.split) for each in found.problems] == [(1, "test")]


def test_labels_beside_images_are_labels_and_never_classes(tmp_path):
    for split in ("train", "valid"):
        for number in range(3):
            save_picture(tmp_path / f"data/{split}/{number}.jpg")
            save_text(tmp_path / f"data/{split}/{number}.txt", BOX)
    chosen = recognize(tmp_path).chosen
    assert chosen is not None
    assert chosen.format == "yolo"
    found = scan(YOLO, tmp_path)
    assert (found.count(), sorted(set(found.splits().values()))) == (6, ["train", "val"])


def test_images_of_a_list_are_found_where_they_lie(tmp_path):
    save(tmp_path)
    save_picture(tmp_path / "images/train/Ä B.JPG")
    save_text(tmp_path / "labels/train/Ä B.txt", BOX)
    save_text(
        tmp_path / "train.txt", "elsewhere/train/a%CC%88%20b.jpg\nimages/train/0.JPG\ngone.jpg\n../../etc/x.jpg\n"
    )
    save_text(tmp_path / "data.yaml", "train: train.txt\nval: images/val\nnames: [cat]\n")
    found = scan(YOLO, tmp_path)
    assert sorted(found.samples) == ["images/train/0.jpg", "images/train/Ä B.JPG", "images/val/0.jpg"]
    assert found.count() == 3
    assert sorted(found.kinds()) == ["no-picture", "no-picture", "other-name", "other-name"]


def test_a_line_of_another_format_is_named(tmp_path):
    save_picture(tmp_path / "images/0.jpg")
    save_text(tmp_path / "labels/0.txt", "\n0 320 240 64 48\n")
    assert recognize(tmp_path).chosen is None
    said = "`labels/0.txt`, line 2: 320 is no part of the width or height, which are from 0 to 1"
    assert YOLO.obstacle(tmp_path) == said


def test_objects_of_lost_images_are_counted_by_class_and_split(tmp_path):
    save(tmp_path)
    save_text(tmp_path / "labels/train/gone.txt", f"{BOX}\n{BOX}\n1 0.5 0.5 0.1 0.1\n1 0.5\n")
    listed = [(each.class_name, each.objects, each.left_out, each.split) for each in scan(YOLO, tmp_path).problems]
    assert listed == [("cat", 2, True, "train"), ("dog", 2, False, "train")]


words = st.sampled_from(["0", "1", "2", "0.5", "-0.2", "0", "x", "nan", "0,5", "1e9"])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(written=st.lists(st.lists(words, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=6))
def test_objects_in_are_objects_out_and_objects_lost(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("yolo")
    save(folder, "\n".join(written))
    (folder / "images/val/0.jpg").unlink()
    save_picture(folder / "images/val/other.jpg")
    found = scan(YOLO, folder, lines="outlines")
    assert found.count() + lost(found) == 2 * len(written)
