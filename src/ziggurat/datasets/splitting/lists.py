"""Splits from text files that name the samples of each split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.splitting.units import digests, digests_of
from ziggurat.errors import DataError

__all__ = ["splits_by_lists"]

_SHOWN = 5


def splits_by_lists(catalogue: Catalogue, lists: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Return the split of each sample, (N,) int8, -1 for a sample that no file names, and warnings.

    A line is a key, a file name, or one of both without its ending; a name without folder stands for all the files
    that have it. Without a file for training, training gets what the others leave. A sample keeps 32 bytes in memory.

    Args:
        catalog: of the samples.
        lists: split → text file in UTF-8.

    Raises:
        DataError: where a file cannot be read, names nothing, or names a sample of another split.
    """
    splits = np.full(len(catalogue), -1, np.int8)
    warnings: list[str] = []
    names = [digests(catalogue, form) for form in _FORMS]
    for split, file in sorted(lists.items(), key=lambda item: SPLITS.index(item[0])):
        wanted = digests_of(_lines(Path(file)))
        found = np.zeros(len(splits), bool)
        for each in names:
            found |= np.isin(each, wanted)
        if not found.any():
            raise DataError(f"A list names samples of the source, for {split}.", received=f"`{file}`, which names none")
        _check_single(catalogue, splits, found, split)
        splits[found] = SPLITS.index(split)
        missing = _missing(Path(file), wanted, names)
        if missing:
            warnings.append(missing)
    if "train" not in lists:
        splits[splits == -1] = 0
    return splits, warnings


def _without_ending(key: str) -> str:
    path = PurePosixPath(key)
    return str(path.with_suffix("")) if path.name else key


_FORMS = (str, _without_ending, lambda key: PurePosixPath(key).name, lambda key: PurePosixPath(key).stem)


def _lines(path: Path) -> Iterator[str]:
    """Yield the names in a file: lines that are not empty, in either style of line ends, folders with ``/``."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                name = line.strip().replace("\\", "/").removeprefix("./")
                if name:
                    yield name
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "A list of samples is a text file in UTF-8 with a name a line.", received=f"`{path}`: {error}"
        ) from None


def _check_single(catalogue: Catalogue, splits: np.ndarray, found: np.ndarray, split: str) -> None:
    twice = np.flatnonzero(found & (splits >= 0))
    if len(twice):
        number = int(catalogue.column("number")[twice[0]])
        key = catalogue.entries([number])[0].key
        raise DataError(
            "A sample is in one split only.",
            received=f"{len(twice)} samples that the lists name for {split} and for another split, such as `{key}`",
            advice="Take them out of one of the lists.",
        )


def _missing(path: Path, wanted: np.ndarray, names: list[np.ndarray]) -> str:
    """Return a warning of names that no sample has."""
    known = np.zeros(len(wanted), bool)
    for each in names:
        known |= np.isin(wanted, each)
    if known.all():
        return ""
    shown = [name for name, is_known in zip(_lines(path), known, strict=True) if not is_known][:_SHOWN]
    return f"{(~known).sum()} names in `{path}` are of no sample, such as {', '.join(f'`{name}`' for name in shown)}."
