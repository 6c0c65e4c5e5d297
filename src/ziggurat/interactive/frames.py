"""Tables of pandas, which is not a dependency: results give one if it is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.errors import MissingDependencyError

__all__ = ["frame"]


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> Any:
    """Return a DataFrame.

    Args:
        rows: column → value of each row.
        columns: names in their order; that of the rows by default.

    Raises:
        MissingDependencyError: if pandas is not installed.
    """
    try:
        import pandas
    except ModuleNotFoundError:
        raise MissingDependencyError("pandas", extra="", purpose="a DataFrame") from None
    return pandas.DataFrame(list(rows), columns=None if columns is None else list(columns))
