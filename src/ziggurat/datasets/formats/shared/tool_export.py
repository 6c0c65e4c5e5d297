"""Shared parts of the exporters for labeling tools: objects in the form that a tool can hold, and what it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.formats.shared.detection_export import DetectionExport, PlacedSample, SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport, line_names
from ziggurat.formatting import plural
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import mask_part

__all__ = ["Drawn", "Holds", "ToolExport"]

_NEAR_PX: Final = 1.0  # a box may be this far from the limits of its outline: tools round one of the two


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One object as a tool draws it.

    Args:
        name: of its class.
        source: as it is stored.
        outline: (x1, y1, x2, y2, …); empty where it is drawn as its box or as a mask.
        mask: (left, top, pixels (H, W) uint8); None where it is drawn otherwise.
    """

    name: str
    source: ImageObject
    outline: tuple[float, ...] = ()
    mask: tuple[int, int, np.ndarray] | None = None


@dataclass(frozen=True, kw_only=True)
class Holds:
    """What a tool can hold beside boxes with a class.

    Args:
        outlines: polygons.
        masks: masks of pixels.
        flags: of objects: ``crowd``, ``difficult``.
        details: further fields of objects.
        classes: a list of the classes, also of those that no object has.
    """

    outlines: bool = False
    masks: bool = False
    flags: Sequence[str] = ()
    details: Sequence[str] = ()
    classes: bool = False


class ToolExport(DetectionExport):
    """An export to a labeling tool.

    Args:
        dataset: to be written.
        folder: new or empty.
        name: of the format.
        holds: what the tool can hold.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """

    def __init__(self, dataset: SampleSource, folder: Path, name: str, holds: Holds) -> None:
        super().__init__(dataset, folder, name)
        self.names = line_names(dataset.schema.class_names)
        self._holds = holds
        self._used: set[int] = set()

    def drawn(self, sample: PlacedSample) -> Iterator[Drawn]:
        """Yield the objects of a sample; what the tool cannot hold of them is counted."""
        regions = 0
        for each in sample.objects:
            if each.class_number < 0:
                regions += 1
                continue
            self._used.add(each.class_number)
            self._count_losses(each)
            yield replace(self._form(each), name=self.names[each.class_number])
        self.leave_out(sample.key, regions, "no-class", "regions without a class")

    def write_json(self, path: str, content: Any) -> None:
        """Write a file of JSON."""
        self.write(path, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n")

    def finish(self) -> ExportReport:
        """Return what was done, with what was lost of names."""
        schema_names = self.dataset.schema.class_names
        notes = [
            f"The class {old!r} is written as {new!r}." for old, new in zip(schema_names, self.names) if old != new
        ]
        unused = len(schema_names) - len(self._used)
        if unused and not self._holds.classes:
            notes.append(f"{plural(unused, 'class')} without objects cannot be listed.")
        if self.moved_count:
            notes.append(f"{plural(self.moved_count, 'image has', 'images have')} another path than before.")
        return self.report(*notes)

    def _count_losses(self, each: ImageObject) -> None:
        for flag, what in (("crowd", "crowds"), ("difficult", "the mark `difficult`")):
            if getattr(each, flag) and flag not in self._holds.flags:
                self.lose(what)
        if each.details.keys() - set(self._holds.details):
            self.lose("further fields of objects")

    def _form(self, each: ImageObject) -> Drawn:
        """Return an object as an outline or a mask where the tool holds it and it fills its box, else as its box."""
        box = Drawn(name="", source=each)
        if each.mask is not None:
            pixels, left, top = mask_part(each.mask)
            limits = (left, top, left + pixels.shape[1], top + pixels.shape[0])
            if self._holds.masks and pixels.any() and _is_around(each, limits):
                if each.polygons:
                    self.lose("outlines of objects that have masks, too")
                return replace(box, mask=(left, top, pixels))
            self.lose("masks")
        if each.polygons:
            if self._holds.outlines and len(each.polygons) == 1 and len(each.polygons[0]) >= 6:
                x, y = each.polygons[0][::2], each.polygons[0][1::2]
                if _is_around(each, (min(x), min(y), max(x), max(y))):
                    return replace(box, outline=each.polygons[0])
            self.lose("outlines of several parts, or that leave their box" if self._holds.outlines else "outlines")
        return box


def _is_around(each: ImageObject, limits: Sequence[float]) -> bool:
    return all(abs(one - other) <= _NEAR_PX for one, other in zip(each.box, limits, strict=True))
