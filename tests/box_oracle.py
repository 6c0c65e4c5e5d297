"""Operations on boxes in plain Python, for tests of those in each framework."""

import math

import numpy as np

__all__ = ["ROI_CASES", "aligned_rois", "kept_boxes", "random_boxes", "random_output", "roi_case"]

ROI_CASES = [
    {},
    {"aligned": False},
    {"spatial_scale": 0.5, "sampling_ratio": 1},
    {"spatial_scale": 0.25, "sampling_ratio": 3, "aligned": False},
]
"""Options of ``roi_align``."""


def random_boxes(rng, count, extent=100.0):
    """Return (count, 4) float32 boxes, many of which overlap."""
    start = rng.uniform(0, extent, (count, 2))
    return np.concatenate([start, start + rng.uniform(0, extent / 2, (count, 2))], axis=1).astype(np.float32)


def random_output(rng, images=4, rows=336, classes=3):
    """Return boxes and scores (images, rows, 4 + classes); some are no boxes, and one image has no score."""
    boxes = np.stack([random_boxes(rng, rows) for _ in range(images)])
    output = np.concatenate([boxes, rng.uniform(0, 1, (images, rows, classes)) ** 4], axis=2).astype(np.float32)
    output[0, :4, 0] = [np.nan, np.inf, 1000, 5]
    output[1, 5, :5] = [7, 7, 7, 7, 0.9]
    output[2, :, 4:] = 0
    return output


def kept_boxes(boxes, scores, iou):
    """Return the numbers of the boxes that greedy non-maximum suppression keeps."""
    kept = []
    for number in sorted(range(len(boxes)), key=lambda each: (-scores[each], each)):
        if all(_overlap(boxes[number].tolist(), boxes[other].tolist()) <= iou for other in kept):
            kept.append(number)
    return kept


def roi_case(rng):
    """Return features (2, 9, 12, 3) and boxes (7, 5) inside, across and outside of the border."""
    x = rng.normal(size=(2, 9, 12, 3)).astype(np.float32)
    boxes = [[0, 1, 1, 8, 6], [1, 0, 0, 12, 9], [1, -3, -2, 4, 5], [0, 7.3, 2.1, 7.9, 2.4]]
    boxes += [[0, 5, 5, 40, 30], [1, 30, 30, 44, 40], [0, 3, 3, 3, 3]]
    return x, np.array(boxes, np.float32)


def aligned_rois(x, boxes, size, *, spatial_scale=1.0, sampling_ratio=2, aligned=True):
    """Return RoI align, (R, *size, C), of features (N, H, W, C), sample by sample."""
    found = np.zeros((len(boxes), *size, x.shape[3]))
    for number, (image, *box) in enumerate(boxes.tolist()):
        left, top, right, bottom = (side * spatial_scale - (0.5 if aligned else 0) for side in box)
        width, height = right - left, bottom - top
        if not aligned:
            width, height = max(width, 1), max(height, 1)
        for row, column in np.ndindex(*size):
            values = [
                _sample(
                    x[int(image)],
                    top + (row + (y + 0.5) / sampling_ratio) * height / size[0],
                    left + (column + (x_place + 0.5) / sampling_ratio) * width / size[1],
                )
                for y in range(sampling_ratio)
                for x_place in range(sampling_ratio)
            ]
            found[number, row, column] = np.mean(values, axis=0)
    return found


def _sample(image, y, x):
    height, width = image.shape[:2]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(image.shape[2])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    above = image[top, left] * (1 - (x - left)) + image[top, right] * (x - left)
    below = image[bottom, left] * (1 - (x - left)) + image[bottom, right] * (x - left)
    return above * (1 - (y - top)) + below * (y - top)


def _overlap(one, other):
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (one, other)]
    union = sum(areas) - width * height
    return width * height / union if union else 0
