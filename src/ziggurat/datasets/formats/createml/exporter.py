"""Export to CreateML: a JSON file of boxes for each split, beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.shared.detection_export import SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_createml"]


def export_createml(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection for CreateML: boxes by their middle and size.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "createml", Holds())
    for split in dataset.splits:
        entries = [
            {"image": sample.path, "annotations": [_annotation(each) for each in export.drawn(sample)]}
            for sample in export.samples(split)
        ]
        export.write_json(f"annotations_{split}.createml.json", entries)
    return export.finish()


def _annotation(each: Drawn) -> dict[str, Any]:
    left, top, right, bottom = each.source.box
    size = {"width": right - left, "height": bottom - top}
    return {"label": each.name, "coordinates": {"x": (left + right) / 2, "y": (top + bottom) / 2, **size}}
