"""LMDB stores: one file, records under the keys ``00000000``, ``00000001``, …, and Tensorpack's list of keys.

Tensorpack's ``LMDBData`` reads the files written here: the database holds the records and ``__keys__``, nothing else.
``__keys__`` is the pickled list of keys that it expects. Behind the end of that pickle, where unpickling stops, are
Ziggurat's index (``ziggurat.records.base``), its length (uint64) and the magic ``b"ZGL1"``. The reader here uses the
index and ignores the pickle. Stores of other programs are readable too: through the list in their ``__keys__`` (which
is read as plain data or not at all), or through one full scan of the database.

LMDB forbids two things that data loading does all the time: opening a file twice in one process, and using an open
file on both sides of a fork. A *lease* hides both restrictions.
"""

from __future__ import annotations

import itertools
import os
import pickle
import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import msgpack

from ziggurat.errors import DatapointError, StorageError
from ziggurat.records.base import Index, RecordReader, RecordWriter, default_key, not_a_store
from ziggurat.records.offered_folders import check_source_file
from ziggurat.records.plain_pickle import load_plain_pickle

__all__ = ["EnvironmentLease", "LMDBReader", "LMDBWriter"]


_Identity = tuple[int, int]


_by_process: dict[int, _OpenFiles] = {}


_user_numbers = itertools.count()


KEYS_RECORD = b"__keys__"


_FOOTER = struct.Struct("<Q4s")


_MAGIC = b"ZGL1"


_FIRST_MAP_BYTES = 16 << 20


_BATCH_BYTES = 32 << 20


_BATCH_RECORDS = 5000


_KEYS_IN_ORDER = 10**8


class LMDBWriter(RecordWriter):
    """Writes an LMDB file. Its map grows as it fills; the file itself is never larger than its content."""

    def _begin(self) -> None:
        self._map_bytes = _FIRST_MAP_BYTES
        self._batch: list[tuple[bytes, bytes]] = []
        self._batch_bytes = 0
        with _storage_errors(self.path):
            self._environment = lmdb.open(
                str(self._target.path), subdir=False, lock=False, map_size=self._map_bytes, sync=False, metasync=False
            )

    def _put(self, key: str | None, value: bytes) -> None:
        self._batch.append((default_key(len(self._index)).encode(), value))
        self._batch_bytes += len(value)
        self._index.add(key, value)
        if self._batch_bytes >= _BATCH_BYTES or len(self._batch) >= _BATCH_RECORDS:
            self._commit()

    def _commit(self) -> None:
        with _storage_errors(self.path):
            while not self._try_commit():
                self._map_bytes *= 2
                self._environment.set_mapsize(self._map_bytes)
        self._batch, self._batch_bytes = [], 0

    def _try_commit(self) -> bool:
        in_order = len(self._index) < _KEYS_IN_ORDER  # beyond, "100000000" sorts before "99999999"
        try:
            with self._environment.begin(write=True) as transaction:
                for key, value in self._batch:
                    transaction.put(key, value, append=in_order)
        except lmdb.MapFullError:
            return False
        return True

    def _end(self) -> None:
        try:
            names = pickle.dumps([default_key(number).encode() for number in range(len(self._index))], protocol=4)
            block = self._index.to_bytes()
            self._batch.append((KEYS_RECORD, names + block + _FOOTER.pack(len(block), _MAGIC)))
            self._commit()
            with _storage_errors(self.path):
                self._environment.sync(True)
        finally:
            self._environment.close()

    def _abandon(self) -> None:
        self._environment.close()


