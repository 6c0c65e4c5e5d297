"""Files submitted with the form by a browser without scripts; they become an upload."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final

from starlette.datastructures import UploadFile

from ziggurat.workspace.studio import Studio

__all__ = ["is_hidden", "take_files"]

_BLOCK_BYTES: Final = 1 << 20
_SYSTEM: Final = frozenset({"__MACOSX", "Thumbs.db", "desktop.ini", "$RECYCLE.BIN", "System Volume Information"})


def take_files(studio: Studio, sent: Iterable[Any]) -> str:
    """Keep files that were sent; return the source that they make, empty where there are none.

    Raises:
        DataError: where a name leads elsewhere, or there is too much.
        StorageError: where the disk is full.
    """
    upload_id = source = ""
    for file in sent:
        if not isinstance(file, UploadFile) or not file.filename or is_hidden(file.filename):
            continue
        incoming = studio.uploads.add(file.filename, upload_id)
        with incoming:
            while block := file.file.read(_BLOCK_BYTES):
                incoming.write(block)
        upload = incoming.result()
        upload_id, source = upload.id, upload.source
    return source


def is_hidden(name: str) -> bool:
    """Tell whether a file is one of a system's own, which no dataset wants."""
    parts = PurePosixPath(name).parts
    return any((part.startswith(".") and part != "..") or part in _SYSTEM for part in parts)
