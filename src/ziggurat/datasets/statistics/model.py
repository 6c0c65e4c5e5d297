"""Data model of dataset statistics: plain values, ready for a chart or JSON, and their output in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

__all__ = [
    "Bar",
    "ClassStatistics",
    "ColumnStatistics",
    "Histogram",
    "ImageStatistics",
    "MaskStatistics",
    "NumberStatistics",
    "ObjectStatistics",
    "Statistics",
    "TextStatistics",
    "bars_of",
    "describe",
    "histogram_of",
    "statistics_lines",
]

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS: Final = 30
_LARGEST_WHOLE: Final = 1e15  # float64 holds larger integers with gaps
_FACTOR: Final = 100
"""Where the 99th percentile is this many times the first one, bins grow by a factor."""
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_MOST_CLASSES: Final = 40
_CELL: Final = 40  # characters of a cell; the rest is cut off


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar of a chart.

    Args:
        name: below it.
        count: its height.
    """

    name: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How numbers are distributed.

    Args:
        edges: of the bins, rising, one more than there are bins; the last bin includes its upper edge.
        counts: numbers in each bin.
        logarithmic: whether the bins grow by a factor, as sizes that differ by powers of ten need.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    logarithmic: bool = False


@dataclass(frozen=True, kw_only=True)
class NumberStatistics:
    """What is known of some numbers.

    Args:
        count: of them.
        missing: places without one.
        mean: their mean.
        deviation: their standard deviation, divided by ``count``.
        minimum: the smallest.
        maximum: the largest.
        quantiles: (share below, value), for 0.05, 0.25, 0.5, 0.75 and 0.95.
        histogram: how they are distributed.
    """

    count: int
    missing: int
    mean: float
    deviation: float
    minimum: float
    maximum: float
    quantiles: tuple[tuple[float, float], ...]
    histogram: Histogram

    @property
    def median(self) -> float:
        """The value in the middle."""
        return dict(self.quantiles)[0.5]


@dataclass(frozen=True, kw_only=True)
class ClassStatistics:
    """One class.

    Args:
        number: of the class.
        name: its name.
        counts: split → samples of it, or objects where samples have several.
    """

    number: int
    name: str
    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Those of all splits."""
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True)
class ImageStatistics:
    """The source images; None if their headers were not read.

    Args:
        width_px: of the images.
        height_px: of the images.
        aspect: width divided by height.
        sizes: the most frequent sizes, such as ``640 x 480``.
        different_sizes: how many there are.
    """

    width_px: NumberStatistics
    height_px: NumberStatistics
    aspect: NumberStatistics
    sizes: tuple[Bar, ...]
    different_sizes: int


@dataclass(frozen=True, kw_only=True)
class ObjectStatistics:
    """The objects of a detection set.

    Args:
        total: of them, in all images.
        pictures_without: images that have none.
        per_picture: number of objects in an image.
        width_px: of their boxes; None where there is no box.
        height_px: likewise.
        relative_width: of a box to its image, from 0 to 1; None where the sizes of images are not known.
        relative_height: likewise.
        relative_area: likewise.
        crowds: objects that stand for many, among those that were looked at.
        difficult: objects that are hard to see, among those that were looked at.
        looked_at: images whose boxes were read; a random choice where that is less than all.
    """

    total: int
    pictures_without: int
    per_picture: NumberStatistics | None
    width_px: NumberStatistics | None
    height_px: NumberStatistics | None
    relative_width: NumberStatistics | None
    relative_height: NumberStatistics | None
    relative_area: NumberStatistics | None
    crowds: int
    difficult: int
    looked_at: int


@dataclass(frozen=True, kw_only=True)
class MaskStatistics:
    """The masks of a segmentation set.

    Args:
        shares: (number of the class, its name, share of all pixels, share of the images that have it).
        looked_at: masks that were read; a random choice where that is less than all.
        unreadable: masks that could not be.
        ignore_class: number of the pixels that are no class, and not in ``shares``; None for none.
        ignored_share: of all pixels, those with that number.
    """

    shares: tuple[tuple[int, str, float, float], ...]
    looked_at: int
    unreadable: int
    ignore_class: int | None = None
    ignored_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """One column of a table.

    Args:
        name: its heading.
        type: of its values.
        is_target: whether it is to be predicted.
        count: rows with a value, among those that were looked at.
        missing: rows without, likewise.
        different: different values, likewise.
        numbers: of numbers, of times (seconds since 1970), or of texts (their lengths in characters).
        bars: the most frequent values of categories and booleans.
        others: rows with a value that has no bar.
    """

    name: str
    type: str
    is_target: bool
    count: int
    missing: int
    different: int
    numbers: NumberStatistics | None = None
    bars: tuple[Bar, ...] = ()
    others: int = 0


@dataclass(frozen=True, kw_only=True)
class TextStatistics:
    """The texts of a text set.

    Args:
        characters: of a text.
        words: of a text.
        frequent_words: class → the words that are in most of its texts, with the number of these.
        telling_words: class → the words that tell most it from the others, with the number of its texts that have them.
        looked_at: texts that were read; a random choice where that is less than all.
    """

    characters: NumberStatistics | None
    words: NumberStatistics | None
    frequent_words: Mapping[str, tuple[Bar, ...]]
    telling_words: Mapping[str, tuple[Bar, ...]]
    looked_at: int


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """What describes a dataset.

    Args:
        kind: of the dataset.
        samples: split → samples; the split without a name has those that no split was chosen for.
        classes: by class number; empty where there are none.
        labels: of regression, the numbers that are to be predicted; None for others.
        source_bytes: of the files that the samples came from; None where unknown.
        stored_bytes: of the records; None where unknown.
        groups: different groups; 0 where samples have none.
        times: the earliest and the latest time of a sample, seconds since 1970; None where they have none.
        problems: kind of problem → how many.
        pictures: of sets with images.
        objects: of detection sets.
        masks: of segmentation sets.
        columns: of tables.
        texts: of text sets.
        rows_looked_at: of a table, the rows that its columns' numbers rest on.
        notes: what rests on a part of the samples only, one sentence each.
    """

    kind: str
    samples: Mapping[str, int]
    classes: tuple[ClassStatistics, ...] = ()
    labels: tuple[NumberStatistics, ...] = ()
    source_bytes: NumberStatistics | None = None
    stored_bytes: NumberStatistics | None = None
    groups: int = 0
    times: tuple[float, float] | None = None
    problems: Mapping[str, int] = field(default_factory=dict)
    pictures: ImageStatistics | None = None
    objects: ObjectStatistics | None = None
    masks: MaskStatistics | None = None
    columns: tuple[ColumnStatistics, ...] = ()
    texts: TextStatistics | None = None
    rows_looked_at: int = 0
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The samples of all splits."""
        return sum(self.samples.values())

    def as_json(self) -> dict[str, Any]:
        """Return the form for JSON."""
        return asdict(self)


