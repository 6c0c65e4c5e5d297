"""First pass over the lines of a list: the type of the labels, and the number of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.list_lines import CLASS_NUMBER, ListLine, is_number
from ziggurat.errors import DataError

__all__ = ["Labels", "read_class_names", "survey"]

_MOST_CLASSES: Final = 100_000
_STRAY: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Labels:
    """How the values of lines become labels.

    Args:
        form: ``number`` of a class, ``name`` of a class, or ``values`` to be predicted.
        names: of the classes, by number.
        width: values in a line.
    """

    form: str
    names: tuple[str, ...] = ()
    width: int = 1

    def label(self, line: ListLine) -> Any:
        """Return a line's label.

        Raises:
            ValueError: where the line has another form; the message says which.
            KeyError: where there is no such class.
        """
        if self.form == "values":
            if len(line.values) != self.width or not all(map(is_number, line.values)):
                raise ValueError(f"a path and {self.width} numbers")
            return [float(value) for value in line.values]
        if len(line.values) != 1:
            raise ValueError("a path and one class")
        if self.form == "name":
            return self._numbers[line.values[0]]
        if not CLASS_NUMBER.fullmatch(line.values[0]):
            raise ValueError("a path and a whole number from 0")
        number = int(line.values[0])
        if number >= len(self.names):
            raise KeyError(line.values[0])
        return number

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in reversed(list(enumerate(self.names)))}


def survey(lines: Iterable[ListLine | None], names: Sequence[str] | None, kind: str) -> Labels | None:
    """Look through lines, and return how their values become labels; None where no line is valid.

    Args:
        lines: None for those that say nothing.
        names: of the classes; None where nobody gave them: then there are as many as the highest number says, or all
            names that the lines have, sorted.
        kind: ``auto``, or the kind that a person chose.
    """
    forms: Counter[str] = Counter()
    widths: Counter[int] = Counter()
    found: set[str] = set()
    highest = -1
    for line in lines:
        if line is None:
            continue
        form = _form(line)
        forms[form] += 1
        widths[len(line.values)] += 1
        if form == "number":
            highest = max(highest, int(line.values[0]) if int(line.values[0]) < _MOST_CLASSES else -1)
        if len(line.values) == 1 and len(found) < _MOST_CLASSES:
            found.add(line.values[0])
    form = _chosen(forms, kind)
    if not forms or (form == "number" and not forms["number"]):
        return None
    if form == "values":
        return Labels(form=form, width=widths.most_common(1)[0][0])
    if names is None:
        names = sorted(found) if form == "name" else [str(number) for number in range(highest + 1)]
    return Labels(form=form, names=tuple(names))


def no_valid_lines(path: Path) -> DataError:
    """Return the error for a list that says nothing."""
    return DataError(
        "Each line of a list is a path, blanks or a tab, and a class number; or a path, a tab and a class name.",
        received=f"`{path.name}`, which has no valid lines",
        advice="Classes count from 0. For values to be predicted, write numbers behind the path.",
    )


def read_class_names(path: Path) -> list[str]:
    """Return the names of a file with one a line; the first is class 0.

    Raises:
        DataError: where the file cannot be read or is no text.
    """
    try:
        text = path.read_bytes()
        encoding = "utf-16" if text.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        names = [line.rstrip("\r") for line in text.decode(encoding).split("\n")]
    except (OSError, UnicodeError) as error:
        raise DataError("A file of class names is text with one name a line.", received=f"`{path}`: {error}") from None
    while names and not names[-1].strip():
        names.pop()
    return names


def _form(line: ListLine) -> str:
    if len(line.values) == 1 and CLASS_NUMBER.fullmatch(line.values[0]):
        return "number"
    return "values" if all(map(is_number, line.values)) else "name"


def _chosen(forms: Counter[str], kind: str) -> str:
    total = sum(forms.values())
    if kind == "image-regression":
        return "values"
    if 2 * forms["name"] > total:
        return "name"
    # One decimal point in a thousand class numbers is a slip of the pen, and in ten ages it is not.
    is_values = kind == "auto" and forms["values"] > max(_STRAY * total, 0)
    return "values" if is_values else "number"
