"""Open LMDB files of a process: each is open once, shared by all its readers, and reopened after a fork.

LMDB forbids two things that data loading does all the time: opening a file twice in one process, and using an open
file on both sides of a fork. A *lease* hides both restrictions.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import lmdb

from ziggurat.records.base import not_a_store
from ziggurat.records.offered_folders import check_source_file

__all__ = ["EnvironmentLease"]

_Identity = tuple[int, int]


class _OpenFiles:
    """The environments that one process has open, and who uses them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a lost reader may be collected, and give its file back, while it is held
        self.environments: dict[_Identity, Any] = {}
        self.users: dict[_Identity, set[int]] = {}

    def acquire(self, path: Path, user: int) -> tuple[_Identity, Any]:
        """Return the environment of ``path``; asking again for the same user changes nothing."""
        with self.lock:
            status = path.stat()
            identity = (status.st_dev, status.st_ino)
            users = self.users.setdefault(identity, set())
            users.add(user)  # first, so that a reader that is collected now does not close what is asked for
            try:
                if identity not in self.environments:
                    self.environments[identity] = _open(path)
            except BaseException:
                users.discard(user)
                raise
            return identity, self.environments[identity]

    def release(self, identity: _Identity, user: int) -> None:
        with self.lock:
            users = self.users.get(identity, set())
            users.discard(user)
            if not users and identity in self.environments:
                self.users.pop(identity, None)
                self.environments.pop(identity).close()


_by_process: dict[int, _OpenFiles] = {}
_user_numbers = itertools.count()


def _open_files() -> _OpenFiles:
    process = os.getpid()
    if process not in _by_process:
        for parent, inherited in list(_by_process.items()):
            # Closing a parent's environment in the child touches nothing of the parent's; it is only forgotten.
            for environment in inherited.environments.values():
                environment.close()
            _by_process.pop(parent, None)
        _by_process.setdefault(process, _OpenFiles())
    return _by_process[process]


class EnvironmentLease:
    """The right of one reader to an open LMDB file.

    Args:
        path: the file, or a folder with ``data.mdb`` in it.

    Raises:
        DataError: where it is no LMDB file, or cut off.
    """

    def __init__(self, path: Path) -> None:
        self._path = path / "data.mdb" if path.is_dir() else path
        self._user = next(_user_numbers)
        self._held: dict[str, Any] = {}
        self._acquire()
        # Not at the end of the interpreter: a thread that still reads would touch memory that is gone.
        weakref.finalize(self, _give_back, self._held, self._user).atexit = False

    def transaction(self) -> Any:
        """Return a read transaction, to be used in ``with``; the memory views that it gives die with it."""
        if self._held.get("process") != os.getpid():
            self._acquire()
        return self._held["environment"].begin(buffers=True)

    def close(self) -> None:
        """Give the file back; using the lease again takes it anew."""
        _give_back(self._held, self._user)

    def _acquire(self) -> None:
        identity, environment = _open_files().acquire(self._path, self._user)
        self._held.update(process=os.getpid(), identity=identity, environment=environment)


def _give_back(held: dict[str, Any], user: int) -> None:
    if held.pop("process", None) == os.getpid():
        _open_files().release(held["identity"], user)
    held.clear()


def _open(path: Path) -> Any:
    check_source_file(path)
    size_bytes = path.stat().st_size
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        environment = lmdb.open(
            str(path), subdir=False, readonly=True, lock=False, readahead=size_bytes < memory_bytes // 2
        )
    except lmdb.Error as error:
        raise not_a_store(path, "LMDB", error) from error
    needed_bytes = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    if size_bytes < needed_bytes:  # reading a page beyond the end would kill the process
        environment.close()
        raise not_a_store(path, "LMDB", f"cut off: {size_bytes} of {needed_bytes} bytes")
    return environment
