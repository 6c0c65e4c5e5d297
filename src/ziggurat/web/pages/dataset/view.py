"""View model of a dataset page: description, source, the jobs that use it, and charts of its statistics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import JobError, UnknownNameError, ZigguratError
from ziggurat.formatting import as_bytes, as_count, as_number, as_percent, as_time, plural
from ziggurat.workspace.datasets import format_named, problems_so_far
from ziggurat.workspace.studio import Studio

__all__ = [
    "KIND_NAMES",
    "KIND_WORDS",
    "ChartFold",
    "ClassBars",
    "PixelShares",
    "RetrainOffer",
    "class_bars",
    "dataset_about",
    "dataset_charts",
    "dataset_problems",
    "dataset_spec",
    "next_name",
    "pixel_shares",
    "retrain_offer",
    "used_classes",
]


_BAD_FILES: Final = 500
_CHILDREN: Final = 50
_STORES: Final[Mapping[str, str]] = {"lmdb": "LMDB", "hdf5": "HDF5", "tfrecord": "TFRecord"}
_ENCODINGS: Final[Mapping[str, str]] = {
    "png": "PNG (lossless)",
    "jpeg": "JPEG",
    "raw": "not encoded",
    "original": "original files, unchanged",
    "reference": "the files themselves, where they are",
}
_RESIZES: Final[Mapping[str, str]] = {
    "squash": "squashed",
    "crop": "cropped",
    "fill": "with a frame",
    "half_crop": "half cropped, half with a frame",
}


@dataclass(frozen=True, kw_only=True)
class DatasetAbout:
    """What a dataset is.

    Args:
        described: as the studio's ``datasets.describe`` returns it.
        kind: its name for people.
        format: of its source, for people; empty if unknown.
        size_bytes: of its folder; records that versions share count in each.
        store: kind of file that holds the records.
        pictures: how images are stored: encoding, size, channels; empty for sets without.
        parents: name and changes of each version that it was made of.
        parent: the dataset that it was made of; None where there is none any more.
        children: versions that were made of it.
        users: jobs that need it.
    """

    described: Mapping[str, Any]
    kind: str
    format: str
    size_bytes: int
    store: str
    pictures: Mapping[str, str]
    parents: Sequence[Mapping[str, Any]]
    parent: Job | None
    children: Sequence[Job]
    users: Sequence[Job]

    @property
    def total(self) -> int:
        """Samples of all splits."""
        return sum(self.described["splits"].values())

    @property
    def used_classes(self) -> int:
        """Classes with samples."""
        return len(used_classes(self.described))

    @property
    def empty_classes(self) -> int:
        """Classes without samples."""
        return len(self.described["classes"]) - self.used_classes

    @property
    def problem_count(self) -> int:
        """Problems that were found when it was made."""
        return sum(self.described["problems"].values())


@dataclass(frozen=True, kw_only=True)
class DatasetProblems:
    """What was wrong with a source whose dataset was not made.

    Args:
        shown: the first ones.
        total: how many there are.
    """

    shown: Sequence[Any]
    total: int


def dataset_about(studio: Studio, job: Job) -> DatasetAbout:
    """Return what a dataset that is done is."""
    described = studio.datasets.describe(job.id)
    children = JobFilter(kinds=("dataset",), conditions=(("parent", "=", job.id),), limit=_CHILDREN)
    return DatasetAbout(
        described=described,
        kind=KIND_NAMES.get(described["kind"], described["kind"]),
        format=_format_title(described["source"]),
        size_bytes=_size_bytes(Path(job.folder)),
        store=", ".join(_STORES.get(name) or name for name in described["stores"]),
        pictures=_pictures(described["image"]),
        parents=described["parents"],
        parent=_find(studio, job.parent),
        children=studio.jobs.page(children).jobs,
        users=studio.jobs.dependents(job.id),
    )


@dataclass(frozen=True, kw_only=True)
class RetrainOffer:
    """A training that can be repeated on a new version.

    Args:
        former: the training.
        evaluation: id of its evaluation that a user came from; empty for none.
        split: that is compared; empty where that is chosen later.
        changes: ids of two evaluations, where it was repeated already; None where it was not.
    """

    former: Job
    evaluation: str = ""
    split: str = ""
    changes: tuple[str, str] | None = None


def retrain_offer(studio: Studio, job: Job, evaluation_id: str) -> RetrainOffer | None:
    """Return the training that can be repeated on a version; None where there is none.

    Args:
        studio: where they are.
        job: of the version.
        evaluation_id: that a user came from; empty for the newest finished training of the former version.
    """
    try:
        evaluation = studio.jobs.some([evaluation_id]).get(evaluation_id) if evaluation_id else None
        is_one = evaluation is not None and evaluation.kind == "evaluate"
        former = studio.jobs.get(str(evaluation.parent)) if evaluation and is_one else studio.retrainings.former(job.id)
        if former is None or job.id in former.depends_on:
            return None
        known = studio.retrainings.known(job.id, former.id)
    except ZigguratError:  # deleted meanwhile, or its spec cannot be read any more
        return None
    return RetrainOffer(
        former=former,
        evaluation=evaluation.id if evaluation and is_one else "",
        split=str(evaluation.spec.get("split", "")) if evaluation and is_one else "",
        changes=(known.former_evaluation.id, known.evaluation.id) if known else None,
    )


def used_classes(described: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the classes with samples, as the background of COCO has none; all of them where none is counted.

    Args:
        described: as the studio's ``datasets.describe`` returns it.
    """
    found = [each for each in described["classes"] if any(each[split] for split in described["splits"])]
    return found or described["classes"]


