"""A detection set as COCO, VOC, YOLO and KITTI: the same samples in the same order, and the same average precision."""

from __future__ import annotations

import numpy as np
import pytest
from detection_sources import MemoryDataset, MemorySample, scan

from tests.shapes import SHAPES, write_shapes
from tests.unit.tasks.detection_parts import measured_scene, target_batch
from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.tasks.detection_boxes import original_targets

FORMS = {
    "coco": (export_coco, CocoImporter),
    "voc": (export_voc, VocImporter),
    "yolo": (export_yolo, YoloImporter),
    "kitti": (export_kitti, KittiImporter),
}


def _targets(found, keys):
    """Return the objects of some images, (N, M, 6), as training hands them over: in px of an input of another size."""
    images = [found.objects(key) for key in keys]
    targets = np.zeros((len(keys), max(map(len, images)), 6), np.float32)
    targets[..., 4] = -1
    for rows, objects in zip(targets, images, strict=True):
        for row, each in zip(rows, objects, strict=False):
            row[:] = (*each.box, each.class_number, 0)
    return original_targets(target_batch(targets, size=(128, 128), scale=(0.71, 0.71), place=(3.5, 0)))


def _moved(targets):
    """Return detections (N, 2 M, 6): each object twice, moved, some with another class."""
    chance = np.random.default_rng(0)
    objects = np.tile(targets, (1, 2, 1))
    detections = objects.copy()
    sides = np.tile(objects[..., 2:4] - objects[..., :2], 2)
    detections[..., :4] += chance.normal(0, 0.08, (*objects.shape[:2], 4)) * sides
    detections[..., 4] = np.sort(chance.random(objects.shape[:2]), axis=1)[:, ::-1] * (objects[..., 4] >= 0)
    is_other = chance.random(objects.shape[:2]) < 0.2
    detections[..., 5] = np.where(is_other, chance.integers(0, len(SHAPES), objects.shape[:2]), objects[..., 4])
    detections[detections[..., 4] == 0] = 0
    return detections


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return the scanned source and its folder."""
    folder = tmp_path_factory.mktemp("shapes") / "source"
    write_shapes(folder, train=30, val=30)
    return scan(CocoImporter(), folder), folder


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_order_and_values(source, tmp_path, form):
    found, folder = source
    export, importer = FORMS[form]
    pictures: dict[str, list[MemorySample]] = {"train": [], "val": []}
    for key, sample in found.samples.items():
        image = (folder / str(sample.parts[0])).read_bytes()
        pictures[sample.split].append(MemorySample(key, (image,), sample.label))
    export(MemoryDataset(found.schema, pictures), tmp_path / "new")
    again = scan(importer(), tmp_path / "new")

    assert list(again.schema.class_names) == list(SHAPES)
    for split, samples in pictures.items():
        keys = [key for key, sample in again.samples.items() if sample.split == split]
        assert keys == [each.key for each in samples]
    keys = [each.key for each in pictures["val"]]
    wanted = _targets(found, keys)
    np.testing.assert_array_equal(_targets(again, keys), wanted)
    detections = _moved(wanted)
    values = measured_scene(detections, _targets(again, keys), list(SHAPES)).compute()
    assert values == measured_scene(detections, wanted, list(SHAPES)).compute()
    assert 0.1 < values["map"] < 0.9
