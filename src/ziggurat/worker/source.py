"""Source of a job as splits of labeled images: a dataset, digits, idx files, or class folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.dataset.mnist import Mnist
from ziggurat.dataflow.images import ImageFolder, ImageList
from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.record_data import RecordData
from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.zoo.data import DATASET_OPTIONS, SOURCE_OPTIONS, TRAINABLE_KINDS

__all__ = ["ImageSource", "is_dataset", "open_source"]


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """The splits of a dataset of labeled images.

    Args:
        splits: ``train`` and, where there are any, ``val`` and ``test`` → flow of ``[picture, label]``, not shuffled:
            images are (H, W, C) uint8 where ``in_memory``, else the bytes of files, or arrays that are stored so.
        class_names: names of the classes, by number.
        size: (height, width) that most images have.
        channels: 1 or 3.
        in_memory: whether all images stand in memory, in one size.
        policy: what happens with files that cannot be used.
    """

    splits: Mapping[str, DataFlow]
    class_names: Sequence[str]
    size: tuple[int, int]
    channels: int
    in_memory: bool
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)


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


_FOLDERS: Final = {"train": ("train", "training"), "val": ("val", "valid", "validation"), "test": ("test", "testing")}


def open_source(source: str, options: Mapping[str, Any], seed: int) -> ImageSource:
    """Return the splits of a source.

    Args:
        source: ``digits``, the folder of a dataset, a folder with idx files, or a folder with a folder for each class
            (with or without ``train``, ``val`` and ``test`` above them).
        options: ``validation_share`` and ``test_share`` of class folders without splits, ``on_error``, and ``size`` of
            ``digits`` (8 or 28).
        seed: decides which images are in which split, where shares do.

    Raises:
        UnknownNameError: where an option is unknown.
        DataError: where the folder is none of these.
    """
    if is_dataset(Path(source)):
        return open_dataset_source(Path(source), options)
    for name in options:
        if name not in SOURCE_OPTIONS:
            raise UnknownNameError("option of the data", name, SOURCE_OPTIONS)
    if source == "digits":
        return _digits(int(options.get("size", 28)))
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(
            "`data` must be `digits` or a folder.", received=source, advice="Check the path, or use `digits`."
        )
    policy = ErrorPolicy(options.get("on_error", "log"))
    if any(folder.glob("train-images*idx3*")):
        return _idx(folder)
    return _class_folders(folder, options, seed, policy)


def _digits(size: int) -> ImageSource:
    splits = {split: SklearnDigits(split, shuffle=False, size=size) for split in ("train", "val", "test")}
    names = [str(number) for number in range(10)]
    return ImageSource(splits=splits, class_names=names, size=(size, size), channels=1, in_memory=True)


def _idx(folder: Path) -> ImageSource:
    """Return the training files as training split; the test files are validation and test split: MNIST has no other."""
    train, test = (Mnist(split, shuffle=False, dir=folder, raw=True) for split in ("train", "test"))
    names = [str(number) for number in range(int(train.labels.max()) + 1)]
    height, width = train.images.shape[1:3]
    splits = {"train": train, "val": test, "test": test}
    return ImageSource(splits=splits, class_names=names, size=(height, width), channels=1, in_memory=True)


def _class_folders(folder: Path, options: Mapping[str, Any], seed: int, policy: ErrorPolicy) -> ImageSource:
    found = {split: _first_there(folder, names) for split, names in _FOLDERS.items()}
    if found["train"] is not None:
        whole = ImageFolder(found["train"], content="path")
        names = list(whole.class_names)
        parts = {split: _pairs(path, names) for split, path in found.items() if path is not None}
    else:
        whole = ImageFolder(folder, content="path")
        names = list(whole.class_names)
        parts = {"train": list(zip(whole.files, whole.labels, strict=True))}
    parts = _with_shares(parts, options, seed)
    first = ImageList(parts["train"], content="image", on_error="skip")
    sizes = [point[0].shape for point, _ in zip(first, range(16), strict=False)]
    if not sizes:
        raise DataError("At least one image of the training split can be read.", received=str(folder))
    typical = max(set(sizes), key=sizes.count)
    splits = {split: ImageList(pairs, content="bytes", on_error=policy) for split, pairs in parts.items()}
    return ImageSource(
        splits=splits,
        class_names=names,
        size=(typical[0], typical[1]),
        channels=3,
        in_memory=False,
        policy=policy,
    )


def _first_there(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def _pairs(folder: Path, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return (path, class number) of a split, the classes numbered as those of training."""
    flow = ImageFolder(folder, content="path")
    for name in flow.class_names:
        if name not in names:
            raise DataError(
                "Every class of a split is a class of the training split.",
                received=f"`{name}` in {folder}",
                advice=f"The training split has: {', '.join(names)}.",
            )
    numbers = [names.index(name) for name in flow.class_names]
    return [(path, numbers[label]) for path, label in zip(flow.files, flow.labels, strict=True)]


def _with_shares(
    parts: dict[str, list[tuple[str, int]]], options: Mapping[str, Any], seed: int
) -> dict[str, list[tuple[str, int]]]:
    """Take shares of each class out of the training split, for the splits that have no folder."""
    shares = {"val": float(options.get("validation_share", 0.2)), "test": float(options.get("test_share", 0.0))}
    wanted = {split: share for split, share in shares.items() if split not in parts and share > 0}
    if sum(wanted.values()) >= 1 or any(not 0 <= share < 1 for share in shares.values()):
        raise DataError(
            "`validation_share` and `test_share` are from 0 to below 1 together.",
            received=", ".join(f"{split}: {share}" for split, share in shares.items()),
            advice="Leave something for training.",
        )
    random = np.random.default_rng(seed)
    left, taken = [], {split: [] for split in wanted}
    for label in sorted({label for _, label in parts["train"]}):
        members = [pair for pair in parts["train"] if pair[1] == label]
        order = [members[number] for number in random.permutation(len(members))]
        for split, share in wanted.items():
            count = round(share * len(members))
            taken[split] += order[:count]
            order = order[count:]
        left += order
    return {**parts, "train": sorted(left), **{split: sorted(pairs) for split, pairs in taken.items()}}