def dataset_problems(job: Job) -> DatasetProblems:
    """Return what was found in the source of a dataset that failed."""
    if job.state not in ("failed", "stopped"):
        return DatasetProblems(shown=(), total=0)
    shown, total = problems_so_far(Path(job.folder), limit=_BAD_FILES)
    return DatasetProblems(shown=shown, total=total)


def dataset_spec(job: Job) -> list[tuple[str, str]]:
    """Return what was asked for, in words, for a dataset that is not there yet."""
    spec = job.spec
    size = spec.get("size")
    known = [
        ("Source", str(spec.get("source") or "")),
        ("Format", str(spec.get("format") or "as it is recognized")),
        ("Stored in", _STORES.get(str(spec.get("store")), str(spec.get("store") or ""))),
        ("Size", "" if not isinstance(size, Sequence) else " × ".join(str(side) for side in reversed(size)) + " px"),
    ]
    return [(name, value) for name, value in known if value]


def next_name(name: str) -> str:
    """Return what the next version may be called.

    >>> next_name("pets"), next_name("pets v2")
    ('pets v2', 'pets v3')
    """
    found = re.fullmatch(r"(.*) v(\d{1,6})", name, re.DOTALL)
    return f"{found[1]} v{int(found[2]) + 1}" if found else f"{name} v2"


def _format_title(source: Mapping[str, Any] | None) -> str:
    name = str(source["format"]) if source else ""
    try:
        return format_named(name)["title"] if name else ""
    except UnknownNameError:  # a version has what was done to its parent
        return name.replace("_", " ")


def _pictures(image: Mapping[str, Any] | None) -> dict[str, str]:
    if image is None:
        return {}
    quality = f", quality {image['quality']}" if image["encoding"] == "jpeg" else ""
    sized = image["width_px"] and image["height_px"]
    resize = _RESIZES.get(image["resize_mode"], "")
    channels = {1: "gray (1 channel)", 3: "color (3 channels)"}.get(image["channels"], "as each image has")
    return {
        "Stored as": _ENCODINGS.get(image["encoding"], image["encoding"]) + quality,
        "Size": f"{image['width_px']} × {image['height_px']} px{', ' + resize if resize else ''}"
        if sized
        else "each image has its own",
        "Channels": channels,
    }


def _find(studio: Studio, job_id: str) -> Job | None:
    try:
        return studio.jobs.get(job_id) if job_id else None
    except JobError:  # deleted since
        return None


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


_MOST_ROWS: Final = 1000
_MANY_CLASSES: Final = 15
_MOST_COLUMNS: Final = 60
_FEW_COLUMNS: Final = 4
"""Columns whose charts are open."""


_FOLDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "objects": ("Objects per image", ("Objects per image",)),
    "boxes": ("Box sizes", ("Widths of the boxes", "Heights of the boxes", "Areas of the boxes")),
    "images": (
        "Image sizes",
        ("Widths of the images", "Heights of the images", "Aspect ratios", "Most frequent sizes"),
    ),
    "texts": ("Text lengths", ("Characters of the texts", "Words of the texts")),
    "size": ("File sizes", ("Sizes of the files",)),
}
"""Begin of an id → title of a closed section, and of the charts in it."""
"""Titles of charts that few look at."""


@dataclass(frozen=True, kw_only=True)
class DatasetChart:
    """A chart with its table.

    Args:
        title: of both.
        spec: as ``islands/charts.js`` reads it.
        heads: of the table's columns.
        rows: of the table: cells, the first one a name.
        note: one sentence below; empty for none.
        wide: whether it needs the whole width.
    """

    title: str
    spec: Mapping[str, Any]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
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


@dataclass(frozen=True, kw_only=True)
class ChartFold:
    """A closed section with charts of sizes.

    Args:
        id: of its element.
        title: of the section.
        summary: range and median; shown while it is closed.
        charts: in the section; none if all images have one size.
    """

    id: str
    title: str
    summary: str
    charts: Sequence[DatasetChart]


def dataset_charts(statistics: Any) -> tuple[list[DatasetChart], list[ChartFold]]:
    """Return the open charts of a dataset, without that of its classes, and the closed sections with the others.

    Args:
        statistics: as the studio's ``datasets.statistics`` returns them.
    """
    charts = [chart for chart in _charts(statistics) if chart is not None and len(chart.rows) > 1]
    summaries, folds = _summaries(statistics), []
    for name, (title, titles) in _FOLDS.items():
        inside = [chart for chart in charts if chart.title in titles]
        if inside or name in summaries:
            fold = ChartFold(id=f"{name}-charts", title=title, summary=summaries.get(name, ""), charts=inside)
            folds.append(fold)
    columns = [chart for chart in charts if chart.title.startswith("Column ")]
    if not statistics.classes:  # else the bars of the classes say the same
        columns = [chart for chart in columns if not chart.title.endswith(" (target)")]
    if len(columns) > _FEW_COLUMNS:
        names = ", ".join(chart.title.removeprefix("Column ") for chart in columns)
        folds.append(ChartFold(id="column-charts", title="Columns", summary=names, charts=columns))
    folded = {chart.title for fold in folds for chart in fold.charts}
    return [chart for chart in charts if chart.title not in folded], folds


def _summaries(found: Any) -> dict[str, str]:
    """Return name in ``_FOLDS`` → range and median of the numbers in that section."""
    told = {}
    if found.objects is not None and found.objects.per_picture is not None:
        told["objects"] = _span(found.objects.per_picture, as_number)
    for name, sizes in (("boxes", found.objects), ("images", found.pictures)):
        if sizes is not None and sizes.width_px is not None and sizes.height_px is not None:
            told[name] = _size_span(sizes.width_px, sizes.height_px)
    if found.texts is not None and found.texts.words is not None:
        told["texts"] = f"{_span(found.texts.words, as_number)} words"
    if found.pictures is not None and found.source_bytes is not None:
        told["size"] = _span(found.source_bytes, as_bytes)
    return told


def _span(numbers: Any, as_text: Any) -> str:
    if numbers.minimum == numbers.maximum:
        return f"all {as_text(numbers.minimum)}"
    return f"{as_text(numbers.minimum)} to {as_text(numbers.maximum)}, median {as_text(numbers.median)}"


def _size_span(width: Any, height: Any) -> str:
    if width.minimum == width.maximum and height.minimum == height.maximum:
        return f"all {as_number(width.minimum)} × {as_number(height.minimum)} px"
    wide, high = (
        as_number(each.minimum)
        if each.minimum == each.maximum
        else f"{as_number(each.minimum)} to {as_number(each.maximum)}"
        for each in (width, height)
    )
    return f"{wide} px wide, {high} px high, median {as_number(width.median)} × {as_number(height.median)}"


@dataclass(frozen=True, kw_only=True)
class PixelShares:
    """Shares of the classes in the masks of a dataset.

    Args:
        rows: of each class: its name, share of all pixels, share of the images that have it; the largest class first.
        longest: the largest share of pixels.
        note: one or two sentences below; empty for none.
    """

    rows: Sequence[tuple[str, float, float]]
    longest: float
    note: str


