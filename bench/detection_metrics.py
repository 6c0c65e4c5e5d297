"""Benchmark of the metric of object detection against pycocotools: one evaluation of the same detections.

Ours makes every table as well: curves, confusion, kinds of errors and the best confidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.parts.report import Options, Report, interval
from bench.parts.rounds import Side, measure

__all__ = ["ours", "pycocotools", "run"]

_IMAGES = 5000
_CLASSES = 20
_OBJECTS = 7
_FOUND = 40
_OURS = "Ziggurat"
_THEIRS = "pycocotools"
_GOAL = 0.25


def run(options: Options) -> Report:
    """Measure."""
    sides = [
        Side(_OURS, "bench.detection_metrics:ours"),
        Side(_THEIRS, "bench.detection_metrics:pycocotools"),
    ]
    report = Report(
        "Metrics of object detection",
        "image",
        _THEIRS,
        [
            f"{_IMAGES} images with {_CLASSES} classes, {_OBJECTS} objects and {_FOUND} detections an image",
            f"{options.rounds} interleaved rounds of one evaluation a side, warm-up dropped; medians",
        ],
    )
    measure(report, sides, options, batches=1, batch_size=_IMAGES)
    if len(report.rows) == len(sides):
        ratios = np.array(report.rows[0].cpu_us) / np.array(report.rows[1].cpu_us)
        report.notes.append(f"CPU time, {_OURS} / {_THEIRS}: {interval(ratios)}; goal: at most {_GOAL}")
    return report


def ours() -> Iterator[dict[str, Any]]:
    """Yield the values after each evaluation."""
    from ziggurat.tasks.detection_metrics import DetectionMetric

    detections, targets = _scene()
    state = {
        "detections": detections.reshape(-1, 6),
        "detection_counts": np.full(_IMAGES, _FOUND),
        "targets": targets.reshape(-1, 6),
        "target_counts": np.full(_IMAGES, _OBJECTS),
    }
    while True:
        metric = DetectionMetric([f"class {number}" for number in range(_CLASSES)])
        metric.merge(state)
        yield metric.compute()


def pycocotools() -> Iterator[np.ndarray]:
    """Yield the summary after each evaluation."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    detections, targets = _scene()
    image = {"found": np.repeat(np.arange(_IMAGES), _FOUND), "truth": np.repeat(np.arange(_IMAGES), _OBJECTS)}
    while True:
        truth: Any = COCO()
        results: Any = COCO()
        truth.dataset = _content(targets.reshape(-1, 6)[:, [0, 1, 2, 3, 4]], image["truth"])
        results.dataset = _content(detections.reshape(-1, 6)[:, [0, 1, 2, 3, 5]], image["found"])
        for annotation, score in zip(results.dataset["annotations"], detections[..., 4].ravel().tolist(), strict=True):
            annotation["score"] = score
        truth.createIndex()
        results.createIndex()
        evaluation = COCOeval(truth, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        yield evaluation.stats


def _content(rows: np.ndarray, images: np.ndarray) -> dict[str, Any]:
    """Return COCO's annotations of boxes, each left, top, right, bottom, class."""
    sides = rows[:, 2:4] - rows[:, :2]
    boxes, areas = np.concatenate([rows[:, :2], sides], axis=1).tolist(), (sides[:, 0] * sides[:, 1]).tolist()
    columns = zip(images.tolist(), rows[:, 4].astype(int).tolist(), boxes, areas, strict=True)
    return {
        "images": [{"id": number} for number in range(_IMAGES)],
        "categories": [{"id": number} for number in range(_CLASSES)],
        "annotations": [
            {"id": number, "image_id": image, "category_id": kind, "bbox": box, "area": area, "iscrowd": 0}
            for number, (image, kind, box, area) in enumerate(columns, start=1)
        ],
    }


def _scene() -> tuple[np.ndarray, np.ndarray]:
    """Return detections (N, D, 6), best first, and objects (N, T, 6): half of the detections are moved objects."""
    chance = np.random.default_rng(0)
    shape = (_IMAGES, _OBJECTS)
    corner = chance.uniform(0, 500, (*shape, 2))
    corners = np.concatenate([corner, corner + np.exp(chance.uniform(2, 5.5, (*shape, 2)))], axis=2).round(1)
    kinds = chance.integers(0, _CLASSES, (*shape, 1))
    targets = np.concatenate([corners, kinds, np.zeros((*shape, 1))], axis=2)
    source = chance.integers(0, _OBJECTS, (_IMAGES, _FOUND, 1))
    meant = np.take_along_axis(targets, source, axis=1)
    moved = np.where(chance.random((_IMAGES, _FOUND, 1)) < 0.5, 0.1, 2.0)
    sides = np.tile(meant[..., 2:4] - meant[..., :2], 2)
    boxes = meant[..., :4] + chance.normal(0, 1, (_IMAGES, _FOUND, 4)) * moved * sides
    boxes[..., 2:] = np.maximum(boxes[..., 2:], boxes[..., :2] + 1)
    others = chance.integers(0, _CLASSES, (_IMAGES, _FOUND, 1))
    kinds = np.where(chance.random((_IMAGES, _FOUND, 1)) < 0.8, meant[..., 4:5], others)
    scores = np.sort(chance.random((_IMAGES, _FOUND, 1)), axis=1)[:, ::-1]
    return np.concatenate([boxes, scores, kinds], axis=2).astype(np.float32), targets.astype(np.float32)
