"""Export of images and classes to the idx files of MNIST."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.shared.digits_files import ImageShape
from ziggurat.datasets.formats.shared.exports import Export, ExportReport

__all__ = ["export_idx"]

_NAMES: Final = {"test": "t10k", "": "train"}
_BYTES, _INTEGERS = 0x08, 0x0C


def export_idx(dataset: Dataset, folder: Path, *, compress: bool = False) -> ExportReport:
    """Write ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same for ``val`` and ``t10k``, the test.

    Images in color make files of four dimensions, ``images-idx4-ubyte`` (N, H, W, 3). Where there are more than 256
    classes, labels are 32 bits wide. A file ``train-keys.jsonl`` has the keys.

    Args:
        dataset: of kind image-classification, with images of one size; those of another size are left out.
        folder: new or empty.
        compress: whether the files are in gzip.

    Raises:
        DataError: where the dataset is of another kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    export = Export(dataset, folder, "idx", ("image-classification",))
    images = ImageShape(export)
    for split in dataset.splits:
        name = _NAMES.get(split, split)
        values, labels, keys = export.folder / f"{name}-images", bytearray(), []
        wide = len(dataset.schema.class_names) > 256
        with storage_errors(values), values.open("w+b") as file:
            for sample in export.samples(split):
                pixels = images.pixels(dataset, sample)
                if pixels is None:
                    continue
                file.write(np.ascontiguousarray(pixels).data)
                labels += struct.pack(">i" if wide else ">B", sample.label)
                keys.append(sample.key)
        export.counts[split] = len(keys)
        shape = images.shape
        sizes = (len(keys), *(shape[:2] if shape[2:] == (1,) else shape))
        _finish(values, f"idx{len(sizes)}-ubyte", _header(_BYTES, sizes), compress)
        export.write(f"{name}-labels", bytes(labels))
        kind = _INTEGERS if wide else _BYTES
        _finish(export.folder / f"{name}-labels", "idx1-ubyte", _header(kind, (len(keys),)), compress)
        export.write_keys(f"{name}-keys.jsonl", keys)
    export.write_class_names("classes.txt")
    return export.report()


def _header(kind: int, sizes: tuple[int, ...]) -> bytes:
    return bytes([0, 0, kind, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes)


def _finish(path: Path, ending: str, header: bytes, compress: bool) -> None:
    """Put a header before the values in a file, under the file's last name."""
    final = path.with_name(f"{path.name}-{ending}{'.gz' if compress else ''}")
    with storage_errors(final), path.open("rb") as values:
        if compress:
            with gzip.GzipFile(final, "xb", mtime=0) as file:
                _copy(values, file, header)
        else:
            with final.open("xb") as file:
                _copy(values, file, header)
        path.unlink()


def _copy(values: BinaryIO, file: BinaryIO | gzip.GzipFile, header: bytes) -> None:
    file.write(header)
    while block := values.read(1 << 20):
        file.write(block)
