"""The files that are exported: in the form that other programs read, with every field that the format holds."""

import json

import cv2
import numpy as np
import pytest
import yaml
from detection_sources import (
    MemoryDataset,
    MemorySample,
    box,
    dataset,
    imported,
    save_picture,
    save_text,
    scan,
    shared,
)

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.errors import DataError, StorageError
from ziggurat.records.schema import Schema

FORMATS = {
    "coco": (export_coco, CocoImporter()),
    "voc": (export_voc, VocImporter()),
    "yolo": (export_yolo, YoloImporter()),
    "kitti": (export_kitti, KittiImporter()),
}
PETS = dataset(
    ["cat", "guide dog"],
    {
        "train": {"a b/1.png": ((20, 10), [box(1, 1.5, 2.0, 11.5, 7.0, difficult=True, details={"pose": "Left"})])},
        "val": {"2.jpg": ((16, 8), [box(-1, 0.0, 0.0, 4.0, 4.0), box(0, 0.1, 0.2, 0.3, 0.7)])},
    },
)


# ---- what came from a format goes back to it unchanged


@pytest.mark.parametrize(
    ("name", "format_name", "options"),
    [
        ("carparts-coco", "coco", {}),
        ("raccoon-voc", "voc", {}),
        ("bccd-voc", "voc", {"classes": ["RBC", "WBC", "Platelets"]}),
        ("kitti-sample", "kitti", {}),
    ],
)
def test_everything_comes_back(tmp_path, name, format_name, options):
    export, importer = FORMATS[format_name]
    content, before = imported(importer, shared(name), **options)
    report = export(content, tmp_path / "new")
    after = scan(importer, tmp_path / "new")
    assert report.problems == []
    assert {key: sample.label for key, sample in after.samples.items()} == {
        key: sample.label for key, sample in before.samples.items()
    }
    assert after.schema == before.schema
    assert after.splits() == {key: split or "train" for key, split in before.splits().items()}


@pytest.mark.parametrize("labels", ["labels", "labels-seg"])
def test_yolo_comes_back_to_a_millionth(tmp_path, labels):
    content, before = imported(YoloImporter(), shared("coco8-yolo"), labels=labels)
    report = export_yolo(content, tmp_path)
    after = scan(YoloImporter(), tmp_path)
    assert (report.problems, report.notes) == ([], [])
    assert after.schema == before.schema
    assert after.splits() == before.splits()
    for key in before.samples:
        for each, original in zip(after.objects(key), before.objects(key), strict=True):
            assert each.class_number == original.class_number
            assert each.box == pytest.approx(original.box, abs=1e-6)
            assert [len(polygon) for polygon in each.polygons] == [len(polygon) for polygon in original.polygons]


def test_kitti_lines_are_written_as_they_were(tmp_path):
    source = shared("kitti-sample")
    export_kitti(imported(KittiImporter(), source)[0], tmp_path)
    for path in (source / "training/label_2").glob("*.txt"):
        numbers = [[line.split()[0], *map(float, line.split()[1:])] for line in path.read_text().splitlines()]
        written = (tmp_path / "training/label_2" / path.name).read_text().splitlines()
        assert [[line.split()[0], *map(float, line.split()[1:])] for line in written] == numbers


def test_coco_boxes_are_written_with_the_numbers_they_had(tmp_path):
    save_picture(tmp_path / "old/1.jpg")
    save_text(
        tmp_path / "old/train.json",
        """{"images": [{"id": 5, "file_name": "1.jpg", "width": 100, "height": 80}],
        "annotations": [{"id": 9, "image_id": 5, "category_id": 2, "bbox": [0.1, 0.7, 0.2, 0.1], "area": 0.02}],
        "categories": [{"id": 2, "name": "cat", "supercategory": "animal"}]}""",
    )
    export_coco(imported(CocoImporter(), tmp_path / "old")[0], tmp_path / "new")
    content = json.loads((tmp_path / "new/instances_train.json").read_text())
    (annotation,) = content["annotations"]
    assert (annotation["bbox"], annotation["area"], annotation["id"]) == ([0.1, 0.7, 0.2, 0.1], 0.02, 9)
    assert content["categories"] == [{"id": 2, "name": "cat", "supercategory": "animal"}]


