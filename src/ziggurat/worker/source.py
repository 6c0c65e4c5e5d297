"""Source of a job as splits of samples: a dataset, digits, or a folder that is imported by reference.

A folder of images or idx files is read through the importer that creates datasets from it, so that it has the same
classes, samples and splits by every road. What was found is kept in the job folder: the job goes on with it, and is
evaluated on it, whatever becomes of the folder meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.dataset.mnist import Mnist, is_mnist_folder
from ziggurat.dataflow.images import ImageFolder, ImageList, decode_image
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.record_data import RecordData
from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.datasets.creation.create import ScanResult, read_scan, scan_source
from ziggurat.datasets.creation.request import Watch
from ziggurat.datasets.format_registry import importer
from ziggurat.datasets.importer import PartReader
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.splitting.assign import assign_splits
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.errors import DataError, DatapointError, StorageError, UnknownNameError
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.records.offered_folders import check_file
from ziggurat.records.schema import Schema
from ziggurat.records.stores import OLD_FORMATS, convert_old_store, present_store
from ziggurat.tasks.base import Task
from ziggurat.zoo.data import DATASET_OPTIONS, SOURCE_OPTIONS

__all__ = ["DataSource", "FilePath", "ImportedSplit", "convert_old_stores", "is_dataset", "open_source"]

_IN_MEMORY_BYTES: Final = 512 << 20
"""Images of one size that take no more than this are decoded once, not in every epoch."""

_IN_MEMORY_ROWS: Final = 2_000_000
"""Rows of a table, or texts, up to this number are encoded once, not in every epoch."""

_SMALL_KINDS: Final = ("table", "text-classification")

_LOOKED_AT: Final = 16


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """The splits of the data of a job.

    Args:
        splits: ``train`` and, where there are any, ``val`` and ``test`` → flow of the parts and the label of a sample,
            not shuffled, as ``ziggurat.dataflow.record_data.RecordData`` tells for each kind of dataset: images are
            (H, W, C) uint8 where ``in_memory``, else the bytes of files, or arrays that are stored so.
        schema: what the samples mean.
        size: (height, width) that most images have; None where there are no images.
        channels: of the images, 1 or 3.
        bits: number of bits that the values of 16-bit images use.
        in_memory: whether all samples stand in memory, images in one size.
        policy: what happens with files that cannot be used.
    """

    splits: Mapping[str, DataFlow]
    schema: Schema
    size: tuple[int, int] | None = None
    channels: int = 3
    bits: int = 16
    in_memory: bool = False
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, by number; empty where there are none."""
        return self.schema.class_names

    def for_task(self, task: Task) -> DataSource:
        """Return this source after its flows were told in which form a task reads its labels."""
        for flow in self.splits.values():
            if isinstance(flow, RecordData):
                flow.whole_objects = task.reads_objects
        return self


def open_source(source: str, options: Mapping[str, Any], seed: int, job: JobFolder | None = None) -> DataSource:
    """Return the splits of a source.

    Args:
        source: ``digits``, the folder of a dataset, a folder with idx files, or a folder with a folder for each class
            (with or without ``train``, ``val`` and ``test`` above them).
        options: ``validation_share`` and ``test_share`` where the folder has no such splits, ``on_error``, and ``size``
            of ``digits`` (8 or 28).
        seed: decides which images are in which split, where shares do.
        job: whose data it is: a folder keeps the splits that the job began with. None: it is divided as a new job would
            divide it.

    Raises:
        UnknownNameError: where an option is unknown.
        DataError: where the folder is none of these.
    """
    folder = Path(source)
    if is_dataset(folder):
        return _dataset(folder, options)
    for name in options:
        if name not in SOURCE_OPTIONS:
            raise UnknownNameError("option of the data", name, SOURCE_OPTIONS)
    if source == "digits":
        return _digits(int(options.get("size", 28)))
    if not folder.is_dir():
        raise DataError(
            f"`data` is {source!r}, neither `digits` nor a folder.", advice="Check the path, or use `digits`."
        )
    policy = ErrorPolicy(options.get("on_error", "log"))
    rule = _rule(options, seed)
    if job is None:
        with TemporaryDirectory(prefix="ziggurat-data-") as place:
            return _imported(folder, Path(place), rule, policy)
    if job.class_names.is_file() and not (job.data / _SPLITS_NAME).exists():
        return _as_in_0_1(folder, options, seed, policy)
    return _imported(folder, job.data, rule, policy)


