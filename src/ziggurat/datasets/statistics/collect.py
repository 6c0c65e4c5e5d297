"""Collection of the statistics of a dataset or a scan: catalog columns for all samples, the rest from a subset."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.statistics.model import (
    Bar,
    ClassStatistics,
    ColumnStatistics,
    ImageStatistics,
    MaskStatistics,
    NumberStatistics,
    ObjectStatistics,
    Statistics,
    TextStatistics,
    bars_of,
    describe,
)
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.schema import Column, Schema

__all__ = ["statistics_of"]

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORDS_SHOWN: Final = 20
_LONGEST_TEXT: Final = 100_000  # characters of a text that are looked at
_MOST_LABELS: Final = 20
_BLOCK: Final = 1000  # entries that are read at once

_MASKS: Final = 200  # that are decoded; a label is only read, and a mask is an image
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
    catalog = known.catalog
    looks = _looked_into(known, schema, samples, masks, seed)
    total = len(catalog)
    return Statistics(
        kind=schema.kind,
        samples=_in_order(catalog.split_counts()),
        classes=_classes(catalog, schema),
        labels=looks.labels,
        source_bytes=_of_column(catalog, "source_bytes"),
        stored_bytes=_of_column(catalog, "stored_bytes"),
        groups=sum(1 for group in catalog.texts("group") if group),
        times=_times(catalog),
        problems=catalog.problem_counts(),
        pictures=image_statistics(catalog),
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


def _classes(catalog: Catalogue, schema: Schema) -> tuple[ClassStatistics, ...]:
    """Return all classes, those without samples too; numbers below 0 stand for no class."""
    if schema.kind not in _WITH_CLASSES and not (schema.kind == "table" and schema.class_names):
        return ()
    splits = _in_order(catalog.split_counts())
    by_split = {split: catalog.class_counts(split) for split in splits}
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


def _of_column(catalog: Catalogue, name: str) -> NumberStatistics | None:
    values = catalog.column(name)
    known = values[values >= 0]
    return describe(known, missing=len(values) - len(known))


def _times(catalog: Catalogue) -> tuple[float, float] | None:
    times = catalog.column("time")
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


class Source:
    """A dataset, or the catalog of a scan.

    Args:
        source: either.
    """

    def __init__(self, source: Dataset | Catalogue) -> None:
        self.dataset = source if isinstance(source, Dataset) else None
        self.catalog = source.catalogue if isinstance(source, Dataset) else source

    def parts(self, entry: Entry) -> tuple[Any, ...] | None:
        """Return the parts of a sample as they are stored; None where a scan knows only where they are."""
        if self.dataset is not None and entry.row is not None:
            return self.dataset.sample(entry.split, entry.row).parts
        return entry.parts if all(isinstance(part, bytes) for part in entry.parts) else None

    def stored_size(self, entry: Entry) -> tuple[int, int] | None:
        """Return (width, height) of a sample's image as its label means it; None if unknown."""
        if self.dataset is not None:
            return self.dataset.stored_size(entry)
        return (entry.width_px, entry.height_px) if entry.width_px and entry.height_px else None


def chosen_entries(catalog: Catalogue, at_most: int, seed: int) -> Iterator[Entry]:
    """Yield all samples, or a random choice of so many where there are more, in their order."""
    count = len(catalog)
    if count <= at_most:
        yield from catalog.walk()
        return
    numbers = catalog.column("number")
    places = np.random.default_rng(seed).choice(count, at_most, replace=False)
    chosen = np.sort(numbers[places])
    for start in range(0, len(chosen), _BLOCK):
        yield from catalog.entries([int(number) for number in chosen[start : start + _BLOCK]])


def column_statistics(
    source: Source, schema: Schema, samples: int, seed: int
) -> tuple[tuple[ColumnStatistics, ...], int]:
    """Return the statistics of a table's columns and the rows that they rest on, at most ``samples``."""
    values: list[list[Any]] = [[] for _ in schema.columns]
    rows = 0
    for entry in chosen_entries(source.catalog, samples, seed):
        cells = _cells(source, entry)
        if cells is None or len(cells) != len(values):
            continue
        rows += 1
        for column, cell in zip(values, cells, strict=True):
            column.append(cell)
    found = tuple(
        _column(column, cells, is_target=column.name == schema.target)
        for column, cells in zip(schema.columns, values, strict=True)
    )
    return found, rows


