"""Helpers for the tests of object detection: scenes, targets, and values of pycocotools and of plain loops."""

from __future__ import annotations

import contextlib
import io

import numpy as np

from ziggurat.tasks.detection_metrics import DetectionMetric

NAMES = ["cat", "dog", "bird", "fish"]
"""Classes of scenes."""


def headers(count, *, size=(300, 400), scale=(1.0, 1.0), place=(0.0, 0.0), most=0):
    """Return targets (count, 1, most + 1, 16) float32 without objects."""
    y = np.zeros((count, 1, most + 1, 16), np.float32)
    y[:, 0, 0, 1] = 16
    y[:, 0, 0, 2:4], y[:, 0, 0, 4:6], y[:, 0, 0, 6:8] = size, scale, place
    return y


def target_batch(targets, **options):
    """Return targets (N, 1, M + 1, 16) of rows (N, M, 6) in px of the original: l, t, r, b, class, state."""
    y = headers(len(targets), most=targets.shape[1], **options)
    scale, place = y[:, 0, :1, 4:6].astype(np.float64), y[:, 0, :1, 6:8].astype(np.float64)
    for own, rows, by, at in zip(y[:, 0], targets, scale, place, strict=True):
        kept = rows[(rows[:, 4] >= 0) | (rows[:, 5] > 0)].astype(np.float64)
        low, high = (kept[:, part] * by[:, ::-1] + at[:, ::-1] for part in (slice(0, 2), slice(2, 4)))
        own[0, 0] = len(kept)
        own[1 : len(kept) + 1, :4] = np.concatenate([low, high - low], axis=1)
        own[1 : len(kept) + 1, 5:7] = kept[:, 4:]
    return y


def scene(seed, images=20, classes=4, most=5, found=12, states=(0, 0, 0, 0, 1, 2)):
    """Return detections (N, found, 6) and targets (N, most, 6) in px of the original, sizes and overlaps of all kinds.

    Most detections are moved objects, some with another class; no two scores are equal.
    """
    chance = np.random.default_rng(seed)
    targets = np.zeros((images, most, 6), np.float32)
    targets[..., 4] = -1
    detections = np.zeros((images, found, 6), np.float32)
    scores = chance.permutation(np.linspace(0.01, 0.99, images * found)).reshape(images, found)
    for own, rows, values in zip(targets, detections, scores, strict=True):
        own[:] = 0
        sides = np.exp(chance.uniform(np.log(8), np.log(200), (most, 2)))
        corner = chance.uniform(0, 200, (most, 2))
        own[:, :4] = np.concatenate([corner, corner + sides], axis=1).round(1)
        own[:, 4] = chance.integers(0, classes, most)
        own[:, 5] = chance.choice(states, most)
        own[chance.integers(0, most + 1) :] = (0, 0, 0, 0, -1, 0)
        sources = chance.integers(0, most, found)
        sides = np.tile(own[sources, 2:4] - own[sources, :2], 2)
        rows[:, :4] = own[sources, :4] + chance.normal(0, 0.12, (found, 4)) * sides
        is_alone = own[sources, 4] < 0
        rows[is_alone, :2] = chance.uniform(0, 200, (is_alone.sum(), 2))
        rows[:, 2:4] = np.maximum(rows[:, 2:4], rows[:, :2] + 4)
        is_other = (chance.random(found) < 0.2) | (own[sources, 4] < 0)
        rows[:, 5] = np.where(is_other, chance.integers(0, classes, found), own[sources, 4])
        rows[:, 4] = np.sort(values)[::-1]
        rows[chance.integers(0, found + 1) :] = 0
    return detections, targets


def measured_scene(detections, targets, names=NAMES):
    """Return a metric that has measured results in px of the original."""
    metric = DetectionMetric(names)
    is_found, is_target = detections[..., 4] > 0, (targets[..., 4] >= 0) | (targets[..., 5] > 0)
    metric.merge(
        {
            "detections": detections[is_found],
            "detection_counts": is_found.sum(axis=1),
            "targets": targets[is_target],
            "target_counts": is_target.sum(axis=1),
        }
    )
    return metric