def _rule(options: Mapping[str, Any], seed: int) -> SplitRule:
    usual = SplitRule()
    shares = {
        "validation_share": float(options.get("validation_share", usual.val_share)),
        "test_share": float(options.get("test_share", usual.test_share)),
    }
    if sum(shares.values()) >= 1 or any(not 0 <= share < 1 for share in shares.values()):
        raise DataError(
            "`validation_share` and `test_share` are from 0 to below 1 together.",
            received=", ".join(f"{name}: {share}" for name, share in shares.items()),
            advice="Leave something for training.",
        )
    return SplitRule(val_share=shares["validation_share"], test_share=shares["test_share"], seed=seed)


# ---- datasets


def is_dataset(folder: Path) -> bool:
    """Return whether a folder holds a finished dataset."""
    return (folder / MANIFEST_NAME).is_file()


def _dataset(folder: Path, options: Mapping[str, Any]) -> DataSource:
    for name in options:
        if name not in DATASET_OPTIONS:
            raise UnknownNameError("option of a dataset", name, DATASET_OPTIONS)
    manifest = Manifest.load(folder)
    policy = ErrorPolicy(options.get("on_error", "log"))
    size, channels = (None, 3) if manifest.image is None else _form(folder, manifest)
    in_memory = _fits_in_memory(manifest, size, channels)
    content: Any = "image" if in_memory else "bytes"
    splits = {
        split: RecordData(folder, split, content=content, channels=channels, on_error=policy)
        for split in manifest.splits
    }
    _check_trainable(splits, folder)
    return DataSource(
        splits=splits,
        schema=manifest.schema,
        size=size,
        channels=channels,
        bits=16 if manifest.image is None else manifest.image.bits,
        in_memory=in_memory,
        policy=policy,
    )


def _fits_in_memory(manifest: Manifest, size: tuple[int, int] | None, channels: int) -> bool:
    """Return whether the samples are read once: images of one size with a short label, rows and texts."""
    image, samples = manifest.image, sum(note.count for note in manifest.splits.values())
    if size is None or image is None:
        return manifest.schema.kind in _SMALL_KINDS and samples <= _IN_MEMORY_ROWS
    if len(manifest.schema.parts) > 1 or None in (image.height_px, image.width_px):
        return False
    return samples * size[0] * size[1] * channels <= _IN_MEMORY_BYTES


def convert_old_stores(source: str) -> list[str]:
    """Convert the stores of a dataset that only release 0.1 made, once; return what is to be said of it.

    Where they cannot be converted, such as in a folder that may not be written to, they are read as they are.
    """
    folder = Path(source)
    if not is_dataset(folder):
        return []
    said = []
    for note in Manifest.load(folder).splits.values():
        for store in note.stores:
            path = folder / store.path
            if store.record_format not in OLD_FORMATS or not path.exists() or present_store(path) != path:
                continue
            try:
                target = convert_old_store(path)
            except (StorageError, DataError, DatapointError) as error:
                said.append(f"{path} is read as it is, a store of release 0.1 that cannot be converted: {error}")
            else:
                said.append(f"The records of {path}, a store of release 0.1, are read from {target} from now on.")
    return said


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
    return _typical_size(shapes), channels


