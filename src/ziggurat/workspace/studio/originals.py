"""Original images of samples: the source file if it is unchanged and allowed, else the stored image."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.dataflow.image_header import read_header
from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.sources import is_remote
from ziggurat.errors import DataError, ZigguratError
from ziggurat.records.offered_folders import is_below

__all__ = ["OriginalImage", "original_image", "source_file", "unchanged_source"]

_MOST_BYTES: Final = 64 << 20
_HASH_BYTES: Final = 16
_SHOWN: Final = {"jpeg": "image/jpeg", "png": "image/png"}
"""File format that is sent unchanged → its media type; other formats are sent as PNG."""


@dataclass(frozen=True, kw_only=True)
class OriginalImage:
    """Original image of a sample.

    Args:
        content: of the file.
        media_type: detected from the content, not from the file name.
        is_source: whether it is the source file; else it is the stored image.
        name: of the file.
    """

    content: bytes
    media_type: str
    is_source: bool
    name: str

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers; the source file may change or be deleted, so browsers must revalidate."""
        return {
            "Cache-Control": "private, no-cache",
            "ETag": f'"{hashlib.sha256(self.content).hexdigest()[:32]}"',
            "Image-Origin": "source" if self.is_source else "stored",
            "Content-Disposition": f"inline; filename*=UTF-8''{quote(self.name.encode('utf-8', 'replace'))}",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }


def source_file(dataset: Dataset, entry: Entry, offered: Sequence[str], part: int = 0) -> Path | None:
    """Return the file that a part of a sample was made from, by its path and size; its content is not read.

    Args:
        dataset: that the sample is in.
        entry: of the sample.
        offered: allowed folders; symbolic links out of them are not followed.
        part: number of the part; only for the first part, it is known whether the content is unchanged.

    Returns:
        path: without links in it; None where the source is not on this machine, the file is gone or an element of a
            larger one, or may not be read.
    """
    source = dataset.manifest.source
    address = entry.parts[part] if part < len(entry.parts) else b""
    if source is None or part or is_remote(source.uri) or not isinstance(address, str) or not address:
        return None
    root = source.uri if os.path.isdir(source.uri) else os.path.dirname(source.uri)  # that of a list or a table
    if not root.startswith("/") or "\0" in address:
        return None
    real = os.path.realpath(os.path.join(root, address))
    folders = [os.path.realpath(folder) for folder in offered]
    if not real.startswith(os.path.realpath(root).rstrip("/") + "/") or not is_below(real, folders):
        return None
    try:
        noted = os.stat(real)
    except OSError:
        return None
    is_same = stat.S_ISREG(noted.st_mode) and entry.source_bytes in (None, noted.st_size)
    return Path(real) if is_same and noted.st_size <= _MOST_BYTES else None


def unchanged_source(dataset: Dataset, entry: Entry, offered: Sequence[str], part: int = 0) -> bytes | None:
    """Return the content of the source file of a sample; None if it is missing or has changed."""
    file = source_file(dataset, entry, offered, part)
    if file is None:
        return None
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest = hashlib.sha256(content).digest()[:_HASH_BYTES]
    return content if entry.content_hash == digest else None


def original_image(dataset: Dataset, entry: Entry, offered: Sequence[str], part: int = 0) -> OriginalImage:
    """Return the original image of a sample.

    Args:
        dataset: that the sample is in.
        entry: of the sample.
        offered: folders below which files may be read.
        part: number of the part.

    Raises:
        MissingEntryError: where the sample has no such part.
        DataError: where the part is no image.
        DatapointError: where it cannot be read.
    """
    name = entry.key.rpartition("/")[2]
    found = unchanged_source(dataset, entry, offered, part)
    if found is not None:
        made = _as_shown(found, entry.key)
        if made is not None:
            return OriginalImage(content=made[0], media_type=made[1], is_source=True, name=name)
    image = dataset.manifest.image
    stored = _as_shown(_stored(dataset, entry, part), entry.key)
    if image is None or stored is None:
        raise DataError(f"This dataset is of kind {dataset.kind}, and an original is shown of samples with images.")
    is_source = image.encoding == "reference"
    return OriginalImage(content=stored[0], media_type=stored[1], is_source=is_source, name=name)


def _stored(dataset: Dataset, entry: Entry, part: int) -> bytes:
    content: Any = dataset.sample(entry.split, entry.row or 0).part(part)
    if isinstance(content, bytes):
        return content
    image = dataset.picture(entry.split, entry.row or 0, part)
    return encode_image(image if image.ndim == 3 else image[:, :, None], "png")


def _as_shown(content: bytes, key: str) -> tuple[bytes, str] | None:
    """Return an image in a format of browsers, and its media type; None if the content is not an image."""
    media_type = _SHOWN.get(read_header(content).file_format)
    if media_type is not None:
        return content, media_type
    try:
        return encode_image(decode_image(content, key=key), "png"), "image/png"
    except ZigguratError:
        return None
