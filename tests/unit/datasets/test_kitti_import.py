"""KITTI's text files become samples with objects; regions of no class stay; classes are found, given or DIGITS's."""

import pytest
from detection_sources import confidence, save_picture, save_text, scan, shared

from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.errors import ConfigurationError, DataError

KITTI = KittiImporter()
CAR = "Car 0.50 1 -1.57 10 20 60.5 70 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59"
VAN = "Van 0.00 0 1.85 1 2 31 22 1.67 1.87 3.69 -16.53 2.39 58.49 1.57"
NOTHING = "DontCare -1 -1 -10 50 10 59 30 -1 -1 -1 -1000 -1000 -1000 -10"


@pytest.fixture
def street(tmp_path):
    for split in ("training", "val"):
        save_picture(tmp_path / split / "image_2/000000.png")
        save_text(tmp_path / split / "label_2/000000.txt", f"{CAR}\r\n{VAN}\r\n{NOTHING}\r\n")
    return tmp_path


def test_columns_are_kept_and_classes_are_numbered_sorted(street):
    found = scan(KITTI, street)
    assert confidence(KITTI, street) == 0.96
    assert found.schema.class_names == ("Car", "Van")
    assert found.splits() == {"training/image_2/000000.png": "train", "val/image_2/000000.png": "val"}
    car, van, nothing = found.objects("training/image_2/000000.png")
    assert (car.class_number, van.class_number, nothing.class_number) == (0, 1, -1)
    assert car.box == (10, 20, 60.5, 70)
    assert car.details == {
        "truncated": 0.5, "occluded": 1, "alpha": -1.57, "dimensions": [1.65, 1.67, 3.64],
        "location": [-0.65, 1.71, 46.7], "rotation_y": -1.59,
    }  # fmt: skip
    assert nothing.details["location"] == [-1000, -1000, -1000]


def test_results_have_a_score(street):
    save_text(street / "val/label_2/000000.txt", f"{CAR} 0.875")
    assert scan(KITTI, street).objects("val/image_2/000000.png")[0].details["score"] == 0.875


@pytest.mark.parametrize("classes", [["van", "bus"], "van, bus"])
def test_types_that_are_not_in_the_list_belong_to_no_class(street, classes):
    found = scan(KITTI, street, classes=classes)
    assert found.schema.class_names == ("van", "bus")
    assert found.names("val/image_2/000000.png") == [None, "van", None]
    assert [each.details.get("type") for each in found.objects("val/image_2/000000.png")] == ["Car", "Van", None]


def test_types_may_be_joined(street):
    found = scan(KITTI, street, classes={"Car": "vehicle", "Van": "vehicle", "Tram": ""})
    assert found.schema.class_names == ("vehicle",)
    assert found.names("val/image_2/000000.png") == ["vehicle", "vehicle", None]
    found = scan(KITTI, street, class_map={"Van": ""})
    assert found.names("val/image_2/000000.png") == ["Car", None, None]


def test_digits_numbers_its_classes(street):
    save_text(
        street / "val/label_2/000000.txt", "\n".join([CAR, CAR.replace("Car", "Pedestrian"), CAR.replace("Car", "Ufo")])
    )
    found = scan(KITTI, street, classes="digits")
    assert found.schema.class_names[0] == "dontcare"
    assert [each.class_number for each in found.objects("training/image_2/000000.png")] == [1, 2, -1]
    assert [each.class_number for each in found.objects("val/image_2/000000.png")] == [1, 8, -1]


def test_small_boxes_count_for_nothing_in_validation_only(street):
    found = scan(KITTI, street, min_box_px=25)
    assert found.names("training/image_2/000000.png") == ["Car", "Van", None]
    assert found.names("val/image_2/000000.png") == ["Car", None, None]
    assert found.objects("val/image_2/000000.png")[1].details["type"] == "Van"


def test_folders_as_digits_had_them(tmp_path):
    for split in ("train", "val"):
        save_picture(tmp_path / split / "images/a b.jpg")
        save_text(tmp_path / split / "labels/a b.txt", CAR)
    assert confidence(KITTI, tmp_path) == 0.75
    assert scan(KITTI, tmp_path).splits() == {"train/images/a b.jpg": "train", "val/images/a b.jpg": "val"}


def test_lines_that_cannot_be_right_are_listed_with_their_number(street):
    words = CAR.split()
    lines = [" ".join(words[:14]), CAR.replace("10", "left"), CAR.replace("46.70", "inf"), CAR.replace("60.5", "nan"),
             CAR.replace("60.5", "10"), CAR.replace("60.5", "5"), CAR.replace("10 20", "-10 20")]  # fmt: skip
    save_text(street / "training/label_2/000000.txt", "\n".join(lines))
    found = scan(KITTI, street)
    assert found.kinds() == [
        "bad-line", "bad-line", "bad-line", "bad-box", "zero-size-box", "swapped-corners", "box-outside",
    ]  # fmt: skip
    assert found.problems[0].reason == "training/label_2/000000.txt, line 1: it has 14 columns, and 15 are needed."
    assert found.boxes("training/image_2/000000.png") == [(5, 20, 10, 70), (-10, 20, 60.5, 70)]
    assert len(scan(KITTI, street, zero_size_boxes="keep").boxes("training/image_2/000000.png")) == 3


def test_what_has_no_partner_is_listed(street):
    save_picture(street / "training/image_2/000001.png")
    save_text(street / "training/label_2/000002.txt", CAR)
    save_text(street / "training/label_2/000000.txt", "")
    save_picture(street / "testing/image_2/000000.png")
    found = scan(KITTI, street)
    assert [(problem.key, problem.kind, problem.left_out) for problem in found.problems] == [
        ("testing/image_2", "no-label", True),
        ("training/image_2/000001.png", "no-label", False),
        ("training/label_2/000002.txt", "no-picture", True),
    ]
    assert found.samples["training/image_2/000000.png"].label == []


def test_other_sources_are_not_taken_for_kitti(tmp_path):
    save_picture(tmp_path / "images/1.jpg")
    save_text(tmp_path / "labels/1.txt", "0 " + "0.5 " * 16)
    assert KITTI.guess(tmp_path) is None
    with pytest.raises(DataError, match="15 columns"):
        KITTI.scan(tmp_path, KITTI.checked_options({}))
    with pytest.raises(ConfigurationError, match="`classes` must be a list"):
        KITTI.checked_options({"classes": 5})


def test_the_kitti_sample_is_what_its_readme_says():
    source = shared("kitti-sample")
    assert confidence(KITTI, source) >= 0.9
    found = scan(KITTI, source)
    names = [name for key in found.samples for name in found.names(key)]
    assert {name: names.count(name) for name in set(names)} == {
        "Car": 2, "Pedestrian": 1, "Cyclist": 1, "Truck": 1, "Misc": 1, None: 4,
    }  # fmt: skip
    assert (len(found.samples), found.problems) == (3, [])


def test_raccoons_have_kitti_labels_too():
    source = shared("raccoon-voc")
    assert 0.3 <= confidence(KITTI, source) < 0.9
    found = scan(KITTI, source)
    assert (len(found.samples), found.count(), found.schema.class_names) == (200, 217, ("raccoon",))
