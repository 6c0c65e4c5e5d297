"""Open HDF5 files: for reading, reopened in every process that uses them; for writing, safe on a full disk."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from ziggurat.errors import MissingDependencyError
from ziggurat.records.base import not_a_store
from ziggurat.records.offered_folders import check_source_file

__all__ = ["HDF5File", "NewHDF5File", "require_h5py"]


def require_h5py() -> ModuleType:
    """Return the module h5py.

    Raises:
        MissingDependencyError: where it is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError("h5py", extra="hdf5", purpose="HDF5 files") from error
    return h5py


class HDF5File:
    """The datasets of a file, to read; it may be sent to another process, closed and used again.

    Args:
        path: the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._forget()

    def _forget(self) -> None:
        self._process = -1
        self._file: Any = None
        self._datasets: dict[str, Any] = {}

    @property
    def root(self) -> Any:
        """The open ``h5py.File``.

        Raises:
            DataError: where it is no HDF5 file, or cut off.
            MissingDependencyError: where h5py is not installed.
        """
        if self._process != os.getpid():
            h5py = require_h5py()
            self._datasets = {}
            try:
                check_source_file(self.path)
                self._file = h5py.File(self.path, "r", locking=False)
            except OSError as error:
                raise not_a_store(self.path, "HDF5", error) from error
            self._process = os.getpid()
        return self._file

    def __getitem__(self, name: str) -> Any:
        """Return a dataset.

        Raises:
            KeyError: where the file has none of that name.
        """
        root = self.root
        if name not in self._datasets:
            self._datasets[name] = root[name]
        return self._datasets[name]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None and self._process == os.getpid():
            self._file.close()
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._forget()


class NewHDF5File:
    """A new file, to be written.

    The HDF5 library may crash the process where a write fails, at once or when it ends. So it writes through a file
    object that keeps the first error to itself; every method here raises that error as soon as it is known.

    Args:
        path: file to make; it must not exist.

    Raises:
        OSError: where the disk is full or refuses (also from every method).
        MissingDependencyError: where h5py is not installed.
    """

    def __init__(self, path: Path) -> None:
        h5py = require_h5py()
        # It is opened first: Python closes a file object that fails to be made, too, and would find nothing to close.
        self._disk = _QuietFile(open(path, "x+b", buffering=0))  # noqa: SIM115
        self.root: Any = h5py.File(self._disk, "w")
        self.check()

    def check(self) -> None:
        """Raise the error of an earlier write, if there was one."""
        if self._disk.error is not None:
            raise self._disk.error

    def close(self) -> None:
        """Write what is held back, and close the file."""
        try:
            self.root.close()
        finally:
            self._disk.close()
        self.check()

    def abandon(self) -> None:
        """Close the file and write nothing more."""
        self._disk.error = self._disk.error or OSError("the file is given up")
        try:
            self.root.close()
        except (OSError, RuntimeError):  # HDF5 may miss what was not written
            pass
        finally:
            self._disk.close()


class _QuietFile(io.RawIOBase):
    """A file whose writes never fail: after the first error they do nothing, and ``error`` tells it."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = 0
        while self.error is None and written < view.nbytes:
            try:
                written += self._file.write(view[written:]) or 0
            except OSError as error:
                self.error = error
        return view.nbytes

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer) or 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        if self.error is None:
            try:
                return self._file.truncate(size)
            except OSError as error:
                self.error = error
        return size or 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()