def statistics_lines(statistics: Statistics) -> list[str]:
    """Return statistics as lines of text."""
    return [
        *_counts(statistics),
        *_classes(statistics),
        *_numbers(statistics),
        *_columns(statistics),
        *_rest(statistics),
    ]


def describe(values: Any, *, missing: int = 0) -> NumberStatistics | None:
    """Return what is known of numbers, None where there are none.

    Args:
        values: (N) numbers; those that are not finite do not count.
        missing: places without a number.
    """
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return None
    quantiles = np.quantile(finite, _QUANTILES)
    exponent = int(np.frexp(np.abs(finite).max())[1])
    scaled = np.ldexp(finite, -exponent)  # squares of huge numbers would be infinite
    return NumberStatistics(
        count=len(finite),
        missing=missing + len(numbers) - len(finite),
        mean=float(np.ldexp(scaled.mean(), exponent)),
        deviation=float(np.ldexp(scaled.std(), exponent)),
        minimum=float(finite.min()),
        maximum=float(finite.max()),
        quantiles=tuple((share, float(value)) for share, value in zip(_QUANTILES, quantiles, strict=True)),
        histogram=histogram_of(finite),
    )


def histogram_of(values: np.ndarray) -> Histogram:
    """Return how numbers are distributed.

    A few different whole numbers have a bin each. Positive ones over several powers of ten have bins that grow by a
    factor. All others have bins of one width.

    Args:
        values: (N) float64, finite, at least one.
    """
    low, high = float(values.min()), float(values.max())
    whole = bool((values == np.floor(values)).all()) and max(abs(low), abs(high)) < _LARGEST_WHOLE
    if whole and high - low < _BINS:
        edges = np.arange(low - 0.5, high + 1, 1.0)
    elif low > 0 and _is_wide(values):
        edges = np.geomspace(low, high, _BINS + 1)
        edges[0], edges[-1] = low, high
        counts, _ = np.histogram(values, edges)
        return Histogram(edges=_floats(edges), counts=_whole(counts), logarithmic=True)
    elif low == high:
        margin = max(0.5, abs(low) * 0.01)
        edges = np.array([low - margin, low + margin])
    elif whole:
        width = float(np.ceil((high - low + 1) / _BINS))
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    if not (np.diff(edges) > 0).all():  # numbers so near each other that no bins fit between them
        edges = np.array([low, max(high, np.nextafter(low, np.inf))])
    counts, _ = np.histogram(values, edges)
    return Histogram(edges=_floats(edges), counts=_whole(counts))


def bars_of(values: Iterable[Any], at_most: int = 20) -> tuple[tuple[Bar, ...], int]:
    """Return the most frequent values as bars, the highest first, and how many values have none."""
    counts = Counter(values)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    bars = tuple(Bar(name=str(value), count=count) for value, count in ordered[:at_most])
    return bars, sum(counts.values()) - sum(bar.count for bar in bars)


