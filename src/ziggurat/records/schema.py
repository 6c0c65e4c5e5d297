"""Schema of a dataset's records: the kind of the dataset, the parts of a record, and the form of a label.

A record has parts (encoded images, arrays, texts) and a label. The kind of the dataset defines them, see ``KINDS``.
Labels are plain JSON values, in these forms:

=================== ==============================================================================================
kind                label
=================== ==============================================================================================
image-classification number of the class, from 0
text-classification  number of the class, from 0
image-regression     list of numbers (also several classes at once: one 0 or 1 for each)
detection            list of objects, see ``ziggurat.records.objects``
segmentation         None: the second part is an image of class numbers, (H, W) uint8 or uint16
image-to-image       None: the second part is the target image; without one, the first is
image-pairs          1 if both images show the same, else 0
table                the target: a number, or the number of the class; None where it is missing
generic              None, a number, or a list of numbers
=================== ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from ziggurat.errors import DataError, UnknownNameError

__all__ = ["COLUMN_TYPES", "KINDS", "Column", "Schema"]

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "image-classification": ("image",),
    "image-regression": ("image",),
    "detection": ("image",),
    "segmentation": ("image", "mask"),
    "image-to-image": ("image", "target"),
    "image-pairs": ("image", "image2"),
    "table": ("row",),
    "text-classification": ("text",),
    "generic": ("array",),
}
"""Kind of a dataset → the parts of its records, in order. Sets of kind ``generic`` may have others."""

COLUMN_TYPES: Final = ("number", "category", "text", "boolean", "time", "identifier")
"""What a column of a table may hold; an identifier names the row and is nothing to learn from."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table.

    Args:
        name: its heading.
        type: a name in ``COLUMN_TYPES``.
        categories: the values of a category, in the order of their numbers.
        missing: rows without a value.
    """

    name: str
    type: str
    categories: tuple[str, ...] = ()
    missing: int = 0

    def __post_init__(self) -> None:
        if self.type not in COLUMN_TYPES:
            raise UnknownNameError("type of a column", self.type, COLUMN_TYPES)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What the records of a dataset mean.

    Args:
        kind: a name in ``KINDS``.
        parts: names of the parts of a record; those of the kind where they are not given.
        class_names: by class number; empty where there are no classes.
        columns: of a table, in the order of a row's values, the target among them.
        target: name of the column that is to be predicted.
        colours: (R, G, B) of each class in a mask, by class number; empty if not given.
        ignore_class: number in a mask that counts for nothing, such as 255; None for none.
        details: what only the source's format knows and its exporter needs, as JSON values.
    """

    kind: str
    parts: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    target: str = ""
    colours: tuple[tuple[int, int, int], ...] = ()
    ignore_class: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def chosen_names(self, label: Any) -> list[str] | None:
        """Return the names of the classes that a label has, of an image with several of them; None for other labels."""
        is_chosen = isinstance(label, list) and len(label) == len(self.class_names) and bool(label)
        if self.kind != "image-regression" or not is_chosen or any(each not in (0, 1) for each in label):
            return None
        return [name for name, each in zip(self.class_names, label, strict=True) if each]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kind of dataset", self.kind, KINDS)
        if not self.parts:
            object.__setattr__(self, "parts", KINDS[self.kind])

    def as_json(self) -> dict[str, Any]:
        """Return the form that a manifest holds."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the schema that ``as_json`` gave.

        Raises:
            DataError: where the content is none.
        """
        try:
            return cls(
                kind=content["kind"],
                parts=tuple(content["parts"]),
                class_names=tuple(content["class_names"]),
                columns=tuple(
                    Column(**{**column, "categories": tuple(column["categories"])}) for column in content["columns"]
                ),
                target=content["target"],
                colours=tuple((red, green, blue) for red, green, blue in content["colours"]),
                ignore_class=content["ignore_class"],
                details=content["details"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"The schema is damaged: {type(error).__name__}: {str(error).rstrip('.')}.") from None
