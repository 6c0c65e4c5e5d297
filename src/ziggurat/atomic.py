"""Atomic creation of files: written under a temporary name, renamed once complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ziggurat.errors import StorageError

__all__ = ["AtomicFile", "atomic_write_text", "replaced_file", "storage_errors", "sync_path"]

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


class AtomicFile:
    """A file that is being written.

    ``path`` is where to write: a name of its own in the same folder, that starts with a dot and ends in ``.partial``. A
    process that is killed leaves that file behind, which nobody takes for a store and anybody may delete.

    Args:
        final: the name that the file gets when it is whole.
        replace: whether a file that stands there may be replaced; it stays whole until then.

    Raises:
        StorageError: where something stands at ``final``, or its folder does not exist.
    """

    def __init__(self, final: str | os.PathLike[str], *, replace: bool = False) -> None:
        self.final = Path(final)
        self.replace = replace
        if not replace and os.path.lexists(self.final):
            raise _occupied(self.final)
        folder = self.final.parent
        if not folder.is_dir():
            raise StorageError(
                "A file is written into a folder that exists.",
                received=f"`{self.final}`",
                advice=f"Make `{folder}` first.",
            )
        self.path = folder / f".{self.final.name}.{os.getpid()}-{secrets.token_hex(4)}.partial"

    def publish(self) -> None:
        """Bring the content to the disk, and give the file its name.

        Raises:
            StorageError: where somebody else made a file of that name meanwhile, or the disk refuses.
        """
        with storage_errors(self.final):
            sync_path(self.path)
            if self.replace:
                os.replace(self.path, self.final)
            else:
                self._name_once()
            sync_path(self.final.parent)

    def discard(self) -> None:
        """Delete what was written so far."""
        self.path.unlink(missing_ok=True)

    def _name_once(self) -> None:
        try:
            os.link(self.path, self.final)  # unlike a rename, it never replaces another file
        except FileExistsError:
            raise _occupied(self.final) from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            if os.path.lexists(self.final):
                raise _occupied(self.final) from None
            os.rename(self.path, self.final)
        else:
            self.path.unlink()


@contextmanager
def storage_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the operating system, while ``path`` is written, into a ``StorageError``."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            "Writing needs a folder that may be written to, and free space.",
            received=f"`{path}`: {error.strerror or error}",
            advice="Free space or permit writing, or write to another folder.",
            details={"path": str(path), "errno": error.errno},
        ) from error


def _occupied(path: Path) -> StorageError:
    return StorageError(
        "A store is written to a path where nothing stands; nothing is ever overwritten.",
        received=f"`{path}`, which exists",
        advice="Delete it first, or choose another path.",
        details={"path": str(path)},
    )


def sync_path(path: Path) -> None:
    """Bring the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replaced_file(path: Path, what: str, *, durable: bool = True, advice: str = "") -> Iterator[Path]:
    """Give a path to write to; at the end it replaces the file. Where that fails, what was there stays.

    A reader never sees half of it; nor does a kill leave half of it.

    Args:
        path: the file, in a folder that is there.
        what: names it in the error: ``The stop request``.
        durable: whether the content is on the disk before it gets the name, so that a power failure leaves the old file
            or the whole new one. It costs milliseconds; a file that is written anew each second does without.
        advice: of the error.

    Raises:
        StorageError: where it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        yield temporary
        if durable:
            sync_path(temporary)
        temporary.replace(path)
    except OSError as error:
        raise StorageError(
            f"{what} must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice=advice or "Free space on the disk or fix the folder's rights.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def atomic_write_text(path: Path, text: str, what: str, *, durable: bool = True) -> None:
    """Replace a file by a text; see ``replaced_file``."""
    with replaced_file(path, what, durable=durable) as temporary:
        temporary.write_text(text, encoding="utf-8")