class LMDBReader(RecordReader):
    """Reads an LMDB store of ours, of Tensorpack's, or of any program.

    Only the keys of a foreign store take memory, and not even these where they are numbers as ours are.

    Args:
        path: the file, or a folder with ``data.mdb`` in it.
        keys: the database's keys of the records to read, in order; where None, the store's own list, or else all keys
            in the order of the database.
    """

    def __init__(self, path: str | os.PathLike[str], *, keys: Sequence[bytes] | None = None) -> None:
        self._asked_keys = None if keys is None else list(keys)
        super().__init__(path)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_asked_keys": self._asked_keys}

    def _reopen(self) -> None:
        self._lease = EnvironmentLease(self.path)
        self._index: Index | None = None
        self._database_keys: list[bytes] | None = self._asked_keys
        if self._database_keys is None:
            record = self._read_tail(_FOOTER.size)
            if record[-4:] == _MAGIC:
                self._index_bytes = _FOOTER.unpack(record)[0]
                self._index = Index(self._read_index, self._index_bytes, str(self.path))
            else:
                self._database_keys = self._foreign_keys()
        self._count = len(self._index or self._database_keys or ())
        if self._database_keys and all(key == _record_key(n) for n, key in enumerate(self._database_keys)):
            self._database_keys = None  # as numbers they need no memory

    def __len__(self) -> int:
        return self._count

    def database_key(self, number: int) -> bytes:
        """Return the key under which the database holds a record."""
        return self._database_key(self._checked(number))

    def item(self, number: int) -> tuple[str, bytes]:
        """Return key and value of a record, in one transaction."""
        return self._item(self._checked(number), with_key=True)

    def close(self) -> None:
        """Close the store, unless another reader in this process uses it."""
        self._lease.close()

    def _value(self, number: int) -> bytes:
        return self._item(number, with_key=False)[1]

    def _item(self, number: int, *, with_key: bool) -> tuple[str, bytes]:
        key, crc32c = "", None
        with self._lease.transaction() as transaction:
            found = transaction.get(self._database_key(number))
            value = None if found is None else bytes(found)
            if self._index is not None:
                read = self._reader_of(transaction)
                crc32c = self._index.entry(number, read).crc32c
                key = self._index.key(number, read) if with_key else ""
        if value is None:
            raise DatapointError(self._key(number), f"`{self.path}` has no record of that key.")
        if with_key and self._index is None:
            key = self._key(number)
        return key, value if crc32c is None else self._intact(number, value, crc32c)

    def _database_key(self, number: int) -> bytes:
        return _record_key(number) if self._database_keys is None else self._database_keys[number]

    def _key(self, number: int) -> str:
        if self._index is not None:
            return self._index.key(number)
        return self._database_key(number).decode("utf-8", "surrogateescape")

    def _read_tail(self, size: int) -> bytes:
        with self._lease.transaction() as transaction:
            return bytes((transaction.get(KEYS_RECORD) or b"")[-size:])

    def _read_index(self, offset: int, size: int) -> bytes:
        with self._lease.transaction() as transaction:
            return bytes(self._reader_of(transaction)(offset, size))

    def _reader_of(self, transaction: Any) -> Callable[[int, int], Any]:
        """Return what reads the index inside a transaction, without copying."""
        record = transaction.get(KEYS_RECORD)
        start = len(record) - _FOOTER.size - self._index_bytes
        return lambda offset, size: record[start + offset : start + offset + size]

    def _foreign_keys(self) -> list[bytes]:
        with self._lease.transaction() as transaction:
            record = bytes(transaction.get(KEYS_RECORD) or b"")
            if not record:
                return [bytes(key) for key in transaction.cursor().iternext(keys=True, values=False)]
        # Tensorpack writes the list as a pickle, or as MessagePack where its user asked for that.
        listed = load_plain_pickle(record) if record[:1] == b"\x80" else msgpack.unpackb(record)
        if not isinstance(listed, list):
            raise not_a_store(self.path, "LMDB", f"its `__keys__` is a {type(listed).__name__}, not a list")
        return [key.encode() if isinstance(key, str) else key for key in listed]


def _record_key(number: int) -> bytes:
    return default_key(number).encode()


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except lmdb.Error as error:
        raise StorageError(
            "Writing an LMDB store needs free space, and records below 4 GiB.",
            received=f"`{path}`: {error}",
            advice="Free space, or write to another folder or in another format.",
            details={"path": str(path)},
        ) from error


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
