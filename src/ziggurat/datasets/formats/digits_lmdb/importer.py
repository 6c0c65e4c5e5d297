"""Importer for the LMDB stores of DIGITS and Caffe: images with classes, or arrays with arrays as labels."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from PIL import Image

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.datasets.formats.shared.digits_files import Datum, unpack_datum
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.folder_walk import folders_in
from ziggurat.datasets.formats.shared.numbered_classes import NumberedClasses, no_number
from ziggurat.datasets.formats.shared.text_files import names_in
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, PartReader, Scan
from ziggurat.datasets.samples import SPLITS, Problem, Sample, split_of
from ziggurat.errors import DataError, DatapointError, UsageError
from ziggurat.protobuf_wire import WireFormatError
from ziggurat.records.lmdb_store import EnvironmentLease
from ziggurat.records.schema import Schema

__all__ = ["DigitsLMDBImporter"]

_NAME_FILES: Final = ("labels.txt", "classes.txt")
_AS_ARRAY: Final = "array"
_AS_IMAGE: Final = "picture"

_BLOCK_BYTES = 16 << 20
_BLOCK_RECORDS = 1000


class _Stores(NamedTuple):
    """The stores of one split: of the records, and of their labels where these have one of their own."""

    records: str
    labels: str
    split: str


class DigitsLMDBImporter(Importer):
    """Stores of Caffe's ``Datum``: those of DIGITS's jobs, and those that were made for it by others."""

    name = "digits_lmdb"
    markers = (".mdb",)
    title = "DIGITS and Caffe (LMDB)"
    kinds = ("image-classification", "generic")
    options = (
        ImporterOption(name="train_images", type=str, default="", help="Store of the training samples."),
        ImporterOption(name="train_labels", type=str, default="", help="Store of their labels, in the same order."),
        ImporterOption(name="val_images", type=str, default="", help="Store of the samples for validation."),
        ImporterOption(name="val_labels", type=str, default="", help="Store of their labels, in the same order."),
        ImporterOption(name="classes", type=str, default="", help="File with the name of class i in line i."),
        ImporterOption(name="force_same_shape", type=bool, default=True, help="Refuse stores of several shapes."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim folders with ``data.mdb`` whose first record is a ``Datum`` with values."""
        if source.is_file():
            return None
        found = _stores(source, self.checked_options({}))
        first = first_record(source / found[0].records) if found else None
        if first is None or not _has_values(first):
            return None
        names = ", ".join(f"`{stores.records or source.name}`" for stores in found)
        kind = _kind(found[0], first)
        return Guess(format=self.name, confidence=0.95, reason=f"LMDB stores of Caffe's records: {names}", kind=kind)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the stores.

        Raises:
            DataError: where there is no store, or none of Caffe's records.
        """
        return _DatumScan(source, options)

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads a record by its key."""
        return _DatumReader(source)


