"""Problems recorded by a failed dataset creation: which files were bad, and why."""

from __future__ import annotations

from pathlib import Path

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError

__all__ = ["problems_so_far"]

_PLACES = ("index.sqlite", "work/scan.sqlite")


def problems_so_far(folder: Path, *, limit: int = 1000) -> tuple[list[Problem], int]:
    """Return the first problems that a creation found before it failed, and how many there are.

    Args:
        folder: of the job; it need not hold a dataset.
        limit: how many to return at most.
    """
    for name in _PLACES:
        if not (folder / name).is_file():
            continue
        try:
            with Catalogue(folder / name) as catalogue:
                return catalogue.problems(limit=limit), sum(catalogue.problem_counts().values())
        except DataError:  # written half when the worker ended
            continue
    return [], 0