def label_statistics(source: Source, samples: int, seed: int) -> tuple[NumberStatistics, ...]:
    """Return the statistics of each number of the labels, where they are numbers."""
    values: list[list[float]] = []
    for entry in chosen_entries(source.catalog, samples, seed):
        label = entry.label if isinstance(entry.label, list) else [entry.label]
        numbers = [number for number in label if isinstance(number, int | float)]
        if len(numbers) != len(label) or len(numbers) > _MOST_LABELS:
            continue
        values += [[] for _ in range(len(numbers) - len(values))]
        for column, number in zip(values, numbers, strict=False):
            column.append(number)
    return tuple(found for found in map(describe, values) if found is not None)


def text_statistics(source: Source, schema: Schema, samples: int, seed: int) -> TextStatistics:
    """Return lengths of texts and the words of each class, from at most ``samples`` texts."""
    characters: list[int] = []
    lengths: list[int] = []
    by_class: dict[int, Counter[str]] = {}
    texts: Counter[int] = Counter()
    for number, text in _texts(source, samples, seed):
        characters.append(len(text))
        words = _WORD.findall(text[:_LONGEST_TEXT].lower())
        lengths.append(len(words) if len(text) <= _LONGEST_TEXT else len(text.split()))
        by_class.setdefault(number, Counter()).update(set(words))
        texts[number] += 1
    names = {number: _class_name(schema, number) for number in sorted(by_class)}
    return TextStatistics(
        characters=describe(characters),
        words=describe(lengths),
        frequent_words={names[number]: _most_frequent(by_class[number]) for number in names},
        telling_words={names[number]: _most_telling(number, by_class, texts) for number in names},
        looked_at=len(characters),
    )


def _cells(source: Source, entry: Entry) -> list[Any] | None:
    parts = source.parts(entry)
    if parts is None:
        return None
    cells = json.loads(parts[0])
    return cells if isinstance(cells, list) else None


def _column(column: Column, cells: list[Any], *, is_target: bool) -> ColumnStatistics:
    values = [cell for cell in cells if cell is not None]
    missing = len(cells) - len(values)
    numbers, bars, others = None, (), 0
    if column.type == "number":
        numbers = describe(values, missing=missing)
    elif column.type == "time":
        numbers = describe([_seconds(value) for value in values], missing=missing)
    elif column.type == "text":
        numbers = describe([len(str(value)) for value in values], missing=missing)
    elif column.type in ("category", "boolean"):
        bars, others = bars_of(str(value).lower() if isinstance(value, bool) else value for value in values)
    return ColumnStatistics(
        name=column.name,
        type=column.type,
        is_target=is_target,
        count=len(values),
        missing=missing,
        different=len(set(values)),
        numbers=numbers,
        bars=bars,
        others=others,
    )


def _seconds(value: Any) -> float:
    try:
        when = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return math.nan
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _texts(source: Source, samples: int, seed: int) -> Iterator[tuple[int, str]]:
    for entry in chosen_entries(source.catalog, samples, seed):
        parts = source.parts(entry)
        if parts:
            text = parts[0] if isinstance(parts[0], str) else bytes(parts[0]).decode("utf-8", "replace")
            yield -1 if entry.class_number is None else entry.class_number, text


def _class_name(schema: Schema, number: int) -> str:
    return schema.class_names[number] if 0 <= number < len(schema.class_names) else f"class {number}"


def _most_frequent(words: Counter[str]) -> tuple[Bar, ...]:
    ordered = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Bar(name=word, count=count) for word, count in ordered[:_WORDS_SHOWN])


def _most_telling(number: int, by_class: dict[int, Counter[str]], texts: Counter[int]) -> tuple[Bar, ...]:
    """Return the words with the largest difference between the shares of texts that have them, in this class and not.

    The difference is divided by its standard error, as in the test of two proportions with a pooled share, so that a
    word that came by chance does not win.
    """
    inside, outside = texts[number], sum(texts.values()) - texts[number]
    if not inside or not outside:
        return ()
    scores = []
    for word, count in by_class[number].items():
        elsewhere = sum(words[word] for other, words in by_class.items() if other != number)
        pooled = (count + elsewhere) / (inside + outside)
        error = math.sqrt(pooled * (1 - pooled) * (1 / inside + 1 / outside))
        score = (count / inside - elsewhere / outside) / error if error else 0.0
        if score > 2:
            scores.append((-score, word, count))
    return tuple(Bar(name=word, count=count) for _, word, count in sorted(scores)[:_WORDS_SHOWN])


