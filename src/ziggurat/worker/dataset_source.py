"""Conversion of a dataset created by Ziggurat into the splits of a training job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.record_data import RecordData
from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.worker.image_source import ImageSource
from ziggurat.zoo.data import DATASET_OPTIONS, TRAINABLE_KINDS

__all__ = ["is_dataset", "open_dataset_source"]

_IN_MEMORY_BYTES: Final = 512 << 20
"""Images of one size that take no more than this are decoded once, not in every epoch."""

_LOOKED_AT: Final = 16


def is_dataset(folder: Path) -> bool:
    """Return whether a folder holds a finished dataset."""
    return (folder / MANIFEST_NAME).is_file()


def open_dataset_source(folder: Path, options: Mapping[str, Any]) -> ImageSource:
    """Return the splits of a dataset.

    Args:
        folder: of the dataset.
        options: ``on_error``: what happens with a sample that cannot be read.

    Raises:
        UnknownNameError: where an option is unknown.
        DataError: where the dataset is not of a kind that networks are trained on yet.
    """
    for name in options:
        if name not in DATASET_OPTIONS:
            raise UnknownNameError("option of a dataset", name, DATASET_OPTIONS)
    manifest = Manifest.load(folder)
    kind = manifest.schema.kind
    if kind not in TRAINABLE_KINDS or manifest.image is None:
        raise DataError(
            f"Networks are trained on datasets of kind {' or '.join(TRAINABLE_KINDS)}.",
            received=f"kind {kind}",
            advice="Read it in your own program with: ziggurat.dataflow.RecordData.",
        )
    policy = ErrorPolicy(options.get("on_error", "log"))
    size, channels = _form(folder, manifest)
    one_size = manifest.image.height_px is not None and manifest.image.width_px is not None
    samples = sum(note.count for note in manifest.splits.values())
    in_memory = one_size and samples * size[0] * size[1] * channels <= _IN_MEMORY_BYTES
    content: Any = "image" if in_memory else "bytes"
    splits = {
        split: RecordData(folder, split, content=content, channels=channels, on_error=policy)
        for split in manifest.splits
    }
    if "train" not in splits:
        raise DataError("Training needs a training split.", received=f"splits {', '.join(splits)} in `{folder}`")
    return ImageSource(
        splits=splits,
        class_names=manifest.schema.class_names,
        size=size,
        channels=channels,
        in_memory=in_memory,
        policy=policy,
    )


def _form(folder: Path, manifest: Manifest) -> tuple[tuple[int, int], Any]:
    """Return (height, width) and channels: those of the manifest, else what most of the first images have."""
    image = manifest.image
    assert image is not None
    channels = 1 if image.channels == 1 else 3
    if image.height_px is not None and image.width_px is not None:
        return (image.height_px, image.width_px), channels
    first = RecordData(folder, next(iter(manifest.splits)), on_error="skip")
    shapes = [first.datapoint(row)[0].shape for row in range(min(len(first), _LOOKED_AT))]
    first.close()
    typical = max(set(shapes), key=shapes.count)
    return (typical[0], typical[1]), channels
