"""Table of the export formats for datasets."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.errors import ConfigurationError, UnknownNameError

__all__ = ["EXPORT_FORMATS", "export_dataset"]

EXPORT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "class_folders": ("image-classification",),
    "text_list": ("image-classification", "image-regression"),
    "coco": ("detection",),
    "voc": ("detection", "segmentation"),
    "yolo": ("detection",),
    "kitti": ("detection",),
    "masks": ("segmentation",),
    "image_pairs": ("image-to-image",),
    "idx": ("image-classification",),
    "tfrecord": (
        "image-classification",
        "image-regression",
        "detection",
        "segmentation",
        "image-to-image",
        "image-pairs",
    ),
    "webdataset": (
        "image-classification",
        "image-regression",
        "detection",
        "segmentation",
        "image-to-image",
        "image-pairs",
        "text-classification",
    ),
    "digits_lmdb": ("image-classification",),
    "digits_hdf5": ("image-classification",),
    "table": ("table",),
    "text": ("text-classification",),
}
"""Format → the kinds of dataset that it can hold."""


def export_dataset(
    dataset: Dataset,
    format: str,  # noqa: A002 - the word that people use
    folder: Path,
    options: Mapping[str, Any] | None = None,
) -> ExportReport:
    """Write a dataset in a format of others.

    Args:
        dataset: it.
        format: a name in ``EXPORT_FORMATS``.
        folder: to be written; new, or empty.
        options: of the exporter.

    Raises:
        UnknownNameError: where there is no such format.
        ConfigurationError: where the format cannot hold a dataset of this kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("format of an export", format, EXPORT_FORMATS)
    if dataset.kind not in EXPORT_FORMATS[format]:
        fitting = [name for name, kinds in EXPORT_FORMATS.items() if dataset.kind in kinds]
        raise ConfigurationError(
            f"The format {format} holds datasets of kind {' or '.join(EXPORT_FORMATS[format])}.",
            received=f"kind {dataset.kind}",
            advice=f"Choose one of: {', '.join(fitting)}." if fitting else "No format of others holds this kind.",
        )
    module = importlib.import_module(f"ziggurat.datasets.formats.{format}.exporter")
    function: Callable[..., ExportReport] = getattr(module, f"export_{format}")
    return function(dataset, folder, **(options or {}))
