"""Benchmark of the page of 10,000 images that a detector was evaluated on: what each question takes after the first."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.parts.report import Options, Report, Row
from ziggurat.tasks.detection_choice import DetectionSamples, detection_fields
from ziggurat.tasks.sample_choice import checked_choice

__all__ = ["run"]

_IMAGES, _CLASSES, _OBJECTS, _DETECTIONS = 10_000, 20, 10, 100
_GOAL_MS = 200.0
_QUESTIONS = {
    "images with missed objects": {"errors": "missed"},
    "images of a confusion cell": {"actual": "3", "found": "4"},
    "images with small objects and any error": {"errors": "any", "size": "small"},
}


def run(options: Options) -> Report:
    """Measure."""
    detections, targets = _results()
    names = [f"class {number}" for number in range(_CLASSES)]
    fields = detection_fields(names)
    rows = [_row("first question: overlaps of all boxes", 1, lambda _: DetectionSamples(detections, targets, _CLASSES))]
    samples = DetectionSamples(detections, targets, _CLASSES)
    steps = [round(0.3 + 0.01 * number, 2) for number in range(options.rounds)]
    for title, values in _QUESTIONS.items():
        row = _row(title, options.rounds, lambda n, v=values: samples.choose(checked_choice(fields, v | _at(steps[n]))))
        rows.append(row)
    rows.append(_row("charts", options.rounds, lambda n: samples.figures(checked_choice(fields, _at(steps[n] + 0.3)))))
    return Report(
        f"Questions to an evaluation of {_IMAGES:,} images with up to {_OBJECTS} objects and {_DETECTIONS} detections",
        "question",
        rows[0].side,
        [
            "each question has another IoU and another confidence, so that nothing is known of it yet",
            f"goal: at most {_GOAL_MS:g} ms after the first",
        ],
        rows,
    )


def _at(value: float) -> dict[str, str]:
    return {"iou": f"{value:g}", "confidence": f"{value:g}"}


def _row(title: str, rounds: int, ask: Callable[[int], object]) -> Row:
    row = Row(title, [], [])
    for number in range(rounds):
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        ask(number)
        row.cpu_us.append(1e6 * (time.process_time() - cpu_s))
        row.wall_us.append(1e6 * (time.perf_counter() - wall_s))
    return row


def _results() -> tuple[np.ndarray, np.ndarray]:
    """Return detections (N, 100, 6) around objects (N, 10, 6), most of small scores, as detectors give them."""
    random = np.random.default_rng(0)
    targets = np.zeros((_IMAGES, _OBJECTS, 6), np.float32)
    corners = random.uniform(0, 440, (_IMAGES, _OBJECTS, 2))
    targets[..., :4] = np.concatenate([corners, corners + random.uniform(10, 200, corners.shape)], axis=2)
    targets[..., 4] = random.integers(0, _CLASSES, (_IMAGES, _OBJECTS))
    targets[np.arange(_OBJECTS) >= random.integers(0, _OBJECTS + 1, (_IMAGES, 1))] = (0, 0, 0, 0, -1, 0)
    detections = np.zeros((_IMAGES, _DETECTIONS, 6), np.float32)
    for own, objects in zip(detections, targets, strict=True):
        meant = objects[random.integers(0, _OBJECTS, _DETECTIONS)]
        own[:, :4] = meant[:, :4] + random.normal(0, 15, (_DETECTIONS, 4))
        own[:, 2:4] = np.maximum(own[:, 2:4], own[:, :2] + 4)
        own[:, 5] = np.where(random.random(_DETECTIONS) < 0.8, np.maximum(meant[:, 4], 0), random.integers(0, _CLASSES))
    detections[..., 4] = random.beta(0.4, 3, detections.shape[:2])
    return detections, targets
