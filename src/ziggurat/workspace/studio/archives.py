"""Streaming archives: tar, plain or compressed, and zip, without a temporary file."""

from __future__ import annotations

import bz2
import io
import itertools
import json
import os
import shutil
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import UnknownNameError

__all__ = ["ARCHIVE_FORMATS", "archive", "files_below", "sent_folder"]

ARCHIVE_FORMATS: Final[Mapping[str, str]] = {
    "tar": "application/x-tar",
    "tar.gz": "application/gzip",
    "tar.bz2": "application/x-bzip2",
    "zip": "application/zip",
}
"""Ending of the name → media type."""

_BLOCK_BYTES: Final = 256 * 1024
_INFO: Final = "info.json"
_GZIP: Final = 31
"""Of zlib: the largest window, with gzip's header."""
_ZIP_BEGINS: Final = 315_619_200.0
"""No file in a zip is older than 1980, in seconds since 1970 (with a day for time zones)."""


def archive(
    archive_format: str, files: Iterable[tuple[str, Path]], info: Mapping[str, Any], *, now: float
) -> Iterator[bytes]:
    """Return an archive, part by part; the first member is ``info.json``.

    A file that grows meanwhile is sent as long as it was when its turn came, one that shrinks is filled up with zeros,
    and one that is gone is left out.

    Args:
        archive_format: a name in ``ARCHIVE_FORMATS``.
        files: name in the archive and path of each.
        info: JSON values.
        now: seconds since 1970.

    Raises:
        UnknownNameError: where there is no such format; at once, not with the first part.
    """
    if archive_format not in ARCHIVE_FORMATS:
        raise UnknownNameError("format of an archive", archive_format, ARCHIVE_FORMATS)
    text = json.dumps(info, indent=2, ensure_ascii=False).encode() + b"\n"
    members = _members(files, text, now)
    if archive_format == "zip":
        return _zip(members)
    parts = _tar(members)
    return parts if archive_format == "tar" else _compressed(parts, archive_format.removeprefix("tar."))


def sent_folder(
    make: Callable[[Path], Mapping[str, Any]], place: Path, archive_format: str, *, now: float
) -> Iterator[bytes]:
    """Let a folder be written, return it as an archive, and delete it when that was sent or the client is gone.

    Args:
        make: writes the folder, which is not there yet, and returns JSON values for ``info.json``.
        place: folder in which it is written meanwhile, under a hidden name.
        archive_format: a name in ``ARCHIVE_FORMATS``.
        now: seconds since 1970.

    Raises:
        UnknownNameError: where there is no such format; nothing is written then.
    """
    if archive_format not in ARCHIVE_FORMATS:
        raise UnknownNameError("format of an archive", archive_format, ARCHIVE_FORMATS)
    with storage_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".outgoing-", dir=place))
    parts = _sent(make, folder, archive_format, now)
    return itertools.chain((next(parts),), parts)  # begun: errors are raised here, and an end deletes the folder


def _sent(make: Callable[[Path], Mapping[str, Any]], folder: Path, archive_format: str, now: float) -> Iterator[bytes]:
    try:
        info = make(folder / "content")
        yield from archive(archive_format, files_below(folder / "content"), info, now=now)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_below(folder: Path) -> list[tuple[str, Path]]:
    """Return name and path of every file below a folder, by name; links are left out."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [(path.relative_to(folder).as_posix(), path) for path in found]


_Member = tuple[str, int, float, IO[bytes]]


def _members(files: Iterable[tuple[str, Path]], info: bytes, now: float) -> Iterator[_Member]:
    yield _INFO, len(info), now, io.BytesIO(info)
    for name, path in files:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            continue  # such as a checkpoint that made room for a newer one
        with file:
            status = os.fstat(file.fileno())
            yield name, status.st_size, status.st_mtime, file


def _blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield exactly ``size`` bytes."""
    left = size
    while left:
        block = file.read(min(left, _BLOCK_BYTES)) or bytes(min(left, _BLOCK_BYTES))
        left -= len(block)
        yield block


def _tar(members: Iterator[_Member]) -> Iterator[bytes]:
    for name, size, changed, file in members:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(changed), 0o644
        yield member.tobuf(tarfile.PAX_FORMAT)
        yield from _blocks(file, size)
        yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _compressed(parts: Iterator[bytes], method: str) -> Iterator[bytes]:
    compressor = bz2.BZ2Compressor() if method == "bz2" else zlib.compressobj(wbits=_GZIP)
    for part in parts:
        if done := compressor.compress(part):
            yield done
    yield compressor.flush()


def _zip(members: Iterator[_Member]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as packed:
        for name, size, changed, file in members:
            date = time.localtime(max(changed, _ZIP_BEGINS))[:6]
            member = zipfile.ZipInfo(name, date_time=date)
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with packed.open(member, "w", force_zip64=True) as target:
                for block in _blocks(file, size):
                    target.write(block)
                    yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """Takes what ``zipfile`` writes, which cannot go back in it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken
