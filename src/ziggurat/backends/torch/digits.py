"""Helper module ``digits`` of network files on PyTorch: losses, accuracies, summaries and layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from ziggurat.backends.torch.batch_sums import share_of_batch as _share_of_batch
from ziggurat.backends.torch.boxes import nms, roi_align
from ziggurat.backends.torch.detection import boxes_of, detection_loss, generalized_iou
from ziggurat.backends.torch.standalone_boxes import anchor_points
from ziggurat.engine.network_files import model_property
from ziggurat.errors import UsageError

__all__ = [
    "STAGE_INF",
    "STAGE_TRAIN",
    "STAGE_VAL",
    "anchor_points",
    "bgr_to_rgb",
    "boxes_of",
    "chw_to_hwc",
    "classification_accuracy",
    "classification_accuracy_top_n",
    "classification_loss",
    "constrastive_loss",
    "contrastive_loss",
    "detection_loss",
    "generalized_iou",
    "get_available_gpus",
    "histogram",
    "hwc_to_chw",
    "image",
    "l2_regularization",
    "model_property",
    "mse_loss",
    "nchw_to_nhwc",
    "nhwc_to_nchw",
    "nms",
    "pixel_accuracy",
    "rgb_to_bgr",
    "roi_align",
    "scalar",
    "segmentation_loss",
]

STAGE_TRAIN: Final = "train"
STAGE_VAL: Final = "val"
STAGE_INF: Final = "inf"

_class_weights: list[torch.Tensor | None] = [None]


class using_class_weights:  # noqa: N801 - it is read as the function of a `with` statement
    """Lets losses weight classes inside. Every step enters it: a generator would cost more.

    Args:
        weights: (classes) float32 on the device of the batch; None for equal ones.
    """

    def __init__(self, weights: torch.Tensor | None) -> None:
        self._weights = weights

    def __enter__(self) -> None:
        _class_weights.append(self._weights)

    def __exit__(self, *error: object) -> None:
        _class_weights.pop()


@dataclass(frozen=True)
class Summary:
    """What a network shows of a batch.

    Args:
        kind: ``scalar``, ``image`` or ``histogram``.
        tag: its name.
        value: a scalar tensor; images (N, C, H, W) in [0, 1] or uint8; any numbers.
    """

    kind: str
    tag: str
    value: torch.Tensor


def scalar(tag: str, value: torch.Tensor) -> Summary:
    """Return a curve for ``self.summaries``.

    Args:
        tag: its name.
        value: a tensor of one number.

    Raises:
        UsageError: where it has more numbers.
    """
    if value.numel() != 1:
        raise UsageError(
            f"`digits.scalar` got a tensor of shape {tuple(value.shape)}, not one number.",
            advice="Reduce it with `.mean()`.",
        )
    return Summary("scalar", tag, value.reshape(()))


def image(tag: str, images: torch.Tensor) -> Summary:
    """Return images for ``self.summaries``; TensorBoard shows the first four.

    Args:
        tag: their name.
        images: (N, C, H, W) with 1, 3 or 4 channels; float in [0, 1], or uint8.

    Raises:
        UsageError: where they are of another shape.
    """
    if images.ndim != 4 or images.shape[1] not in (1, 3, 4):
        raise UsageError(
            "`digits.image` takes images (N, C, H, W) with 1, 3 or 4 channels.",
            received=f"shape {tuple(images.shape)}",
            advice="Choose channels, such as `x[:, :3]`.",
        )
    return Summary("image", tag, images)


def histogram(tag: str, values: torch.Tensor) -> Summary:
    """Return a histogram for ``self.summaries``.

    Args:
        tag: its name.
        values: any numbers, of any shape.
    """
    return Summary("histogram", tag, values)


def classification_loss(pred: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean softmax cross-entropy in nats; the mean weighted by class where the job has class weights.

    It is 0 where all weights of the batch are 0. That is the mean over N of −log softmax(pred)[y] (Bishop, "Pattern
    recognition and machine learning", 2006, eq. 4.108).

    Args:
        pred: (N, classes) float, logits.
        y: (N) int64, class numbers from 0.

    Returns:
        scalar.
    """
    weights = _class_weights[-1]
    if weights is None:
        return functional.cross_entropy(pred, y)
    total = functional.cross_entropy(pred, y, weight=weights, reduction="sum")
    return total / _share_of_batch(weights[y].sum(), len(y))


def segmentation_loss(pred: torch.Tensor, y: torch.Tensor, ignored: int = 255) -> torch.Tensor:
    """Return the mean softmax cross-entropy over pixels in nats; weighted by class where the job has class weights.

    A pixel whose label is no class counts for nothing; where no pixel counts, the loss is 0.

    Args:
        pred: (N, classes, H, W) float, logits.
        y: (N, H, W) integers, class numbers from 0.
        ignored: label that is no class; neither are those below 0, and those from ``classes`` on.

    Returns:
        scalar.
    """
    labels = _known_pixels(pred, y, ignored)
    weights = _class_weights[-1]
    total = functional.cross_entropy(pred, labels, weight=weights, ignore_index=-1, reduction="sum")
    is_known = labels >= 0
    count = is_known.sum() if weights is None else (weights[labels.clamp(min=0)] * is_known).sum()
    count = _share_of_batch(count, len(pred))
    return total / count


