"""Export to a table of boxes: TensorFlow's columns, and those of split and flags, beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.detection_export import SampleSource, number_text
from ziggurat.datasets.formats.shared.exports import CellWriter, ExportReport
from ziggurat.datasets.formats.shared.tool_export import Holds, ToolExport

__all__ = ["export_boxes_csv"]

_HEADER: Final = (
    "filename",
    "width",
    "height",
    "class",
    "xmin",
    "ymin",
    "xmax",
    "ymax",
    "split",
    "IsGroupOf",
    "difficult",
)


def export_boxes_csv(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection as a table, one box a line; an image without boxes has a line without one.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "boxes_csv", Holds(flags=("crowd", "difficult")))
    with CellWriter(export.folder / "boxes.csv", _HEADER) as table:
        for split in dataset.splits:
            for sample in export.samples(split):
                start = [sample.path, *map(str, sample.size)]
                drawn = list(export.drawn(sample))
                for each in drawn:
                    flags = (str(int(each.source.crowd)), str(int(each.source.difficult)))
                    table.write([*start, each.name, *map(number_text, each.source.box), split, *flags])
                if not drawn:
                    table.write([*start, *[None] * 5, split, None, None])
    return export.finish()