class _DatumScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._root = source
        self._options = options
        self._stores = _stores(source, options)
        first = first_record(source / self._stores[0].records) if self._stores else None
        if first is None or not _has_values(first):
            what = "records that are no `Datum`" if self._stores else "no folder with `data.mdb`"
            raise DataError(
                f"`{source}` has no LMDB store of Caffe's `Datum`, such as `train_db`: {what}.",
                advice="Name the folders of the stores with the options `train_images` and `val_images`.",
            )
        self._kind = _kind(self._stores[0], first)
        self._label_part = self._has_label_part()
        self._shape: tuple[int, int, int] | None = None
        self._shape_key = ""
        self._numbers = NumberedClasses()

    def __iter__(self) -> Iterator[Sample | Problem]:
        for stores in self._stores:
            keys = _own_keys(self._root, stores.split)
            for (key, value), label in self._rows(stores):
                yield self._sample(stores, key, value, label, next(keys, ""))
        if not self._options["train_images"] and not self._options["val_images"]:
            yield from _not_taken(self._root, self._stores)
        if self._kind != "generic":
            yield from self._numbers.problems(self._class_names(), self._stores[0].records or self._root.name)

    @property
    def schema(self) -> Schema:
        """Of classes, the names in ``labels.txt``; else shape (H, W, C) in the details, where all have one."""
        details = {"shape": list(self._shape)} if self._shape and self._options["force_same_shape"] else {}
        if self._kind == "generic":
            return Schema(kind="generic", parts=("array", "label")[: 1 + self._label_part], details=details)
        names = self._numbers.names(self._class_names())
        return completed(Schema(kind=self._kind, class_names=names, details=details), self._root)

    def _class_names(self) -> tuple[str, ...]:
        given = self._options["classes"]
        folders = ("", "..") if is_store(self._root) else ("",)
        usual = (self._root / folder / name for folder in folders for name in _NAME_FILES)
        path = self._root / given if given else next((path for path in usual if path.is_file()), None)
        return () if path is None else names_in(path)

    def _has_label_part(self) -> bool:
        """Whether labels are more than a row of numbers, and so become a part of the record."""
        if not self._stores[0].labels:
            return False
        first = first_record(self._root / self._stores[0].labels)
        return first is not None and (first.encoded or sum(length > 1 for length in first.array().shape) > 1)

    def _rows(self, stores: _Stores) -> Iterator[tuple[tuple[bytes, bytes], tuple[bytes, bytes] | None]]:
        records = records_of(self._root / stores.records)
        if not stores.labels:
            yield from ((record, None) for record in records)
            return
        for record, label in zip_longest(records, records_of(self._root / stores.labels)):
            if record is None or label is None:
                raise DataError(
                    "The stores of samples and labels differ in length: "
                    f"`{stores.labels if record is None else stores.records}` has more."
                )
            yield record, label

    def _sample(
        self, stores: _Stores, key: bytes, value: bytes, label: tuple[bytes, bytes] | None, own_key: str
    ) -> Sample | Problem:
        name = own_key or f"{stores.records or self._root.name}/{key.decode('utf-8', 'backslashreplace')}"
        try:
            datum = unpack_datum(value)
            shape = shape_of(datum)
            numbers = None if label is None or self._label_part else unpack_datum(label[1]).array().ravel().tolist()
        except DataError as error:
            return Problem(key=name, kind="unreadable", reason=str(error), left_out=True, split=stores.split)
        if self._kind != "generic" and self._numbers.number(datum.label) is None:
            return no_number(name, datum.label, stores.split)
        self._check_shape(shape, name)
        parts = [_address(stores.records, key, _AS_IMAGE if self._kind != "generic" else _AS_ARRAY)]
        if label is not None and self._label_part:
            parts.append(_address(stores.labels, label[0], _AS_ARRAY))
        number = datum.label if label is None else numbers
        return Sample(key=name, parts=tuple(parts), label=number, split=stores.split, size_bytes=len(value))

    def _check_shape(self, shape: tuple[int, int, int], key: str) -> None:
        if self._shape is None:
            self._shape, self._shape_key = shape, key
        elif shape != self._shape and self._options["force_same_shape"]:
            raise DataError(
                "All records of a store have the same height, width and channels.",
                received=f"{shape} at `{key}`, {self._shape} at `{self._shape_key}`",
                advice="Say `force_same_shape=false` where that is meant, for images that are resized anyway.",
            )


class _DatumReader(PartReader):
    """Reads by addresses: the JSON list of store, key (Latin-1) and how it is wanted."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._leases: dict[str, EnvironmentLease] = {}

    def read(self, address: str) -> bytes | np.ndarray:
        """Return an image as it is encoded or as (H, W, C) uint8, RGB; or an array (H, W, C) uint8 or float32."""
        store, key, form = json.loads(address)
        if store not in self._leases:
            try:
                self._leases[store] = open_store(self._root / store)
            except DataError as error:
                raise DatapointError(address, str(error)) from error
        datum = datum_of(self._leases[store], key.encode("latin-1"), address)
        return image_of(datum, address) if form == _AS_IMAGE else array_of(datum, address)

    def close(self) -> None:
        """Give the stores back."""
        for lease in self._leases.values():
            lease.close()
        self._leases.clear()


def _address(store: str, key: bytes, form: str) -> str:
    return json.dumps([store, key.decode("latin-1"), form])


def _stores(source: Path, options: Mapping[str, Any]) -> list[_Stores]:
    """Return the stores of a source by split."""
    chosen = [
        _Stores(options[f"{split}_images"], options[f"{split}_labels"], split)
        for split in ("train", "val")
        if options[f"{split}_images"]
    ]
    if chosen:
        return chosen
    if options["train_labels"] or options["val_labels"]:
        raise UsageError("A store of labels belongs to a store of samples.", received="`train_labels` alone")
    if is_store(source):
        return [_Stores("", "", split_of(source.name.partition("_")[0]))]
    found: dict[str, _Stores] = {}
    for each in _stores_in(source):
        found.setdefault(each.split, each)
    return [found[split] for split in (*SPLITS, "") if split in found]


def _stores_in(source: Path) -> Iterator[_Stores]:
    """Yield all stores in the folders of a source."""
    for name in folders_in(source):
        split = next((split_of(word) for word in name.replace("-", "_").split("_") if split_of(word)), "")
        if is_store(source / name):
            yield _Stores(name, "", split)
        elif is_store(source / name / "features"):
            yield _Stores(f"{name}/features", f"{name}/labels" if is_store(source / name / "labels") else "", split)


def _not_taken(source: Path, stores: Sequence[_Stores]) -> Iterator[Problem]:
    """Yield the stores whose split another store stands for."""
    taken = {each.split: each.records for each in stores}
    for each in () if is_store(source) else _stores_in(source):
        if each.records != taken.get(each.split):
            reason = (
                f"The split has the store `{taken[each.split]}` already; the options `train_images` and `val_images` "
                "choose others."
            )
            why = "another store of their split is read"
            yield Problem(key=each.records, kind="other-files", reason=reason, names=1, why=why)


def _kind(stores: _Stores, first: Datum) -> str:
    is_generic = stores.labels or stores.records.endswith("/features") or not first.data
    return "generic" if is_generic else "image-classification"


def _has_values(datum: Datum) -> bool:
    try:
        return min(shape_of(datum)) > 0
    except DataError:
        return False


def _own_keys(root: Path, split: str) -> Iterator[str]:
    """Yield the keys that our exporter wrote beside the stores."""
    path = root / f"{split or 'all'}_keys.jsonl"
    if path.is_file():
        with path.open(encoding="utf-8") as lines:
            yield from (str(json.loads(line)) for line in lines)


def is_store(path: Path) -> bool:
    """Whether there is an LMDB store in a folder."""
    return (path / "data.mdb").is_file()


def records_of(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of each record, in the order of the keys, a few MiB at a time.

    Raises:
        DataError: where it is no LMDB store.
    """
    lease = open_store(path)
    try:
        after = None
        while block := _block(lease, after):
            yield from block
            after = block[-1][0]
    finally:
        lease.close()


