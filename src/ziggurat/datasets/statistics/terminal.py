"""Terminal output of dataset statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from ziggurat.datasets.statistics.model import NumberStatistics, Statistics

__all__ = ["statistics_lines"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_MOST_CLASSES: Final = 40
_CELL: Final = 40


def statistics_lines(statistics: Statistics) -> list[str]:
    """Return statistics as lines of text."""
    return [
        *_counts(statistics),
        *_classes(statistics),
        *_numbers(statistics),
        *_columns(statistics),
        *_rest(statistics),
    ]


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
