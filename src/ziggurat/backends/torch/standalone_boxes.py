"""Boxes in PyTorch without torchvision: non-maximum suppression, RoI align, and the detections of an output.

A box is left, top, right, bottom in px. The module needs PyTorch alone: an export of weights contains it, for network
files that call ``digits.anchor_points``, ``digits.nms`` or ``digits.roi_align``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch.nn import functional

__all__ = ["Kept", "anchor_points", "best_detections", "first_kept", "nms", "overlaps", "roi_align"]

_BLOCK: Final = 1024
"""Boxes that are compared with each other at once: 1024² overlaps are 4 MiB."""

_MOST_CANDIDATES: Final = 1000


def anchor_points(height: int, width: int, strides: Sequence[int] = (8, 16, 32)) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the places that a detector predicts a box at: the centers of the cells of its feature maps.

    Args:
        height: of the input in px; feature maps are rounded up.
        width: likewise.
        strides: px of the input for one cell of each feature map.

    Returns:
        points: (K, 2) float32 x and y in px, feature map by feature map, row by row.
        sizes: (K, 1) float32 the stride of each.
    """
    points, sizes = [], []
    for stride in strides:
        rows, columns = (torch.arange(-(-side // stride), dtype=torch.float32) for side in (height, width))
        y, x = torch.meshgrid((rows + 0.5) * stride, (columns + 0.5) * stride, indexing="ij")
        points.append(torch.stack([x.flatten(), y.flatten()], dim=1))
        sizes.append(torch.full((x.numel(), 1), float(stride)))
    return torch.cat(points), torch.cat(sizes)


def overlaps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the intersection over union of all pairs, (…, A, B); 0 where both boxes are empty.

    Args:
        a: (…, A, 4) boxes.
        b: (…, B, 4) boxes.
    """
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    union = _areas(a)[..., :, None] + _areas(b)[..., None, :] - shared
    return torch.where(union > 0, shared / union.clamp(min=torch.finfo(union.dtype).tiny), torch.zeros_like(shared))


def nms(boxes: torch.Tensor, scores: torch.Tensor, iou: float = 0.65, most: int | None = None) -> torch.Tensor:
    """Return the numbers of the boxes that greedy non-maximum suppression keeps, best first.

    Of equal scores the first box comes first. A box is dropped where it overlaps a kept one by more than ``iou``.
    Without ``most`` the length depends on the numbers, which an exported program cannot have.

    Args:
        boxes: (K, 4) of one class.
        scores: (K).
        iou: the largest intersection over union of two kept boxes.
        most: how many numbers are returned, with -1 after the last one; None for all that are kept.

    Returns:
        int64, (kept) or (most).
    """
    order = scores.argsort(descending=True, stable=True)
    if most is None:
        return _all_kept(boxes, order, iou)
    rows = functional.pad(boxes[order], (0, 0, 0, most))[None]  # there may be fewer than are returned
    is_there = functional.pad(torch.ones_like(scores), (0, most))[None]
    places, is_found = first_kept(rows, is_there, torch.zeros_like(is_there), 1, iou, most)
    return torch.where(is_found[0], functional.pad(order, (0, most), value=-1)[places[0]], -1)


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
    """
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    corners = boxes[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    y = _axis(corners[:, 1], corners[:, 3], (height, sampling_ratio), x.shape[2], aligned)
    x_axis = _axis(corners[:, 0], corners[:, 2], (width, sampling_ratio), x.shape[3], aligned)
    image = boxes[:, 0].long()[:, None, None]
    samples = torch.zeros(())
    for rows, row_share in y:
        for columns, column_share in x_axis:
            share = row_share[:, :, None] * column_share[:, None, :]
            samples = samples + x[image, :, rows[:, :, None], columns[:, None, :]] * share[..., None]
    cells = samples.unflatten(2, (width, sampling_ratio)).unflatten(1, (height, sampling_ratio)).mean((2, 4))
    return cells.permute(0, 3, 1, 2)


Kept = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, int, float, int], tuple[torch.Tensor, torch.Tensor]]
"""Finds the boxes that are kept, as ``first_kept`` does."""


def best_detections(
    output: torch.Tensor, *, least_score: float, iou: float = 0.65, most: int = 100, kept: Kept | None = None
) -> torch.Tensor:
    """Return what ``ziggurat.tasks.detection_boxes.best_detections`` returns, by operations that programs can hold.

    Args:
        output: (N, K, 4 + classes).
        least_score: detections have at least this score, and more than 0.
        iou: the largest intersection over union of two detections of a class.
        most: detections of an image.
        kept: another way to do what ``first_kept`` does.

    Returns:
        (N, most, 6) float32: left, top, right, bottom, score, class.
    """
    rows = _candidates(output.float(), least_score)
    rows = functional.pad(rows, (0, 0, 0, max(0, most - rows.shape[1])))
    classes = output.shape[2] - 4
    places, is_found = (kept or first_kept)(rows[..., :4], rows[..., 4], rows[..., 5], classes, iou, most)
    return rows.gather(1, places[..., None].expand(-1, -1, 6)) * is_found[..., None]


def first_kept(
    boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, count: int, iou: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the places of the first boxes that are kept, (N, most) int64, and whether there are so many, bool.

    Args:
        boxes: (N, K, 4) by falling score; K is ``most`` or more.
        scores: (N, K) with 0 in padding.
        classes: (N, K) float, whole numbers.
        count: number of classes.
        iou: the largest overlap of two kept boxes of a class.
        most: how many are found. Each is a part of the program: one without a loop is held by every format.
    """
    low, high, areas = boxes[..., :2], boxes[..., 2:], _areas(boxes)
    numbers = torch.arange(boxes.shape[1], device=boxes.device)
    is_open = scores > 0
    places, is_found = [], []
    for _ in range(most):
        best = is_open.to(torch.uint8).argmax(1, keepdim=True)
        places.append(best)
        is_found.append(is_open.gather(1, best))
        corners = best[..., None].expand(-1, -1, 2)
        sides = torch.minimum(high, high.gather(1, corners)) - torch.maximum(low, low.gather(1, corners))
        shared = sides.clamp(min=0).prod(-1)
        is_near = shared * (1 + iou) > (areas + areas.gather(1, best)) * iou
        is_near = (is_near & (classes == classes.gather(1, best))) | (numbers == best)
        is_open = is_open & ~is_near
    return torch.cat(places, 1), torch.cat(is_found, 1)


def _candidates(output: torch.Tensor, least_score: float) -> torch.Tensor:
    """Return the best pairs of box and class of each image, by falling score, (N, at most 1,000, 6)."""
    boxes, scores = output[..., :4], output[..., 4:]
    is_box = (boxes.abs() <= torch.finfo(torch.float32).max).all(-1)
    is_box = is_box & (boxes[..., 2:] >= boxes[..., :2]).all(-1)
    scores = torch.where((scores >= least_score) & is_box[..., None], scores, 0.0).flatten(1)
    length = min(_MOST_CANDIDATES, scores.shape[1])
    scores, places = scores.sort(dim=1, descending=True, stable=True)
    scores, places = scores[:, :length], places[:, :length]
    count = output.shape[2] - 4
    numbers = torch.div(places, count, rounding_mode="floor")
    boxes = torch.where(is_box[..., None], boxes, 0.0).gather(1, numbers[..., None].expand(-1, -1, 4))
    return torch.cat([boxes, scores[..., None], (places - numbers * count)[..., None].float()], dim=-1)


def _areas(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _all_kept(boxes: torch.Tensor, order: torch.Tensor, iou: float) -> torch.Tensor:
    kept = order[:0]
    for whole in order.split(_BLOCK):
        block = whole[~(overlaps(boxes[kept], boxes[whole]) > iou).any(0)]
        is_near = (overlaps(boxes[block], boxes[block]) > iou).triu(diagonal=1)
        is_kept = torch.ones_like(block, dtype=torch.bool)
        for _ in range(len(block)):  # a round settles one more box at least, and mostly all of them in a few rounds
            found = ~(is_near & is_kept[:, None]).any(0)
            if torch.equal(found, is_kept):
                break
            is_kept = found
        kept = torch.cat([kept, block[is_kept]])
    return kept


def _axis(
    start: torch.Tensor, end: torch.Tensor, cells: tuple[int, int], length: int, aligned: bool
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the two px that each sample along an axis lies between, (R, samples) int64, and the share of each.

    Args:
        start: (R) sides of the boxes in px of the features.
        end: (R).
        cells: how many there are, and samples in each.
        length: of the features.
        aligned: whether a box may be smaller than one px.
    """
    count = cells[0] * cells[1]
    sides = end - start if aligned else (end - start).clamp(min=1.0)
    steps = (torch.arange(count, device=start.device, dtype=start.dtype) + 0.5) / count
    place = start[:, None] + sides[:, None] * steps
    is_inside = (place >= -1.0) & (place <= length)
    place = place.clamp(0, length - 1)
    first = place.floor()
    share = place - first
    second = (first + 1).clamp(max=length - 1)
    return [(first.long(), (1 - share) * is_inside), (second.long(), share * is_inside)]
