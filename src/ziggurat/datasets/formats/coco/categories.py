"""Mapping of COCO category ids, with gaps and from several files, to class numbers from 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ziggurat.datasets.formats.detection.importing import clean_json
from ziggurat.datasets.samples import Problem

__all__ = ["Categories"]


class Categories:
    """The classes of several JSON files.

    Classes are numbered in the order of their ids. Where files disagree on what an id means, names decide, in the order
    in which the files give them. Categories that no annotation uses count like all others.

    Args:
        lists: the ``categories`` of each file.

    Attributes:
        names: by class number.
        entries: what the files say of each class, by class number.
        numbers: for each file, id → class number.
    """

    def __init__(self, lists: Sequence[Sequence[Any]]) -> None:
        self._bad = [sum(not _usable(entry) for entry in entries) for entries in lists]
        files = [sorted(filter(_usable, entries), key=_order) for entries in lists]
        ids_by_name: dict[tuple[str, int], Any] = {}
        names_by_id: dict[Any, tuple[str, int]] = {}
        agree = True
        for name, entry in ((name, entry) for entries in files for name, entry in _named(entries)):
            agree = agree and ids_by_name.setdefault(name, entry["id"]) == entry["id"]
            agree = agree and names_by_id.setdefault(entry["id"], name) == name
        every = [pair for entries in files for pair in _named(entries)]
        if agree:
            every.sort(key=lambda pair: _order(pair[1]))
        unique: dict[tuple[str, int], dict[str, Any]] = {}
        for name, entry in every:
            unique.setdefault(name, entry)
        places = {name: number for number, name in enumerate(unique)}
        self.names = tuple(name for name, _ in unique)
        self.entries = [clean_json(entry) for entry in unique.values()]
        self.numbers = [{entry["id"]: places[name] for name, entry in _named(entries)} for entries in files]

    def problems(self, files: Sequence[str]) -> Iterator[Problem]:
        """Yield what is wrong with the lists of the files."""
        for path, bad in zip(files, self._bad, strict=True):
            if bad:
                reason = f"{bad} of its categories have no usable id."
                yield Problem(key=path, kind="bad-line", reason=reason)


def _usable(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), int | str)


def _order(entry: dict[str, Any]) -> tuple[bool, Any]:
    return (isinstance(entry["id"], str), entry["id"])


def _named(entries: Sequence[dict[str, Any]]) -> list[tuple[tuple[str, int], dict[str, Any]]]:
    """Return name and entry; a name that stands twice in a file is two classes, told apart by a count."""
    seen: dict[str, int] = {}
    found = []
    for entry in entries:
        name = str(clean_json(entry.get("name", entry["id"])))
        seen[name] = seen.get(name, 0) + 1
        found.append(((name, seen[name]), entry))
    return found
