"""Reader for the members of a zip archive."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ziggurat.datasets.sources.members import Member
from ziggurat.errors import DataError

__all__ = ["zip_members"]

_ENCRYPTED: Final = 0x1
_LONGEST_LINK_BYTES: Final = 4096


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
