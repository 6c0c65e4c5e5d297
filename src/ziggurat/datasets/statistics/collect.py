"""Collection of the statistics of a dataset or a scan: catalog columns for all samples, the rest from a subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.statistics.choice import Source
from ziggurat.datasets.statistics.model import (
    ClassStatistics,
    ColumnStatistics,
    MaskStatistics,
    NumberStatistics,
    ObjectStatistics,
    Statistics,
    TextStatistics,
)
from ziggurat.datasets.statistics.numbers import describe
from ziggurat.datasets.statistics.objects import mask_statistics, object_statistics
from ziggurat.datasets.statistics.pictures import picture_statistics
from ziggurat.datasets.statistics.rows import column_statistics, label_statistics, text_statistics
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema

__all__ = ["statistics_of"]

_MASKS: Final = 200
_WITH_CLASSES: Final = ("image-classification", "text-classification", "detection")


def statistics_of(
    source: Dataset | Catalogue,
    schema: Schema | None = None,
    *,
    samples: int = 20_000,
    masks: int = _MASKS,
    seed: int = 0,
) -> Statistics:
    """Return what describes a dataset.

    Counts, sizes and classes are those of all samples. Boxes, rows and texts are those of ``samples`` random samples,
    masks of ``masks``; ``notes`` says so where there are more.

    Args:
        source: the dataset, or the catalog of a scan.
        schema: what its samples mean; None: the dataset's, or the one that the scan left in its catalog.
        samples: how many boxes, rows and texts to look at, at most.
        masks: how many masks to read, at most.
        seed: of the random choice.

    Raises:
        DataError: where a catalog has no schema and none is given.
    """
    known = Source(source)
    schema = schema or _schema_of(source)
    catalogue = known.catalogue
    looks = _looked_into(known, schema, samples, masks, seed)
    total = len(catalogue)
    return Statistics(
        kind=schema.kind,
        samples=_in_order(catalogue.split_counts()),
        classes=_classes(catalogue, schema),
        labels=looks.labels,
        source_bytes=_of_column(catalogue, "source_bytes"),
        stored_bytes=_of_column(catalogue, "stored_bytes"),
        groups=sum(1 for group in catalogue.texts("group") if group),
        times=_times(catalogue),
        problems=catalogue.problem_counts(),
        pictures=picture_statistics(catalogue),
        objects=looks.objects,
        masks=looks.masks,
        columns=looks.columns,
        texts=looks.texts,
        rows_looked_at=looks.rows,
        notes=_notes(looks, total),
    )


@dataclass(kw_only=True)
class _Looks:
    """What was found by looking into samples."""

    objects: ObjectStatistics | None = None
    masks: MaskStatistics | None = None
    columns: tuple[ColumnStatistics, ...] = ()
    texts: TextStatistics | None = None
    labels: tuple[NumberStatistics, ...] = ()
    rows: int = 0


def _looked_into(source: Source, schema: Schema, samples: int, masks: int, seed: int) -> _Looks:
    looks = _Looks()
    if schema.kind == "detection":
        looks.objects = object_statistics(source, samples, seed)
    elif schema.kind == "segmentation":
        looks.masks = mask_statistics(source, schema, masks, seed)
    elif schema.kind == "table":
        looks.columns, looks.rows = column_statistics(source, schema, samples, seed)
    elif schema.kind == "text-classification":
        looks.texts = text_statistics(source, schema, samples, seed)
    if not schema.class_names and schema.kind in ("image-regression", "generic", "table"):
        looks.labels = label_statistics(source, samples, seed)
    return looks


def _schema_of(source: Dataset | Catalogue) -> Schema:
    if isinstance(source, Dataset):
        return source.schema
    content = source.note("schema")
    if content is None:
        raise DataError(
            "Statistics need the schema of the samples.",
            received=f"`{source.path}`, which has none",
            advice="Give the argument `schema`.",
        )
    return Schema.from_json(content)


def _in_order(counts: Mapping[str, int]) -> dict[str, int]:
    order = {split: number for number, split in enumerate(SPLITS)}
    return dict(sorted(counts.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def _classes(catalogue: Catalogue, schema: Schema) -> tuple[ClassStatistics, ...]:
    """Return all classes, those without samples too; numbers below 0 stand for no class."""
    if schema.kind not in _WITH_CLASSES and not (schema.kind == "table" and schema.class_names):
        return ()
    splits = _in_order(catalogue.split_counts())
    by_split = {split: catalogue.class_counts(split) for split in splits}
    beyond = max((number for counts in by_split.values() for number in counts), default=-1) + 1
    names = dict(enumerate(schema.class_names))
    return tuple(
        ClassStatistics(
            number=number,
            name=names.get(number, f"class {number}"),
            counts={split: counts.get(number, 0) for split, counts in by_split.items()},
        )
        for number in range(max(beyond, len(names)))
    )


def _of_column(catalogue: Catalogue, name: str) -> NumberStatistics | None:
    values = catalogue.column(name)
    known = values[values >= 0]
    return describe(known, missing=len(values) - len(known))


def _times(catalogue: Catalogue) -> tuple[float, float] | None:
    times = catalogue.column("time")
    known = times[np.isfinite(times)]
    return (float(known.min()), float(known.max())) if len(known) else None


def _notes(looks: _Looks, total: int) -> tuple[str, ...]:
    looked_at: list[tuple[str, Any]] = [
        ("Sizes of boxes", looks.objects and looks.objects.looked_at),
        ("Shares of pixels", looks.masks and looks.masks.looked_at),
        ("Numbers of columns", looks.rows),
        ("Numbers and words of texts", looks.texts and looks.texts.looked_at),
    ]
    return tuple(
        f"{what} are those of {count} random samples of {total}."
        for what, count in looked_at
        if count and count < total
    )