def first_record(path: Path) -> Datum | None:
    """Return the first record of a store; None where it has none, or another kind of records."""
    try:
        first = next(records_of(path), None)
        return None if first is None else unpack_datum(first[1])
    except DataError:
        return None


def datum_of(lease: EnvironmentLease, key: bytes, address: str) -> Datum:
    """Return the record of a key.

    Raises:
        DatapointError: where there is none, or it is no ``Datum``.
    """
    with lease.transaction() as transaction:
        value = transaction.get(key)
        content = None if value is None else bytes(value)
    if content is None:
        raise DatapointError(address, "its store has no record of that key.")
    try:
        return unpack_datum(content)
    except WireFormatError as error:
        raise DatapointError(address, f"its record is no Datum ({error}).") from error


def shape_of(datum: Datum) -> tuple[int, int, int]:
    """Return height, width and channels of a record; of an encoded image, from its header.

    Raises:
        DataError: where it has none.
    """
    if not datum.encoded:
        channels, height, width = datum.array().shape
        return height, width, channels
    try:
        with Image.open(io.BytesIO(datum.data)) as image:
            return image.height, image.width, len(image.getbands())
    except (OSError, ValueError) as error:
        raise DataError(f"An encoded Datum holds no image that can be read: {str(error).rstrip('.')}.") from error


def image_of(datum: Datum, address: str) -> bytes | np.ndarray:
    """Return an image: the bytes of a file, or (H, W, C) uint8, RGB (Caffe stores BGR).

    Raises:
        DatapointError: where it has floats, or too many or too few values.
    """
    if datum.encoded:
        return datum.data
    if not datum.data:
        raise DatapointError(address, "it has floats, and an image has bytes.")
    return _array(datum, address)


def array_of(datum: Datum, address: str) -> np.ndarray:
    """Return what a record holds as (H, W, C): uint8 of bytes, 3 channels as RGB, or float32.

    Raises:
        DatapointError: where it cannot be decoded, or has too many or too few values.
    """
    if not datum.encoded:
        return _array(datum, address)
    channels = 1 if shape_of(datum)[2] == 1 else 3
    return decode_image(datum.data, channels=channels, key=address)


def _array(datum: Datum, address: str) -> np.ndarray:
    try:
        values = datum.array()
    except WireFormatError as error:
        raise DatapointError(address, str(error)) from error
    if values.dtype == np.uint8 and values.shape[0] == 3:
        values = values[::-1]
    return np.ascontiguousarray(values.transpose(1, 2, 0))


def open_store(path: Path) -> EnvironmentLease:
    """Return the open store in a folder.

    Raises:
        DataError: where there is none.
    """
    try:
        return EnvironmentLease(path)
    except OSError as error:
        raise DataError(
            f"`{path}` cannot be opened as a store of DIGITS, a folder with the file `data.mdb`: {error.strerror}.",
            advice="Name the folder that holds `data.mdb`.",
        ) from error


def _block(lease: EnvironmentLease, after: bytes | None) -> list[tuple[bytes, bytes]]:
    """Return the next records behind a key."""
    block: list[tuple[bytes, bytes]] = []
    size_bytes = 0
    with lease.transaction() as transaction:
        cursor = transaction.cursor()
        found = cursor.first() if after is None else cursor.set_range(after)
        if found and bytes(cursor.key()) == after:
            found = cursor.next()
        while found and size_bytes < _BLOCK_BYTES and len(block) < _BLOCK_RECORDS:
            block.append((bytes(cursor.key()), bytes(cursor.value())))
            size_bytes += len(block[-1][1])
            found = cursor.next()
    return block
