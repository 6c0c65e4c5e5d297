"""Messages between the mirror of a job folder and the node that has the original, and what they agree on.

While a job runs, the node's copy of its folder is the truth, and the studio's copy follows it. The studio asks and the
node answers: a request says what the mirror has, a reply brings some of what it lacks. So nothing has to be remembered
of a reply that was lost, and one that comes twice or late changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ziggurat.layout import JobFolder

__all__ = [
    "APPENDED",
    "SIZES",
    "Append",
    "End",
    "FileNote",
    "Reply",
    "Request",
    "Sizes",
    "digest_of",
    "end_of",
    "group_of",
    "mirrored_files",
    "note_of",
    "read_text",
]

_TAIL_BYTES: Final = 1 << 12
_OWN: Final = JobFolder(Path())
APPENDED: Final = (_OWN.events.name, _OWN.log.name)
"""Files that grow at their end, in the order in which they are sent."""

_RANKS: Final = _OWN.of_rank(1).path.parent.name

_OF_THE_STUDIO: Final = (
    _OWN.spec.name, _OWN.record.name, _OWN.attempt.name, _OWN.lock.name, _OWN.stop_request.name,
    _OWN.hyperparameters.name,
)  # fmt: skip
"""Files that only the studio writes, or that mean something on one machine only."""


@dataclass(frozen=True)
class Sizes:
    """Sizes that both sides use.

    Args:
        reply_bytes: largest content of a reply; a sixteenth of it is for small files, which go first.
        piece_bytes: size of the pieces in which files travel. One that the mirror has already, in whatever file, does
            not travel again, such as the frozen layers of a network.
    """

    reply_bytes: int = 1 << 20
    piece_bytes: int = 1 << 19


SIZES: Final = Sizes()


@dataclass(frozen=True)
class End:
    """End of a file that grows.

    Args:
        size_bytes: of the file.
        checksum: CRC-32 of its last 4 KiB.
    """

    size_bytes: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class Append:
    """New bytes of a file that grows.

    Args:
        before: end of the mirror's file to which they belong; on any other they are refused.
        data: the bytes.
        is_anew: whether they replace the file: the node's log was shortened in its middle.
    """

    before: End
    data: bytes
    is_anew: bool = False


@dataclass(frozen=True)
class FileNote:
    """Content of a file that is replaced as a whole.

    Args:
        size_bytes: of the file.
        pieces: BLAKE2b digests of its pieces, each of 16 bytes.
    """

    size_bytes: int
    pieces: tuple[bytes, ...]

    @property
    def digest(self) -> bytes:
        """Digest of the whole file."""
        return hashlib.blake2b(b"".join(self.pieces) + str(self.size_bytes).encode(), digest_size=16).digest()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the mirror asks for.

    Args:
        attempt: number of the attempt that the studio listens to.
        ends: name → end of the mirror's file, of those in ``APPENDED``.
        known: path → digest of the files that the mirror has, or knows the pieces of.
        wanted: digests of pieces that it lacks, the most urgent first.
        stop: why the worker shall save and end; empty for it to go on.
        hyperparameters: text of the file of those that users set; empty for none.
    """

    attempt: int
    ends: Mapping[str, End] = field(default_factory=dict)
    known: Mapping[str, bytes] = field(default_factory=dict)
    wanted: tuple[bytes, ...] = ()
    stop: str = ""
    hyperparameters: str = ""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the node answers.

    Args:
        attempt: number of its attempt.
        number: of the reply; it grows, so that a late one is told from a newer one.
        appends: name → new bytes.
        files: path → content of files that the mirror does not know.
        removed: paths that the mirror knows and that are not there any more.
        pieces: digest → content of pieces.
        is_whole: whether the mirror equals the folder once it has taken this reply.
        exit_code: of the worker, if it has ended and its folder does not change any more; it may be unknown.
        has_ended: whether it has.
    """

    attempt: int
    number: int
    appends: Mapping[str, Append] = field(default_factory=dict)
    files: Mapping[str, FileNote] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    pieces: Mapping[bytes, bytes] = field(default_factory=dict)
    is_whole: bool = False
    has_ended: bool = False
    exit_code: int | None = None


def end_of(path: Path, size_bytes: int | None = None) -> End:
    """Return the end of a file as it was when it had that size, by default that of now; a missing one is empty."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size if size_bytes is None else size_bytes
            start = max(0, size - _TAIL_BYTES)
            file.seek(start)
            return End(size, zlib.crc32(file.read(size - start)))
    except FileNotFoundError:
        return End()


def digest_of(piece: bytes) -> bytes:
    """Return the digest of a piece."""
    return hashlib.blake2b(piece, digest_size=16).digest()


def note_of(path: Path, piece_bytes: int) -> FileNote:
    """Return the content of a file, in pieces of a size.

    Raises:
        OSError: if it cannot be read.
    """
    pieces, size = [], 0
    with path.open("rb") as file:
        while piece := file.read(piece_bytes):
            pieces.append(digest_of(piece))
            size += len(piece)
    return FileNote(size, tuple(pieces))


def group_of(path: str) -> str:
    """Return the folder that must appear whole, such as that of a checkpoint; empty for a file of its own."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[0] == _OWN.checkpoints.name else ""


def read_text(path: Path) -> str:
    """Return the text of a file; an empty one if it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def mirrored_files(folder: Path) -> Iterator[str]:
    """Yield the paths of the files of a job folder that are replaced as a whole; those in the making are left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = Path(place).relative_to(folder).as_posix()
        if inner == "." and _RANKS in folders:
            folders.remove(_RANKS)  # each has a mirror of its own
        for name in sorted(names):
            path = name if inner == "." else f"{inner}/{name}"
            is_whole = not name.startswith(".") and path not in APPENDED and path not in _OF_THE_STUDIO
            if is_whole and os.path.isfile(os.path.join(place, name)):
                yield path
