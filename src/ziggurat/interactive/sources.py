"""Sources of datasets in a Python session: files, and arrays and rows that are written as files first."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.errors import DataError
from ziggurat.interactive.inputs import as_image_bytes, as_rows, is_frame

__all__ = ["MadeFiles", "changed_at", "files_of", "stamp_of"]

_STAMP_LETTERS: Final = 12


@dataclass(frozen=True, kw_only=True)
class MadeFiles:
    """Files that stand for arrays or rows.

    Args:
        content: path below their folder → content.
        name: name of the file that is the source; empty for the whole folder.
    """

    content: Mapping[str, bytes]
    name: str = ""

    @property
    def stamp(self) -> str:
        """Fingerprint of names and content."""
        digest = hashlib.sha256()
        for name, content in sorted(self.content.items()):
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()[:_STAMP_LETTERS]

    def write(self, folder: Path) -> Path:
        """Write the files that are not there yet; return the source."""
        with storage_errors(folder):
            for name, content in self.content.items():
                path = folder / name
                if not path.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
        return folder / self.name if self.name else folder


def files_of(data: Any) -> MadeFiles | None:
    """Return the files that stand for images with labels, or for rows of a table; None for anything else.

    Args:
        data: ``(images, labels)``, images (N, H, W) or (N, H, W, C) uint8 or a list of images, labels texts or whole
            numbers; or a pandas DataFrame, or a list of dicts.

    Raises:
        DataError: if images and labels do not fit together, or there are none.
    """
    if is_frame(data) or (isinstance(data, Sequence) and len(data) and isinstance(data[0], Mapping)):
        return MadeFiles(content={"rows.csv": _as_csv(as_rows(data))}, name="rows.csv")
    if isinstance(data, tuple) and len(data) == 2:
        return _labeled_images(*data)
    return None


def stamp_of(source: Path) -> str:
    """Return a fingerprint of files: names, sizes and times."""
    digest = hashlib.sha256()
    for path in sorted(_files(source)):
        about = path.stat()
        digest.update(f"{path.relative_to(source.parent)}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:_STAMP_LETTERS]


def changed_at(source: Path) -> float:
    """Return the time of the newest change of files and folders, seconds since 1970; infinity if there is nothing."""
    if not source.exists():
        return float("inf")
    folders = (Path(place) for place, _, _ in os.walk(source)) if source.is_dir() else ()
    return max(path.stat().st_mtime for path in (source, *folders, *_files(source)))


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    for place, _, names in os.walk(source):
        yield from (path for path in (Path(place) / name for name in names) if path.is_file())


def _labeled_images(images: Any, labels: Any) -> MadeFiles:
    """Return a folder for each label, with the images in it as PNG files."""
    names = [str(each) for each in np.asarray(labels).tolist()]
    if len(images) != len(names) or not names:
        raise DataError(
            "Images and labels do not fit together.",
            received=f"{len(images)} images and {len(names)} labels",
            advice="Give a label for each image.",
        )
    for name in names:
        if not name.strip() or name.startswith(".") or "/" in name:
            raise DataError(f"`{name}` cannot be the name of a class.", advice="Name classes without slashes and dots.")
    digits = len(str(len(names)))
    return MadeFiles(
        content={
            f"{name}/{number:0{digits}}.png": as_image_bytes(image)
            for number, (image, name) in enumerate(zip(images, names))
        }
    )


def _as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return text.getvalue().encode()
