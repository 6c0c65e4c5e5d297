"""Sources of images for a prediction job: unpacked archives, and lists told apart from images."""

from __future__ import annotations

import os
import re
import secrets
from itertools import islice
from pathlib import Path
from typing import Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.sources.archives import is_archive
from ziggurat.datasets.sources.opening import open_source
from ziggurat.workspace.studio.paths import Paths
from ziggurat.workspace.studio.uploads import Uploads

__all__ = ["picture_source"]

_LISTS: Final = (".txt", ".lst", ".csv", ".tsv")
_ENDINGS: Final = "|".join(re.escape(suffix) for suffix in sorted(IMAGE_SUFFIXES))
_NAMED: Final = re.compile(rf".*?(?:{_ENDINGS})(?![^\s,])", re.IGNORECASE)
_LOOKED_AT: Final = 100
"""Lines of a list that may be empty before the first path."""


def picture_source(source: str, paths: Paths, uploads: Uploads, now: float) -> str:
    """Return the folder or list that ``Evaluations.create_many`` takes, for what a person named or sent.

    An archive is unpacked beside the upload that it came with; one of this machine into a new upload, which goes when
    it is old, as all do. Among files that were sent, a list of the others is what is meant.

    Args:
        source: folder, archive, list or image.
        paths: that people may name.
        uploads: where files that were sent wait.
        now: seconds since 1970.

    Raises:
        UsageError: where the path may not be named.
        DataError: where an archive is damaged, or holds what it must not.
        StorageError: where the disk is full.
    """
    found = paths.allowed(source)
    upload = _upload_of(found, uploads)
    if found.is_file() and is_archive(found.name):
        upload = upload or uploads.folder / f"{int(now)}-{secrets.token_hex(8)}"
        found = open_source(str(found), upload)
    return str((_list_in(found) if upload is not None and found.is_dir() else None) or found)


def _upload_of(path: Path, uploads: Uploads) -> Path | None:
    root = Path(os.path.realpath(uploads.folder))
    return root / path.relative_to(root).parts[0] if path.is_relative_to(root) and path != root else None


def _list_in(folder: Path) -> Path | None:
    """Return the list in a folder of files that were sent; None where there is none, or there are several."""
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    lists = [path for path in entries if path.suffix.lower() in _LISTS and path.is_file()]
    if len(lists) != 1:
        return None
    named = _NAMED.match(_first_line(lists[0]))
    is_list = len(entries) == 1 or (named is not None and (folder / named[0]).exists())
    return lists[0] if is_list else None


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        return next((text for text in (line.strip() for line in islice(file, _LOOKED_AT)) if text), "")
