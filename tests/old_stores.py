"""Datasets as release 0.1 stored them, in HDF5 or npz: made from a dataset of today with the writers of then."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from ziggurat.records import create_records, open_records
from ziggurat.records.manifest import MANIFEST_NAME, Manifest


def store_as_0_1_did(folder: Path, record_format: str) -> None:
    """Give a dataset stores of another format, with a manifest that names them.

    Args:
        folder: of the dataset, which has one store for each split.
        record_format: ``hdf5`` or ``npz``.
    """
    manifest = Manifest.load(folder)
    splits = {}
    for split, note in manifest.splits.items():
        (store,) = note.stores
        path = folder / f"{split}.{record_format}"
        with open_records(folder / store.path) as reader, create_records(path, record_format) as writer:
            for number in range(len(reader)):
                writer.append(*reader.item(number))
        (folder / store.path).unlink()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        size_bytes = path.stat().st_size
        now = replace(store, path=path.name, record_format=record_format, size_bytes=size_bytes, sha256=digest)
        splits[split] = replace(note, stores=(now,))
    (folder / MANIFEST_NAME).unlink()
    replace(manifest, splits=splits, spec={**manifest.spec, "store": record_format}, release="0.1.0").save(folder)