def _typical_size(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    typical = max(set(shapes), key=shapes.count)
    return typical[0], typical[1]


# ---- digits


def _digits(size: int) -> DataSource:
    splits = {split: SklearnDigits(split, shuffle=False, size=size) for split in SPLITS}
    names = tuple(str(number) for number in range(10))
    return DataSource(splits=splits, schema=_classes(names), size=(size, size), channels=1, in_memory=True)


def _classes(names: Sequence[str]) -> Schema:
    return Schema(kind="image-classification", class_names=tuple(names))


# ---- folders, by reference


_SCAN_NAME: Final = "scan.sqlite"
_SPLITS_NAME: Final = "splits.npy"


def _check_trainable(splits: Collection[str], folder: Path) -> None:
    if "train" not in splits:
        raise DataError(
            f"`{folder}` has no training split: {', '.join(splits)}.",
            advice="Name a folder `train`, or let shares divide the samples.",
        )


def _imported(folder: Path, place: Path, rule: SplitRule, policy: ErrorPolicy) -> DataSource:
    """Return the splits of a folder; what is found is kept in ``place``, and taken from there the next time."""
    scan = _scanned(folder, place)
    if scan.schema.kind not in _FOLDER_KINDS:
        raise DataError(
            f"`{folder}` cannot be trained on directly: it holds data of kind {scan.schema.kind}.",
            advice="Create a dataset from it, and look at its page for what can be done with it.",
        )
    with Catalogue(scan.catalog) as catalogue:
        numbers = _split_numbers(catalogue, place / _SPLITS_NAME, rule)
        members: dict[str, list[Entry]] = {split: [] for split in SPLITS}
        for number, entry in zip(numbers.tolist(), catalogue.walk(), strict=True):
            if number >= 0:
                members[SPLITS[number]].append(entry)
    reader = importer(scan.format).reader(folder, scan.options)
    splits = {split: ImportedSplit(reader, found, policy) for split, found in members.items() if found}
    _check_trainable(splits, folder)
    in_memory = scan.format == _ARRAYS
    first = _first_images(splits["train"], folder)
    return DataSource(
        splits=splits,
        schema=scan.schema,
        size=_typical_size([image.shape for image in first]),
        channels=first[0].shape[2] if in_memory else 3,
        in_memory=in_memory,
        policy=policy,
    )


_FOLDER_KINDS: Final = ("image-classification",)

_ARRAYS: Final = "idx"
"""Format whose images are arrays of one size, which are held in memory."""


def _scanned(folder: Path, place: Path) -> ScanResult:
    path = place / _SCAN_NAME
    if path.exists():
        return read_scan(path)
    with storage_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        for leftover in place.glob(".*.partial"):  # of a worker that was killed
            leftover.unlink()
    name = _ARRAYS if is_mnist_folder(folder) else "class_folders"
    return scan_source(path, folder, importer(name), {}, Watch())


def _split_numbers(catalogue: Catalogue, path: Path, rule: SplitRule) -> np.ndarray:
    """Return the split of each sample, (N) int8, -1 for none; as it was kept, where it was."""
    if path.exists():
        return np.load(path, allow_pickle=False)
    numbers = assign_splits(catalogue, rule).splits
    target = AtomicFile(path)
    with storage_errors(path), target.path.open("wb") as file:
        np.save(file, numbers.astype(np.int8), allow_pickle=False)
    target.publish()
    return numbers


class FilePath(str):
    """Path of a file whose content stands for it: a text may be a sample, too."""

    __slots__ = ()


def labels_of(flow: Any) -> list[Any]:
    """Return the label of each sample of a split; where the split has them apart, no sample is read or decoded."""
    if isinstance(flow, ImportedSplit | RecordData):
        return [flow.label(row) for row in range(len(flow))]
    return [flow.datapoint(row)[-1] for row in range(len(flow))]


class ImportedSplit(IndexedFlow):
    """A split of a folder, whose files stay where they are: ``[bytes, label]``, or arrays of idx files.

    Args:
        reader: reads parts by their addresses.
        entries: the samples in order.
        policy: what happens with files that cannot be used.
    """

    def __init__(self, reader: PartReader, entries: Sequence[Entry], policy: ErrorPolicy) -> None:
        super().__init__()
        self.policy = policy
        self._reader = reader
        self._addresses: list[Any] = [entry.parts[0] for entry in entries]
        files = [reader.file(address) for address in self._addresses]
        # Made once: a path in every epoch takes time.
        self._files = [None if file is None else FilePath(os.fspath(file)) for file in files]
        self._keys = [file or entry.key for file, entry in zip(self._files, entries, strict=True)]
        self._labels: list[Any] = [entry.label for entry in entries]

    def __len__(self) -> int:
        return len(self._labels)

    def key(self, index: int) -> str:
        """Return the path of the file; the key of the sample where it is in a file with others."""
        return self._keys[index]

    def datapoint(self, index: int) -> list[Any]:
        """Return one sample."""
        return [self._reader.read(self._addresses[index]), self._labels[index]]

    def label(self, index: int) -> Any:
        """Return the label of one sample, whose file is not read."""
        return self._labels[index]

    def unread(self, index: int) -> list[Any]:
        """Return one sample with the path of its file instead of the content, so that a worker can read it.

        Raises:
            DatapointError: where it may not be read.
        """
        file = self._files[index]
        if file is None:
            return self.datapoint(index)
        try:
            check_file(file)
        except PermissionError as error:
            raise DatapointError(file, f"it cannot be read ({error.strerror}).") from None
        return [file, self._labels[index]]

    def close(self) -> None:
        """Let files go."""
        self._reader.close()
        super().close()


def _first_images(split: IndexedFlow, folder: Path) -> list[np.ndarray]:
    """Return the first images of a split that can be read; one at least, or nothing can be learned."""
    found: list[np.ndarray] = []
    reason = ""
    for index in range(len(split)):
        try:
            image = split.datapoint(index)[0]
            found.append(image if isinstance(image, np.ndarray) else decode_image(image, key=split.key(index)))
        except DatapointError as error:
            reason = reason or str(error)
        if len(found) == _LOOKED_AT:
            break
    if not found:
        raise DataError(f"No image of the training split in {folder} can be read: {reason}.")
    return found


# ---- folders as release 0.1 divided them, for jobs that began so: their checkpoints know places in these splits


_FOLDERS: Final = {"train": ("train", "training"), "val": ("val", "valid", "validation"), "test": ("test", "testing")}


def _as_in_0_1(folder: Path, options: Mapping[str, Any], seed: int, policy: ErrorPolicy) -> DataSource:
    if is_mnist_folder(folder):
        return _idx_of_0_1(folder)
    found = {split: _first_there(folder, names) for split, names in _FOLDERS.items()}
    whole = ImageFolder(found["train"] or folder, content="path")
    names = list(whole.class_names)
    if found["train"] is not None:
        parts = {split: _pairs(path, names) for split, path in found.items() if path is not None}
    else:
        parts = {"train": list(zip(whole.files, whole.labels, strict=True))}
    parts = _with_shares(parts, options, seed)
    first = ImageList(parts["train"], content="image", on_error="skip")
    sizes = [point[0].shape for point, _ in zip(first, range(_LOOKED_AT), strict=False)]
    if not sizes:
        raise DataError(f"No image of the training split in {folder} can be read.")
    splits = {split: ImageList(pairs, content="bytes", on_error=policy) for split, pairs in parts.items()}
    return DataSource(
        splits=splits, schema=_classes(names), size=_typical_size(sizes), channels=3, in_memory=False, policy=policy
    )


def _idx_of_0_1(folder: Path) -> DataSource:
    """Return the training files as training split; the test files are validation and test split."""
    train, test = (Mnist(split, shuffle=False, dir=folder, raw=True) for split in ("train", "test"))
    names = [str(number) for number in range(int(train.labels.max()) + 1)]
    height, width = train.images.shape[1:3]
    splits = {"train": train, "val": test, "test": test}
    return DataSource(splits=splits, schema=_classes(names), size=(height, width), channels=1, in_memory=True)


def _first_there(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def _pairs(folder: Path, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return (path, class number) of a split, the classes numbered as those of training."""
    flow = ImageFolder(folder, content="path")
    for name in flow.class_names:
        if name not in names:
            raise DataError(
                f"The class `{name}` in {folder} is not in the training split.",
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
