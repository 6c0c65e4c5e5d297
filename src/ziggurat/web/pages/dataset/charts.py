"""Charts of a dataset: from its statistics to the drawn chart and the table next to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlencode

from ziggurat.web.formatting import as_bytes, as_count, as_number, as_percent, as_time

__all__ = ["SPLIT_NAMES", "DatasetChart", "dataset_charts", "single_values"]

SPLIT_NAMES: Final[Mapping[str, str]] = {"train": "Training", "val": "Validation", "test": "Test", "": "No split"}
"""Split → how people call it."""

_MOST_ROWS: Final = 1000
_MANY_CLASSES: Final = 8
_MOST_COLUMNS: Final = 60


@dataclass(frozen=True, kw_only=True)
class DatasetChart:
    """A chart with its table.

    Args:
        title: of both.
        spec: as ``islands/charts.js`` reads it.
        heads: of the table's columns.
        rows: of the table: cells, the first one a name.
        links: where the name of each row leads; empty for nowhere.
        note: one sentence below; empty for none.
        wide: whether it needs the whole width.
    """

    title: str
    spec: Mapping[str, Any]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    links: Sequence[str] = field(default_factory=tuple)
    note: str = ""
    wide: bool = False

    @property
    def bars(self) -> list[list[tuple[int, float, float]]]:
        """For browsers without scripts: of each name, (series, place, length) of its bars, in shares of the longest."""
        series = [each["values"] for each in self.spec["series"]]
        stacked = bool(self.spec.get("stacked"))
        longest = max((sum(values) if stacked else max(values) for values in zip(*series, strict=True)), default=0) or 1
        found = []
        for values in zip(*series, strict=True):
            start, bars = 0.0, []
            for number, value in enumerate(values):
                bars.append((number, start, value / longest))
                start += value / longest if stacked else 0
            found.append(bars)
        return found


def dataset_charts(statistics: Any, explore: str) -> list[DatasetChart]:
    """Return the charts that fit a dataset.

    Args:
        statistics: as the studio's ``datasets.statistics`` returns them.
        explore: address of the explorer; a class is added to it.
    """
    return [chart for chart in _charts(statistics, explore) if chart is not None and len(chart.rows) > 1]


def single_values(statistics: Any) -> list[str]:
    """Return a sentence for each number that is the same in all images; a chart of it would say nothing."""
    pictures = statistics.pictures
    if pictures is None:
        return []
    numbers = (("wide", pictures.width_px), ("high", pictures.height_px))
    return [
        f"Every image is {as_number(found.minimum)} px {word}."
        for word, found in numbers
        if found is not None and found.minimum == found.maximum
    ]


def _charts(found: Any, explore: str) -> Iterator[DatasetChart | None]:
    yield _classes(found, explore)
    yield _pixels(found)
    for number, label in enumerate(found.labels, 1):
        title = "Values to predict" if len(found.labels) == 1 else f"Values to predict, number {number}"
        yield _numbers(title, label, "Value", "Samples")
    if found.pictures is not None:
        yield _numbers("Widths of the images", found.pictures.width_px, "Width in px", "Images")
        yield _numbers("Heights of the images", found.pictures.height_px, "Height in px", "Images")
        yield _numbers("Aspect ratios", found.pictures.aspect, "Width divided by height", "Images")
        yield _sizes(found.pictures)
    if found.objects is not None:
        yield from _objects(found.objects)
    for column in found.columns[:_MOST_COLUMNS]:
        yield _column(column)
    if found.texts is not None:
        yield _numbers("Characters of the texts", found.texts.characters, "Characters", "Texts")
        yield _numbers("Words of the texts", found.texts.words, "Words", "Texts")
    if found.pictures is not None:
        yield _numbers("Sizes of the files", found.source_bytes, "Size", "Samples", as_text=as_bytes)


def _classes(found: Any, explore: str) -> DatasetChart | None:
    if not found.classes:
        return None
    splits = [split for split in found.samples if any(each.counts.get(split) for each in found.classes)] or ["train"]
    classes = list(found.classes)
    if len(classes) > _MANY_CLASSES:
        classes.sort(key=lambda each: -each.total)
    links = [f"{explore}?{urlencode({'class_name': each.name})}" for each in classes]
    what = "Objects" if found.objects is not None else "Samples"
    return DatasetChart(
        title=f"{what} per class and split",
        spec={
            "kind": "bar",
            "names": [each.name for each in classes],
            "series": [
                {"name": _split_name(split), "values": [each.counts.get(split, 0) for each in classes]}
                for split in splits
            ],
            "stacked": True,
            "x": "Class",
            "y": what,
            "links": links,
        },
        heads=("Class", *(_split_name(split) for split in splits), "Together"),
        rows=[
            (each.name, *(as_count(each.counts.get(split, 0)) for split in splits), as_count(each.total))
            for each in classes[:_MOST_ROWS]
        ],
        links=links[:_MOST_ROWS],
        note="" if len(classes) <= _MOST_ROWS else f"The table has the {_MOST_ROWS} largest of {len(classes)} classes.",
        wide=True,
    )


def _split_name(split: str) -> str:
    return SPLIT_NAMES.get(split) or split


def _pixels(found: Any) -> DatasetChart | None:
    masks = found.masks
    if masks is None or not masks.shares:
        return None
    return DatasetChart(
        title="Pixels per class",
        spec={
            "kind": "bar",
            "names": [name for _, name, _, _ in masks.shares],
            "series": [
                {"name": "Of all pixels", "values": [pixels for _, _, pixels, _ in masks.shares]},
                {"name": "Images with it", "values": [pictures for _, _, _, pictures in masks.shares]},
            ],
            "x": "Class",
            "y": "Share",
            "percent": True,
        },
        heads=("Class", "Of all pixels", "Images with it"),
        rows=[(name, as_percent(pixels, 2), as_percent(pictures)) for _, name, pixels, pictures in masks.shares],
        note=" ".join(filter(None, (_unread(masks.unreadable), _ignored(masks)))),
        wide=True,
    )


def _unread(masks: int) -> str:
    return f"{masks} masks could not be read." if masks else ""


def _ignored(masks: Any) -> str:
    if masks.ignore_class is None:
        return ""
    return f"{as_percent(masks.ignored_share, 2)} of all pixels have the number {masks.ignore_class}, which is ignored."


def _objects(objects: Any) -> Iterator[DatasetChart | None]:
    yield _numbers("Objects per image", objects.per_picture, "Objects", "Images")
    yield _numbers("Widths of the boxes", objects.width_px, "Width in px", "Boxes")
    yield _numbers("Heights of the boxes", objects.height_px, "Height in px", "Boxes")
    yield _numbers(
        "Areas of the boxes",
        objects.relative_area,
        "Share of the image",
        "Boxes",
        as_text=lambda value: as_percent(value, 2),
    )


def _sizes(pictures: Any) -> DatasetChart | None:
    if pictures.different_sizes < 2 or pictures.sizes[0].count < 2:
        return None
    rest = pictures.different_sizes - len(pictures.sizes)
    return _counted(
        "Most frequent sizes", pictures.sizes, "Size", "Images", note=f"{rest} more sizes." if rest > 0 else ""
    )


def _column(column: Any) -> DatasetChart | None:
    title = f"Column {column.name}{' (to be predicted)' if column.is_target else ''}"
    note = f"{as_count(column.different)} different values; {as_count(column.missing)} rows without one."
    if column.bars:
        rest = f" {as_count(column.others)} rows have other values." if column.others else ""
        return _counted(title, column.bars, "Value", "Rows", note=note + rest)
    as_text = as_time if column.type == "time" else as_number
    across = "Characters" if column.type == "text" else "Time" if column.type == "time" else "Value"
    return _numbers(title, column.numbers, across, "Rows", note=note, as_text=as_text)


def _counted(title: str, bars: Sequence[Any], across: str, up: str, *, note: str = "") -> DatasetChart | None:
    if not bars:
        return None
    names, counts = [bar.name for bar in bars], [bar.count for bar in bars]
    return DatasetChart(
        title=title,
        spec={"kind": "bar", "names": names, "series": [{"name": up, "values": counts}], "x": across, "y": up},
        heads=(across, up),
        rows=[(name, as_count(count)) for name, count in zip(names, counts, strict=True)],
        note=note,
    )


def _numbers(
    title: str, numbers: Any, across: str, up: str, *, note: str = "", as_text: Any = as_number
) -> DatasetChart | None:
    """Return a histogram; None where there are no numbers."""
    if numbers is None:
        return None
    histogram = numbers.histogram
    names = _bins(histogram.edges, as_text)
    said = f"Median {as_text(numbers.median)}, from {as_text(numbers.minimum)} to {as_text(numbers.maximum)}."
    return DatasetChart(
        title=title,
        spec={
            "kind": "bar",
            "names": names,
            "series": [{"name": up, "values": list(histogram.counts)}],
            "x": across,
            "y": up,
            "close": True,
        },
        heads=(across, up),
        rows=[(name, as_count(count)) for name, count in zip(names, histogram.counts, strict=True) if count],
        note=f"{said} {note}".strip(),
    )


def _bins(edges: Sequence[float], as_text: Any) -> list[str]:
    """Return the names of bins; a bin around one whole number has the number's name."""
    pairs = list(pairwise(edges))
    halves = all(edge % 1 == 0.5 for edge in edges)
    if halves and as_text is as_number:
        whole = [(round(low + 0.5), round(high - 0.5)) for low, high in pairs]
        return [as_count(low) if low == high else f"{as_count(low)} to {as_count(high)}" for low, high in whole]
    return [f"{as_text(low)} to {as_text(high)}" for low, high in pairs]
