"""Archive member, independent of the archive format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Literal

__all__ = ["Member"]


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
