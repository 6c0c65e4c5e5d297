"""Iteration over WebDataset shards: tar files whose members form samples by their names.

The part of a member's file name before the first dot is the sample's name; the rest is the type: ``7.jpg`` and
``7.cls`` are one sample. Members of a sample are adjacent, so that a shard is read sequentially.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ziggurat.errors import DataError, DatapointError

__all__ = ["COMPRESSED", "Member", "ShardSample", "read_member", "samples_of"]

COMPRESSED: Final = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""How the names of shards end that have no random access."""
_SMALL_BYTES: Final = 16 << 20
_SMALL: Final = ("cls", "json", "txt", "text", "label")


@dataclass(frozen=True)
class Member:
    """One file in a shard.

    Args:
        offset: where its content starts in the shard, in bytes.
        size_bytes: its size.
        content: of labels and texts; None for what is read later.
    """

    offset: int
    size_bytes: int
    content: bytes | None = None


@dataclass(frozen=True)
class ShardSample:
    """The members of one sample.

    Args:
        name: path in the shard, to the first dot of the file's name.
        members: what they are (``jpg``, ``cls``, ``mask.png``), in lower case → where they are.
    """

    name: str
    members: dict[str, Member] = field(default_factory=dict)


def samples_of(path: Path) -> Iterator[ShardSample]:
    """Yield the samples of a shard; texts and labels are read, images are not.

    Raises:
        DataError: where it is no tar file, compressed, or cut off; what stands before was yielded.
    """
    current = ShardSample("")
    try:
        with tarfile.open(path, "r:") as shard:
            while (member := shard.next()) is not None:
                vars(shard)["members"].clear()  # else it remembers each of a million members
                if not member.isfile() or member.issparse():
                    continue
                name, ending = _name_and_ending(member.name)
                if name != current.name and current.members:
                    yield current
                if name != current.name:
                    current = ShardSample(name)
                if ending and ending not in current.members:
                    current.members[ending] = _member(shard, member, ending)
            _check_end(path, shard.offset)
    except (tarfile.TarError, EOFError, OSError) as error:
        if current.members:
            yield current
        raise _no_shard(path, error) from error
    if current.members:
        yield current


def read_member(path: Path, offset: int, size_bytes: int) -> bytes:
    """Return the content of a member.

    Raises:
        DatapointError: where the shard cannot be read, or ends before.
    """
    try:
        with path.open("rb") as shard:
            shard.seek(offset)
            content = shard.read(size_bytes)
    except OSError as error:
        raise DatapointError(f"{path}#{offset}", f"its shard cannot be read ({error.strerror}).") from error
    if len(content) < size_bytes:
        raise DatapointError(f"{path}#{offset}", f"its shard is cut off: {len(content)} of {size_bytes} bytes.")
    return content


def _check_end(path: Path, offset: int) -> None:
    """Raise unless an empty block ends the archive: the reader takes one that was cut off between files for whole."""
    with path.open("rb") as file:
        file.seek(offset)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"it is cut off at byte {offset}")


def _name_and_ending(path: str) -> tuple[str, str]:
    folder, slash, file = path.removeprefix("./").rpartition("/")
    stem, _, ending = file.partition(".")
    return f"{folder}{slash}{stem}", ending.lower()


def _member(shard: tarfile.TarFile, member: tarfile.TarInfo, ending: str) -> Member:
    content = None
    if ending.rpartition(".")[2] in _SMALL and member.size <= _SMALL_BYTES:
        file = shard.extractfile(member)
        content = b"" if file is None else file.read()
    return Member(member.offset_data, member.size, content)


def _no_shard(path: Path, error: Exception) -> DataError:
    with path.open("rb") as file:
        start = file.read(6)
    if path.name.lower().endswith(COMPRESSED) or start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
        return DataError(
            "Shards are plain tar files, so that their samples can be read in any order.",
            received=f"`{path}`, which is compressed",
            advice="Unpack it first, with `gunzip` for example: images gain nothing from being compressed twice.",
        )
    return DataError("A shard is a tar file.", received=f"`{path}`: {error}", advice="Get it anew.")