def _is_wide(values: np.ndarray) -> bool:
    first, last = np.quantile(values, (0.01, 0.99))
    return bool(last > _FACTOR * first)


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _whole(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _counts(found: Statistics) -> Iterator[str]:
    splits = ", ".join(f"{split or 'no split'} {count:,}" for split, count in found.samples.items())
    yield f"{found.total:,} samples of kind {found.kind}: {splits}" if splits else f"0 samples of kind {found.kind}"
    if found.groups:
        yield f"{found.groups:,} groups"
    if found.times is not None:
        yield f"taken from {_time(found.times[0])} to {_time(found.times[1])}"


def _classes(found: Statistics) -> Iterator[str]:
    if not found.classes:
        return
    yield ""
    splits = list(found.samples)
    shown = sorted(found.classes, key=lambda each: (-each.total, each.number))[:_MOST_CLASSES]
    most = max(each.total for each in shown) or 1
    rows = [
        [each.name, *(f"{each.counts.get(split, 0):,}" for split in splits), "█" * round(20 * each.total / most)]
        for each in shown
    ]
    yield from _table(["class", *(split or "no split" for split in splits), ""], rows)
    if len(found.classes) > len(shown):
        yield f"… and {len(found.classes) - len(shown):,} classes with fewer"


def _numbers(found: Statistics) -> Iterator[str]:
    named: list[tuple[str, NumberStatistics | None]] = []
    if found.pictures is not None:
        pictures = found.pictures
        named += [("width, px", pictures.width_px), ("height, px", pictures.height_px), ("aspect", pictures.aspect)]
    named += [("source, bytes", found.source_bytes), ("stored, bytes", found.stored_bytes)]
    if found.objects is not None:
        objects = found.objects
        named += [
            ("objects in an image", objects.per_picture),
            ("box width, px", objects.width_px),
            ("box height, px", objects.height_px),
            ("box area, of image", objects.relative_area),
        ]
    if found.texts is not None:
        named += [("characters", found.texts.characters), ("words", found.texts.words)]
    several = len(found.labels) > 1
    named += [(f"label {number}" if several else "label", label) for number, label in enumerate(found.labels)]
    rows = [_row(name, numbers) for name, numbers in named if numbers is not None]
    if rows:
        yield ""
        yield from _table(["", "min", "median", "mean", "max", ""], rows)


def _columns(found: Statistics) -> Iterator[str]:
    if not found.columns:
        return
    yield ""
    rows = []
    for column in found.columns:
        name = f"{column.name} (target)" if column.is_target else column.name
        what = ""
        if column.numbers is not None and column.type == "number":
            numbers = column.numbers
            what = f"{_short(numbers.minimum)} … {_short(numbers.median)} … {_short(numbers.maximum)}"
        elif column.numbers is not None and column.type == "time":
            what = f"{_time(column.numbers.minimum)} … {_time(column.numbers.maximum)}"
        elif column.bars:
            what = ", ".join(f"{bar.name} {bar.count:,}" for bar in column.bars[:4])
        rows.append([name, column.type, f"{column.missing:,}", f"{column.different:,}", what, _curve(column.numbers)])
    yield from _table(["column", "type", "missing", "different", "values", ""], rows)


def _rest(found: Statistics) -> Iterator[str]:
    if found.masks is not None and found.masks.shares:
        yield ""
        rows = [[name, f"{pixels:.2%}", f"{pictures:.1%}"] for _, name, pixels, pictures in found.masks.shares]
        yield from _table(["class", "of pixels", "of images"], rows)
        if found.masks.ignore_class is not None:
            share = f"{found.masks.ignored_share:.2%} of all pixels"
            yield f"ignored, no class: number {found.masks.ignore_class}, {share}"
    if found.texts is not None and any(found.texts.telling_words.values()):
        yield ""
        for name, bars in found.texts.telling_words.items():
            yield f"words of {name}: {', '.join(bar.name for bar in bars[:10])}"
    if found.problems:
        yield ""
        yield "problems: " + ", ".join(f"{kind} {count:,}" for kind, count in found.problems.items())
    yield from found.notes


def _row(name: str, numbers: NumberStatistics) -> list[str]:
    values = (numbers.minimum, numbers.median, numbers.mean, numbers.maximum)
    return [name, *map(_short, values), _curve(numbers)]


def _curve(numbers: NumberStatistics | None) -> str:
    """Return a histogram as a line of blocks."""
    counts = () if numbers is None else numbers.histogram.counts
    most = max(counts, default=0)
    if not most:
        return ""
    return "".join(_BLOCKS[-(-8 * count // most)] for count in counts)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.4g}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows in columns: the first and the last to the left, those between that hold numbers to the right."""
    cells = [[_cut(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    right = [
        0 < index < len(header) - 1 and all(row[index][:1].isdigit() or not row[index] for row in cells[1:])
        for index in range(len(header))
    ]
    for row in cells:
        parts = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(parts).rstrip()


def _cut(cell: str) -> str:
    cell = " ".join(cell.split())
    return cell if len(cell) <= _CELL else cell[: _CELL - 1] + "…"
