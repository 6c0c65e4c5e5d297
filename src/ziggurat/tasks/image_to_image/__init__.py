"""Image to image: an image is learned, that of a pair or the input itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.errors import DataError
from ziggurat.records.schema import Schema
from ziggurat.tasks.arrays import ArraySpec
from ziggurat.tasks.base import PrimaryMetric, SplitData, Task, TaskContext, as_color, constant_scores, raw_outputs
from ziggurat.tasks.baselines import Baseline
from ziggurat.tasks.image_metrics import ImageMetric, sample_mse
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.report import MetricInfo, ScoreInfo

__all__ = ["IMAGE_TO_IMAGE"]

_KINDS: Final = ("image-to-image", "image-classification")
_WHITE: Final = 255.0
_MOST_OF_SHARES: Final = 2.0
"""Largest absolute value of outputs that are taken to be on the scale from 0 to 1."""


class ImageToImage(Task):
    """Target: (H, W, C) float32 from 0 to 255. Output: (N, H, W, C), from 0 to 255 or from 0 to 1.

    A batch of outputs without a number beyond ±2 is on the scale from 0 to 1. Photometric
    augmentation, such as noise, varies the input only, so that a network learns to undo it.
    """

    name = "image-to-image"
    title = "image to image"
    primary_metric = PrimaryMetric("psnr", "max", "PSNR")
    order = 50
    moves_with_image = ("image",)
    score = ScoreInfo("mean squared error", sign=-1)
    metric_info = {
        "psnr": MetricInfo("PSNR", "dB", help="Peak signal to noise ratio, mean of the images."),
        "ssim": MetricInfo("SSIM", help="Structural similarity, at most 1, mean of the images."),
        "mse": MetricInfo("Mean squared error", mode="min", help="Of pixels from 0 to 1, mean of the images."),
    }
    sample_pictures = ("image", "target", "predicted")

    def accepts(self, schema: Schema) -> str:
        """Return why a dataset has no images to learn; empty where it has."""
        if schema.kind not in _KINDS:
            return f"Image to image needs images, or pairs of input and target; this dataset is of kind {schema.kind}."
        return ""

    def target(self, context: TaskContext) -> ArraySpec:
        """Return the target image, of the size that the network gets."""
        return ArraySpec(context.preprocessing.shape, "float32")

    def usual_target(self, shape: Sequence[int], classes: int) -> ArraySpec:
        """Return an image of the size of the input."""
        return ArraySpec(tuple(shape))

    def sample(self, context: TaskContext, point: Sequence[Any], key: Any) -> list[np.ndarray]:
        """Return input and target, both fitted (H, W, C) uint8; an image without a partner is its own target.

        Raises:
            DatapointError: where one of them cannot be read.
        """
        image = context.preprocessing.decode(point[0], key)
        is_pair = context.schema.kind == "image-to-image" and point[1] is not point[0]
        return [image, context.preprocessing.decode(point[1], key) if is_pair else image]

    def batch(
        self, context: TaskContext, arrays: Sequence[np.ndarray], finish: Callable[[np.ndarray], np.ndarray]
    ) -> list[np.ndarray]:
        """Return inputs and targets; the mean is taken off the inputs only."""
        return [finish(arrays[0]), arrays[1].astype(np.float32)]

    def metrics(self, context: TaskContext) -> Sequence[Metric]:
        """Return PSNR, SSIM and mean squared error."""
        return [_AnyScale(_WHITE)]

    def baselines(self, context: TaskContext, train: SplitData, val: SplitData) -> list[Baseline]:
        """Return what the mean target image of the training split reaches."""
        total, count = np.zeros(self.target(context).shape), 0
        for batch in train.batches():
            total += batch[1].sum(axis=0, dtype=np.float64)
            count += len(batch[1])
        scores = constant_scores(context, (total / max(1, count)).astype(np.float32), val)
        return [Baseline(name="mean_image", title="mean image of the training split", scores=scores)]

    def result_arrays(self, context: TaskContext, samples: int, top: int) -> dict[str, np.ndarray]:
        """Return minus the mean squared error of each sample, on the scale from 0 to 1."""
        return {"score": np.zeros(samples, np.float32)}

    def results(
        self, context: TaskContext, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the results of a batch."""
        target = np.asarray(targets["y"])
        return {"score": -sample_mse(_on_white(outputs["output"], target.shape), target, _WHITE)}

    def summary_fields(self, context: TaskContext, is_known: bool) -> Mapping[str, Any]:
        """Return that there are no classes."""
        return {"classifier": False, "classes": []}

    def postprocessing(self, context: TaskContext) -> Mapping[str, Any]:
        """Return that there is an image."""
        return {"form": "image", "output": "output"}

    def decode(self, context: TaskContext, outputs: Mapping[str, np.ndarray], *, top: int = 5) -> dict[str, Any]:
        """Return ``size`` (height, width), and the mean, least and largest value, from 0 to 255."""
        if "output" not in outputs or np.ndim(outputs["output"]) != 3:
            return raw_outputs(outputs)
        image = _on_white(np.asarray(outputs["output"])[None], None)[0]
        return {
            "size": list(image.shape[:2]),
            "mean": float(image.mean()),
            "least": float(image.min()),
            "largest": float(image.max()),
        }

    def picture(self, context: TaskContext, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Return the predicted image, (H, W, 3) uint8; None where there is none."""
        if "output" not in outputs or np.ndim(outputs["output"]) != 3:
            return None
        return as_color(_as_seen(outputs["output"]))[..., :3]

    def pictures(
        self, context: TaskContext, arrays: Sequence[np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return input, target and, where there is one, the predicted image."""
        found = {"image": as_color(arrays[0]), "target": as_color(arrays[1])}
        predicted = self.picture(context, outputs)
        return found if predicted is None else {**found, "predicted": predicted}


class _AnyScale(ImageMetric):
    """The metrics of outputs from 0 to 255 or from 0 to 1."""

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        target = np.asarray(targets["y"])
        super().update({"output": _on_white(outputs["output"], target.shape)}, {"y": target})


def _on_white(output: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Return a batch of output images on the scale from 0 to 255."""
    found = np.asarray(output, np.float32)
    if shape is not None and found.shape != shape:
        raise DataError(
            "A network for image to image gives an image of the size of its target.",
            received=f"shape {found.shape} for targets of shape {shape}",
        )
    return found * np.float32(_WHITE) if _is_share(found) else found


def _is_share(output: np.ndarray) -> bool:
    """Return whether outputs are on the scale from 0 to 1, which a linear output leaves a little."""
    return bool(output.size) and float(np.abs(output).max()) <= _MOST_OF_SHARES


def _as_seen(output: np.ndarray) -> np.ndarray:
    """Return an output image (H, W, C) as people see it, uint8."""
    image = _on_white(np.nan_to_num(np.asarray(output, np.float32)), None)
    return np.clip(np.rint(image), 0, _WHITE).astype(np.uint8)


IMAGE_TO_IMAGE: Final = ImageToImage()
