"""Export to WebDataset: plain tar shards with the files of each sample next to each other."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, encoded_part, suffix_of
from ziggurat.errors import ConfigurationError

__all__ = ["export_webdataset"]

_KINDS: Final = (
    "image-classification",
    "detection",
    "segmentation",
    "image-to-image",
    "image-pairs",
    "image-regression",
    "text-classification",
)
_WITH_CLASS: Final = ("image-classification", "text-classification", "image-pairs")


def export_webdataset(dataset: Dataset, folder: Path, *, samples_per_shard: int = 10_000) -> ExportReport:
    """Write shards such as ``train-000000.tar``, and ``classes.txt``.

    The members of a sample are its image (``00000042.jpg``), further images by the names of their parts
    (``00000042.mask.png``), the class (``.cls``), and a ``.json`` with kind, key and label.

    Args:
        dataset: with images or texts.
        folder: new or empty.
        samples_per_shard: at most.

    Raises:
        DataError: where the dataset is of another kind.
        ConfigurationError: where a shard is to have no samples.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if samples_per_shard < 1:
        raise ConfigurationError("A shard has at least one sample.", received=str(samples_per_shard))
    export = Export(dataset, folder, "webdataset", _KINDS)
    for split in dataset.splits:
        shard: tarfile.TarFile | None = None
        number = -1
        with storage_errors(export.folder):
            try:
                for sample in export.samples(split):
                    if shard is None or sample.row // samples_per_shard != number:
                        number = sample.row // samples_per_shard
                        if shard is not None:
                            shard.close()
                        path = export.folder / f"{split or 'all'}-{number:06d}.tar"
                        shard = tarfile.open(path, "x:", format=tarfile.PAX_FORMAT)  # noqa: SIM115
                    _add(shard, dataset, sample)
                    export.counts[split] += 1
            finally:
                if shard is not None:
                    shard.close()
    export.write_class_names("classes.txt")
    return export.report()


def _add(shard: tarfile.TarFile, dataset: Dataset, sample: StoredSample) -> None:
    name = f"{sample.row:08d}"
    for part, value in zip(dataset.schema.parts, sample.parts, strict=False):
        content = encoded_part(value, sample.key)
        ending = ".txt" if part == "text" else suffix_of(content)
        _write(shard, f"{name}{'' if part in ('image', 'text') else f'.{part}'}{ending}", content)
    if dataset.kind in _WITH_CLASS:
        _write(shard, f"{name}.cls", str(sample.label).encode())
    about = {"kind": dataset.kind, "key": sample.key, "label": sample.label}
    _write(shard, f"{name}.json", json.dumps(about, ensure_ascii=False).encode())


def _write(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)  # without times and owners, so that the same data gives the same bytes
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))
    vars(shard)["members"].clear()  # else it remembers each of a million members