def object_statistics(source: Source, samples: int, seed: int) -> ObjectStatistics:
    """Return the statistics of objects: their number of all images, their boxes of at most ``samples``."""
    counts = source.catalog.column("objects")
    counts = counts[counts >= 0]
    looked_at = crowds = difficult = 0
    boxes: list[tuple[float, float, float, float]] = []
    for entry in chosen_entries(source.catalog, samples, seed):
        looked_at += 1
        width, height = source.stored_size(entry) or (0, 0)
        for each in entry.label or ():
            if each["class"] < 0:
                continue
            left, top, right, bottom = each["box"]
            crowds += bool(each.get("crowd"))
            difficult += bool(each.get("difficult"))
            boxes.append((right - left, bottom - top, width, height))
    found = np.array(boxes, np.float64).reshape(-1, 4)
    sized = found[(found[:, 2] > 0) & (found[:, 3] > 0)]
    wide, high = sized[:, 0] / sized[:, 2], sized[:, 1] / sized[:, 3]
    return ObjectStatistics(
        total=int(counts.sum()),
        pictures_without=int((counts == 0).sum()),
        per_picture=describe(counts),
        width_px=describe(found[:, 0]),
        height_px=describe(found[:, 1]),
        relative_width=describe(wide),
        relative_height=describe(high),
        relative_area=describe(wide * high),
        crowds=crowds,
        difficult=difficult,
        looked_at=looked_at,
    )


def mask_statistics(source: Source, schema: Schema, masks: int, seed: int) -> MaskStatistics | None:
    """Return the share of pixels of each class, from at most ``masks`` masks; None where none can be read yet.

    Pixels with the number that counts for nothing do not count.
    """
    if source.dataset is None:
        return None
    pixels, pictures = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64)
    looked_at = unreadable = ignored = 0
    for entry in chosen_entries(source.catalog, masks, seed):
        try:
            counts = _pixel_counts(source, entry)
        except DatapointError:
            unreadable += 1
            continue
        looked_at += 1
        if schema.ignore_class is not None and 0 <= schema.ignore_class < len(counts):
            ignored += int(counts[schema.ignore_class])
            counts[schema.ignore_class] = 0
        pixels[: len(counts)] += counts
        pictures[: len(counts)] += counts > 0
    total = int(pixels.sum())
    names = dict(enumerate(schema.class_names))
    shown = sorted({*names, *(int(number) for number in np.flatnonzero(pixels))} - {schema.ignore_class})
    shares = tuple(
        (
            number,
            names.get(number, f"class {number}"),
            float(pixels[number] / total) if total else 0.0,
            float(pictures[number] / looked_at) if looked_at else 0.0,
        )
        for number in shown
    )
    return MaskStatistics(
        shares=shares,
        looked_at=looked_at,
        unreadable=unreadable,
        ignore_class=schema.ignore_class,
        ignored_share=ignored / (total + ignored) if ignored else 0.0,
    )


def _pixel_counts(source: Source, entry: Any) -> np.ndarray:
    """Return pixels by class number of a sample's mask."""
    parts = source.parts(entry)
    mask = None if parts is None or len(parts) < 2 else parts[1]
    if mask is None or isinstance(mask, str):
        raise DatapointError(entry.key, "it has no mask.")
    pixels = mask if isinstance(mask, np.ndarray) else decode_mask(mask, entry.key)
    return np.bincount(pixels.reshape(-1))


def image_statistics(catalog: Catalogue, sizes: int = 10) -> ImageStatistics | None:
    """Return the sizes of the images as they came; None where no size is known.

    Args:
        catalog: of the samples.
        sizes: how many of the most frequent sizes to list.
    """
    widths, heights = catalog.column("width"), catalog.column("height")
    known = (widths > 0) & (heights > 0)
    missing = int(len(known) - known.sum())
    widths, heights = widths[known].astype(np.int64), heights[known].astype(np.int64)
    width = describe(widths, missing=missing)
    height = describe(heights, missing=missing)
    aspect = describe(widths / np.maximum(heights, 1), missing=missing)
    if width is None or height is None or aspect is None:
        return None
    both, counts = np.unique(widths << 32 | heights, return_counts=True)
    order = np.lexsort((both, -counts))[:sizes]
    bars = tuple(
        Bar(name=f"{int(both[at]) >> 32} x {int(both[at]) & 0xFFFFFFFF}", count=int(counts[at])) for at in order
    )
    return ImageStatistics(width_px=width, height_px=height, aspect=aspect, sizes=bars, different_sizes=len(both))
