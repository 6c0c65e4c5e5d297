"""What labeling tools get comes back, up to what each format can hold; the rest is in the report."""

import json
import tempfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from detection_sources import box, dataset, scan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from ziggurat.datasets.format_registry import EXPORT_FORMATS, guess_format, importer
from ziggurat.datasets.formats.boxes_csv.exporter import export_boxes_csv
from ziggurat.datasets.formats.createml.exporter import export_createml
from ziggurat.datasets.formats.cvat.exporter import export_cvat
from ziggurat.datasets.formats.label_studio.exporter import export_label_studio
from ziggurat.datasets.formats.labelme.exporter import export_labelme
from ziggurat.datasets.formats.supervisely.exporter import export_supervisely
from ziggurat.datasets.formats.via.exporter import export_via
from ziggurat.records.run_lengths import run_lengths

EXPORTS = {
    "labelme": export_labelme,
    "cvat": export_cvat,
    "label_studio": export_label_studio,
    "boxes_csv": export_boxes_csv,
    "via": export_via,
    "createml": export_createml,
    "supervisely": export_supervisely,
}
OUTLINES = ("labelme", "cvat", "label_studio", "via", "supervisely")
MASKS = ("labelme", "cvat", "supervisely")
LISTS = ("cvat", "supervisely")
SPLIT_FOLDERS = {"labelme": "{split}/{key}", "supervisely": "{split}/img/{key}"}

ANY = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8) | st.sampled_from(
    ["traffic light", "<&>", "null", "12", 'say "hi"', "a,b;c", "-x"]
)


def there_and_back(name, folder, names, pictures):
    """Return what is left of each image, by key: split and objects; and the report."""
    report = EXPORTS[name](dataset(names, pictures), folder)
    guess = guess_format(folder)
    assert (guess.format, guess.folder) == (name, "")
    found = scan(importer(name), folder, **guess.options)
    place = SPLIT_FOLDERS.get(name, "{key}")
    keys = {key: place.format(split=split, key=key) for split, content in pictures.items() for key in content}
    assert set(found.samples) == set(keys.values())
    splits = found.splits()
    for split, content in pictures.items():
        assert {splits[keys[key]] for key in content} <= {split}
    class_names = found.schema.class_names
    objects = {
        key: [(class_names[each.class_number], each) for each in found.objects(placed)] for key, placed in keys.items()
    }
    moved = [note for note in report.notes if "another path than before" in note]
    assert len(moved) == (name in SPLIT_FOLDERS)
    return objects, found, replace(report, notes=[note for note in report.notes if note not in moved])


def corners(each):
    return pytest.approx(each.box, abs=1e-6)


@st.composite
def pictures(draw, classes):
    found = {"train": {}, "val": {}}
    for number in range(draw(st.integers(1, 4))):
        width, height = draw(st.tuples(st.integers(10, 60), st.integers(10, 60)))
        objects = []
        for _ in range(draw(st.integers(0, 3))):
            left, top = draw(st.floats(0, width - 3)), draw(st.floats(0, height - 3))
            right, bottom = draw(st.floats(left + 1, width)), draw(st.floats(top + 1, height))
            objects.append(box(draw(st.integers(0, classes - 1)), left, top, right, bottom))
        found["val" if number % 2 else "train"][f"é {number}.png"] = ((width, height), objects)
    return found if found["val"] else {"train": found["train"]}


@pytest.mark.parametrize("name", EXPORTS)
@ANY
@given(data=st.data(), names=st.lists(NAMES, min_size=1, max_size=3, unique=True))
def test_boxes_classes_splits_and_empty_images_come_back(name, data, names):
    asked = data.draw(pictures(len(names)))
    if not any(objects for content in asked.values() for _, objects in content.values()):
        asked["train"]["é 0.png"][1].append(box(0, 1, 2, 5, 6))
    with tempfile.TemporaryDirectory() as folder:
        objects, found, report = there_and_back(name, Path(folder) / "new", names, asked)
    used = set()
    for content in asked.values():
        for key, (_, listed) in content.items():
            assert [(name_, each.box) for name_, each in objects[key]] == [
                (names[each.class_number], corners(each)) for each in listed
            ]
            used |= {each.class_number for each in listed}
    assert set(found.kinds()) <= {"no-label"}
    assert report.problems == []
    unlisted = len(names) - len(used) if name not in LISTS else 0
    assert len(report.notes) == (unlisted > 0)
    assert set(found.schema.class_names) == (set(names) if name in LISTS else {names[each] for each in used})


