"""``columns.json``: properties that a table in a text file cannot hold; written by exporters, read by importers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from ziggurat.datasets.formats.table.dialect import Dialect
from ziggurat.errors import DataError, ZigguratError
from ziggurat.records.schema import Schema

__all__ = ["DESCRIPTION_NAME", "Description"]

DESCRIPTION_NAME: Final = "columns.json"
_LARGEST_BYTES: Final = 1 << 26
_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Description:
    """What an export says of its files.

    Args:
        schema: of the dataset.
        key: name of the column with the keys of the samples.
        suffix: of the files, such as ``.csv``; their names before it are those of splits.
        missing: text that stands for no value; None where the files say that by themselves.
    """

    schema: Schema
    key: str
    suffix: str
    missing: str | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of the files, in order."""
        if self.schema.kind == "table":
            return (self.key, *(column.name for column in self.schema.columns))
        return (self.key, "label", "text")

    @property
    def dialect(self) -> Dialect:
        """How the files are written, where they are text."""
        return Dialect(delimiter="\t" if self.suffix == ".tsv" else ",")

    def save(self, folder: Path) -> None:
        """Write ``columns.json``."""
        content = {"version": _VERSION, **asdict(self), "schema": self.schema.as_json()}
        (folder / DESCRIPTION_NAME).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def is_in(cls, source: Path, kind: str) -> bool:
        """Say whether one stands in a folder that describes a dataset of a kind, and is whole."""
        try:
            return source.is_dir() and cls.load(source, kind) is not None
        except DataError:
            return False

    @classmethod
    def load(cls, source: Path, kind: str) -> Self | None:
        """Return what stands beside a table, None where nothing does, or another program's file of that name.

        Args:
            source: the folder.
            kind: of dataset that is asked for.

        Raises:
            DataError: where it is ours, and damaged.
        """
        path = source / DESCRIPTION_NAME
        content = _content(path)
        if content is None or content.get("version") != _VERSION:
            return None
        try:
            schema = Schema.from_json(content["schema"])
            found = cls(
                schema=schema,
                key=str(content["key"]),
                suffix=str(content["suffix"]),
                missing=None if content["missing"] is None else str(content["missing"]),
            )
        except (KeyError, TypeError, ZigguratError) as error:
            raise DataError(f"`{DESCRIPTION_NAME}` is read as it was written.", received=f"`{path}`: {error}") from None
        return found if schema.kind == kind else None


def _content(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("schema"), dict) else None
