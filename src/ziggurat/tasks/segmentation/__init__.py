"""Segmentation: a class for each pixel."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.dataflow.standalone_prediction import binary_mask
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import (
    PrimaryMetric,
    SplitData,
    Task,
    TaskContext,
    as_color,
    chosen_thresholds,
    constant_scores,
    raw_outputs,
)
from ziggurat.tasks.baselines import Baseline
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.report import SHARE, MetricInfo, Report, ReportChart, ScoreInfo, plain_report
from ziggurat.tasks.segmentation_metrics import PROBABILITY_STEPS, SegmentationMetric, ThresholdCounts, sample_iou
from ziggurat.tasks.threshold_choice import ThresholdSamples

__all__ = ["SEGMENTATION", "class_colors", "palette"]

_COLORS: Final = (
    *("5aaef5", "e6b434", "e8577f", "9470ff", "cdeccf", "b8589c", "2ee59d", "57962f"),
    *("ff8a3d", "8a5a2b", "00c2d7", "f4f466", "0b64a0", "ff5ad0", "8d979e", "b3201d"),
)
"""RGB of the classes 1 to 16: ``--series-1`` to ``--series-8`` of the pages on dark ground, and eight more."""

_LONGEST_PX: Final = 4096
"""Longer side of a predicted mask at most."""

_SAMPLE_PX: Final = 96
"""Longer side of the masks that are kept of each of the few samples after a validation."""

_LOOKED_AT: Final = 2000
"""Masks that are looked at where a dataset does not name its classes."""


class Segmentation(Task):
    """Target: (H, W, 1) class numbers; numbers that are no class count for nothing.

    Output of the network: (N, H, W, classes) scores.
    """

    name = "segmentation"
    title = "image segmentation"
    primary_metric = PrimaryMetric("mean_iou", "max", "mean IoU")
    order = 10
    moves_with_image = ("mask",)
    score = ScoreInfo("IoU", SHARE)
    metric_info = {
        "mean_iou": MetricInfo("Mean IoU", SHARE, help="Intersection over union of each class over all pixels; mean."),
        "pixel_accuracy": MetricInfo("Pixel accuracy", SHARE, help="Share of pixels with the right class."),
        "classes": MetricInfo("Classes"),
        "iou": MetricInfo("IoU", SHARE),
        "precision": MetricInfo("Precision", SHARE),
        "recall": MetricInfo("Recall", SHARE),
        "pixels": MetricInfo("Pixels", mode=""),
        "predicted": MetricInfo("Predicted pixels", mode=""),
    }
    sample_pictures = ("image", "target", "predicted")

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no masks; empty where it has."""
        if schema.kind != "segmentation":
            return f"Segmentation needs images with masks; this dataset is of kind {schema.kind}."
        return ""

    def completed(self, schema: Schema, points: Callable[[], Iterable[Sequence[Any]]]) -> Schema:
        """Return the schema with numbers as names, where the dataset names no classes: up to the largest in the masks.

        The first masks of the training split are looked at; 255 and the ignored class are no classes. One that cannot
        be read is left out here, and counted when its turn comes.
        """
        if schema.class_names:
            return schema
        largest = 0
        for point in islice(points(), _LOOKED_AT):
            try:
                mask = point[1] if isinstance(point[1], np.ndarray) else decode_mask(bytes(point[1]), "")
            except DatapointError:
                continue
            numbers = np.unique(mask)
            numbers = numbers[(numbers != 255) & (numbers != schema.ignore_class)]
            largest = max(largest, int(numbers.max(initial=0)))
        return replace(schema, class_names=tuple(f"class {number}" for number in range(largest + 1)))

    def target(self, context: TaskContext) -> ArraySpec:
        """Return the mask, of the size that the network gets."""
        height, width, _ = context.preprocessing.shape
        return ArraySpec((height, width, 1), "int64", len(context.class_names))

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return a mask."""
        return ArraySpec((*shape[:2], 1), "int64", classes)

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return the fitted image (H, W, C) uint8, and its mask (H, W), resized like it without new numbers.

        Raises:
            DatapointError: where one of them cannot be read.
        """
        preprocessing = context.preprocessing
        assert isinstance(preprocessing, Preprocessing)
        mask = point[1] if isinstance(point[1], np.ndarray) else decode_mask(bytes(point[1]), key)
        image = preprocessing.decode(point[0], key)
        return [image, preprocessing.fit_mask(mask, self.mask_fill(context))]

    def batch(self, context: TaskContext, arrays: Sequence[np.ndarray], finish: Any) -> list[np.ndarray]:
        """Return images, and masks (N, H, W, 1); pixels of the ignored class are 255, or more where that is a class."""
        masks = arrays[1].astype(np.int64)
        classes, ignored = len(context.class_names), context.schema.ignore_class
        outside = (masks >= classes) if ignored is None else (masks >= classes) | (masks == ignored)
        masks[outside] = max(255, classes)
        return [finish(arrays[0]), masks[..., None]]

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return IoU, precision and recall of each class, and their confusion."""
        return [SegmentationMetric(context.class_names, max(255, len(context.class_names)))]

    def evaluation_metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return the same; of two classes also the pixels by which a threshold is chosen."""
        counts = [ThresholdCounts(max(255, len(context.class_names)))] if len(context.class_names) == 2 else []
        return [*self.metrics(context), *counts]

    def summary_metrics(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``metrics``, and apart from them what a threshold is chosen by."""
        kept = {"threshold_counts": values["threshold_counts"]} if "threshold_counts" in values else {}
        return {"metrics": {name: value for name, value in values.items() if name not in kept}, **kept}

    def threshold_samples(
        self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Sequence[ThresholdSamples]:
        """Return the pixels of two classes, by the probability of the second one."""
        found = np.array(summary.get("threshold_counts", ()), np.int64)
        if found.shape != (2, len(PROBABILITY_STEPS)):
            return ()
        is_right = np.repeat([False, True], len(PROBABILITY_STEPS))
        return [ThresholdSamples(np.tile(PROBABILITY_STEPS, 2), is_right, int(found[1].sum()), found.ravel())]

    def baselines(self, context: TaskContext, train: SplitData, val: SplitData) -> list[Baseline]:
        """Return what the class of the most pixels of the training split reaches, everywhere."""
        classes = len(context.class_names)
        counts = np.zeros(classes, np.int64)
        for _, mask, *_ in train.samples():
            numbers = np.bincount(mask.ravel(), minlength=classes)[:classes]
            if context.schema.ignore_class is not None and context.schema.ignore_class < classes:
                numbers[context.schema.ignore_class] = 0
            counts += numbers
        scores = np.zeros((*self.target(context).shape[:2], classes), np.float32)
        scores[..., counts.argmax()] = 1
        found = constant_scores(context, scores, val)
        return [Baseline(name="majority", title="most frequent class in all pixels", scores=found)]

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return IoU and share of correct pixels of each sample."""
        return {"score": np.zeros(samples, np.float32), "pixel_accuracy": np.zeros(samples, np.float32)}

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch: of each sample, the mean IoU of the classes in its mask or prediction."""
        classes = len(context.class_names)
        found = _predicted(outputs["output"], classes)
        iou, share = sample_iou(found, np.asarray(targets["y"])[..., 0], classes, max(255, classes))
        return {"score": iou, "pixel_accuracy": share}

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return the names and colors of the classes."""
        return {"classifier": False, "classes": list(context.class_names), "palette": palette(context.schema).tolist()}

    def report(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Report:
        """Return metrics, the confusion of pixels, and a table of the classes, the worst first."""
        metrics = summary.get("metrics") or {}
        plain = plain_report(metrics, self.metric_info, self.primary_metric.name)
        colors = ["#{:02x}{:02x}{:02x}".format(*each) for each in summary.get("palette") or ()]
        tables = [
            replace(each, rows=_worst_first(each.rows, colors), bar="iou") if each.name == "classes" else each
            for each in plain.tables
        ]
        return Report(plain.values, tables, _confusion_charts(metrics))

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there are scores for each pixel, and the colors of the classes."""
        colors = palette(context.schema).tolist()
        return {"form": "mask", "output": "output", "palette": colors, **chosen_thresholds(context)}

    def threshold_names(self, class_names: Sequence[str]) -> tuple[str, ...]:
        """Return the second of two classes, from whose probability on a pixel is of it."""
        return (class_names[1],) if len(class_names) == 2 else ()

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``size`` (height, width), and ``classes``: share of the pixels and color, the largest first."""
        classes = len(context.class_names)
        if "output" not in outputs or np.ndim(outputs["output"]) != 3:
            return raw_outputs(outputs)
        mask = _predicted(np.asarray(outputs["output"])[None], classes, context.thresholds)[0]
        counts = np.bincount(mask.ravel(), minlength=classes)
        colors = palette(context.schema)
        order = [number for number in np.argsort(-counts, kind="stable").tolist() if counts[number]]
        return {
            "size": list(mask.shape),
            "classes": [
                {
                    "class": context.class_names[number],
                    "number": number,
                    "share": float(counts[number] / mask.size),
                    "color": "#{:02x}{:02x}{:02x}".format(*colors[number].tolist()),
                }
                for number in order
            ],
        }

    def picture(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the predicted mask in the colors of the classes, (H, W, 3) uint8; None where there are no scores."""
        if "output" not in outputs or np.ndim(outputs["output"]) != 3:
            return None
        mask = _predicted(np.asarray(outputs["output"])[None], len(context.class_names), context.thresholds)[0]
        return palette(context.schema)[mask]

    def placed(
        self, context: TaskContext, prediction: Mapping[str, Any], original_size: tuple[int, int]
    ) -> dict[str, Any]:
        """Return the prediction with the size of the original image; shares are those of what the network saw."""
        return {**prediction, "size": list(original_size)} if "classes" in prediction else dict(prediction)

    def placed_picture(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], original_size: tuple[int, int]
    ) -> np.ndarray | None:
        """Return the predicted mask on the original image: the class with the largest score, between pixels too.

        Of two classes with an operating point it is the second one from its threshold on.
        """
        preprocessing, scores = context.preprocessing, np.asarray(outputs.get("output", ()), np.float32)
        if (
            scores.ndim != 3
            or scores.shape[2] != len(context.class_names)
            or not isinstance(preprocessing, Preprocessing)
        ):
            return None
        shrink = min(1.0, _LONGEST_PX / max(original_size))
        height, width = (max(1, round(side * shrink)) for side in original_size)
        scale_y, scale_x, top, left = preprocessing.placement(original_size, is_cropped=True)
        # Where the middle of each pixel of the original lies among those of the network.
        rows = (np.arange(height) + 0.5) * (original_size[0] / height) * scale_y + top - 0.5
        columns = (np.arange(width) + 0.5) * (original_size[1] / width) * scale_x + left - 0.5
        across, down = (each.astype(np.float32) for each in np.meshgrid(columns, rows))
        best, mask = np.full((height, width), -np.inf, np.float32), np.zeros((height, width), np.int64)
        planes: list[np.ndarray] = []
        for number in range(scores.shape[2]):  # one class at a time: all of a large photo would take gigabytes
            plane = np.ascontiguousarray(scores[..., number])
            found = cv2.remap(plane, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            if context.thresholds:  # of two classes
                planes.append(found)
                continue
            is_better = found > best
            best[is_better], mask[is_better] = found[is_better], number
        if planes:
            mask = binary_mask(np.stack(planes, axis=-1), context.thresholds)
        colors = palette(context.schema)[mask]
        is_seen = np.outer(_is_inside(rows, scores.shape[0]), _is_inside(columns, scores.shape[1]))
        return colors if is_seen.all() else np.dstack([colors, np.where(is_seen, 255, 0).astype(np.uint8)])

    def sample_label(self, context: TaskContext, arrays: Sequence[np.ndarray]) -> dict[str, Any]:
        """Return ``mask``: a small PNG in the colors of the classes, as base64; what counts for nothing is clear."""
        return {"mask": _small_png(_true_colors(context.schema, np.asarray(arrays[1])))}

    def sample_prediction(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
        """Return ``mask``, as for ``sample_label``."""
        found = self.picture(context, outputs)
        return None if found is None else {"mask": _small_png(found)}

    def pictures(
        self, context: TaskContext, arrays: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the image, and both masks in the colors of the classes; what counts for nothing is clear (RGBA)."""
        found = {"image": as_color(arrays[0]), "target": _true_colors(context.schema, np.asarray(arrays[1]))}
        predicted = self.picture(context, outputs)
        return found if predicted is None else {**found, "predicted": predicted}


def _is_inside(places: np.ndarray, side: int) -> np.ndarray:
    """Return which places lie on pixels from 0 to ``side`` - 1, to their edges."""
    return (places >= -0.5 - 1e-6) & (places <= side - 0.5 + 1e-6)


def _true_colors(schema: Schema, mask: np.ndarray) -> np.ndarray:
    """Return a mask in the colors of its classes, (H, W, 4) uint8; what counts for nothing is clear."""
    colors, ignored = palette(schema), schema.ignore_class
    counts = mask < len(colors) if ignored is None else (mask < len(colors)) & (mask != ignored)
    alpha = np.where(counts, 255, 0).astype(np.uint8)[..., None]
    return np.concatenate([colors[np.where(counts, mask, 0)], alpha], axis=2)


def _small_png(colors: np.ndarray) -> str:
    """Return a mask of at most 96 px as the text of a PNG: every n-th pixel, so that no new color comes in."""
    step = -(-max(colors.shape[:2]) // _SAMPLE_PX)
    return base64.b64encode(encode_image(np.ascontiguousarray(colors[::step, ::step]), "png")).decode("ascii")


def _worst_first(rows: Sequence[Mapping[str, Any]], colors: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows of the classes with their colors, that of the smallest IoU first, those without one last."""
    colored = [{**row, "color": color} for row, color in zip(rows, [*colors, *[""] * len(rows)], strict=False)]
    return sorted(colored, key=lambda row: (row["iou"] is None, row["iou"] or 0.0))


def _confusion_charts(metrics: Mapping[str, Any]) -> list[ReportChart]:
    matrix, classes = metrics.get("confusion"), metrics.get("classes")
    if not matrix or not classes:
        return []
    names = [str(each["class"]) for each in classes]
    data = {
        "kind": "heat",
        "rows": names,
        "columns": names,
        "values": matrix,
        "shares": [[value / max(1, sum(row)) for value in row] for row in matrix],
        "x": "Predicted",
        "y": "Actual",
        "unit": "Pixels",
        "is_percent": True,
    }
    note = "Percent: of the pixels of the actual class. Share: of all pixels that count."
    return [ReportChart("confusion", "Confusion of pixels", data, note)]


def palette(schema: Schema) -> np.ndarray:
    """Return (classes, 3) uint8, RGB of each class: that of the dataset, else well separated colors; class 0 black."""
    count = len(schema.class_names)
    if len(schema.colours) >= count:
        return np.array(schema.colours[:count], np.uint8).reshape(count, 3)
    return class_colors(count)


def class_colors(count: int) -> np.ndarray:
    """Return (count, 3) uint8, RGB of classes that no color was given for; the first one is black."""
    # Beyond the chosen ones, the colors of Pascal VOC masks: the bits of the number go to red, green and blue in turn.
    numbers = np.arange(count)
    colors = np.zeros((count, 3), np.uint8)
    for place in range(8):
        for channel in range(3):
            colors[:, channel] |= (((numbers >> (3 * place + channel)) & 1) << (7 - place)).astype(np.uint8)
    chosen = [tuple(bytes.fromhex(text)) for text in _COLORS[: max(0, count - 1)]]
    colors[1 : 1 + len(chosen)] = np.array(chosen, np.uint8).reshape(-1, 3)
    return colors


def _predicted(output: Any, classes: int, thresholds: Sequence[float] = ()) -> np.ndarray:
    """Return the class of each pixel, (N, H, W), by the thresholds of an operating point if there is one."""
    scores = np.asarray(output)
    if scores.ndim != 4 or scores.shape[-1] != classes:
        raise DataError(
            f"The network gives shape {scores.shape}, not a score for each of {classes} classes and each pixel.",
            advice="Return (N, H, W, classes).",
        )
    return binary_mask(scores, thresholds)


SEGMENTATION: Final = Segmentation()
