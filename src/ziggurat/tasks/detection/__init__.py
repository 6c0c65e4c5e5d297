"""Object detection: a box and a class for each object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.formatting import as_percent
from ziggurat.records.objects import ImageObject, objects_from_json
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, Task, TaskContext, chosen_thresholds, raw_outputs
from ziggurat.tasks.detection_arrays import (
    CLASS,
    COUNT,
    CROWD,
    IGNORED,
    ORIGINAL_SIZE,
    PLACE,
    ROW_LENGTH,
    SCALE,
    corners_of_rows,
    kept_rows,
)
from ziggurat.tasks.detection_boxes import best_detections, original_detections, original_targets
from ziggurat.tasks.detection_charts import detection_charts
from ziggurat.tasks.detection_choice import (
    SHOWN_FROM,
    DetectionSamples,
    detection_fields,
    numbers_of,
    object_changes,
)
from ziggurat.tasks.detection_matching import SHOWN_SCORE, find_overlaps, image_scores, match
from ziggurat.tasks.detection_metrics import LEAST_SCORE, DetectionMetric
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.report import SHARE, MetricInfo, Report, ReportValue, ScoreInfo, plain_report
from ziggurat.tasks.sample_choice import SampleChoice, SampleField
from ziggurat.tasks.segmentation import class_colors
from ziggurat.tasks.threshold_choice import ThresholdSamples

__all__ = ["DETECTION", "detection_colors"]

_MOST: Final = 100
"""Detections of an image that count."""
_IOU: Final = 0.65
_RECALL_HELP: Final = "Share of the objects that a box of this confidence or more found."
_SIZES_INFO: Final = MetricInfo(
    "Small, medium, large", SHARE, "", "mAP of objects below 32 × 32 px, up to 96 × 96 px, and larger."
)
_SAMPLE_BOXES: Final = 30
"""Boxes that are kept of each of the few samples after a validation."""


class Detection(Task):
    """Target: (1, most + 1, 16), see ``ziggurat.tasks.detection_arrays``.

    Output of the network: (N, K, 4 + classes), boxes in px of its input and a score from 0 to 1 for each class.
    """

    name = "detection"
    title = "object detection"
    primary_metric = PrimaryMetric("map", "max", "mAP 50:95")
    order = 10
    moves_with_image = ("boxes",)
    fits_every_split = True
    reads_objects = True
    score = ScoreInfo("F1", SHARE)
    default_threshold = SHOWN_SCORE
    least_threshold = SHOWN_FROM
    metric_info = {
        "map": MetricInfo("mAP 50:95", SHARE, help="Average precision, mean over classes and IoU from 0.50 to 0.95."),
        "ap50": MetricInfo("AP50", SHARE, help="Average precision at an IoU of 0.50, mean over classes.", chart="map"),
        "ap75": MetricInfo("AP75", SHARE, help="Average precision at an IoU of 0.75, mean over classes.", chart="map"),
        "map_small": MetricInfo(
            "mAP small", SHARE, help="Of objects below 32 × 32 px of the original image.", is_usual=False
        ),
        "map_medium": MetricInfo(
            "mAP medium", SHARE, help="Of objects from 32 × 32 to 96 × 96 px.", chart="map_small", is_usual=False
        ),
        "map_large": MetricInfo(
            "mAP large", SHARE, help="Of objects above 96 × 96 px.", chart="map_small", is_usual=False
        ),
        "recall": MetricInfo("Recall", SHARE, help="Largest recall with 100 detections, mean over classes and IoU."),
        "precision": MetricInfo(
            "Precision", SHARE, help="Share of the boxes of this confidence or more that are right."
        ),
        "f1": MetricInfo("F1", SHARE, help="Harmonic mean of precision and recall."),
        "ap": MetricInfo("AP 50:95", SHARE),
        "confidence": MetricInfo("Confidence", SHARE, mode=""),
        "classes": MetricInfo("Average precision by class"),
        "best_f1": MetricInfo("Best confidence by class"),
        "objects": MetricInfo("Objects", mode=""),
    }

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no boxes; empty where it has."""
        if schema.kind != "detection":
            return f"Object detection needs images with boxes; this dataset is of kind {schema.kind}."
        return ""

    def completed(self, schema: Schema, points: Callable[[], Iterable[Sequence[Any]]]) -> Schema:
        """Return the schema with numbers as names, where the dataset names no classes."""
        if schema.class_names:
            return schema
        numbers = (each["class"] for point in points() for each in point[1])
        return Schema(
            kind=schema.kind,
            parts=schema.parts,
            class_names=tuple(f"class {number}" for number in range(max(numbers, default=0) + 1)),
        )

    joins_objects = True

    def why_not_mixed(self, schema: Schema) -> str:
        """Return an empty string: two images are blended with the boxes of both."""
        return ""

    def why_not_oversampled(self, schema: Schema) -> str:
        """Return an empty string: the classes of an image are those of its objects."""
        return ""

    def classes_of(self, label: Any) -> Collection[int]:
        """Return the classes of the objects that count."""
        return {each.class_number for each in objects_from_json(label) if not _state(each)}

    def fit(self, schema: Schema, labels: Iterable[Any]) -> dict[str, Any]:
        """Return ``most``, the largest number of objects in an image."""
        return {"most": max((len(label) for label in labels), default=0)}

    def target(self, context: TaskContext) -> ArraySpec:
        """Return a header row and a row for each object."""
        shape = (1, int(context.statistics["most"]) + 1, ROW_LENGTH)
        return ArraySpec(shape, "float32", len(context.class_names), has_objects=True)

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return room for 16 objects."""
        return ArraySpec((1, ROW_LENGTH + 1, ROW_LENGTH), "float32", classes, has_objects=True)

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return the fitted image (H, W, C) uint8, and its objects (most + 1, 16) float32, the header row first.

        Raises:
            DatapointError: where the image cannot be read.
        """
        preprocessing = context.preprocessing
        assert isinstance(preprocessing, Preprocessing)
        image, size = preprocessing.decode_sized(point[0], key)
        return [image, self._rows(context, point[1], size)]

    def encode(self, context: TaskContext, label: Any, key: Any) -> np.ndarray:
        """Return the objects of an image that has the size of the network's input."""
        height, width = context.preprocessing.shape[:2]
        return self._rows(context, label, (height, width))[None]

    def _rows(self, context: TaskContext, label: Any, size: tuple[int, int]) -> np.ndarray:
        preprocessing = context.preprocessing
        assert isinstance(preprocessing, Preprocessing)
        most = int(context.statistics["most"])
        placement = preprocessing.placement(size)
        scale, place = placement[:2], placement[2:]
        objects = objects_from_json(label)
        rows = np.zeros((len(objects) + 1, ROW_LENGTH), np.float32)
        rows[0, [COUNT, 1]] = len(objects), ROW_LENGTH
        rows[0, ORIGINAL_SIZE], rows[0, SCALE], rows[0, PLACE] = size, scale, place
        for row, each in zip(rows[1:], objects, strict=True):
            left, top, right, bottom = each.box
            row[:4] = (
                left * scale[1] + place[1],
                top * scale[0] + place[0],
                (right - left) * scale[1],
                (bottom - top) * scale[0],
            )
            row[5], row[6] = each.class_number, _state(each)
            row[4], row[7:] = _kitti_columns(each.details)
        return kept_rows(rows, preprocessing.size, most)

    def batch(self, context: TaskContext, arrays: Sequence[np.ndarray], finish: Any) -> list[np.ndarray]:
        """Return images, and objects (N, 1, most + 1, 16)."""
        return [finish(arrays[0]), arrays[1][:, None]]

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return average precision, recall, confusion and kinds of errors."""
        return [DetectionMetric(context.class_names)]

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return F1, detections and objects of each image in px of the original, and its size."""
        most = int(context.statistics["most"])
        targets = np.zeros((samples, most, 6), np.float32)
        targets[..., 4] = -1
        return {
            "score": np.zeros(samples, np.float32),
            "detections": np.zeros((samples, _MOST, 6), np.float32),
            "targets": targets,
            "size": np.zeros((samples, 2), np.int32),
        }

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch; the score is F1 at an IoU of 0.5 and a confidence of 0.3."""
        y = np.asarray(targets["y"])
        found = best_detections(np.asarray(outputs["output"]), least_score=LEAST_SCORE, iou=_IOU, most=_MOST)
        detections, objects = original_detections(found, y), original_targets(y)
        return {
            "score": image_scores(detections, objects).astype(np.float32),
            "detections": detections,
            "targets": objects,
            "size": np.rint(y[:, 0, 0, ORIGINAL_SIZE]).astype(np.int32),
        }

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return the names and colors of the classes."""
        colors = detection_colors(len(context.class_names)).tolist()
        return {"classifier": False, "classes": list(context.class_names), "palette": colors}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there are boxes, and how the best of them are found."""
        return {
            "form": "boxes",
            "output": "output",
            "names": list(context.class_names),
            "colors": detection_colors(len(context.class_names)).tolist(),
            "iou": _IOU,
            "least_score": SHOWN_FROM,
            "most": _MOST,
            **chosen_thresholds(context),
        }

    def threshold_names(self, class_names: Sequence[str]) -> tuple[str, ...]:
        """Return every class."""
        return tuple(class_names)

    def threshold_samples(
        self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Sequence[ThresholdSamples]:
        """Return the scores of the boxes of each class, which are right at an IoU of 0.5."""
        if "detections" not in arrays:
            return ()
        overlaps = find_overlaps(np.asarray(arrays["detections"]), np.asarray(arrays["targets"]))
        matching, classes = match(overlaps), len(summary["classes"])
        objects = overlaps.objects(classes)
        chosen = [(overlaps.classes == number) & ~matching.is_ignored for number in range(classes)]
        return [
            ThresholdSamples(overlaps.scores[mine], matching.is_true[mine], int(objects[number]))
            for number, mine in enumerate(chosen)
        ]

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``size`` (height, width) and ``boxes`` in px of the network's input, the best first.

        With an operating point, these are the boxes from the threshold of their class on.
        """
        classes = len(context.class_names)
        output = np.asarray(outputs.get("output"))
        if output.ndim != 2 or output.shape[1] != 4 + classes:
            return raw_outputs(outputs)
        found = best_detections(output[None], least_score=SHOWN_FROM, iou=_IOU, most=_MOST)[0]
        least = np.array(context.thresholds or (SHOWN_FROM,) * classes, np.float32)
        found = found[(found[:, 4] > 0) & (found[:, 4] >= least[found[:, 5].astype(np.int64)])]
        colors = detection_colors(classes)
        return {
            "size": list(context.preprocessing.shape[:2]),
            "boxes": [
                {
                    "class": context.class_names[int(number)],
                    "number": int(number),
                    "score": float(score),
                    "box": [float(each) for each in box],
                    "color": "#{:02x}{:02x}{:02x}".format(*colors[int(number)].tolist()),
                }
                for *box, score, number in found.astype(np.float64).tolist()
            ],
        }

    def placed(
        self, context: TaskContext, prediction: Mapping[str, Any], original_size: tuple[int, int]
    ) -> dict[str, Any]:
        """Return the prediction with boxes in px of the original image, clipped to it."""
        preprocessing = context.preprocessing
        if "boxes" not in prediction or not isinstance(preprocessing, Preprocessing):
            return dict(prediction)
        height, width = original_size
        scale_y, scale_x, top, left = preprocessing.placement(original_size, is_cropped=True)
        limits = np.array([width, height, width, height])
        boxes = []
        for each in prediction["boxes"]:
            moved = (np.array(each["box"]) - (left, top, left, top)) / (scale_x, scale_y, scale_x, scale_y)
            boxes.append({**each, "box": np.clip(moved, 0, limits).round(2).tolist()})
        return {**prediction, "size": [height, width], "boxes": boxes}

    def sample_label(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> dict[str, Any]:
        """Return ``size`` (height, width), and box and class number of each object in px of it."""
        boxes, numbers = corners_of_rows(arrays[1]).round(1).tolist(), arrays[1][1:, CLASS].astype(int).tolist()
        return {
            "size": list(arrays[0].shape[:2]),
            "boxes": [{"box": box, "number": number} for box, number in zip(boxes, numbers, strict=False)],
        }

    def sample_prediction(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
        """Return the best boxes of one sample in px of the input, without what each class says of itself."""
        found = self.decode(context, outputs)
        if "boxes" not in found:
            return None
        boxes = [
            {
                "box": [round(side, 1) for side in each["box"]],
                "number": each["number"],
                "score": round(each["score"], 3),
            }
            for each in found["boxes"][:_SAMPLE_BOXES]
            if each["score"] >= SHOWN_SCORE
        ]
        return {"boxes": boxes}

    def report(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Report:
        """Return metrics, curves of precision, errors, confusion with the background, and tables."""
        metrics = summary.get("metrics") or {}
        plain = plain_report(metrics, self.metric_info, self.primary_metric.name)
        tables = [each for each in plain.tables if each.name not in ("errors", "by_confidence")]
        return Report(_with_sizes(plain.values), tables, detection_charts(metrics))

    def sample_fields(self, summary: Mapping[str, Any]) -> Sequence[SampleField]:
        """Return kind of error, classes, size, IoU and confidence."""
        return detection_fields(list(summary["classes"]))

    def prepare_samples(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
        """Return which detections and objects overlap."""
        return DetectionSamples(arrays["detections"], arrays["targets"], len(summary["classes"]))

    def choose_samples(self, prepared: Any, asked: Mapping[str, str]) -> SampleChoice:
        """Return the images with such errors, classes and sizes, and their F1 at an IoU and a confidence."""
        return prepared.choose(asked)

    def asked_report(self, summary: Mapping[str, Any], prepared: Any, asked: Mapping[str, str]) -> Report:
        """Return precision, recall and F1 at an IoU and a confidence, and the charts that depend on them."""
        figures, known = prepared.figures(asked), summary.get("metrics") or {}
        iou, confidence = numbers_of(asked)
        costs = {each["error"]: each.get("cost") for each in known.get("errors") or ()}
        errors = [{**each, "cost": costs.get(each["error"])} for each in figures["errors"]]
        metrics = {**known, **figures, "errors": errors}
        if "precisions" in figures and known.get("curves"):
            metrics["curves"] = _curves_of(known["curves"], known["classes"], figures["precisions"])
        plain = self.report(summary, {})
        # The recall of the metrics is that of all detections, which reads like the one at the confidence.
        values = [each for each in plain.values if each.name != "recall"]
        best = max(reversed(figures["by_confidence"]), key=lambda each: each["f1"] or 0.0)  # of equal ones, the largest
        return Report(
            [*values, *self._asked_values(figures, best, confidence)],
            plain.tables,
            detection_charts(metrics, iou, confidence),
            [(word, figures[word]) for word in ("correct", "false", "missed")],
            [(f"Highest F1: {best['confidence']:.2f}", {"confidence": f"{best['confidence']:g}"})]
            if best["f1"]
            else [],
        )

    def _asked_values(
        self, figures: Mapping[str, Any], best: Mapping[str, Any], confidence: float
    ) -> list[ReportValue]:
        correct = figures["correct"]
        notes = {
            "precision": f"{correct:,} of {correct + figures['false']:,} boxes",
            "recall": f"{correct:,} of {correct + figures['missed']:,} objects",
            "f1": f"highest: {as_percent(best['f1'])} at {best['confidence']:.2f}" if best["f1"] else "",
        }
        infos = {**self.metric_info, "recall": replace(self.metric_info["recall"], help=_RECALL_HELP)}
        return [
            ReportValue(name, infos[name], figures[name], beside=f"at {confidence:.2f}", note=note, is_asked=True)
            for name, note in notes.items()
        ]

    def sample_changes(
        self, first: Any, second: Any, places: tuple[np.ndarray, np.ndarray], asked: Mapping[str, str]
    ) -> Mapping[str, int]:
        """Return how many objects were found anew and lost, and how many detections are wrong, before and after."""
        changes = object_changes(first, second, places, asked)
        if changes is None:
            return {}
        return {
            "objects found now": changes.fixed,
            "objects missed now": changes.broken,
            "objects still missed": changes.still_missed,
            "wrong boxes before": changes.wrong_before,
            "wrong boxes now": changes.wrong_after,
        }

    def sample_view(
        self, summary: Mapping[str, Any], values: Mapping[str, Any], asked: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Return ``size``, ``objects`` and ``detections`` of an image, each with box, class, color and outcome.

        ``found`` of an object is the score of the detection that found it at the IoU asked for, 0 where none did;
        ``outcome`` of a detection is ``correct``, ``wrong`` or ``ignored``. Both hold at every confidence;
        ``iou`` and ``confidence`` are those asked for.
        """
        detections, targets = (np.asarray(values[name], np.float64) for name in ("detections", "targets"))
        detections = detections[detections[:, 4] >= SHOWN_FROM]
        overlaps = find_overlaps(detections[None], targets[None])
        iou, confidence = numbers_of(asked)
        matching = match(overlaps, iou)
        found = np.zeros(len(overlaps.targets))
        is_true = matching.is_true
        found[matching.target[is_true]] = overlaps.scores[is_true]
        names, colors = list(summary["classes"]), summary["palette"]
        return {
            "size": [int(side) for side in values["size"]],
            "iou": iou,
            "confidence": confidence,
            "objects": [
                {**_shape(row[:5], names, colors), "found": round(float(score), 3), "is_ignored": bool(row[5])}
                for row, score in zip(overlaps.targets.tolist(), found, strict=True)
            ],
            "detections": [
                {**_shape([*row[:4], row[5]], names, colors), "score": round(row[4], 3), "outcome": outcome}
                for row, outcome in zip(
                    overlaps.detections.tolist(),
                    np.select([is_true, matching.is_ignored], ["correct", "ignored"], "wrong").tolist(),
                    strict=True,
                )
            ],
        }


def _with_sizes(values: Sequence[ReportValue]) -> list[ReportValue]:
    """Return the values with those of the three sizes as one."""
    sizes = [each for each in values if each.name.startswith("map_")]
    kept = [each for each in values if each not in sizes]
    if not sizes:
        return kept
    made = ReportValue(
        "sizes", _SIZES_INFO, None, parts=[each.value for each in sizes], note="mAP by size of the object"
    )
    place = 1 + max((number for number, each in enumerate(kept) if each.name in ("map", "ap50", "ap75")), default=-1)
    return [*kept[:place], made, *kept[place:]]


def _curves_of(
    curves: Mapping[str, Any], classes: Sequence[Mapping[str, Any]], precisions: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Return curves of the same classes with other precisions."""
    numbers = {each["class"]: number for number, each in enumerate(classes)}
    own = [{"class": each["class"], "precision": precisions[numbers[each["class"]]]} for each in curves["classes"]]
    return {"recall": curves["recall"], "classes": own}


def detection_colors(count: int) -> np.ndarray:
    """Return (count, 3) uint8, RGB of the classes by number; none is black."""
    return class_colors(count + 1)[1:]


def _shape(row: Sequence[float], names: Sequence[str], colors: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return left, top, width and height, name and color of a box and the number of its class."""
    left, top, right, bottom, number = row
    is_class = 0 <= number < len(names)
    return {
        "box": [round(each, 1) for each in (left, top, right - left, bottom - top)],
        "class": names[int(number)] if is_class else "",
        "color": "#{:02x}{:02x}{:02x}".format(*colors[int(number)]) if is_class else "#808080",
    }


def _state(each: ImageObject) -> int:
    """Return whether an object counts: one without an area or a class does not."""
    if each.crowd:
        return CROWD
    is_empty = each.width_px <= 0 or each.height_px <= 0
    return IGNORED if each.difficult or each.class_number < 0 or is_empty else 0


def _kitti_columns(details: Mapping[str, Any]) -> tuple[float, tuple[float, ...]]:
    """Return ``alpha``, and the columns from the rotation on; 0 where KITTI's columns are not there."""
    height, width, length = _numbers(details.get("dimensions"))
    names = ("rotation_y", "truncated", "occluded")
    alpha, rotation, truncated, occluded = (_numbers([details.get(each)] * 3)[0] for each in ("alpha", *names))
    return alpha, (rotation, truncated, occluded, length, width, height, *_numbers(details.get("location")))


def _numbers(values: Any) -> tuple[float, float, float]:
    """Return three numbers, zeros where they are none."""
    is_known = isinstance(values, Sequence) and len(values) == 3
    if not is_known or not all(isinstance(each, int | float) for each in values):
        return (0.0, 0.0, 0.0)
    return (float(values[0]), float(values[1]), float(values[2]))


DETECTION: Final = Detection()
