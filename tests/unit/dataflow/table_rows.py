"""Rows of public tables for the tests of their preprocessing; they skip where the tables are not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.samples import Sample
from ziggurat.records.schema import Schema

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def public_file(name: str) -> Path:
    """Return a public file; skips the test where it is not there."""
    if not (SHARED / name).is_file():
        pytest.skip(f"needs the public file `{name}`; name its folder with ZIGGURAT_SHARED_DATA")
    return SHARED / name


def public_table(name: str, **options: Any) -> tuple[Schema, list[list[Any]], np.ndarray]:
    """Return the schema of a public table, its rows and its labels, as a dataset holds them."""
    importer = TableImporter()
    scan = importer.scan(public_file(f"tabular/{name}"), importer.checked_options(options))
    samples = [each for each in scan if isinstance(each, Sample)]
    return scan.schema, [json.loads(each.parts[0]) for each in samples], np.array([each.label for each in samples])


def encoded(preprocessing: TablePreprocessing, rows: list[Any]) -> np.ndarray:
    """Return rows as a network gets them."""
    return preprocessing.finish(np.stack([preprocessing.decode(row, place) for place, row in enumerate(rows)]))