# ---- what other programs read


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # pycocotools with a new NumPy
def test_coco_is_read_by_its_own_tools(tmp_path, capsys):
    coco = pytest.importorskip("pycocotools.coco")
    content, _ = imported(CocoImporter(), shared("carparts-coco"))
    export_coco(content, tmp_path)
    tool = coco.COCO(tmp_path / "instances_train.json")
    assert "index created" in capsys.readouterr().out
    assert (len(tool.imgs), len(tool.anns), len(tool.cats)) == (100, 767, 19)
    first = tool.loadAnns(tool.getAnnIds(imgIds=[1]))[0]
    assert tool.annToMask(first).shape == (512, 512)
    assert (tmp_path / tool.loadImgs([1])[0]["file_name"]).is_file()


def test_coco_says_what_it_cannot_hold(tmp_path):
    report = export_coco(PETS, tmp_path)
    assert report.counts == {"train": 1, "val": 1}
    assert [(problem.key, problem.kind) for problem in report.problems] == [("2.jpg", "no-class")]
    (annotation,) = json.loads((tmp_path / "instances_train.json").read_text())["annotations"]
    assert annotation == {
        "id": 1, "image_id": 1, "category_id": 2, "bbox": [1.5, 2.0, 10.0, 5.0], "segmentation": [], "area": 50.0,
        "iscrowd": 0, "difficult": True, "pose": "Left",
    }  # fmt: skip


def test_voc_is_written_as_its_tools_write_it(tmp_path):
    export_voc(PETS, tmp_path)
    assert (tmp_path / "ImageSets/Main/train.txt").read_text() == "a b/1\n"
    assert (tmp_path / "classes.txt").read_text() == "cat\nguide dog\n"
    assert (tmp_path / "Annotations/a b/1.xml").read_text().replace("\t", "").splitlines() == [
        "<annotation>", "<folder>JPEGImages</folder>", "<filename>a b/1.png</filename>",
        "<size>", "<width>20</width>", "<height>10</height>", "<depth>3</depth>", "</size>",
        "<object>", "<name>guide dog</name>", "<pose>Left</pose>", "<difficult>1</difficult>",
        "<bndbox>", "<xmin>1.5</xmin>", "<ymin>2</ymin>", "<xmax>11.5</xmax>", "<ymax>7</ymax>", "</bndbox>",
        "</object>", "</annotation>",
    ]  # fmt: skip


def test_voc_may_number_pixels_from_one(tmp_path):
    pets = dataset(["cat"], {"train": {"1.png": ((20, 10), [box(0, 0.0, 0.0, 20.0, 10.0)])}})
    export_voc(pets, tmp_path, one_based=True)
    assert scan(VocImporter(), tmp_path).boxes("1.png") == [(1, 1, 20, 10)]
    assert scan(VocImporter(), tmp_path, one_based=True).boxes("1.png") == [(0, 0, 20, 10)]


def test_yolo_is_written_with_a_yaml_file(tmp_path):
    report = export_yolo(PETS, tmp_path)
    assert yaml.safe_load((tmp_path / "data.yaml").read_text()) == {
        "train": "images/train", "val": "images/val", "nc": 2, "names": {0: "cat", 1: "guide dog"},
    }  # fmt: skip
    assert (tmp_path / "labels/train/a b/1.txt").read_text() == "1 0.325 0.45 0.5 0.5\n"
    assert (tmp_path / "labels/val/2.txt").read_text() == "0 0.0125 0.05625 0.0125 0.0625\n"
    assert report.notes == [
        "yolo cannot hold further fields: 1 left out.",
        "yolo cannot hold the mark of difficult objects: 1 left out.",
    ]
    assert [problem.reason for problem in report.problems] == ["1 regions without a class could not be written."]


