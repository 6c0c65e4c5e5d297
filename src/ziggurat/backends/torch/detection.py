"""Object detection in network files on PyTorch: targets as tensors, anchor points, and the loss of a detector."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from ziggurat.backends.torch.batch_sums import share_of_batch
from ziggurat.backends.torch.standalone_boxes import anchor_points
from ziggurat.tasks.detection_arrays import CLASS, COUNT, STATE

__all__ = ["Objects", "anchor_points", "boxes_of", "detection_loss", "generalized_iou"]

_EPSILON = 1e-7


@dataclass(frozen=True)
class Objects:
    """The objects of a batch, padded to the same number.

    Args:
        boxes: (N, M, 4) float32 left, top, right, bottom in px of the input; zeros in padding.
        classes: (N, M) int64; 0 in padding and where there is no class.
        is_object: (N, M) bool, whether a row is an object to find.
        is_ignored: (N, M) bool, whether a row is a region that counts for nothing.
    """

    boxes: torch.Tensor
    classes: torch.Tensor
    is_object: torch.Tensor
    is_ignored: torch.Tensor


def boxes_of(y: torch.Tensor) -> Objects:
    """Return the objects of a batch.

    Args:
        y: (N, 1, M + 1, 16) float32, the target of object detection as a network gets it.
    """
    rows = y[:, 0, 1:]
    is_there = torch.arange(rows.shape[1], device=y.device) < y[:, 0, :1, COUNT]
    is_ignored = is_there & ((rows[..., STATE] > 0) | (rows[..., CLASS] < 0))
    corners = torch.cat([rows[..., :2], rows[..., :2] + rows[..., 2:4]], dim=-1)
    return Objects(
        boxes=torch.where(is_there[..., None], corners, 0.0),
        classes=torch.where(is_there, rows[..., CLASS], 0.0).clamp(min=0).long(),
        is_object=is_there & ~is_ignored,
        is_ignored=is_ignored,
    )


def detection_loss(
    boxes: torch.Tensor,
    logits: torch.Tensor,
    y: torch.Tensor,
    points: torch.Tensor,
    *,
    candidates: int = 10,
    box_weight: float = 2.0,
) -> torch.Tensor:
    """Return the loss of a detector without anchor boxes: classes and boxes, for the rows that suit an object best.

    Of the points inside an object, those learn it whose ``score^0.5 * IoU^6`` is among the largest (Feng et al., "TOOD:
    task-aligned one-stage object detection", ICCV 2021). Scores learn how well they suit, by binary cross-entropy;
    boxes learn by the generalized IoU (Rezatofighi et al., CVPR 2019). The sum over a batch is divided by the sum of
    what the scores shall be, over all devices where there are several.

    Args:
        boxes: (N, K, 4) left, top, right, bottom in px of the input.
        logits: (N, K, classes).
        y: (N, 1, M + 1, 16), the target.
        points: (K, 2) x and y in px of the place that each row belongs to.
        candidates: rows that learn an object at most.
        box_weight: of the boxes in the sum.
    """
    boxes, logits = boxes.float(), logits.float()
    objects = boxes_of(y.float())
    with torch.no_grad():
        target, share = _assigned(objects, boxes, logits.sigmoid(), points, candidates)
        wanted = torch.zeros_like(logits)
        classes = objects.classes.gather(1, target)
        wanted.scatter_(2, classes[..., None], share[..., None])
        counts = (share > 0) | ~(_inside(points, objects.boxes) & objects.is_ignored[..., None]).any(dim=1)
        total = share_of_batch(share.sum(), len(boxes), at_least=1.0)
    entropy = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(dim=2)
    class_loss = (entropy * counts).sum() / total
    wanted_boxes = objects.boxes.gather(1, target[..., None].expand(-1, -1, 4))
    # Rows without an object have a box of no size: their overlap is not defined, and their share is 0.
    overlap = torch.where(share > 0, generalized_iou(boxes, wanted_boxes), 0.0)
    return class_loss + box_weight * ((1.0 - overlap) * share).sum() / total


def generalized_iou(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return the generalized intersection over union of pairs of boxes, (…), from -1 to 1.

    Args:
        boxes: (…, 4) left, top, right, bottom.
        others: (…, 4).
    """
    inside, union = _overlap(boxes, others)
    low, high = torch.minimum(boxes[..., :2], others[..., :2]), torch.maximum(boxes[..., 2:], others[..., 2:])
    hull = (high - low).prod(dim=-1) + _EPSILON
    return inside / union - (hull - union) / hull


def _overlap(boxes: torch.Tensor, others: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the areas of intersection and union of pairs of boxes."""
    low, high = torch.maximum(boxes[..., :2], others[..., :2]), torch.minimum(boxes[..., 2:], others[..., 2:])
    inside = (high - low).clamp(min=0).prod(dim=-1)
    areas = [(each[..., 2:] - each[..., :2]).clamp(min=0).prod(dim=-1) for each in (boxes, others)]
    return inside, areas[0] + areas[1] - inside + _EPSILON


def _inside(points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Return whether points (K, 2) lie in boxes (N, M, 4): (N, M, K) bool."""
    low, high = boxes[:, :, None, :2], boxes[:, :, None, 2:]
    return ((points > low) & (points < high)).all(dim=-1)


def _assigned(
    objects: Objects, boxes: torch.Tensor, scores: torch.Tensor, points: torch.Tensor, candidates: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return for each row the object that it learns, (N, K) int64, and how well it suits, (N, K); 0 for none."""
    inside, union = _overlap(objects.boxes[:, :, None], boxes[:, None])
    iou = inside / union
    columns = objects.classes[..., None].expand(-1, -1, scores.shape[1])
    suits = scores.transpose(1, 2).gather(1, columns).sqrt() * iou.pow(6)
    # An object that is smaller than the distance of the points still has the points that are next to it.
    middle = (objects.boxes[..., :2] + objects.boxes[..., 2:]) / 2
    # The first point lies half a cell of the finest map from the corner of the image.
    half = torch.maximum((objects.boxes[..., 2:] - objects.boxes[..., :2]) / 2, points[0])
    around = torch.cat([middle - half, middle + half], dim=-1)
    may_learn = _inside(points, around) & objects.is_object[..., None]
    suits = torch.where(may_learn, suits, -1.0)
    best = suits.topk(min(candidates, suits.shape[2]), dim=2).values
    is_chosen = may_learn & (suits >= best[..., -1:])
    # A row learns one object: of several, the one that its box overlaps the most.
    overlap = torch.where(is_chosen, iou, -1.0)
    target = overlap.argmax(dim=1)
    is_chosen &= torch.arange(suits.shape[1], device=suits.device)[None, :, None] == target[:, None]
    suits, overlap = suits * is_chosen, iou * is_chosen
    # The best row of an object shall have the score of its IoU, the others in proportion.
    share = suits / suits.amax(dim=2, keepdim=True).clamp(min=1e-30) * overlap.amax(dim=2, keepdim=True)
    return target, share.amax(dim=1)