def pixel_accuracy(pred: torch.Tensor, y: torch.Tensor, ignored: int = 255) -> torch.Tensor:
    """Return the share of pixels whose largest logit is that of their class, in [0, 1]; 0 where no pixel counts.

    Args:
        pred: as for ``segmentation_loss``.
        y: likewise.
        ignored: likewise.

    Returns:
        float32 scalar.
    """
    labels = _known_pixels(pred, y, ignored)
    right = (pred.argmax(1) == labels).sum()
    return right / (labels >= 0).sum().clamp(min=1)


def mse_loss(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Return the mean of the squared difference over all elements, samples included.

    Args:
        lhs: float, any shape.
        rhs: of the same shape, or one that broadcasts to it.

    Returns:
        scalar, in the squared unit of the elements.
    """
    return (lhs - rhs).square().mean()


def contrastive_loss(lhs: torch.Tensor, rhs: torch.Tensor, y: torch.Tensor, margin: float = 1.0) -> torch.Tensor:
    """Return 1/(2N) Σ y·d² + (1 − y)·max(margin − d, 0)², with d the distance of two embeddings.

    Caffe's form of Hadsell, Chopra and LeCun, "Dimensionality reduction by learning an invariant mapping" (CVPR 2006).
    A tiny number under the root keeps the gradient finite where two embeddings are equal.

    Args:
        lhs: (N, D) float, one embedding a row.
        rhs: (N, D) float, its partner.
        y: (N), 1 where the two are of one kind, 0 where not.
        margin: distance from which two of different kinds cost nothing, in the unit of the embeddings.

    Returns:
        float32 scalar.
    """
    same = y.reshape(-1).to(lhs.dtype)
    squared = (lhs - rhs).square().sum(1)
    distance = (squared + 1e-12).sqrt()
    apart = (margin - distance).clamp(min=0).square()
    return (same * squared + (1 - same) * apart).mean() / 2


constrastive_loss = contrastive_loss
"""``contrastive_loss`` as the guides spell it."""


def l2_regularization(module: nn.Module, scale: float) -> torch.Tensor:
    """Return ½ · scale · Σ w² over the weights of a module: its trained parameters of two axes or more.

    Add it to a loss. Biases and the factors of norms have one axis, and are left out.

    Args:
        module: whose parameters they are.
        scale: factor.
    """
    weights = [each for each in module.parameters() if each.ndim > 1 and each.requires_grad]
    total = torch.stack([each.square().sum() for each in weights]).sum() if weights else torch.zeros(())
    return 0.5 * scale * total


def classification_accuracy(pred: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the share of samples whose largest logit is that of their class, in [0, 1].

    Args:
        pred: (N, classes) float.
        y: (N) integers, class numbers from 0.

    Returns:
        float32 scalar.
    """
    return (pred.argmax(1) == y).mean(dtype=torch.float32)


def classification_accuracy_top_n(pred: torch.Tensor, y: torch.Tensor, top_n: int) -> torch.Tensor:
    """Return the share of samples whose class is among the ``top_n`` largest logits.

    Args:
        pred: (N, classes) float.
        y: (N) integers, class numbers from 0.
        top_n: how many count.

    Returns:
        float32 scalar in [0, 1].
    """
    return (pred.topk(top_n, dim=1).indices == y[:, None]).any(1).float().mean()


def nhwc_to_nchw(x: torch.Tensor) -> torch.Tensor:
    """Return (N, H, W, C) as (N, C, H, W); raises ``UsageError`` where its rank is not 4."""
    return _transposed(x, "nhwc_to_nchw", "(N, H, W, C)", (0, 3, 1, 2))


def nchw_to_nhwc(x: torch.Tensor) -> torch.Tensor:
    """Return (N, C, H, W) as (N, H, W, C); raises ``UsageError`` where its rank is not 4."""
    return _transposed(x, "nchw_to_nhwc", "(N, C, H, W)", (0, 2, 3, 1))


def hwc_to_chw(x: torch.Tensor) -> torch.Tensor:
    """Return (H, W, C) as (C, H, W); raises ``UsageError`` where its rank is not 3."""
    return _transposed(x, "hwc_to_chw", "(H, W, C)", (2, 0, 1))


def chw_to_hwc(x: torch.Tensor) -> torch.Tensor:
    """Return (C, H, W) as (H, W, C); raises ``UsageError`` where its rank is not 3."""
    return _transposed(x, "chw_to_hwc", "(C, H, W)", (1, 2, 0))


def bgr_to_rgb(x: torch.Tensor) -> torch.Tensor:
    """Return BGR as RGB: the channels in reverse order.

    Args:
        x: (C, H, W) or (N, C, H, W), any type.
    """
    return x.flip(-3)


def rgb_to_bgr(x: torch.Tensor) -> torch.Tensor:
    """Return RGB as BGR: the channels in reverse order.

    Args:
        x: (C, H, W) or (N, C, H, W), any type.
    """
    return x.flip(-3)


def get_available_gpus() -> list[str]:
    """Return the names of the GPUs that PyTorch sees, such as ``cuda:0``; an empty list where there is none."""
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def _known_pixels(pred: Any, y: torch.Tensor, ignored: int) -> torch.Tensor:
    """Return labels (N, H, W) int64, with −1 where they are no class."""
    labels = y.reshape(pred.shape[0], *pred.shape[2:]).long()
    known = (labels >= 0) & (labels < pred.shape[1]) & (labels != ignored)
    return torch.where(known, labels, -1)


def _transposed(x: torch.Tensor, name: str, form: str, order: tuple[int, ...]) -> torch.Tensor:
    if x.ndim != len(order):
        raise UsageError(
            f"`digits.{name}` takes a tensor of rank {len(order)}, {form}.",
            received=f"shape {tuple(x.shape)}",
            advice="Reshape it first.",
        )
    return x.permute(order)
