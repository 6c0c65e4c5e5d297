"""Arrays of a checkpoint, read outside of a training: names, shapes, sizes, differences.

Arrays are read one by one and never from a pickle; listing them reads their headers alone. NumPy is imported when an
array is looked at, so that a command that looks at none starts at once.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ziggurat.errors import CheckpointError
from ziggurat.layout import CheckpointFiles

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ArrayDifference", "ArraySummary", "array_differences", "array_summaries", "damage_named"]


@dataclass(frozen=True)
class ArraySummary:
    """One array of a checkpoint: its name, shape, type and size in memory."""

    name: str
    shape: list[int]
    dtype: str
    size_bytes: int


@dataclass(frozen=True)
class ArrayDifference:
    """How one array differs between two checkpoints.

    Args:
        name: its name.
        kind: ``equal``, ``values``, ``shape``, ``only_first`` or ``only_second``.
        largest: largest absolute difference; None where values cannot be compared.
        mean: mean absolute difference; None where values cannot be compared.
    """

    name: str
    kind: str
    largest: float | None = None
    mean: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def array_summaries(files: CheckpointFiles) -> list[ArraySummary]:
    """Return the arrays of a checkpoint in their order, from their headers.

    Raises:
        CheckpointError: where the file is damaged.
    """
    with _open_arrays(files) as archive:
        return [_array_summary(archive, name, member) for name, member in _members(archive).items()]


def array_differences(one: CheckpointFiles, other: CheckpointFiles) -> list[ArrayDifference]:
    """Return how the arrays of two checkpoints differ, in the order of the first one's.

    Raises:
        CheckpointError: where one of them is damaged.
    """
    with _open_arrays(one) as first_archive, _open_arrays(other) as second_archive:
        first_members, second_members = _members(first_archive), _members(second_archive)
        differences = [
            _difference(name, _read(first_archive, member), _read(second_archive, second_members[name]))
            if name in second_members
            else ArrayDifference(name, "only_first")
            for name, member in first_members.items()
        ]
        only_second = [name for name in second_members if name not in first_members]
        return differences + [ArrayDifference(name, "only_second") for name in only_second]


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever reading a damaged checkpoint raises into a ``CheckpointError`` that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"The checkpoint {path} is damaged: {error}.", advice="Resume from an older one; this one can be removed."
        ) from error


@contextmanager
def _open_arrays(files: CheckpointFiles) -> Iterator[zipfile.ZipFile]:
    with damage_named(files.path), zipfile.ZipFile(files.arrays) as archive:
        yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return array name → member: the arrays are numbered, their names stand in an array of their own."""
    names = _read(archive, "names.npy")
    return {str(name): f"a{number}.npy" for number, name in enumerate(names)}


def _read(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    import numpy as np

    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _array_summary(archive: zipfile.ZipFile, name: str, member: str) -> ArraySummary:
    with archive.open(member) as file:
        shape, dtype = _read_header(file)
    return ArraySummary(name, list(shape), str(dtype), math.prod(shape) * dtype.itemsize)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    import numpy as np

    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _difference(name: str, one: np.ndarray, other: np.ndarray) -> ArrayDifference:
    import numpy as np

    if one.shape != other.shape:
        return ArrayDifference(name, "shape")
    if np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"):
        return ArrayDifference(name, "equal", 0.0, 0.0)
    gap = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return ArrayDifference(name, "values", float(gap.max()), float(gap.mean()))
