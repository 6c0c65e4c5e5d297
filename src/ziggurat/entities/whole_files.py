"""Atomic writing of small files: a reader, or a kill, leaves the complete file or none."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from ziggurat.errors import StorageError

__all__ = ["write_whole"]


def write_whole(path: Path, text: str, what: str) -> None:
    """Replace a file by a text; what was there stays where that fails.

    Args:
        path: the file, in a folder that is there.
        text: its content.
        what: names it in the error: ``The stop request``.

    Raises:
        StorageError: where it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageError(
            f"{what} must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights.",
        ) from error
