"""Streaming reader for the members of a tar archive, with any compression."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.datasets.sources.members import Member
from ziggurat.errors import DataError

__all__ = ["TAR_SUFFIXES", "tar_members"]

TAR_SUFFIXES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")

_HEADER_BYTES: Final = 4 * 1024**2
_LZMA_MEMORY_BYTES: Final = 512 * 1024**2
_BLOCK_BYTES: Final = 64 * 1024


def tar_members(archive: Path) -> Iterator[Member]:
    """Yield the members in the order of the archive; memory does not grow with their number.

    Raises:
        DataError: where a member is a device, or its header is too long.
    """
    with (
        _decompressed(archive) as content,
        _HeaderGuard(content, archive) as guarded,
        tarfile.open(fileobj=guarded, mode="r|") as opened,
    ):
        while entry := opened.next():
            setattr(opened, "members", [])  # noqa: B010 - it would keep them all; type stubs do not know it
            yield _member(opened, entry, guarded, archive)
            guarded.is_header = True


def _member(opened: tarfile.TarFile, entry: tarfile.TarInfo, guarded: _HeaderGuard, archive: Path) -> Member:
    if entry.isdir():
        return Member(name=entry.name, kind="folder")
    if entry.issym():
        return Member(name=entry.name, kind="link", target=entry.linkname)
    if entry.islnk():
        return Member(name=entry.name, kind="same", target=entry.linkname)
    if not entry.isreg():
        raise DataError(
            "An archive holds files, folders and links.", received=f"a device `{entry.name}` in `{archive.name}`"
        )
    guarded.is_header = False
    return Member(name=entry.name, kind="file", content=opened.extractfile(entry))


def _decompressed(archive: Path) -> IO[bytes] | io.BufferedIOBase:
    with archive.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"\x1f\x8b"):
        return gzip.open(archive, "rb")
    if start.startswith(b"BZh"):
        return bz2.open(archive, "rb")
    if start == b"\xfd7zXZ\0":
        return io.BufferedReader(_XzFile(archive))
    return archive.open("rb")


class _HeaderGuard(io.RawIOBase):
    """Passes a stream on, but not more than a few MiB of it between the contents of two members.

    The headers of a tar archive may say how long they are, and are read into memory as a whole.
    """

    def __init__(self, content: IO[bytes] | io.BufferedIOBase, archive: Path) -> None:
        self.is_header = True
        self._content = content
        self._archive = archive
        self._header_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        block = self._content.read(size)
        self._header_bytes = self._header_bytes + len(block) if self.is_header else 0
        if self._header_bytes > _HEADER_BYTES:
            raise DataError("The header of a member is short.", received=f"a longer one in `{self._archive.name}`")
        return block


class _XzFile(io.RawIOBase):
    """Reads an xz file with a limit on the memory that its author may ask for."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._decoder = self._new_decoder()

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how much of it."""
        while True:
            if self._decoder.eof:
                rest = self._decoder.unused_data.lstrip(b"\0") or self._file.read(_BLOCK_BYTES).lstrip(b"\0")
                if not rest:
                    return 0
                self._decoder = self._new_decoder()
            else:
                rest = self._file.read(_BLOCK_BYTES) if self._decoder.needs_input else b""
                if self._decoder.needs_input and not rest:
                    raise EOFError("The file ends too early.")
            data = self._decoder.decompress(rest, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    @staticmethod
    def _new_decoder() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY_BYTES)
