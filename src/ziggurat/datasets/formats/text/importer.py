"""Importer for labeled texts: rows of a table, a file for each class, or a folder for each class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.datasets.formats.table.description import Description
from ziggurat.datasets.formats.table.evidence import table_signs
from ziggurat.datasets.formats.table.files import is_table_file, table_files
from ziggurat.datasets.formats.table.parquet import PARQUET_SUFFIXES
from ziggurat.datasets.formats.text.files import (
    FolderScan,
    LineScan,
    class_files,
    class_folders,
    reads_as_texts,
)
from ziggurat.datasets.formats.text.rows import JSON_LINES_SUFFIXES, TextRowScan, json_columns
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["TextImporter"]

_SUFFIXES: Final = (".csv", ".tsv", ".tab", *JSON_LINES_SUFFIXES, *PARQUET_SUFFIXES)


class TextImporter(Importer):
    """Texts, each of one class."""

    name = "text"
    title = "Texts with classes (CSV, TSV, JSON lines, files)"
    kinds = ("text-classification",)
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(
            name="layout",
            type=str,
            default="guess",
            help="How the texts lie: in rows, a file for each class with a text a line, or a folder for each class.",
            choices=("guess", "rows", "lines", "folders"),
        ),
        ImporterOption(name="text", type=str, default="", help="Column with the texts."),
        ImporterOption(name="label", type=str, default="", help="Column with the classes."),
        ImporterOption(
            name="header",
            type=str,
            default="guess",
            help="Whether the first row names the columns.",
            choices=("guess", "yes", "no"),
        ),
        ImporterOption(
            name="classes", type=list, default=[], help="Names of the classes, in order; others are left out."
        ),
        ImporterOption(name="file", type=str, default="", help="The file, where a folder has several tables."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Say whether a source holds labeled texts: by its files' names and first lines."""
        if not source.is_dir():
            return self._guess_rows(source)
        if Description.is_in(source, "text-classification"):
            return self._guess(1.0, "a `columns.json` that describes texts")
        return self._guess_lines(source) or self._guess_folders(source) or self._guess_rows(source)

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the texts."""
        layout, classes = options["layout"], [str(name) for name in options["classes"]]
        if layout == "guess":
            layout = self._layout(source, options)
        if layout == "lines":
            return LineScan(_needed(class_files(source), source, "two files, one for each class"), classes)
        if layout == "folders":
            return FolderScan(source, _needed(class_folders(source), source, "a folder for each class"), classes)
        description = Description.load(source, "text-classification") if source.is_dir() else None
        suffixes = _SUFFIXES if description is None else (description.suffix,)
        return TextRowScan(table_files(source, suffixes, options["file"]), options, description)

    def _layout(self, source: Path, options: Mapping[str, Any]) -> str:
        if not source.is_dir() or options["file"] or options["text"] or options["label"]:
            return "rows"
        if Description.is_in(source, "text-classification"):
            return "rows"
        if self._guess_lines(source) is not None:
            return "lines"
        return "folders" if self._guess_folders(source) is not None else "rows"

    def _guess_lines(self, source: Path) -> Guess | None:
        files = class_files(source)
        if not files or not all(map(reads_as_texts, list(files.values())[:10])):
            return None
        names = ", ".join(sorted(path.name for path in files.values())[:5])
        sure = all(path.suffix != ".txt" for path in files.values())
        return self._guess(0.75 if sure else 0.4, f"a file of lines for each of {len(files)} classes: {names}")

    def _guess_folders(self, source: Path) -> Guess | None:
        folders = class_folders(source)
        names = {folder.name for folder in folders}
        if len(names) < 2:
            return None
        first = [
            next((path for path in sorted(folder.path.iterdir()) if path.is_file()), None) for folder in folders[:10]
        ]
        if not all(path is not None and reads_as_texts(path) for path in first):
            return None
        return self._guess(0.8, f"a folder of texts for each of {len(names)} classes")

    def _guess_rows(self, source: Path) -> Guess | None:
        try:
            path = table_files(source, _SUFFIXES)[0].path
            if not is_table_file(path, _SUFFIXES):
                return None
            if path.suffix.lower() in JSON_LINES_SUFFIXES:
                text, label = json_columns(path)
                return self._guess(0.8, f"JSON lines with the fields `{text}` and `{label}`")
            signs = table_signs(path)
        except (DataError, MissingDependencyError):
            return None
        if not signs.is_texts or signs.has_pictures:
            return None
        return self._guess(0.85, f"a table with a text and its class in each row: {signs.dialect}")

    def _guess(self, confidence: float, reason: str) -> Guess:
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="text-classification")


def _needed(found: Any, source: Path, what: str) -> Any:
    if not found:
        raise DataError(f"Texts of this layout have {what}.", received=f"`{source}`, which has not")
    return found
