"""The dataset library: from files on disk to records that train, with nothing lost from sight.

For programs; ``ziggurat dataset`` does the same from the shell::

    from ziggurat.datasets import CreationRequest, Dataset, create_dataset

    if __name__ == "__main__":  # processes are started
        create_dataset(CreationRequest(name="flowers", source="flowers"), Path("flowers-set"))
        with Dataset("flowers-set") as flowers:
            print(flowers.size("train"), flowers.schema.class_names)

Importing this module imports nothing but itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ziggurat.datasets.catalog import Catalogue, Entry, SampleFilter
    from ziggurat.datasets.checks import check_dataset
    from ziggurat.datasets.creation import CreationRequest, CreationStopped, Watch, create_dataset
    from ziggurat.datasets.dataset import Dataset, StoredSample
    from ziggurat.datasets.format_registry import (
        EXPORT_FORMATS,
        Recognition,
        export_dataset,
        guess_format,
        guesses,
        importer,
        importers,
        recognize,
    )
    from ziggurat.datasets.importer import FilePartReader, Guess, Importer, ImporterOption, PartReader, Scan
    from ziggurat.datasets.samples import Problem, Sample
    from ziggurat.datasets.splitting import SplitRule, assign_splits, find_leaks
    from ziggurat.datasets.statistics import statistics_of
    from ziggurat.datasets.versions import append, differences, history, make_version, merge_datasets
    from ziggurat.records.manifest import ImageForm, Manifest
    from ziggurat.records.objects import ImageObject
    from ziggurat.records.schema import Column, Schema

__all__ = [
    "EXPORT_FORMATS",
    "Catalogue",
    "Column",
    "CreationRequest",
    "CreationStopped",
    "Dataset",
    "Entry",
    "FilePartReader",
    "Guess",
    "ImageForm",
    "ImageObject",
    "Importer",
    "ImporterOption",
    "Manifest",
    "PartReader",
    "Problem",
    "Recognition",
    "Sample",
    "SampleFilter",
    "Scan",
    "Schema",
    "SplitRule",
    "StoredSample",
    "Watch",
    "append",
    "assign_splits",
    "check_dataset",
    "create_dataset",
    "differences",
    "export_dataset",
    "find_leaks",
    "guess_format",
    "guesses",
    "history",
    "importer",
    "importers",
    "make_version",
    "merge_datasets",
    "recognize",
    "statistics_of",
]

_HOMES = {
    "ziggurat.datasets.catalog": "Catalogue Entry SampleFilter",
    "ziggurat.datasets.checks": "check_dataset",
    "ziggurat.datasets.creation": "CreationRequest CreationStopped Watch create_dataset",
    "ziggurat.datasets.dataset": "Dataset StoredSample",
    "ziggurat.datasets.format_registry": "EXPORT_FORMATS Recognition export_dataset guess_format guesses "
    "importer importers recognize",
    "ziggurat.datasets.importer": "FilePartReader Guess Importer ImporterOption PartReader Scan",
    "ziggurat.datasets.samples": "Problem Sample",
    "ziggurat.datasets.splitting": "SplitRule assign_splits find_leaks",
    "ziggurat.datasets.statistics": "statistics_of",
    "ziggurat.datasets.versions": "append differences history make_version merge_datasets",
    "ziggurat.records.manifest": "ImageForm Manifest",
    "ziggurat.records.objects": "ImageObject",
    "ziggurat.records.schema": "Column Schema",
}
"""Module: the public names that it defines."""

_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
