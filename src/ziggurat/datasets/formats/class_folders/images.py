"""Selection and order of the images of a class: as listed by an export, or a random subset."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from pathlib import Path

from ziggurat.datasets.formats.shared.exported_keys import FOLDER_KEYS_NAME, read_keys
from ziggurat.datasets.formats.shared.folder_walk import FoundPicture, PictureWalk
from ziggurat.datasets.samples import Problem

__all__ = ["chosen_pictures", "exported_pictures"]


def exported_pictures(walk: PictureWalk, source: Path, folder: str) -> Iterator[FoundPicture | Problem]:
    """Yield the images of a class: first those that an export listed, with their keys, then all the others.

    Args:
        walk: through the source.
        source: the walk's root.
        folder: of the class, below the source.
    """
    listed: set[str] = set()
    for name, key in read_keys(source / folder / FOLDER_KEYS_NAME):
        path = f"{folder}/{name}"
        found = walk.picture(path)
        if isinstance(found, FoundPicture) and path not in listed:  # whoever deletes a file leaves its line
            listed.add(path)
            yield found._replace(key=key)
    for found in walk.pictures(folder):
        if isinstance(found, Problem) or found.path not in listed:
            yield found


def chosen_pictures(
    pictures: Iterator[FoundPicture | Problem], most: int, seed: int, folder: str
) -> Iterator[FoundPicture | Problem]:
    """Yield at most so many images, in their order; each is as likely as any other to be among them.

    The choice depends on names and seed only: one more image changes at most one of those that are chosen.

    Args:
        pictures: of a class.
        most: how many at most.
        seed: decides which.
        folder: of the class, for the problem that says how many were left out.
    """
    kept: list[tuple[int, int, FoundPicture]] = []
    count = 0
    for found in pictures:
        if isinstance(found, Problem):
            yield found
            continue
        ranked = (-_rank(seed, found.path), -count, found)
        count += 1
        if len(kept) < most:
            heapq.heappush(kept, ranked)
        else:
            heapq.heappushpop(kept, ranked)
    if count > most:
        reason = f"{most} of its {count} images were chosen by chance."
        yield Problem(key=folder, kind="large-class", reason=reason, left_out=True)
    for _rank_of, _position, found in sorted(kept, key=lambda entry: -entry[1]):
        yield found


def _rank(seed: int, path: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{path}".encode(), digest_size=8).digest(), "big")