def pixel_shares(statistics: Any) -> PixelShares | None:
    """Return the shares of the classes in masks; None for a dataset without masks.

    Args:
        statistics: as the studio's ``datasets.statistics`` returns them.
    """
    masks = statistics.masks
    if masks is None or not masks.shares:
        return None
    rows = sorted(((name, pixels, images) for _, name, pixels, images in masks.shares), key=lambda row: -row[1])
    note = " ".join(filter(None, (_unread(masks.unreadable), _ignored(masks))))
    return PixelShares(rows=rows, longest=rows[0][1] or 1.0, note=note)


def _charts(found: Any) -> Iterator[DatasetChart | None]:
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


@dataclass(frozen=True, kw_only=True)
class ClassBars:
    """Samples, or objects, of each class and split, drawn as bars with every name.

    Args:
        title: of the chart.
        splits: names of the splits that have some.
        rows: of each class: its name, where it leads, counts of the splits, their sum.
        longest: the largest sum.
        rest: classes that are not shown.
        by_size: whether the largest class comes first.
    """

    title: str
    splits: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[int], int]]
    longest: int
    rest: int
    by_size: bool


def class_bars(found: Any, explore: str) -> ClassBars | None:
    """Return the classes of a dataset with their counts; None where it has none.

    Args:
        found: as the studio's ``datasets.statistics`` returns them.
        explore: address of the explorer; a class is added to it.
    """
    if not found.classes:
        return None
    splits = [split for split in found.samples if any(each.counts.get(split) for each in found.classes)] or ["train"]
    classes = list(found.classes)
    is_sorted = len(classes) > _MANY_CLASSES
    if is_sorted:
        classes.sort(key=lambda each: -each.total)
    rows = [
        (
            each.name,
            f"{explore}?{urlencode({'class_name': each.name})}",
            [each.counts.get(split, 0) for split in splits],
            each.total,
        )
        for each in classes[:_MOST_ROWS]
    ]
    return ClassBars(
        title=f"{'Objects' if found.objects is not None else 'Samples'} per class and split",
        splits=splits,
        rows=rows,
        longest=max((each.total for each in classes), default=0) or 1,
        rest=len(classes) - len(rows),
        by_size=is_sorted,
    )


def _unread(masks: int) -> str:
    return f"{plural(masks, 'mask')} could not be read." if masks else ""


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
        "Most frequent sizes",
        pictures.sizes,
        "Size",
        "Images",
        note=f"{plural(rest, 'more size')}." if rest > 0 else "",
    )


def _column(column: Any) -> DatasetChart | None:
    title = f"Column {column.name}{' (target)' if column.is_target else ''}"
    note = f"{plural(column.different, 'distinct value')}; {as_count(column.missing)} missing."
    if column.bars:
        rest = f" {plural(column.others, 'row has another value', 'rows have other values')}." if column.others else ""
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
    """Return the names of bins, with no more digits than they need; a bin around a whole number has its name."""
    pairs = list(pairwise(edges))
    halves = all(edge % 1 == 0.5 for edge in edges)
    if halves and as_text is as_number:
        whole = [(round(low + 0.5), round(high - 0.5)) for low, high in pairs]
        return [as_count(low) if low == high else f"{as_count(low)} to {as_count(high)}" for low, high in whole]
    if as_text is as_number:
        width = min((high - low for low, high in pairs if high > low), default=1.0)
        digits = max(0, -math.floor(math.log10(width)))
        return [f"{_rounded(low, digits)} to {_rounded(high, digits)}" for low, high in pairs]
    return [f"{as_text(low)} to {as_text(high)}" for low, high in pairs]


def _rounded(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


KIND_WORDS: Final[Mapping[str, str]] = {"text-classification": "text", "table": "row"}
"""Kind of a dataset without images → what one sample is called."""

KIND_NAMES: Final[Mapping[str, str]] = {
    "image-classification": "Image classification",
    "image-regression": "Numbers from images",
    "detection": "Object detection",
    "segmentation": "Segmentation",
    "image-to-image": "Image to image",
    "image-pairs": "Pairs of images",
    "table": "Table",
    "text-classification": "Text classification",
    "generic": "Generic (arrays)",
}
"""Kind of a dataset → its name."""
