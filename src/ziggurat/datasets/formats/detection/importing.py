"""Shared parts of the detection importers: box checks and class numbering.

The label files of some formats contain class names, and the class numbers are known only after every file is read.
Such a scan puts the names into its labels. ``NamedScan`` stores the results in a temporary file and numbers the
classes at the end, so that label files are read once and memory does not grow with them.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from ziggurat.datasets.importer import ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import StateError
from ziggurat.records.schema import Schema

__all__ = ["ZERO_SIZE_OPTION", "BoxRule", "NamedScan", "clean_json"]

ZERO_SIZE_OPTION: Final = ImporterOption(
    name="zero_size_boxes",
    type=str,
    default="drop",
    help="Whether boxes without area are dropped or kept; they are listed either way.",
    choices=("drop", "keep"),
)
_TOLERANCE_PX: Final = 0.5
_LARGEST: Final = 1e9
_DEEPEST: Final = 16
_IN_MEMORY_BYTES: Final = 32 << 20

_SAMPLE_FIELDS: Final = tuple(each.name for each in fields(Sample))
_PROBLEM_FIELDS: Final = tuple(each.name for each in fields(Problem))

Named = Sample | Problem
"""A sample whose label has names of classes (or -1) where numbers are to be, or a problem."""


class NamedScan(Scan):
    """A scan of label files that give names of classes.

    Args:
        found: starts the walk; the ``class`` of an object is a name, or -1.
        known: names in the order of their numbers; None numbers the names that are found, sorted.
        details: of the schema.
    """

    def __init__(
        self,
        found: Callable[[], Iterator[Named]],
        known: Sequence[str] | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self._found = found
        self._known = known
        self._details = dict(details or {})
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            raise StateError("The schema of a scan is there when the scan has ended.", advice="Iterate it to its end.")
        return self._schema

    def __iter__(self) -> Iterator[Sample | Problem]:
        if self._known is not None:
            yield from self._numbered(self._found(), self._known)
            return
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
            names = set()
            for each in self._found():
                if isinstance(each, Sample):
                    names.update(item["class"] for item in each.label if item["class"] != -1)
                kept.write(_kept(each))
            kept.seek(0)
            yield from self._numbered(map(_unkept, kept), sorted(names))

    def _numbered(self, found: Iterable[Named], names: Sequence[str]) -> Iterator[Sample | Problem]:
        numbers = {name: number for number, name in reversed(list(enumerate(names)))}
        numbers_or_ignored: dict[Any, int] = {**numbers, -1: -1}
        for each in found:
            if isinstance(each, Problem):
                yield each
                continue
            for item in each.label:
                if item["class"] not in numbers_or_ignored:
                    name = item["class"]
                    yield Problem(key=each.key, kind="unknown-class", reason=f"No class is called {name!r}.")
            label = [
                {**item, "class": numbers_or_ignored[item["class"]]}
                for item in each.label
                if item["class"] in numbers_or_ignored
            ]
            yield replace(each, label=label)
        self._schema = Schema(kind="detection", class_names=tuple(names), details=self._details)


class BoxRule:
    """Decides on boxes that cannot be right.

    Args:
        zero_size_boxes: ``drop`` or ``keep``.
    """

    def __init__(self, zero_size_boxes: str) -> None:
        self._keep = zero_size_boxes == "keep"

    def check(
        self, key: str, box: Sequence[float], where: str, size: tuple[float, float] | None = None
    ) -> tuple[bool, Problem | None]:
        """Return whether an object may stay, and what is wrong with its box.

        Args:
            key: of the sample.
            box: (left, top, right, bottom) in pixels.
            where: what names the object, such as "line 3".
            size: (width, height) of the image in pixels; None where it is unknown.
        """
        left, top, right, bottom = box
        shown = f"{where}: box {left:g}, {top:g} to {right:g}, {bottom:g}"
        if not all(math.isfinite(value) and abs(value) < _LARGEST for value in box):
            return False, Problem(key=key, kind="bad-box", reason=f"{shown} is not made of numbers of pixels.")
        if right <= left or bottom <= top:
            return self._keep, Problem(key=key, kind="zero-size-box", reason=f"{shown} has no area.")
        beyond = size is not None and (right > size[0] + _TOLERANCE_PX or bottom > size[1] + _TOLERANCE_PX)
        if beyond or left < -_TOLERANCE_PX or top < -_TOLERANCE_PX:
            within = "" if size is None else f" of {size[0]:g} x {size[1]:g} pixels"
            return True, Problem(key=key, kind="box-outside", reason=f"{shown} leaves the image{within}.")
        return True, None


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return a value of a stranger's file such that every store and page can hold it.

    Numbers that are infinite or none become None, whole numbers of more than 64 bits become a text that says so, halves
    of characters become question marks, and what is nested too deep becomes None.
    """
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {str(name): clean_json(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(each, depth + 1) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a whole number of more than 64 bits"
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def _kept(each: Named) -> bytes:
    names = _SAMPLE_FIELDS if isinstance(each, Sample) else _PROBLEM_FIELDS
    return json.dumps([getattr(each, name) for name in names]).encode() + b"\n"


def _unkept(line: bytes) -> Named:
    values = json.loads(line)
    if len(values) == len(_PROBLEM_FIELDS):
        return Problem(**dict(zip(_PROBLEM_FIELDS, values, strict=True)))
    given = dict(zip(_SAMPLE_FIELDS, values, strict=True))
    return Sample(**{**given, "parts": tuple(given["parts"])})
