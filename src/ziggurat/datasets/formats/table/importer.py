"""Importer for tables in CSV, TSV and Parquet files: a sample is a row, and one column is the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.datasets.formats.huggingface.image_tables import picture_tables
from ziggurat.datasets.formats.shared.text_encoding import encoding_of, head_lines
from ziggurat.datasets.formats.table.description import Description
from ziggurat.datasets.formats.table.dialect import guess_dialect
from ziggurat.datasets.formats.table.evidence import TableSigns, table_signs
from ziggurat.datasets.formats.table.files import TableFile, TextTable, is_table_file, table_files
from ziggurat.datasets.formats.table.parquet import PARQUET_SUFFIXES, ParquetTable, is_parquet
from ziggurat.datasets.formats.table.scan import TableScan
from ziggurat.datasets.importer import Guess, Importer, ImporterOption
from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["MISSING", "TABLE_SUFFIXES", "TableImporter"]

MISSING: Final = ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A"]
"""Texts that stand for no value, unless somebody says others."""

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".tab", ".data", *PARQUET_SUFFIXES)
_GUESSED: Final = ("guess", "yes", "no")


class TableImporter(Importer):
    """Tables in text files and Parquet files."""

    name = "table"
    title = "Table (CSV, TSV, Parquet)"
    kinds = ("table",)
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(name="target", type=str, default="", help="Column to be predicted; `none` for none."),
        ImporterOption(
            name="task",
            type=str,
            default="guess",
            help="Whether the target is a class or a number.",
            choices=("guess", "classes", "number"),
        ),
        ImporterOption(name="exclude", type=list, default=[], help="Columns that are not read."),
        ImporterOption(name="types", type=dict, default={}, help="Name of a column → its type."),
        ImporterOption(
            name="header", type=str, default="guess", help="Whether the first row names the columns.", choices=_GUESSED
        ),
        ImporterOption(name="names", type=list, default=[], help="Names of the columns, in order."),
        ImporterOption(name="delimiter", type=str, default="", help="What stands between cells."),
        ImporterOption(
            name="quotes", type=str, default="guess", help="Whether double quotes enclose cells.", choices=_GUESSED
        ),
        ImporterOption(name="decimal", type=str, default="", help="Sign of decimals.", choices=("", ".", ",")),
        ImporterOption(name="comment", type=str, default="", help="How lines begin that do not count."),
        ImporterOption(name="missing", type=list, default=MISSING, help="Texts that stand for no value."),
        ImporterOption(name="split", type=str, default="", help="Column that says train, val or test."),
        ImporterOption(name="group", type=str, default="", help="Column of what no split tears apart."),
        ImporterOption(name="time", type=str, default="", help="Column with the time of a row."),
        ImporterOption(name="file", type=str, default="", help="The file, where a folder has several tables."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Say whether a source is a table: by the name of the file and its first lines."""
        if Description.is_in(source, "table"):
            return self._guess(1.0, "a `columns.json` that describes tables")
        try:
            files = table_files(source, TABLE_SUFFIXES)
        except DataError:
            return None
        path = files[0].path
        if not is_parquet(path) and not is_table_file(path, TABLE_SUFFIXES):
            return None
        try:
            signs = table_signs(path)
        except MissingDependencyError:
            return self._guess(0.5, "a Parquet file; reading it needs pyarrow")
        except DataError:
            return None
        return self._judged(source, files, signs)

    def obstacle(self, source: Path) -> str:
        """Say why the file of a table cannot be read."""
        try:
            path = table_files(source, TABLE_SUFFIXES)[0].path
            if path.suffix.lower() in TABLE_SUFFIXES and not is_parquet(path):
                encoding_of(path)
                table_signs(path)
        except DataError as error:
            return str(error) if source.is_file() else ""
        return ""

    def scan(self, source: Path, options: Mapping[str, Any]) -> TableScan:
        """Return a walk through the rows."""
        description = Description.load(source, "table") if source.is_dir() else None
        suffixes = TABLE_SUFFIXES if description is None else (description.suffix,)
        files = table_files(source, suffixes, options["file"])
        first = _reader(files[0], options, description)
        alike = {**options, **_written_like(first)}
        others = [(_reader(file, alike, description), file.split) for file in files[1:]]
        return TableScan([(first, files[0].split), *others], options, description)

    def _judged(self, source: Path, files: list[TableFile], signs: TableSigns) -> Guess | None:
        size = f"{len(signs.profiles)} columns, {signs.dialect}"
        if signs.has_pictures or picture_tables(source):
            return self._guess(0.1, f"a table that names images: {size}")
        if signs.is_texts:
            return self._guess(0.4, f"a table of {size}, which looks like labeled texts")
        if len(signs.profiles) < 2:
            return self._guess(0.1, "a table of one column")
        confidence = 0.8 if not source.is_dir() or any(file.split for file in files) else 0.6
        if signs.share_of_good_rows < 0.95:
            confidence -= 0.2
        elif files[0].path.suffix.lower() == ".data":
            confidence -= 0.1
        return self._guess(confidence, f"a table of {size}")

    def _guess(self, confidence: float, reason: str) -> Guess:
        return Guess(format=self.name, confidence=confidence, reason=reason, kind="table")


def _written_like(first: TextTable | ParquetTable) -> dict[str, Any]:
    """Return the options for the files of other splits, whose few rows may say less of themselves."""
    if not isinstance(first, TextTable):
        return {}
    return {"header": "yes"} if first.has_header else {"header": "no", "names": list(first.names)}


def _reader(file: TableFile, options: Mapping[str, Any], description: Description | None) -> TextTable | ParquetTable:
    if is_parquet(file.path):
        return ParquetTable(file.path)
    if description is not None:
        return TextTable(file.path, description.dialect, header="yes", names=description.column_names)
    dialect = guess_dialect(
        head_lines(file.path), delimiter=options["delimiter"], comment=options["comment"], quotes=options["quotes"]
    )
    dialect = replace(dialect, decimal=options["decimal"] or dialect.decimal)
    expected = {options[role] for role in ("target", "split", "group", "time")} | set(options["types"])
    return TextTable(
        file.path, dialect, header=options["header"], names=options["names"], expected=expected - {"", "none"}
    )
