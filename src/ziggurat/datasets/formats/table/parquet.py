"""Reader for Parquet files as tables, a few rows at a time."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.table.files import Row
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.offered_folders import check_source_file

__all__ = ["PARQUET_SUFFIXES", "ParquetTable", "is_parquet"]

PARQUET_SUFFIXES: Final = (".parquet", ".pq")
_BATCH_ROWS: Final = 4096


def is_parquet(path: Path) -> bool:
    """Say whether a file begins as Parquet does."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


class ParquetTable:
    """A table in a Parquet file.

    Columns of lists and of bytes are no cells of a table; they are named in ``left_out``.

    Args:
        path: the file.

    Raises:
        MissingDependencyError: where pyarrow is not installed.
        DataError: where the file is damaged, or has no column that a table can have.
    """

    typed = True
    decimal = "."

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: tuple[str, ...] = ()
        self.left_out: tuple[str, ...] = ()
        arrow = _arrow()
        with self._open() as file:
            fields = list(file.schema_arrow)
            self.row_count: int = file.metadata.num_rows
        plain = [field.name for field in fields if _is_plain(arrow, field.type)]
        self.names = tuple(plain)
        self.left_out = tuple(field.name for field in fields if field.name not in set(plain))
        if not plain or len(set(plain)) < len(plain):
            raise DataError(
                "A table has columns of numbers, texts or times, each with a name of its own.",
                received=f"`{path}` with {', '.join(f'{field.name}: {field.type}' for field in fields[:20])}",
            )

    def rows(self) -> Iterator[Row]:
        """Yield the rows, in their order."""
        with self._open() as file:
            number = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(self.names)):
                columns = [[_plain(value) for value in batch.column(name).to_pylist()] for name in self.names]
                for cells in zip(*columns, strict=True):
                    yield Row(f"{self.path.name}:row {number}", cells)
                    number += 1

    def head(self) -> Iterator[Row]:
        """Yield the rows; whoever stops early has read little."""
        return self.rows()

    def _open(self) -> Any:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            check_source_file(self.path)
            return ParquetFile(self.path)
        except (ArrowException, OSError) as error:
            raise DataError("A Parquet file is whole.", received=f"`{self.path}`: {error}") from None


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.types
    except ImportError:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="tables in Parquet files") from None
    return pyarrow


def _is_plain(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string, types.is_large_string,
        types.is_timestamp, types.is_date, types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _plain(value: Any) -> Any:
    """Return a value as a cell holds it; infinite numbers hold nothing that can be learned from."""
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value
