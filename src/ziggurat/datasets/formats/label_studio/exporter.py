"""Export to Label Studio: a JSON file of tasks for each split, beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ziggurat.datasets.formats.shared.detection_export import PlacedSample, SampleSource
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_label_studio"]


def export_label_studio(dataset: SampleSource, folder: Path, *, prefix: str = "") -> ExportReport:
    """Write a dataset of the kind detection for Label Studio: boxes and polygons, in percent of the image.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.
        prefix: put before the path of each image, such as ``/data/local-files/?d=parts/``.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(dataset, folder, "label_studio", Holds(outlines=True))
    number = 0
    for split in dataset.splits:
        tasks = []
        for number, sample in enumerate(export.samples(split), number + 1):  # noqa: B020 - tasks are numbered on
            regions = [_region(each, sample, place) for place, each in enumerate(export.drawn(sample), 1)]
            annotation = {"id": number, "completed_by": 1, "was_cancelled": False, "result": regions}
            tasks.append({"id": number, "data": {"image": f"{prefix}{sample.path}"}, "annotations": [annotation]})
        export.write_json(f"tasks_{split}.json", tasks)
    return export.finish()


def _region(each: Drawn, sample: PlacedSample, place: int) -> dict[str, Any]:
    width, height = sample.size
    form = "polygonlabels" if each.outline else "rectanglelabels"
    if each.outline:
        scaled = [number * 100 / sample.size[at % 2] for at, number in enumerate(each.outline)]
        value: dict[str, Any] = {"points": [list(pair) for pair in zip(scaled[::2], scaled[1::2], strict=True)]}
    else:
        left, top, right, bottom = each.source.box
        value = {"x": left * 100 / width, "y": top * 100 / height, "rotation": 0}
        value |= {"width": (right - left) * 100 / width, "height": (bottom - top) * 100 / height}
    return {
        "id": f"r{place}",
        "type": form,
        "from_name": "label",
        "to_name": "image",
        "original_width": width,
        "original_height": height,
        "image_rotation": 0,
        "value": {**value, form: [each.name]},
    }
