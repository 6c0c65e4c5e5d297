"""Export to VIA: a project file for each split, beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.shared.detection_export import SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_via"]

_ATTRIBUTE = "class"


def export_via(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection for the VGG Image Annotator: boxes and polygons.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "via", Holds(outlines=True))
    choices = {"type": "dropdown", "description": "", "options": dict.fromkeys(export.names, ""), "default_options": {}}
    for split in dataset.splits:
        images = {}
        for sample in export.samples(split):
            size_bytes = (export.folder / sample.path).stat().st_size
            images[f"{sample.path}{size_bytes}"] = {
                "filename": sample.path,
                "size": size_bytes,
                "regions": [_region(each) for each in export.drawn(sample)],
                "file_attributes": {},
            }
        content = {
            "_via_settings": {"project": {"name": split}},
            "_via_img_metadata": images,
            "_via_attributes": {"region": {_ATTRIBUTE: choices}, "file": {}},
            "_via_data_format_version": "2.0.10",
            "_via_image_id_list": list(images),
        }
        export.write_json(f"via_project_{split}.json", content)
    return export.finish()


def _region(each: Drawn) -> dict[str, Any]:
    if each.outline:
        x, y = list(each.outline[::2]), list(each.outline[1::2])
        shape: dict[str, Any] = {"name": "polygon", "all_points_x": x, "all_points_y": y}
    else:
        left, top, right, bottom = each.source.box
        shape = {"name": "rect", "x": left, "y": top, "width": right - left, "height": bottom - top}
    return {"shape_attributes": shape, "region_attributes": {_ATTRIBUTE: each.name}}
