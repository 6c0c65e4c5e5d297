"""Key lists that an export writes beside its images when file names cannot equal the sample keys.

Such a list has one line for each file, in the order of the samples: a JSON list of the file's path and the key. It is
read line by line. It stays valid when images of the export are deleted or added.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import storage_errors

__all__ = ["FOLDER_KEYS_NAME", "ExportedKeys", "KeyWriter", "read_keys"]

FOLDER_KEYS_NAME: Final = ".ziggurat-keys.jsonl"
"""Name of the list in the folder of a class."""

_LINES_KEPT: Final = 50
_LONGEST: Final = 1024 * 1024


def read_keys(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, key) of a list; lines that are none are left out. Nothing where there is no list."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(_LONGEST):
            try:
                place, key = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if isinstance(place, str) and isinstance(key, str) and key and ".." not in place.split("/"):
                yield place.lstrip("/"), key


class ExportedKeys:
    """Gives the keys of files that are asked for in the order of a list.

    Args:
        path: the list, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._pairs = read_keys(path)
        self._rest: dict[str, str] | None = None

    def key(self, path: str) -> str:
        """Return the key of a file; its path where the list has none."""
        if self._rest is None:
            pair = next(self._pairs, None)
            if pair is not None and pair[0] == path:
                return pair[1]
            # Somebody edited the export: from here on files are looked up, which needs memory for the rest.
            self._rest = dict([pair, *self._pairs] if pair is not None else self._pairs)
        return self._rest.get(path, path)


class KeyWriter:
    """Writes a list; one that says nothing is deleted in the end.

    Many may be written at a time: a file is open only while lines go into it.

    Args:
        path: of the list.
        start: what must stand before the paths so that they are keys.
        order: gives the place of a path in the order that a reader finds without the list; None where it has one.
    """

    def __init__(self, path: Path, start: str = "", order: Callable[[str], Any] | None = None) -> None:
        self._path = path
        self._start = start
        self._order = order
        self._last: Any = None
        self._lines: list[str] = []
        self._is_needed = False

    def add(self, path: str, key: str) -> None:
        """Add a file with the key of its sample."""
        self._is_needed |= self._start + path != key
        if self._order is not None:
            place = self._order(path)
            self._is_needed |= self._last is not None and place < self._last
            self._last = place
        self._lines.append(json.dumps([path, key], ensure_ascii=False) + "\n")
        if len(self._lines) >= _LINES_KEPT:
            self._write_out()

    def finish(self) -> None:
        """Write the rest, or delete the list where nobody needs it."""
        if self._is_needed:
            self._write_out()
        else:
            self._path.unlink(missing_ok=True)

    def _write_out(self) -> None:
        with storage_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.writelines(self._lines)
        self._lines = []
