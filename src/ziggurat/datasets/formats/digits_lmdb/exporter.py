"""Export of a classification dataset in the layout of DIGITS: LMDB stores of Caffe's ``Datum``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import lmdb
import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.digits_lmdb.importer import shape_of
from ziggurat.datasets.formats.shared.digits_files import Datum, ImageShape, pack_datum, write_mean
from ziggurat.datasets.formats.shared.exports import Export, ExportReport
from ziggurat.datasets.image_size import size_of
from ziggurat.errors import DatapointError, StorageError, UnknownNameError

__all__ = ["export_digits_lmdb"]

_ENCODINGS: Final = ("stored", "none")
_FIRST_MAP_BYTES: Final = 16 << 20  # doubled whenever it is full
_BATCH: Final = 100


def export_digits_lmdb(dataset: Dataset, folder: Path, *, encoding: str = "stored") -> ExportReport:
    """Write ``train_db``, ``val_db``, ``test_db``, ``labels.txt`` and the mean image.

    Keys are ``%08d_<class>``, values a ``Datum``. A file ``train_keys.jsonl`` has the keys of our samples.

    Args:
        dataset: of kind image-classification.
        folder: new or empty.
        encoding: ``stored``: images that are encoded stay so; ``none``: pixels, (C, H, W) in BGR, all of one size.

    Raises:
        DataError: where the dataset is of another kind.
        UnknownNameError: where there is no such encoding.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if encoding not in _ENCODINGS:
        raise UnknownNameError("encoding of a DIGITS store", encoding, _ENCODINGS)
    export = Export(dataset, folder, "digits_lmdb", ("image-classification",))
    shape = ImageShape(export)
    shapes: set[tuple[int, int, int]] = set()
    for split in dataset.splits:
        keys: list[str] = []
        with _Store(export.folder / f"{split or 'all'}_db") as store:
            for sample in export.samples(split):
                datum = _datum(export, shape, sample, encoding)
                if datum is not None:
                    shapes.add(shape_of(datum))
                    store.put(f"{len(keys):08d}_{sample.label}".encode(), pack_datum(datum))
                    keys.append(sample.key)
        export.counts[split] = len(keys)
        export.write_keys(f"{split or 'all'}_keys.jsonl", keys)
    export.write_class_names("labels.txt")
    if len(shapes) > 1:
        export.notes.append(
            "The images have several sizes or numbers of channels: read them with `force_same_shape=false`."
        )
    write_mean(export)
    return export.report()


def _datum(export: Export, shape: ImageShape, sample: StoredSample, encoding: str) -> Datum | None:
    part = sample.parts[0]
    if isinstance(part, bytes) and encoding == "stored":
        form = export.dataset.manifest.image
        try:
            height, width = size_of(part, sample.key)
        except DatapointError as error:
            export.leave_out(sample.key, "unreadable", error.rule)
            return None
        channels = 1 if form is not None and form.channels == 1 else 3
        return Datum(data=part, channels=channels, height_px=height, width_px=width, label=sample.label, encoded=True)
    pixels = shape.pixels(export.dataset, sample)
    if pixels is None:
        return None
    height, width, channels = pixels.shape
    data = np.ascontiguousarray(pixels[:, :, ::-1].transpose(2, 0, 1)).tobytes()
    return Datum(data=data, channels=channels, height_px=height, width_px=width, label=sample.label)


class _Store:
    """An LMDB store in a folder of its own, as Caffe opens it; its map grows as it fills."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._map_bytes = _FIRST_MAP_BYTES
        self._batch: list[tuple[bytes, bytes]] = []
        with storage_errors(folder):
            folder.mkdir()
        self._environment: Any = lmdb.open(str(folder), map_size=self._map_bytes, sync=False, metasync=False)

    def put(self, key: bytes, value: bytes) -> None:
        self._batch.append((key, value))
        if len(self._batch) >= _BATCH:
            self._commit()

    def _commit(self) -> None:
        while True:
            try:
                with self._environment.begin(write=True) as transaction:
                    for key, value in self._batch:
                        transaction.put(key, value)
            except lmdb.MapFullError:
                self._map_bytes *= 2
                self._environment.set_mapsize(self._map_bytes)
            except lmdb.Error as error:
                raise StorageError(
                    "Writing an LMDB store needs free space.", received=f"`{self._folder}`: {error}"
                ) from error
            else:
                self._batch.clear()
                return

    def __enter__(self) -> _Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exc: object) -> None:
        try:
            if kind is None:
                self._commit()
                self._environment.sync(True)
        finally:
            self._environment.close()
