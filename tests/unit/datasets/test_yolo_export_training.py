"""What YOLOv5 and Ultralytics find in an export: every image with its labels, wherever it lay in the source."""

import io

import pytest
from detection_sources import MemoryDataset, MemorySample, box, dataset, imported, save_picture, save_text, scan
from PIL import Image
from yolo_programs import trained_on

from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.records.objects import objects_to_json
from ziggurat.records.schema import Schema

CAT = box(0, 10.0, 10.0, 60.0, 50.0)
OUTLINED = box(0, 10.0, 10.0, 60.0, 50.0, polygons=((10.0, 10.0, 60.0, 10.0, 60.0, 50.0),))
SIZE = (100, 80)
CAT_ROW = [0, 0.35, 0.375, 0.5, 0.5]


def coco_like(source):
    """A COCO file whose images lie in `images`, as most labeling programs write it."""
    for name in ("images/1.jpg", "images/site/images/1.jpg"):
        save_picture(source / name)
    save_text(
        source / "annotations/instances_train.json",
        """{"images": [{"id": 1, "file_name": "images/1.jpg", "width": 100, "height": 80},
                       {"id": 2, "file_name": "images/site/images/1.jpg", "width": 100, "height": 80}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 50, 40], "area": 2000},
                        {"id": 2, "image_id": 2, "category_id": 1, "bbox": [10, 10, 50, 40], "area": 2000}],
        "categories": [{"id": 1, "name": "cat"}]}""",
    )
    return CocoImporter()


def voc_like(source):
    """A VOC folder inside which the images lie one folder deeper."""
    lines = {"train": "images/1\n", "val": "images/2\n"}
    for number, split in enumerate(lines, 1):
        save_picture(source / f"JPEGImages/images/{number}.jpg")
        save_text(
            source / f"Annotations/images/{number}.xml",
            "<annotation><size><width>100</width><height>80</height><depth>3</depth></size><object><name>cat</name>"
            "<bndbox><xmin>10</xmin><ymin>10</ymin><xmax>60</xmax><ymax>50</ymax></bndbox></object></annotation>",
        )
        save_text(source / f"ImageSets/Main/{split}.txt", lines[split])
    save_text(source / "classes.txt", "cat\n")
    return VocImporter()


def roboflow_like(source):
    """What Roboflow writes: a folder for each split, with `images` and `labels` in it."""
    for split in ("train", "valid", "test"):
        save_picture(source / f"{split}/images/1.jpg")
        save_text(source / f"{split}/labels/1.txt", "0 0.35 0.375 0.5 0.5\n")
    save_text(
        source / "data.yaml",
        "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 1\nnames: ['cat']\n",
    )
    return YoloImporter()


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        (coco_like, {"train": 2}),
        (voc_like, {"train": 1, "val": 1}),
        (roboflow_like, {"train": 1, "val": 1, "test": 1}),
    ],
)
def test_yolo_export_has_a_label_for_every_image(tmp_path, make, counts):
    content, before = imported(make(tmp_path / "source"), tmp_path / "source")
    export_yolo(content, tmp_path / "new")
    found = trained_on(tmp_path / "new")
    assert {split: len(images) for split, images in found.items()} == counts
    for images in found.values():
        for rows in images.values():
            assert rows.tolist() == [pytest.approx(CAT_ROW)]
    after = scan(YoloImporter(), tmp_path / "new")
    for key in before.samples:
        assert after.boxes(key) == [pytest.approx(each) for each in before.boxes(key)]
    assert after.splits() == {key: split or "train" for key, split in before.splits().items()}


def test_yolo_export_keeps_names_short_and_unique(tmp_path):
    keys = ["train/images/a.jpg", "images/a.jpg", "images/train/a.jpg", "x/images/labels/A.jpg", "x/IMAGES/a.jpg"]
    export_yolo(dataset(["cat"], {"train": {key: (SIZE, [CAT]) for key in keys}}), tmp_path)
    found = trained_on(tmp_path)["train"]
    assert sorted(found) == ["a.jpg", "a_2.jpg", "a_3.jpg", "x/A.jpg", "x/a_2.jpg"]
    assert set(scan(YoloImporter(), tmp_path).samples) == set(keys)


