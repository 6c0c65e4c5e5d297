"""First stage of dataset creation: one walk through the source, with its content written to a catalog on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.catalogue import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation.request import CreationStopped, Watch
from ziggurat.datasets.importer import Importer
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.errors import DataError
from ziggurat.records.offered_folders import LEADS_OUT, watched
from ziggurat.records.schema import Schema

__all__ = ["ScanResult", "links_out", "read_scan", "scan_source"]

_LOOK_EVERY: Final = 1000


@dataclass(frozen=True, kw_only=True)
class ScanResult:
    """What a scan found.

    Args:
        catalog: file of the samples and problems.
        schema: what the samples mean.
        format: name of the importer.
        options: of the importer, complete.
        count: samples.
        folder: below the source, where the samples were found; empty for the source itself.
    """

    catalogue: Path
    schema: Schema
    format: str
    options: Mapping[str, Any]
    count: int
    folder: str = ""


def scan_source(
    path: Path, source: Path, importer: Importer, options: Mapping[str, Any], watch: Watch, *, folder: str = ""
) -> ScanResult:
    """Walk through a source and write its catalog; memory does not grow with the number of samples.

    Args:
        path: of the catalog to be written.
        source: local folder or file.
        importer: of its format.
        options: as they were given.
        watch: is told of the progress.
        folder: below the source, that is scanned; empty for the source itself.

    Raises:
        DataError: where the source cannot be used, has no samples, or two samples have one key.
        CreationStopped: if a stop was requested.
    """
    complete = importer.checked_options(options)
    scan = importer.scan(source / folder, complete)
    count, problems = 0, 0
    with CatalogueWriter(path, replace=True) as catalogue:
        for found in scan:
            if isinstance(found, Problem):
                catalogue.add_problem(found)
                problems += 1
            else:
                _check_split(found.key, found.split)
                catalogue.add(Entry.of_sample(count, found))
                count += 1
            if (count + problems) % _LOOK_EVERY == 0:
                watch.progress("scan", count, 0)
                if watch.stop_requested():
                    raise CreationStopped
        for problem in links_out(source):
            catalogue.add_problem(problem)
        for name, value in (
            ("schema", scan.schema.as_json()),
            ("format", importer.name),
            ("options", complete),
            ("count", count),
            ("folder", folder),
        ):
            catalogue.note(name, value)
    watch.progress("scan", count, count)
    if not count:
        raise _nothing_found(path, source, importer)
    _check_keys(path)
    return read_scan(path)


def links_out(source: Path) -> Iterator[Problem]:
    """Yield a problem for each file and folder of a watched source that was not opened, as it leads out of it."""
    found = watched()
    for path in found.refused if found is not None else ():
        key = os.path.relpath(path, source if source.is_dir() else source.parent)
        yield Problem(key=key, kind="link-outside", reason=f"It is not read: {LEADS_OUT}.", left_out=True)


def read_scan(path: Path) -> ScanResult:
    """Return the result of a scan that was done before."""
    with Catalogue(path) as catalogue:
        return ScanResult(
            catalogue=path,
            schema=Schema.from_json(catalogue.note("schema")),
            format=catalogue.note("format"),
            options=catalogue.note("options"),
            count=catalogue.note("count"),
            folder=catalogue.note("folder") or "",
        )


def _check_split(key: str, split: str) -> None:
    if split and split not in SPLITS:
        raise DataError("The splits are train, val and test.", received=f"{split!r} for `{key}`")


def _nothing_found(path: Path, source: Path, importer: Importer) -> DataError:
    with Catalogue(path) as catalogue:
        problems = catalogue.problems(limit=3)
    path.unlink()
    return DataError(
        "A dataset has at least one sample.",
        received=f"none in `{source}` as {importer.name}",
        advice=" ".join(f"{problem.key}: {problem.reason}" for problem in problems)
        or "Look whether the path and the format are right.",
    )


def _check_keys(path: Path) -> None:
    with Catalogue(path) as catalogue:
        twice = catalogue.repeated_keys()
    if twice:
        path.unlink()
        raise DataError(
            "Every sample of a source has a key of its own.",
            received=", ".join(f"`{key}`, which came twice" for key in twice),
            advice="That is a fault of the importer, or two files of the source describe the same sample.",
        )