def test_kitti_is_written_with_fifteen_columns(tmp_path):
    report = export_kitti(PETS, tmp_path)
    assert (tmp_path / "training/label_2/a b/1.txt").read_text() == "guide_dog 0 0 0 1.5 2 11.5 7 0 0 0 0 0 0 0\n"
    assert (tmp_path / "val/label_2/2.txt").read_text() == (
        "DontCare -1 -1 -10 0 0 4 4 -1 -1 -1 -1000 -1000 -1000 -10\ncat 0 0 0 0.1 0.2 0.3 0.7 0 0 0 0 0 0 0\n"
    )
    assert report.problems == []
    assert (tmp_path / "classes.txt").read_text() == "cat\nguide dog\n"


def test_pictures_are_written_as_they_are_stored(tmp_path):
    for name, (export, importer) in FORMATS.items():
        export(PETS, tmp_path / name)
        found = scan(importer, tmp_path / name)
        path = found.samples["2.jpg"].parts[0]
        assert (tmp_path / name / path).read_bytes() == PETS.pictures["val"][0].parts[0]


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_needs_a_new_folder_and_objects(tmp_path, name):
    export, _ = FORMATS[name]
    save_text(tmp_path / "used/1.txt", "")
    with pytest.raises(StorageError, match="is not empty: it holds"):
        export(PETS, tmp_path / "used")
    pictures = type(PETS)(Schema(kind="image-classification"), {})
    with pytest.raises(DataError, match=f"The format {name} holds datasets of the kind detection"):
        export(pictures, tmp_path / "new")


# ---- the whole way


@pytest.mark.parametrize("name", ["coco", "voc", "kitti", "yolo"])
def test_a_source_becomes_a_data_set_and_the_same_source_again(tmp_path, name):
    export, importer = FORMATS[name]
    export(PETS, tmp_path / "source")
    request = CreationRequest(name="pets", source=str(tmp_path / "source"), format=name, workers=0)
    create_dataset(request, tmp_path / "made")
    with Dataset(tmp_path / "made") as made:
        report = export(made, tmp_path / "again")
    before, after = (scan(importer, tmp_path / folder) for folder in ("source", "again"))
    assert report.counts == {"train": 1, "val": 1}
    assert {key: sample.label for key, sample in after.samples.items()} == {
        key: sample.label for key, sample in before.samples.items()
    }
    assert after.splits() == before.splits() == {"a b/1.png": "train", "2.jpg": "val"}
    assert after.schema == before.schema


def test_masks_go_to_voc_and_come_back(tmp_path):
    numbers = np.array([[0, 1, 2], [2, 255, 0]], np.uint8)
    picture, mask, wide = (
        cv2.imencode(".png", each)[1].tobytes()
        for each in (np.zeros((2, 3, 3), np.uint8), numbers, numbers.astype(np.uint16) * 2)
    )
    schema = Schema(kind="segmentation", class_names=("road", "blue sky", "car"), ignore_class=255)
    samples = {
        "train": [MemorySample("a/1.png", (picture, mask), None), MemorySample("2.png", (picture, numbers), None)],
        "val": [MemorySample("3.png", (picture, mask), None), MemorySample("4.png", (picture, wide), None)],
    }
    report = export_voc(MemoryDataset(schema, samples), tmp_path)
    assert report.counts == {"train": 2, "val": 1}
    assert [(problem.key, problem.kind, problem.left_out) for problem in report.problems] == [
        ("4.png", "bad-mask", True)
    ]
    guess = VocImporter().guess(tmp_path)
    assert guess is not None
    found = scan(VocImporter(), tmp_path, **guess.options)
    assert found.schema.class_names == schema.class_names
    assert found.splits() == {"2.png": "train", "3.png": "val", "a/1.png": "train"}
    reader = VocImporter().reader(tmp_path, VocImporter().checked_options(guess.options))
    for sample in found.samples.values():
        read = reader.read(str(sample.parts[1]))
        assert np.asarray(cv2.imdecode(np.frombuffer(read, np.uint8), -1)).tolist() == numbers.tolist()
