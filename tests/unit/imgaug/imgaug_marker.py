"""Draws a filled square on a black image and looks where a transform put it: the judge of geometric augmentors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIDE = 12


@dataclass(frozen=True)
class Marker:
    """A white square of ``SIDE`` pixels whose top left corner is at (x, y)."""

    x: int
    y: int

    @property
    def box(self):
        return np.array([[self.x, self.y, self.x + SIDE, self.y + SIDE]], dtype=np.float64)

    @property
    def polygon(self):
        x1, y1, x2, y2 = self.box[0]
        return np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])

    @property
    def center(self):
        return self.polygon.mean(axis=0, keepdims=True)

    def picture(self, shape):
        image = np.zeros((*shape, 3), dtype=np.float32)
        image[self.y : self.y + SIDE, self.x : self.x + SIDE] = 255
        return image

    def mask(self, shape, dtype=np.int64):
        mask = np.zeros(shape, dtype=dtype)
        mask[self.y : self.y + SIDE, self.x : self.x + SIDE] = 7
        return mask


def places(transform, shape, margin=3):
    """Return the markers that stay inside the image, with a margin, before and after the transform."""
    height, width = transform.apply_image(np.zeros((*shape, 3), dtype=np.float32)).shape[:2]
    found = []
    for y in range(margin, shape[0] - SIDE - margin + 1, 3):
        for x in range(margin, shape[1] - SIDE - margin + 1, 3):
            marker = Marker(x, y)
            moved = transform.apply_coords(marker.polygon)
            low, high = moved.min(axis=0), moved.max(axis=0)
            if (low >= margin).all() and high[0] <= width - margin and high[1] <= height - margin:
                found.append(marker)
    return found


def centroid(image):
    """Return the center (x, y) of what is white, weighted by its value, to a fraction of a pixel."""
    values = image[:, :, 0].astype(np.float64)
    rows, columns = np.arange(image.shape[0]) + 0.5, np.arange(image.shape[1]) + 0.5
    return np.array([[(values.sum(axis=0) @ columns), (values.sum(axis=1) @ rows)]]) / values.sum()


def extent(image):
    """Return the box (x1, y1, x2, y2) of the pixels that are at least a quarter white: a corner's own pixel is."""
    rows, columns = np.nonzero(image[:, :, 0] >= 255 / 4)
    return np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], dtype=np.float64)


def depth(polygon, height, width):
    """Return how far, in pixels, the center of each pixel lies inside a convex polygon; negative outside."""
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    following = np.roll(polygon, -1, axis=0)
    edges = following - polygon
    turn = np.sign(np.sum(polygon[:, 0] * following[:, 1] - polygon[:, 1] * following[:, 0]))
    distances = [
        turn * (edge[0] * (y - start[1]) - edge[1] * (x - start[0])) / np.hypot(*edge)
        for start, edge in zip(polygon, edges)
    ]
    return np.min(distances, axis=0)


def scale_of(transform, marker):
    """Return by how much the transform enlarges lengths, at least 1: tolerances grow with it."""
    polygon = transform.apply_polygons([marker.polygon])[0]
    return max(1.0, *(np.hypot(*edge) / SIDE for edge in np.roll(polygon, -1, axis=0) - polygon))