def drawn_objects():
    mask = np.zeros((30, 40), np.uint8)
    mask[5:9, 6:12] = 1
    mask[6, 7] = 0
    return [
        box(0, 2, 3, 12, 13, polygons=((2.0, 3.0, 12.0, 3.0, 7.5, 13.0),)),
        box(1, 6, 5, 12, 9, mask=run_lengths(mask)),
        box(1, 1, 1, 20, 20, polygons=((1.0, 1.0, 5.0, 1.0, 5.0, 5.0), (9.0, 9.0, 20.0, 9.0, 20.0, 20.0))),
        box(0, 1, 1, 4, 4, crowd=True, difficult=True, details={"pose": "Left"}),
        box(-1, 0, 0, 5, 5),
    ]


@pytest.mark.parametrize("name", EXPORTS)
def test_outlines_and_masks_come_back_where_the_format_has_them(name, tmp_path):
    listed = drawn_objects()
    objects, _, report = there_and_back(
        name, tmp_path / "new", ["cat", "dog"], {"train": {"a.png": ((40, 30), listed)}}
    )
    back = [each for _, each in objects["a.png"]]
    assert [(each.box) for each in back] == [corners(each) for each in listed[:4]]
    assert [each.polygons for each in back] == [
        (pytest.approx(listed[0].polygons[0]),) if name in OUTLINES else (), (), (), (),
    ]  # fmt: skip
    assert [each.mask for each in back] == [None, listed[1].mask if name in MASKS else None, None, None]
    lost = {note.split(" cannot hold ")[1].rpartition(":")[0] for note in report.notes}
    expected = {"further fields of objects"}
    expected |= {"outlines of several parts, or that leave their box"} if name in OUTLINES else {"outlines"}
    expected |= set() if name in MASKS else {"masks"}
    expected |= set() if name == "boxes_csv" else {"crowds", "the mark `difficult`"}
    assert lost == expected
    assert (back[3].crowd, back[3].difficult) == ((True, True) if name == "boxes_csv" else (False, False))
    (problem,) = report.problems
    assert problem.reason == "1 regions without a class could not be written."


@pytest.mark.parametrize("name", OUTLINES)
def test_an_outline_that_leaves_its_box_is_not_written_for_it(name, tmp_path):
    odd = [box(0, 2, 3, 12, 13, polygons=((2.0, 3.0, 30.0, 3.0, 7.5, 13.0),))]
    objects, _, report = there_and_back(name, tmp_path / "new", ["cat"], {"train": {"a.png": ((40, 30), odd)}})
    assert [(each.box, each.polygons) for _, each in objects["a.png"]] == [((2, 3, 12, 13), ())]
    assert "outlines of several parts, or that leave their box: 1 left out" in report.notes[0]


@pytest.mark.parametrize("name", EXPORTS)
def test_boxes_of_a_turned_photograph_come_back(name, tmp_path):
    content, exif = BytesIO(), Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 24)).save(content, "JPEG", exif=exif)  # upright: 24 wide, 40 high
    turned = dataset(["cat"], {"train": {"a.jpg": ((24, 40), [box(0, 3, 20, 20, 38)])}})
    turned.pictures["train"][0].parts = (content.getvalue(),)
    report = EXPORTS[name](turned, tmp_path / "new")
    (found,) = scan(importer(name), tmp_path / "new").samples.values()
    assert found.label[0]["box"] == pytest.approx([3, 20, 20, 38])
    assert "One image is turned by EXIF" in " ".join(report.notes)


def test_keys_that_cannot_be_paths_are_counted(tmp_path):
    report = export_createml(
        dataset(["cat"], {"train": {"../a:b.png": ((9, 9), [box(0, 1, 1, 3, 3)])}}), tmp_path / "new"
    )
    assert report.notes == ["1 image has another path than before."]
    (entry,) = json.loads((tmp_path / "new" / "annotations_train.createml.json").read_text())
    assert (tmp_path / "new" / entry["image"]).is_file()


def test_attributes_of_cvat_come_back(tmp_path):
    each = replace(box(0, 1, 1, 9, 9), details={"occluded": "1", "attributes": {"color": "red & blue"}})
    objects, _, report = there_and_back("cvat", tmp_path / "new", ["cat"], {"train": {"a.png": ((40, 30), [each])}})
    ((_, back),) = objects["a.png"]
    assert back.details == {"occluded": "1", "z_order": "0", "attributes": {"color": "red & blue"}}
    assert report.notes == []


def test_every_format_of_a_tool_is_offered():
    assert set(EXPORTS) <= set(EXPORT_FORMATS)
