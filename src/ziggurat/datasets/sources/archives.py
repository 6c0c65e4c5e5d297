"""Safe extraction of untrusted archives: each member is checked, and nothing is written outside the folder."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from ziggurat.datasets.sources.cache import Meter, SourceLimits, member_path
from ziggurat.errors import DataError

__all__ = ["is_archive", "unpack"]

TAR_SUFFIXES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
_HEADER_BYTES: Final = 4 * 1024**2  # extended headers of one member, which tarfile would read into memory
_LZMA_MEMORY_BYTES: Final = 512 * 1024**2  # an archive names the size of its own dictionary, up to 4 GB
_TAR_BLOCK_BYTES: Final = 64 * 1024

_ENCRYPTED: Final = 0x1  # flag of an encrypted member of a zip file
_LONGEST_LINK_BYTES: Final = 4096

_SUFFIXES: Final = (".zip", *TAR_SUFFIXES)
_BLOCK_BYTES: Final = 1024 * 1024
_DAMAGE: Final = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    ValueError,
)
_BAD_NAMES: Final = (
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENOENT,
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.EPERM,
)


def is_archive(path: str) -> bool:
    """Tell whether a path has the name of an archive that can be unpacked."""
    return path.lower().endswith(_SUFFIXES)


def unpack(archive: Path, folder: Path, limits: SourceLimits) -> None:
    """Unpack an archive into a folder that is empty.

    Args:
        archive: a zip or tar file, the latter plain or compressed by gzip, bzip2 or xz.
        folder: that gets the content.
        limits: what may come.

    Raises:
        DataError: where it is damaged or encrypted, has too much in it, or members that would lie elsewhere, links that
            lead elsewhere, or devices.
        StorageError: where the disk is full.
    """
    meter = Meter(limits, archive.name, archive.stat().st_size)
    links: dict[str, str] = {}
    with _damage_named(archive):
        for member in zip_members(archive) if archive.name.lower().endswith(".zip") else tar_members(archive):
            meter.add_file()
            _place(member, folder, links, meter, archive)
        _make_links(links, folder, archive)


def _place(member: Member, folder: Path, links: dict[str, str], meter: Meter, archive: Path) -> None:
    if member.kind == "folder" and member.name in (".", "./"):
        return
    path = member_path(member.name, archive.name)
    target = folder / path
    if member.kind == "folder":
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.kind == "link":
        links[path] = member.target
        return
    target.unlink(missing_ok=True)  # of several members with one name the last one counts
    if member.content is None:
        os.link(folder / member_path(member.target, archive.name), target)
    else:
        _write(member.content, target, meter)


def _write(content: IO[bytes], target: Path, meter: Meter) -> None:
    with content, target.open("xb") as file:
        while block := content.read(_BLOCK_BYTES):
            meter.add_bytes(len(block))
            file.write(block)


def _make_links(links: dict[str, str], folder: Path, archive: Path) -> None:
    for path, target in links.items():
        if os.path.isabs(target):
            raise _leads_away(path, target, archive)
        place = folder / path
        if place.is_dir() and not place.is_symlink():
            raise _damaged(archive, f"`{path}` is a folder and a link")
        place.unlink(missing_ok=True)
        place.symlink_to(target)
    root = os.path.realpath(folder)
    for path, target in links.items():  # all are there now: links to links are followed as a reader would
        if not f"{os.path.realpath(folder / path)}/".startswith(f"{root}/"):
            raise _leads_away(path, target, archive)


@contextmanager
def _damage_named(archive: Path) -> Iterator[None]:
    """Turn what decoders raise, and names that no disk can hold, into errors that say so; a full disk stays one."""
    try:
        yield
    except _DAMAGE as error:
        raise _damaged(archive, f"{type(error).__name__}: {error}") from None
    except OSError as error:
        if error.errno is None or error.errno in _BAD_NAMES:
            raise _damaged(archive, str(error.strerror or error)) from None
        raise


def _leads_away(path: str, target: str, archive: Path) -> DataError:
    return DataError(
        "A link in an archive leads to somewhere in the archive.",
        received=f"`{path}`, which links to `{target}`, in `{archive.name}`",
        advice="Pack the files that are meant, not links to them.",
    )


def _damaged(archive: Path, reason: str) -> DataError:
    return DataError(
        "An archive is whole and readable.",
        received=f"`{archive.name}`: {reason}",
        advice="Get or make it again.",
    )


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member, as the archive says; nothing of it is checked.

    Args:
        name: where it wants to lie.
        kind: a file, a folder, a symbolic link, or the same file as an earlier member (a hard link).
        target: of a link, relative to the link; or name of the earlier member.
        content: of a file; must be read before the next member is asked for.
    """

    name: str
    kind: Literal["file", "folder", "link", "same"]
    target: str = ""
    content: IO[bytes] | None = None


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
            yield _tar_member(opened, entry, guarded, archive)
            guarded.is_header = True


def _tar_member(opened: tarfile.TarFile, entry: tarfile.TarInfo, guarded: _HeaderGuard, archive: Path) -> Member:
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
                rest = self._decoder.unused_data.lstrip(b"\0") or self._file.read(_TAR_BLOCK_BYTES).lstrip(b"\0")
                if not rest:
                    return 0
                self._decoder = self._new_decoder()
            else:
                rest = self._file.read(_TAR_BLOCK_BYTES) if self._decoder.needs_input else b""
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


def zip_members(archive: Path) -> Iterator[Member]:
    """Yield the members in the order of the archive's list.

    Raises:
        DataError: where a member is encrypted or is a device.
    """
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            if entry.flag_bits & _ENCRYPTED:
                raise DataError(
                    "An archive is not encrypted.",
                    received=f"{entry.filename!r} in `{archive.name}`",
                    advice="Unpack it yourself and name the folder.",
                )
            yield _member(opened, entry, archive)


def _member(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, archive: Path) -> Member:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if entry.is_dir() or mode == stat.S_IFDIR:
        return Member(name=entry.filename, kind="folder")
    if mode == stat.S_IFLNK:
        with opened.open(entry) as content:
            target = content.read(_LONGEST_LINK_BYTES).decode()
        return Member(name=entry.filename, kind="link", target=target)
    if mode not in (0, stat.S_IFREG):
        raise DataError(
            "An archive holds files, folders and links.", received=f"a device `{entry.filename}` in `{archive.name}`"
        )
    return Member(name=entry.filename, kind="file", content=opened.open(entry))
