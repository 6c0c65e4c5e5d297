"""Files written safely: atomic replacement, locks that end with their process, fences, permissions of new files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from ziggurat.errors import JobError, StorageError

__all__ = [
    "EXIT_SUPERSEDED",
    "AtomicFile",
    "ProcessLock",
    "atomic_write_text",
    "check_fence",
    "file_signature",
    "folder_mode",
    "hold_fence",
    "private_files",
    "private_umask",
    "raise_fence",
    "read_fence",
    "replaced_file",
    "storage_errors",
    "sync_path",
]


def file_signature(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return what tells a file from another one that is or was at the same path, and from itself before a change.

    The modification time and the size alone may be those of another file: a copy keeps the time of its original. The
    time of the inode's change cannot be set.

    Raises:
        OSError: if there is no file.
    """
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size


_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


class AtomicFile:
    """A file that is being written.

    ``path`` is where to write: a name of its own in the same folder, that starts with a dot and ends in ``.partial``. A
    process that is killed leaves that file behind, which is no store and which any process may delete.

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
                f"`{self.final}` cannot be written: the folder `{folder}` does not exist.", advice="Make it first."
            )
        self.path = folder / f".{self.final.name}.{os.getpid()}-{secrets.token_hex(4)}.partial"

    def publish(self) -> None:
        """Bring the content to the disk, and give the file its name.

        Raises:
            StorageError: if a file of that name was made meanwhile, or the disk refuses.
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


class ProcessLock:
    """An advisory lock that the system frees when its process ends, however it ends.

    Args:
        path: the lock file; it holds the number of the process.
        taken: returns the error to raise where another process holds it, given that process's number as text.
        rule: what must hold, for the error where the file cannot be made.

    Raises:
        JobError: where another process holds it.
        StorageError: where the file cannot be made.
    """

    def __init__(self, path: Path, taken: Callable[[str], JobError], rule: str) -> None:
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.close()
            raise taken(holder or "unknown") from None
        except OSError as error:
            self.close()
            raise StorageError(
                rule,
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error

    def close(self) -> None:
        """Let go; closing twice does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


EXIT_SUPERSEDED: Final = 76
"""Exit code of a process that found its fence raised by a later one: it has written nothing since."""

_held: tuple[Path, int] | None = None


def read_fence(path: Path) -> dict[str, Any] | None:
    """Return what a fence says, its ``number`` among it; None where there is none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("number"), int) else None


def raise_fence(path: Path, at_least: int = 0, **more: Any) -> int:
    """Shut out all earlier holders of a fence, and return the number of the next one.

    A fence is for folders on network disks, where a lock may be lost with its machine, and come back.

    Args:
        path: the file.
        at_least: smallest number that the next holder gets.
        more: JSON values that the file says besides.

    Raises:
        StorageError: where it cannot be written.
    """
    before = read_fence(path)
    number = max(at_least, 0 if before is None else before["number"] + 1)
    atomic_write_text(path, json.dumps({"number": number, **more}), "The fence of a job")
    return number


def hold_fence(path: Path, number: int | None) -> None:
    """Let ``check_fence`` look at this fence from now on; without a number and a file, at none.

    Args:
        path: the file.
        number: of this process; None for one that was started by who knows of no fence, which raises one that is there.

    Raises:
        StorageError: where it cannot be raised.
    """
    global _held
    _held = None
    if number is None and read_fence(path) is not None:
        number = raise_fence(path)
    if number is not None:
        _held = path, number
        check_fence()


def check_fence() -> None:
    """End this process, at once and without another word in its files, if a later one has raised the fence it holds.

    It reads a small file; where the process holds no fence, nothing.
    """
    if _held is None:
        return
    path, number = _held
    found = read_fence(path)
    if found is not None and found["number"] > number:
        _end_superseded(path)


def _end_superseded(path: Path) -> NoReturn:
    # An exception would be reported in files that are those of the later process by now.
    sys.stderr.write(f"A later worker has taken {path.parent}; this one ends.\n")
    sys.stderr.flush()
    os._exit(EXIT_SUPERSEDED)


_OWNER_ONLY: Final = 0o077


def private_umask(folder: Path) -> int:
    """Return the umask for what is made in a folder.

    It is 0o077, for the owner alone. A folder with the setgid bit (``chmod g+s``) is shared with its group: the group
    gets the same rights in it as it has on the folder itself. The system hands the bit on to new folders within.

    Args:
        folder: such as a workspace or a job folder; it need not be there.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return _OWNER_ONLY
    return _OWNER_ONLY & ~(mode & stat.S_IRWXG) if mode & stat.S_ISGID else _OWNER_ONLY


def folder_mode(parent: Path) -> int:
    """Return the mode for a new folder in a folder; see ``private_umask``."""
    return 0o777 & ~private_umask(parent)


@contextmanager
def private_files(folder: Path) -> Iterator[None]:
    """Make all files of this process, and of those that it starts, with the rights of ``private_umask``.

    The umask belongs to the whole process: call it where the process begins its work, and not in a thread.
    """
    before = os.umask(private_umask(folder))
    try:
        yield
    finally:
        os.umask(before)