@pytest.mark.parametrize("ending", ["gif", "ppm"])
def test_yolo_export_writes_unread_formats_as_png(tmp_path, ending):
    file = io.BytesIO()
    Image.new("RGB", SIZE, (200, 40, 40)).save(file, "GIF" if ending == "gif" else "PPM")
    sample = MemorySample(f"a.{ending}", (file.getvalue(),), objects_to_json([CAT]))
    report = export_yolo(MemoryDataset(Schema(kind="detection", class_names=("cat",)), {"train": [sample]}), tmp_path)
    assert list(trained_on(tmp_path)["train"]) == ["a.png"]
    assert "1 image is written as PNG: YOLO programs do not read the format." in report.notes
    with Image.open(tmp_path / "images/train/a.png") as image:
        assert image.convert("RGB").getpixel((5, 5)) == (200, 40, 40)


def test_yolo_export_leaves_out_scores(tmp_path):
    scored = box(0, 10.0, 10.0, 60.0, 50.0, details={"score": 0.9})
    report = export_yolo(dataset(["cat"], {"train": {"a.jpg": (SIZE, [scored])}, "val": {}}), tmp_path)
    assert trained_on(tmp_path)["train"]["a.jpg"].shape == (1, 5)
    assert report.notes == ["yolo cannot hold scores: 1 left out."]


def test_yolo_export_notes_what_programs_will_refuse(tmp_path):
    wide = box(0, -50.0, 0.0, 120.0, 40.0)
    report = export_yolo(dataset(["cat"], {"train": {"a.jpg": (SIZE, [wide]), "b.jpg": (SIZE, [CAT])}}), tmp_path)
    assert report.notes == [
        "There is no validation split, and YOLO programs need one: add `val` to data.yaml, or split the dataset.",
        "1 image has an object that reaches far beyond it: YOLO programs leave such images out.",
    ]


# ---- boxes and outlines in one dataset


MIXED = {"train": {"a.jpg": (SIZE, [OUTLINED]), "b.jpg": (SIZE, [CAT])}, "val": {"c.jpg": (SIZE, [OUTLINED])}}


def columns(folder):
    lines = [path.read_text().split("\n")[0] for path in sorted(folder.rglob("labels/**/*.txt"))]
    return [len(line.split()) for line in lines]


def test_yolo_export_of_mixed_data_has_boxes_and_a_note(tmp_path):
    report = export_yolo(dataset(["cat"], MIXED), tmp_path)
    assert columns(tmp_path) == [5, 5, 5]
    assert report.notes == [
        "2 of 3 objects with an outline, and all are written as boxes: a YOLO dataset has one or the other. "
        "With the option `outlines` they are outlines, and boxes become rectangles."
    ]


def test_yolo_export_of_mixed_data_may_have_outlines(tmp_path):
    report = export_yolo(dataset(["cat"], MIXED), tmp_path, outlines=True)
    assert columns(tmp_path) == [7, 9, 7]
    assert report.notes == ["1 of 3 objects without an outline: written as the rectangle of the box."]
    assert trained_on(tmp_path)["train"]["b.jpg"].tolist() == [pytest.approx(CAT_ROW)]


def test_yolo_export_keeps_outlines_that_all_objects_have(tmp_path):
    pictures = {"train": {"a.jpg": (SIZE, [OUTLINED])}, "val": {"c.jpg": (SIZE, [OUTLINED])}}
    report = export_yolo(dataset(["cat"], pictures), tmp_path)
    assert (columns(tmp_path), report.notes) == ([7, 7], [])


# ---- the other formats with two trees


@pytest.mark.parametrize(
    ("export", "importer", "key", "path"),
    [
        (export_voc, VocImporter(), "images/JPEGImages/1.jpg", "JPEGImages/1.jpg"),
        (export_voc, VocImporter(), "x/Annotations/1.jpg", "JPEGImages/x/1.jpg"),
        (export_kitti, KittiImporter(), "training/image_2/image_2/1.jpg", "training/image_2/1.jpg"),
    ],
)
def test_export_has_its_own_folders_once_in_a_path(tmp_path, export, importer, key, path):
    export(dataset(["cat"], {"train": {key: (SIZE, [CAT])}}), tmp_path)
    assert (tmp_path / path).is_file()
    assert scan(importer, tmp_path).boxes(key) == [CAT.box]


@pytest.mark.parametrize("export", [export_yolo, export_voc, export_kitti])
def test_export_names_differ_by_more_than_case(tmp_path, export):
    export(dataset(["cat"], {"train": {"A.jpg": (SIZE, [CAT]), "a.png": (SIZE, [CAT])}}), tmp_path)
    names = [path.relative_to(tmp_path).as_posix().lower() for path in tmp_path.rglob("*") if path.is_file()]
    stems = [name.rpartition(".")[0] for name in names]
    assert len(set(stems)) == len(stems)
