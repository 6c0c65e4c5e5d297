"""Open files and locks in data flows of Tensorpack programs: workers get such of their own.

Tensorpack forks its workers, so whatever a flow holds is simply there in them. Ours are started anew, because
TensorFlow hangs in a fork; what cannot be sent to them is made again there: a file is opened again at its position.
"""

from __future__ import annotations

import copyreg
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

__all__ = ["made_again_in_workers"]

_Reduced = tuple[Any, tuple[Any, ...]]


@contextmanager
def made_again_in_workers() -> Iterator[None]:
    """Let flows inside hold files open for reading, archives and locks, and go to workers with them."""
    before = {kind: copyreg.dispatch_table.get(kind) for kind in _REDUCERS}
    for kind, reducer in _REDUCERS.items():
        copyreg.pickle(kind, reducer)
    try:
        yield
    finally:
        for kind, reducer in before.items():
            if reducer is None:
                del copyreg.dispatch_table[kind]
            else:
                copyreg.pickle(kind, reducer)


def _reduce_file(file: io.BufferedReader) -> _Reduced:
    if file.closed:
        return _closed_file, ()
    if not isinstance(file.name, str):  # a pipe or a socket has a number only
        raise TypeError(f"cannot open {file.name!r} again in a worker")
    return _open_again, (str(Path(file.name).absolute()), file.tell())


def _open_again(path: str, position: int) -> io.BufferedReader:
    file = open(path, "rb")  # noqa: SIM115, the flow holds it
    file.seek(position)
    return file


def _closed_file() -> io.BytesIO:
    file = io.BytesIO()
    file.close()
    return file


def _reduce_archive(archive: zipfile.ZipFile) -> _Reduced:
    if archive.mode != "r" or not isinstance(archive.filename, str):
        raise TypeError(f"cannot open {archive!r} again in a worker")
    return zipfile.ZipFile, (str(Path(archive.filename).absolute()),)


def _reduce_lock(_lock: Any) -> _Reduced:
    return threading.Lock, ()


def _reduce_rlock(_lock: Any) -> _Reduced:
    return threading.RLock, ()


_REDUCERS: Final[dict[type, Any]] = {
    io.BufferedReader: _reduce_file,
    zipfile.ZipFile: _reduce_archive,
    type(threading.Lock()): _reduce_lock,
    type(threading.RLock()): _reduce_rlock,
}
