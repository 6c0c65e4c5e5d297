"""Frame of coordinates: objects of labels that are those of the stored pixels follow the image when EXIF turns it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ziggurat.datasets.image_size import StoredSize
from ziggurat.datasets.importer import ImporterOption
from ziggurat.datasets.samples import Problem
from ziggurat.records.objects import ImageObject, moved_details
from ziggurat.records.run_lengths import mask_pixels, read_run_lengths, run_lengths

__all__ = ["FRAME_OPTIONS", "Frame", "FrameRule"]

FRAME_OPTIONS: Final = (
    ImporterOption(
        name="frame",
        type=str,
        default="upright",
        help="Frame of coordinates where no size tells it: the image as EXIF turns it, or its stored pixels.",
        choices=("upright", "stored"),
    ),
    ImporterOption(
        name="scale_boxes",
        type=bool,
        default=False,
        help="Whether objects are scaled where the labels give another size than the image has.",
    ),
)
_TOLERANCE_PX: Final = 1

# Orientation → (x and y exchanged, then mirrored in x, mirrored in y): what leads from the stored pixels to the image
# as it is shown; EXIF 2.32, tag 0x0112.
_TURNS: Final = {
    1: (False, False, False),
    2: (False, True, False),
    3: (False, True, True),
    4: (False, False, True),
    5: (True, False, False),
    6: (True, True, False),
    7: (True, True, True),
    8: (True, False, True),
}

Size = tuple[float, float]


@dataclass(frozen=True)
class Frame:
    """How coordinates of labels become those of the image as it is shown.

    Args:
        size: (width, height) in pixels of the frame that the labels are in; None where it is unknown.
        scale: of x and y, before anything is turned.
        stored: the image, where it is turned; None where the labels are those of the upright image.
        problems: what the sample's labels say that does not fit.
    """

    size: Size | None
    scale: tuple[float, float] = (1.0, 1.0)
    stored: StoredSize | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def moves(self) -> bool:
        """Whether coordinates change."""
        return self.stored is not None or self.scale != (1.0, 1.0)

    def moved(self, each: ImageObject) -> ImageObject:
        """Return an object in pixels of the image as it is shown: box, outlines, mask, and points of its details."""
        if not self.moves:
            return each
        left, top, right, bottom = each.box
        corners = self._points([(left, top), (right, bottom)])
        (left, top), (right, bottom) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
        polygons = tuple(tuple(self._points(np.reshape(each_, (-1, 2))).ravel().tolist()) for each_ in each.polygons)
        return replace(
            each,
            box=(left, top, right, bottom),
            polygons=polygons,
            mask=None if each.mask is None else self._mask(each.mask),
            details=moved_details(each.details, self._points, scaled=self.scale != (1.0, 1.0)),
        )

    def _points(self, points: Any) -> np.ndarray:
        """Return points (N, 2) of x and y where they are in the image as it is shown."""
        moved = np.asarray(points, np.float64) * self.scale
        if self.stored is None:
            return moved
        exchanged, in_x, in_y = _TURNS[self.stored.orientation]
        moved = moved[:, ::-1] if exchanged else moved
        width, height = self.stored.upright
        x = width - moved[:, 0] if in_x else moved[:, 0]
        y = height - moved[:, 1] if in_y else moved[:, 1]
        return np.stack([x, y], axis=1)

    def _mask(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        if read_run_lengths(content) is None:
            return content  # it is listed when the record is made
        mask = mask_pixels(content)
        if self.scale != (1.0, 1.0):
            height, width = (round(n * by) for n, by in zip(mask.shape, self.scale[::-1], strict=True))
            rows = np.minimum((np.arange(height) + 0.5) / self.scale[1], mask.shape[0] - 1).astype(int)
            columns = np.minimum((np.arange(width) + 0.5) / self.scale[0], mask.shape[1] - 1).astype(int)
            mask = mask[rows[:, None], columns]
        if self.stored is not None:
            exchanged, in_x, in_y = _TURNS[self.stored.orientation]
            mask = mask.T if exchanged else mask
            mask = mask[:: -1 if in_y else 1, :: -1 if in_x else 1]
        return run_lengths(np.ascontiguousarray(mask))


class FrameRule:
    """Decides in which frame the labels of an image are.

    A size that the labels give is compared with that of the stored pixels and with that of the image as it is shown.
    Where it does not tell the two apart, the option ``frame`` does.

    Args:
        options: of the importer, with those of ``FRAME_OPTIONS``.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._is_stored = options["frame"] == "stored"
        self._scales = options["scale_boxes"]

    def of(self, key: str, image: Callable[[], StoredSize], said: Size | None, *, labelled: bool) -> Frame:
        """Return the frame of the labels of an image.

        Args:
            key: of the sample.
            image: reads the size of the image as it is stored; it raises a ``ValueError`` where it cannot.
            said: (width, height) that the labels give; None where they do not.
            labelled: whether there are objects; without, no file is opened.
        """
        if not labelled:
            return Frame(said)
        try:
            stored = image()
        except ValueError:
            return Frame(said)  # an image that cannot be read is listed when its record is made
        is_turned = stored.orientation != 1
        fits_upright = said is None or _same(said, stored.upright)
        fits_stored = said is None or _same(said, stored[:2])
        if fits_upright and fits_stored:
            return self._unknown(key, stored, told=said is not None) if is_turned else Frame(said or stored[:2])
        if fits_upright:
            return Frame(said)
        if fits_stored:
            return Frame(said, stored=stored)
        assert said is not None
        return self._other_size(key, stored, said)

    def _unknown(self, key: str, stored: StoredSize, *, told: bool) -> Frame:
        why = "its size does not tell the frame of its labels" if told else "its labels give no size"
        taken = "the stored pixels" if self._is_stored else "the upright image"
        reason = f"EXIF turns it (orientation {stored.orientation}), and {why}: they are taken as those of {taken}."
        problems = [Problem(key=key, kind="exif-turned", reason=reason)]
        if self._is_stored:
            return Frame(stored[:2], stored=stored, problems=problems)
        return Frame(stored.upright, problems=problems)

    def _other_size(self, key: str, stored: StoredSize, said: Size) -> Frame:
        upright = stored.upright
        reason = (
            f"Its labels are of an image of {said[0]:g} x {said[1]:g} pixels, and it has {upright[0]} x {upright[1]}"
        )
        if not self._scales:
            reason += ": they stay as they are. If they are of a resized copy, set the option `scale_boxes`."
            return Frame(said, problems=[Problem(key=key, kind="other-size", reason=reason)])
        turned = _ratio(stored[:2]) != _ratio(upright)
        in_stored = (
            abs(_ratio(said) - _ratio(stored[:2])) < abs(_ratio(said) - _ratio(upright)) if turned else self._is_stored
        )
        target: Sequence[float] = stored[:2] if in_stored else upright
        return Frame(
            said,
            scale=(target[0] / said[0], target[1] / said[1]),
            stored=stored if in_stored and stored.orientation != 1 else None,
            problems=[Problem(key=key, kind="other-size", reason=f"{reason}: they are scaled.")],
        )


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= _TOLERANCE_PX for a, b in zip(one, other, strict=True))


def _ratio(size: Sequence[float]) -> float:
    """Return the logarithm of width / height."""
    return float(np.log(size[0] / size[1]))
