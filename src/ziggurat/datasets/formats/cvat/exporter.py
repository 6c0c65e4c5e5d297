"""Export to CVAT for images 1.1: ``annotations.xml`` beside the images."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from ziggurat.datasets.formats.shared.detection_export import SampleSource, number_text, xml_text
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.formats.shared.tool_export import Drawn, Holds, ToolExport

__all__ = ["export_cvat"]

_DETAILS: Final = ("occluded", "z_order", "group_id", "source")


def export_cvat(dataset: SampleSource, folder: Path) -> ExportReport:
    """Write a dataset of the kind detection for CVAT: boxes, polygons and masks; splits are its subsets.

    Args:
        dataset: a ``ziggurat.datasets.dataset.Dataset``.
        folder: new or empty.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """
    export = ToolExport(
        dataset, folder, "cvat", Holds(outlines=True, masks=True, details=(*_DETAILS, "attributes"), classes=True)
    )
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    labels = SubElement(SubElement(SubElement(root, "meta"), "task"), "labels")
    for name in export.names:
        SubElement(SubElement(labels, "label"), "name").text = xml_text(name)
    number = 0
    for split in dataset.splits:
        for sample in export.samples(split):
            width, height = map(str, sample.size)
            fields = {
                "id": str(number),
                "name": xml_text(sample.path),
                "subset": split,
                "width": width,
                "height": height,
            }
            image = SubElement(root, "image", fields)
            for each in export.drawn(sample):
                _add(image, each)
            number += 1
    indent(root)
    export.write(
        "annotations.xml", '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"
    )
    return export.finish()


def _add(image: Element, each: Drawn) -> None:
    details = each.source.details
    fields = {field: xml_text(str(details[field])) for field in _DETAILS if details.get(field)}
    fields = {"label": xml_text(each.name), "occluded": "0", "z_order": "0", **fields}
    if each.mask is not None:
        left, top, pixels = each.mask
        sides = {"left": left, "top": top, "width": pixels.shape[1], "height": pixels.shape[0]}
        runs = ", ".join(map(str, _runs(pixels)))
        element = SubElement(image, "mask", {**fields, "rle": runs, **{side: str(at) for side, at in sides.items()}})
    elif each.outline:
        numbers = [number_text(number) for number in each.outline]
        pairs = (",".join(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))
        element = SubElement(image, "polygon", {**fields, "points": ";".join(pairs)})
    else:
        corners = dict(zip(("xtl", "ytl", "xbr", "ybr"), map(number_text, each.source.box), strict=True))
        element = SubElement(image, "box", {**fields, **corners})
    attributes = details.get("attributes")
    for name, value in attributes.items() if isinstance(attributes, dict) else ():
        SubElement(element, "attribute", {"name": xml_text(str(name))}).text = xml_text(str(value))


def _runs(pixels: np.ndarray) -> list[int]:
    """Return the lengths of runs row by row; the first is outside of the mask."""
    flat = np.concatenate([[0], (pixels != 0).ravel(), [2]])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return np.diff(changes, prepend=0).tolist()