def pycocotools_values(detections, targets, classes):
    """Return an evaluation of pycocotools, whose ``stats`` are the 12 numbers of its summary."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth, results = COCO(), COCO()
    for coco, content in ((truth, targets), (results, detections)):
        coco.dataset = {
            "images": [{"id": number} for number in range(len(targets))],
            "categories": [{"id": number} for number in range(classes)],
            "annotations": list(_annotations(content, is_found=coco is results)),
        }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        results.createIndex()
        evaluation = COCOeval(truth, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def _annotations(content, *, is_found):
    number = 0
    for image, rows in enumerate(content):
        for left, top, right, bottom, *rest in rows.astype(np.float64).tolist():
            score, kind, state = (*rest, 0) if is_found else (1, *rest)
            if not score or (kind < 0 and not state):
                continue
            if not is_found:
                left, top, right, bottom = (round(each, 2) for each in (left, top, right, bottom))
            number += 1
            yield {
                "id": number, "image_id": image, "category_id": int(kind), "iscrowd": int(state > 0), "score": score,
                "bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top),
            }  # fmt: skip


def plain_iou(one, other, *, is_crowd=False):
    """Return the overlap of two boxes, each left, top, right, bottom."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    first, second = ((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    whole = first if is_crowd else first + second - shared
    return shared / whole if whole > 0 else 0.0


def plain_matching(detections, targets, threshold, counts=lambda row: row[5] == 0):
    """Return of one image, for each detection by falling score: the place of its object, -1 for none, "-" if ignored.

    Args:
        detections: rows left, top, right, bottom, score, class.
        targets: rows left, top, right, bottom, class, state.
        threshold: the least overlap.
        counts: whether a target counts.
    """
    found, taken = [], set()
    for row in sorted(detections, key=lambda each: -each[4]):
        best, result = threshold, -1
        for place, target in enumerate(targets):
            if target[4] == row[5] and counts(target) and place not in taken:
                overlap = plain_iou(row, target)
                if overlap >= best:
                    best, result = overlap, place
        if result >= 0:
            taken.add(result)
        elif any(
            plain_iou(row, target, is_crowd=target[5] > 0) >= threshold
            for place, target in enumerate(targets)
            if target[4] in (row[5], -1) and not counts(target) and not (target[5] == 0 and place in taken)
        ):
            result = "-"
        found.append(result)
    return found


def plain_average_precision(detections, targets, number, threshold, areas=(0, 1e10)):
    """Return the average precision and the recall of a class, in plain loops; None without objects."""

    def is_inside(row):
        return areas[0] <= (row[2] - row[0]) * (row[3] - row[1]) <= areas[1]

    def counts(row):
        return row[5] == 0 and is_inside(row)

    outcomes, objects = [], 0
    for rows, own in zip(detections.astype(np.float64), targets.astype(np.float64), strict=True):
        own[:, :4] = own[:, :4].round(2)
        rows = sorted((row.tolist() for row in rows if row[4] > 0 and row[5] == number), key=lambda each: -each[4])
        own = [row.tolist() for row in own if row[4] == number]
        objects += sum(counts(row) for row in own)
        for row, result in zip(rows, plain_matching(rows, own, threshold, counts), strict=True):
            if result != "-" and (result >= 0 or is_inside(row)):
                outcomes.append((row[4], result >= 0))
    if not objects:
        return None, None
    right, wrong, points = 0, 0, []
    for _, is_right in sorted(outcomes, key=lambda each: -each[0]):
        right, wrong = right + is_right, wrong + (not is_right)
        points.append((right / objects, right / (right + wrong)))
    reached = [max((p for r, p in points if r >= recall), default=0.0) for recall in np.linspace(0, 1, 101)]
    return sum(reached) / 101, right / objects
