"""Operations on boxes for network files: ``digits.nms`` and ``digits.roi_align``."""

from __future__ import annotations

import torch

from ziggurat.backends.torch import standalone_boxes
from ziggurat.errors import UsageError

__all__ = ["nms", "roi_align"]


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou: float = 0.65, most: int | None = None) -> torch.Tensor:
    """Return the numbers of the boxes that greedy non-maximum suppression keeps, best first.

    Of equal scores the first box comes first. A box is dropped where it overlaps a kept one by more than ``iou``.
    Without ``most`` the length depends on the numbers, which an exported program cannot have.

    Args:
        boxes: (K, 4), left, top, right, bottom, of one image and class.
        scores: (K).
        iou: the largest intersection over union of two kept boxes.
        most: how many numbers are returned, with -1 after the last one; None for all that are kept.

    Returns:
        int64, (kept) or (most).

    Raises:
        UsageError: where boxes and scores do not belong together.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise UsageError(
            "`digits.nms` takes boxes (K, 4) and scores (K).",
            received=f"shapes {tuple(boxes.shape)} and {tuple(scores.shape)}",
            advice="Give it the boxes of one image and class.",
        )
    return standalone_boxes.nms(boxes, scores, iou, most)


def roi_align(
    x: torch.Tensor,
    boxes: torch.Tensor,
    output_size: int | tuple[int, int],
    *,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = True,
) -> torch.Tensor:
    """Return the features of each box on a grid of one size: means of bilinear samples, and no rounding of sides.

    RoIAlign of He et al., "Mask R-CNN" (ICCV 2017, sec. 3), with the borders of torchvision's operation: a sample up to
    one px outside of the image has the value of its border, further out it is 0.

    Args:
        x: (N, C, H, W) features.
        boxes: (R, 5): number of the image in the batch, left, top, right, bottom.
        output_size: height and width of the grid, or one number for both.
        spatial_scale: px of the features for one px of the boxes.
        sampling_ratio: samples in a cell of the grid along each side.
        aligned: whether the middle of the first px is at 0.5, as in every image here; False for models that were
            trained with it at 0.

    Returns:
        (R, C, height, width).

    Raises:
        UsageError: where features or boxes have another shape.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 5 or x.ndim != 4:
        raise UsageError(
            f"`digits.roi_align` got shapes {tuple(x.shape)} and {tuple(boxes.shape)}, not features (N, C, "
            "H, W) and boxes (R, 5): image, left, top, right, bottom.",
            advice="Put the number of its image before each box.",
        )
    samples = {"spatial_scale": spatial_scale, "sampling_ratio": sampling_ratio}
    return standalone_boxes.roi_align(x, boxes, output_size, **samples, aligned=aligned)
