"""Check that rotation by quarter turns is used with square images only."""

from __future__ import annotations

from pathlib import Path

from ziggurat.errors import SpecError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.specs import TrainSpec

__all__ = ["check_rotation_needs_square"]

_FIELD = "augmentation.quad_rotation"


def check_rotation_needs_square(spec: TrainSpec) -> None:
    """Refuse quarter turns where the images are known to be no squares; if unknown yet, its worker looks.

    A square that is cut out does not help: images are turned before it is.

    Args:
        spec: of a training, with the place of its data.

    Raises:
        SpecError: where the images of a batch would have several shapes.
    """
    if not spec.augmentation.swaps_sides:
        return
    size = spec.preprocessing.size or _size_of_data(Path(spec.data.source))
    if size is None or size[0] == size[1]:
        return
    rule, received = "Quarter turns by `rot90` or `rotall` need square images", f"{size[0]} x {size[1]} px"
    advice = "Turn by `rot180`, or set `preprocessing.size` to a square."
    raise SpecError(
        f"{rule}.",
        received=received,
        advice=advice,
        details={
            "source": "the request",
            "field": _FIELD,
            "problems": [{"field": _FIELD, "rule": rule, "advice": advice, "received": received}],
        },
    )


def _size_of_data(folder: Path) -> list[int] | None:
    """Return height and width of the images of a dataset; None where it is none, or they differ."""
    if not (folder / MANIFEST_NAME).is_file():
        return None
    image = Manifest.load(folder).image
    if image is None or image.height_px is None or image.width_px is None:
        return None
    return [image.height_px, image.width_px]
