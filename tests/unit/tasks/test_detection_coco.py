"""Average precision of detection, against pycocotools and a count in plain loops, on synthetic and real objects."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.datasets.detection_sources import scan, shared
from tests.unit.tasks.detection_parts import (
    NAMES,
    measured_scene,
    plain_average_precision,
    pycocotools_values,
    scene,
)
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.tasks.detection_coco import SIZES, coco_values
from ziggurat.tasks.detection_matching import find_overlaps

REAL = {"bccd-voc": VocImporter, "raccoon-voc": VocImporter, "carparts-coco": CocoImporter}
AREAS = {"all": (0, 1e10), "small": (0, 1024), "medium": (1024, 9216), "large": (9216, 1e10)}


def _values(detections, targets, classes):
    rows = find_overlaps(detections, targets)
    own = rows.targets.copy()
    own[:, :4] = own[:, :4].round(2)
    return coco_values(rows.detections, rows.detection_image, own, rows.target_image, classes)


def _summary(values):
    """Return the 12 numbers that pycocotools prints, with -1 where there is no object."""
    found = [values.average_precision(), values.average_precision(0.5), values.average_precision(0.75)]
    found += [values.average_precision(size=size) for size in SIZES[1:]]
    found += [values.average_recall(most=most) for most in (1, 10, 100)]
    found += [values.average_recall(size) for size in SIZES[1:]]
    return [-1 if each is None else each for each in found]


def _compare(detections, targets, classes):
    """Compare all numbers with those of pycocotools, and the scalars of the metric too."""
    wanted = pycocotools_values(detections, targets, classes)
    values = _values(detections, targets, classes)
    np.testing.assert_allclose(_summary(values), wanted.stats, rtol=0, atol=1e-9)
    np.testing.assert_allclose(values.precision, wanted.eval["precision"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(values.recall, wanted.eval["recall"], rtol=0, atol=1e-9)
    found = measured_scene(detections, targets, [f"class {number}" for number in range(classes)]).compute()
    names = ("map", "ap50", "ap75", "map_small", "map_medium", "map_large")
    scalars = [-1 if found[name] is None else found[name] for name in (*names, "recall")]
    np.testing.assert_allclose(scalars, [*wanted.stats[:6], wanted.stats[8]], rtol=0, atol=1e-9)
    return wanted.stats


def _real_targets(name):
    """Return the objects of a real dataset, (N, M, 6), and the number of its classes."""
    found = scan(REAL[name](), shared(name))
    images = [found.objects(key) for key in found.samples]
    targets = np.zeros((len(images), max(map(len, images)), 6), np.float32)
    targets[..., 4] = -1
    for rows, objects in zip(targets, images, strict=True):
        for row, each in zip(rows, objects, strict=False):
            row[:] = (*each.box, each.class_number, 1 if each.crowd else 2 if each.difficult else 0)
    return targets, len(found.schema.class_names)


def _moved(targets, classes, seed=0):
    """Return detections (N, 40, 6): every object up to three times, moved, some with another class, and others."""
    chance = np.random.default_rng(seed)
    images, most = len(targets), 40
    scores = chance.permutation(np.linspace(0.001, 0.999, images * most)).astype(np.float32).reshape(images, most)
    detections = np.zeros((images, most, 6), np.float32)
    for rows, own, values in zip(detections, targets, scores, strict=True):
        objects = own[own[:, 4] >= 0]
        if not len(objects):
            objects = np.array([[0, 0, 50, 50, 0, 0]], np.float32)
        sources = chance.integers(0, len(objects), most)
        sides = np.tile(objects[sources, 2:4] - objects[sources, :2], 2)
        rows[:, :4] = objects[sources, :4] + chance.normal(0, 0.1, (most, 4)) * sides
        rows[:, 2:4] = np.maximum(rows[:, 2:4], rows[:, :2] + 1)
        rows[:, 5] = np.where(chance.random(most) < 0.15, chance.integers(0, classes, most), objects[sources, 4])
        rows[:, 4] = np.sort(values)[::-1]
    return detections


@pytest.mark.parametrize("name", REAL)
def test_detection_values_of_real_objects_are_pycocotools(name):
    pytest.importorskip("pycocotools")
    targets, classes = _real_targets(name)
    stats = _compare(_moved(targets, classes), targets, classes)
    assert 0.1 < stats[0] < 0.9


@pytest.mark.parametrize("seed", range(4))
def test_detection_values_of_crowds_are_pycocotools(seed):
    pytest.importorskip("pycocotools")
    detections, targets = scene(seed, images=60, most=9, found=100)
    assert (targets[..., 5] > 0).sum() > 50
    stats = _compare(detections, targets, len(NAMES))
    assert 0.05 < stats[0] < 0.9


def test_detection_values_without_detections_are_pycocotools():
    pytest.importorskip("pycocotools")
    detections, targets = scene(1)
    _compare(detections * 0, targets, len(NAMES))


def test_detection_values_of_absent_sizes_are_pycocotools():
    pytest.importorskip("pycocotools")
    detections, targets = scene(2)
    is_small = (targets[..., 2] - targets[..., 0]) * (targets[..., 3] - targets[..., 1]) < 1024
    targets[is_small] = (0, 0, 0, 0, -1, 0)
    targets[targets[..., 4] == 1] = (0, 0, 0, 0, -1, 0)
    stats = _compare(detections, targets, len(NAMES))
    assert stats[3] == -1


@pytest.mark.parametrize("size", SIZES)
def test_average_precision_is_that_of_plain_loops(size):
    detections, targets = scene(3, images=30)
    values = _values(detections, targets, len(NAMES))
    thresholds = np.linspace(0.5, 0.95, 10)
    precisions, recalls = [], []
    for number in range(len(NAMES)):
        found = [plain_average_precision(detections, targets, number, each, AREAS[size]) for each in thresholds]
        if found[0] == (None, None):
            assert values.average_precision(size=size, number=number) is None
            continue
        precisions.append(np.mean([each for each, _ in found]))
        recalls.append(np.mean([each for _, each in found]))
        assert values.average_precision(size=size, number=number) == pytest.approx(precisions[-1], abs=1e-12)
    assert values.average_precision(size=size) == pytest.approx(np.mean(precisions), abs=1e-12)
    assert values.average_recall(size) == pytest.approx(np.mean(recalls), abs=1e-12)


def test_what_is_ignored_without_a_class_is_so_for_all():
    detections = np.array([[[10, 10, 50, 50, 0.9, 1], [200, 0, 240, 40, 0.8, 0]]], np.float32)
    targets = np.array([[[0, 0, 100, 100, -1, 2], [200, 0, 240, 40, 0, 0]]], np.float32)
    assert _values(detections, targets, 2).average_precision() == pytest.approx(1.0)
    targets[0, 0] = (0, 0, 100, 100, -1, 0)  # padding
    targets[0, 0, 4:] = (1, 0)
    assert _values(detections, targets, 2).average_precision() == pytest.approx(0.5)
