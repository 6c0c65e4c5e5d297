"""Safe extraction of untrusted archives: each member is checked, and nothing is written outside the folder.

Files are extracted first. Links are created after all files, so that nothing is ever written through a link; each
link must point into the folder. One invalid member rejects the whole archive.
"""

from __future__ import annotations

import errno
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ziggurat.datasets.sources.limits import Meter, SourceLimits
from ziggurat.datasets.sources.members import Member
from ziggurat.datasets.sources.places import member_path
from ziggurat.datasets.sources.tar_archive import TAR_SUFFIXES, tar_members
from ziggurat.datasets.sources.zip_archive import zip_members
from ziggurat.errors import DataError

__all__ = ["is_archive", "unpack"]

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
