"""Mixing of the samples of training batches (Mixup, CutMix) for networks that learn one class for each image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.imgaug.mixing import blended, pasted, random_box
from ziggurat.dataflow.preprocessing import Augmentation
from ziggurat.errors import DataError
from ziggurat.tasks.base import TaskContext

__all__ = ["MixSamples", "Mixture", "check_mixing"]

_HALF: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """How the samples of one batch are mixed.

    Args:
        order: (N,) place in the batch of what is mixed into each sample: each place once, so that no label is lost.
        share: of each image that is its own.
        box: (y0, x0, y1, x1) in pixels of the rectangle that comes from the other image; None to blend all of it.
    """

    order: np.ndarray
    share: float
    box: tuple[int, int, int, int] | None = None

    def images(self, images: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return mixed images.

        Args:
            images: (N, H, W, C).
            others: (N, H, W, C), what is mixed into each.
        """
        return blended(images, others, self.share) if self.box is None else pasted(images, others, self.box)[0]

    def labels(self, own: Any, others: Any) -> tuple[Any, Any, float]:
        """Return the labels with the larger share, the others, and that larger share.

        Args:
            own: labels of the images.
            others: labels of what is mixed into them.
        """
        return (own, others, self.share) if self.share >= _HALF else (others, own, 1.0 - self.share)


class MixSamples:
    """Makes ``[x, y, second_y, share]`` of a batch ``[x, y]`` of images and class numbers.

    A sample is of the class ``y`` by ``share`` (N) float32, one number from 0.5 to 1 for all of a batch, and of the
    class ``second_y`` by the rest. Sources: Zhang et al., "mixup: beyond empirical risk minimization" (ICLR 2018); Yun
    et al., "CutMix: regularization strategy to train strong classifiers with localizable features" (ICCV 2019).

    Args:
        mixup: shares of blended images are drawn from Beta(mixup, mixup); 0 for none.
        cutmix: shares of areas are drawn from Beta(cutmix, cutmix); 0 for none. With both, half of the batches each.
    """

    def __init__(self, mixup: float, cutmix: float) -> None:
        self._mixup = mixup
        self._cutmix = cutmix

    def draw(self, count: int, height: int, width: int, rng: np.random.RandomState) -> Mixture:
        """Return how a batch is mixed.

        Args:
            count: of its samples.
            height: of the images, in pixels.
            width: likewise.
            rng: of the batch.
        """
        order = rng.permutation(count)
        is_blended = rng.random_sample() < _HALF if self._mixup and self._cutmix else bool(self._mixup)
        if is_blended:
            share = float(rng.beta(self._mixup, self._mixup))
            # Both are as likely, and so the image that one sees most of is the one that it is counted as.
            return Mixture(order=order, share=max(share, 1.0 - share))
        y0, x0, y1, x1 = random_box(self._cutmix, height, width, rng)
        return Mixture(order=order, share=1.0 - (y1 - y0) * (x1 - x0) / (height * width), box=(y0, x0, y1, x1))

    def __call__(self, batch: Any, rng: np.random.RandomState) -> list[np.ndarray]:
        """Return the mixed batch."""
        images, labels = batch[0], np.asarray(batch[1])
        count, height, width, _ = images.shape
        mixture = self.draw(count, height, width, rng)
        first, second, share = mixture.labels(labels, labels[mixture.order])
        shares = np.full(count, share, np.float32)
        return [mixture.images(images, images[mixture.order]), first, second, shares]


def check_mixing(augmentation: Augmentation, batch_size: int, context: TaskContext) -> None:
    """Refuse to mix samples where it makes no sense.

    Args:
        augmentation: of a job.
        batch_size: samples of a batch.
        context: task and schema of the job.

    Raises:
        DataError: with the reason of the task, or where there is nothing to mix a sample with.
    """
    if augmentation.mosaic and not context.task.joins_objects:
        raise DataError(
            f"`augmentation.mosaic` is {augmentation.mosaic:g}: a mosaic joins the boxes of four "
            f"images, and in {context.task.title} there are none.",
            advice="Set it to 0.",
        )
    if augmentation.cutmix and context.task.joins_objects:
        raise DataError(
            "CutMix cuts through the objects of images.",
            received=f"`augmentation.cutmix` {augmentation.cutmix:g}",
            advice="Set it to 0; `augmentation.mosaic` and `augmentation.mixup` keep objects.",
        )
    if not augmentation.mixes:
        return
    reason = context.task.why_not_mixed(context.schema)
    if reason:
        raise DataError(
            f"Mixup and CutMix do not fit this task. {reason}",
            received=f"`augmentation.mixup` {augmentation.mixup:g}, `augmentation.cutmix` {augmentation.cutmix:g}",
            advice="Set both to 0.",
        )
    if batch_size < 2:
        raise DataError(
            f"`batch_size` is {batch_size}: Mixup and CutMix mix the samples of a batch, so it must have two or more.",
            advice="Make it larger, or set `augmentation.mixup` and `augmentation.cutmix` to 0.",
        )
