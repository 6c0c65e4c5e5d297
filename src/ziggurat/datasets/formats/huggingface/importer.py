"""Folders of images with a table beside them: metadata of Hugging Face's image folders, CSV files of Kaggle."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

from ziggurat.datasets.formats.shared.folder_walk import FoundImage, ImageWalk
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import (
    OTHER_LABEL,
    Labels,
    ListLine,
    SeenKeys,
    encoding_of,
    encoding_problems,
    survey,
)
from ziggurat.datasets.formats.table.image_tables import (
    FILE_COLUMN,
    LABEL_COLUMN,
    REPEATED_HEADER,
    MetadataFile,
    find_metadata,
    image_tables,
    label_column,
    likely_encoding,
    table_rows,
    with_labels,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import SPLIT_NAMES, Problem, Sample, split_of
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.formatting import plural
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema

__all__ = ["HuggingFaceFolder"]

_HEAD: Final = 50
NO_LABEL: Final = "none"
_LABELLED: Final = ("image-classification", "image-regression")

_OBJECTS: Final = ("objects", "bbox", "bboxes", "annotations")
_LABELS: Final = ("label", "labels", "class", "class_name", "category", "target")
_TEXTS: Final = ("text", "caption", "description", "prompt")
_CLASSES: Final = ("category", "categories", "category_id", "label", "labels", "class", "classes")
_MASKS: Final = ("mask", "label", "segmentation", "annotation")


class HuggingFaceFolder(Importer):
    """Images with a metadata.csv, .jsonl or .parquet, whose column ``file_name`` names them, or with another CSV."""

    name: ClassVar[str] = "huggingface_folder"
    title: ClassVar[str] = "Image folder with a table (Hugging Face, Kaggle)"
    kinds: ClassVar[tuple[str, ...]] = (
        "image-classification",
        "image-regression",
        "detection",
        "segmentation",
        "image-to-image",
        "generic",
    )
    options: ClassVar[tuple[ImporterOption, ...]] = (
        ImporterOption(
            name="label",
            type=str,
            default="",
            help="Column with the label; by default it is known by its name; `none` for images without labels.",
        ),
        ImporterOption(
            name="box_format",
            type=str,
            default="xywh",
            help="Whether a box is left, top, width, height, or left, top, right, bottom.",
            choices=("xywh", "xyxy"),
        ),
        ENCODING_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        """Recognize a metadata file with the column ``file_name``, and a CSV file with a column of images' names."""
        files = _files(source)[:1]
        if not files:
            return None
        try:
            if files[0].path.suffix != ".parquet":
                files = [files[0]._replace(encoding=likely_encoding(files[0].path))]
            files = with_labels(files, _HEAD)
            rows = [row for _, row in islice(table_rows(files[0]), _HEAD) if row is not None]
        except (DataError, MissingDependencyError):
            rows = []
        if not rows or FILE_COLUMN not in rows[0]:
            return None
        is_metadata = files[0].column == FILE_COLUMN
        label = LABEL_COLUMN if files[0].labels else "" if is_metadata else label_column(rows)
        columns = columns_of(rows[0], label or "")
        name = f"`{files[0].path.name}` with the column {files[0].column}"
        reason = f"{name} beside images" if is_metadata else f"{name} for images in `{files[0].folder or '.'}`"
        if label is None:
            others = ", ".join(name for name in rows[0] if name != FILE_COLUMN)
            reason += f"; the option `label` must name the column with the label: {others}"
        return Guess(
            format=self.name,
            confidence=0.96 if is_metadata else 0.4 if label is None else 0.9,
            reason=reason,
            kind=_kind(columns, survey_rows(rows, columns) if columns.label else None),
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Read the metadata; images are looked for, and not opened."""
        return _MetadataScan(source, options)


class _MetadataScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        self._files = [file._replace(encoding=options["encoding"]) for file in _files(source)]
        if not self._files:
            raise DataError(
                "Beside the images is a metadata.csv, metadata.jsonl or metadata.parquet, or a CSV file that names "
                "them.",
                received=f"none in `{source}` or its train, val and test",
            )
        self._root = source if source.is_dir() else source.parent
        self._walk = ImageWalk(self._root)
        self._seen = SeenKeys()
        self._labeled = SeenKeys()
        self._columns = Columns(kind="generic")
        self._labels: Labels | None = None
        self._used = 0

    def __iter__(self) -> Iterator[Sample | Problem]:
        for file in (each for each in self._files if each.path.suffix != ".parquet"):
            chosen = self._options["encoding"]
            yield from encoding_problems(file.path.name, encoding_of(file.path, chosen), chosen)
        if not self._options["label"]:
            self._files = with_labels(self._files)
        first = self._files[0]
        self._columns = self._find_columns(first)
        if self._columns.kind in ("detection", "image-classification"):
            self._labels = survey_rows((row for _, row in table_rows(first)), self._columns)
            if self._labels is None:
                raise DataError(
                    "A row has a label.", received=f"none in `{first.path}`", advice="Set the option `label`."
                )
            if first.has_several:
                self._labels = replace(self._labels, names=first.labels)
        for file in self._files:
            place = os.path.relpath(file.path, self._root)
            for number, row in table_rows(file):
                yield from self._row(file, f"{place}:{number}", row)
        yield from self._unlisted()

    @property
    def schema(self) -> Schema:
        kind = _kind(self._columns, self._labels)
        names = self._labels.names if self._labels is not None else ()
        parts = {"generic": ("image", "text"), "image-to-image": ("image", "target")[: 1 + bool(self._columns.second)]}
        return Schema(
            kind=kind, parts=parts.get(kind, ()), class_names=names, details={"label_column": self._columns.label}
        )

    def _find_columns(self, file: MetadataFile) -> Columns:
        rows = [row for _, row in islice(table_rows(file), _HEAD) if row is not None]
        row, path = next(iter(rows), None), file.path
        wanted = self._options["label"] or self._likely_label(file, rows)
        if wanted is None:
            raise DataError(
                "The option `label` names the column with the label.",
                received=f"no name, and `{path}` with {', '.join(name for name in row or () if name != FILE_COLUMN)}",
                advice="As in --option label=NAME; label=none for images without labels.",
                details={"field": "options.label"},
            )
        if row is None or FILE_COLUMN not in row or (wanted not in ("", NO_LABEL) and wanted not in row):
            raise DataError(
                f"Metadata has the column `{wanted if row and FILE_COLUMN in row else FILE_COLUMN}`.",
                received=f"`{path}` with {', '.join(map(str, row)) if row else 'no row'}",
            )
        return columns_of((FILE_COLUMN,), "") if wanted == NO_LABEL and wanted not in row else columns_of(row, wanted)

    def _likely_label(self, file: MetadataFile, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """Return the column of the label, empty if the names of the columns say what they are, None if they do not."""
        if file.labels:
            return LABEL_COLUMN
        if file.column != FILE_COLUMN:
            return label_column(rows)
        found = columns_of(rows[0]) if rows else None
        others = [name for name in rows[0] if name not in (FILE_COLUMN, "split")] if rows else []
        return "" if found is None or found.label or found.second or not others else label_column(rows)

    def _row(self, file: MetadataFile, place: str, row: Mapping[str, Any] | None) -> Iterator[Sample | Problem]:
        lost = Problem(key=place, kind="bad-line", reason="", left_out=True, split=file.split)
        if row is None:
            yield replace(lost, reason="The row cannot be read.")
            return
        if row.get(FILE_COLUMN) == FILE_COLUMN:
            yield replace(lost, kind=REPEATED_HEADER, reason="The row says the names of the columns again.")
            return
        found = self._image(file, place, row.get(FILE_COLUMN))
        if isinstance(found, Problem):
            yield replace(found, split=file.split)
            return
        told = str([row.get(name) for name in (self._columns.label, self._columns.second) if name])
        is_new = self._labeled.is_new(f"{found.path}\n{told}")
        if not self._seen.is_new(found.path):
            reason = f"`{found.path}` has a row already; the first one counts."
            yield (
                replace(lost, kind="duplicate-key", reason=reason)
                if not is_new
                else replace(lost, kind="other-label", reason=reason, why=OTHER_LABEL)
            )
            return
        self._used += 1
        split = file.split or SPLIT_NAMES.get(str(row.get("split", "")).lower(), "")
        split = split or (split_of(found.path) if "/" in found.path else "")
        try:
            yield from self._sample(file, place, row, found, split)
        except NoLabelError as error:
            kind = "unknown-class" if error.class_name else "no-label"
            yield replace(lost, key=found.path, kind=kind, reason=str(error), class_name=error.class_name, split=split)

    def _sample(
        self, file: MetadataFile, place: str, row: Mapping[str, Any], found: FoundImage, split: str
    ) -> Iterator[Sample | Problem]:
        parts, label = [found.path], None
        if self._columns.second:
            second = self._image(file, place, row.get(self._columns.second))
            if isinstance(second, Problem):
                yield second
                return
            self._used += 1
            parts.append(second.path)
        elif self._columns.kind == "generic":
            parts.append(str(row.get(self._columns.label) or "").encode("utf-8", "replace"))  # type: ignore[arg-type]
        elif self._labels is not None:
            label, wrong = self._label(row)
            for kind, reason in wrong:
                yield Problem(key=found.path, kind=kind, reason=reason, objects=1)
        yield Sample(key=found.path, parts=tuple(parts), label=label, split=split, size_bytes=found.size_bytes)

    def _label(self, row: Mapping[str, Any]) -> tuple[Any, list[tuple[str, str]]]:
        assert self._labels is not None
        if self._columns.kind == "detection":
            return objects_of(row, self._columns, self._labels, self._options["box_format"])
        line = label_line(row, self._columns)
        try:
            return self._labels.label(line), []
        except (KeyError, ValueError):
            text = ", ".join(line.values)[:80]
            raise NoLabelError(f"Its label {text!r} is none of the first split's.", text) from None

    def _image(self, file: MetadataFile, place: str, name: Any) -> FoundImage | Problem:
        if not isinstance(name, str) or not name or "\0" in name:
            return _left_out(place, "bad-line", "The row names no file.")
        path = PurePosixPath(file.folder) / name.replace("\\", "/")
        if path.is_absolute() or ".." in path.parts:
            return _left_out(place, "bad-line", f"`{name[:200]}` leads out of the folder.")
        return self._walk.image(str(path))

    def _unlisted(self) -> Iterator[Problem]:
        for folder in dict.fromkeys(file.folder for file in self._files):
            found = sum(1 for each in self._walk.images(folder) if isinstance(each, FoundImage))
            self._used -= found
        if self._used < 0:
            yield Problem(
                key=".",
                kind="not-listed",
                reason=f"{plural(-self._used, 'image has', 'images have')} no row in the metadata.",
            )


def _files(source: Path) -> list[MetadataFile]:
    return find_metadata(source) or image_tables(source)


def _kind(columns: Columns, labels: Labels | None) -> str:
    is_regression = columns.kind in _LABELLED and labels is not None and labels.form == "values"
    return "image-regression" if is_regression else columns.kind


def _left_out(key: str, kind: str, reason: str) -> Problem:
    return Problem(key=key, kind=kind, reason=reason, left_out=True)


class NoLabelError(Exception):
    """A row has nothing to learn from.

    Args:
        reason: one sentence.
        class_name: class of the row that the dataset does not have; empty if it has none.
    """

    def __init__(self, reason: str, class_name: str = "") -> None:
        super().__init__(reason)
        self.class_name = class_name


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What is where in a row.

    Args:
        kind: of the dataset.
        label: column with the label, the objects or the text; empty for none.
        second: column with the path of the second image; empty for none.
    """

    kind: str
    label: str = ""
    second: str = ""


def columns_of(names: Iterable[str], label: str = "") -> Columns:
    """Return what the columns of a file mean, by their names.

    Args:
        names: of the columns.
        label: the one that a person named; empty for none.
    """
    others = [name for name in names if name not in (FILE_COLUMN, "split")]
    if not label:
        label = next((name for name in (*_OBJECTS, *_LABELS) if name in others), "")
    seconds = [name for name in others if name.endswith(f"_{FILE_COLUMN}")]
    if not label and seconds:
        kind = "segmentation" if seconds[0].startswith(_MASKS) else "image-to-image"
        return Columns(kind=kind, second=seconds[0])
    if not label:
        label = next((name for name in _TEXTS if name in others), others[0] if len(others) == 1 else "")
    if label in _OBJECTS:
        return Columns(kind="detection", label=label)
    if label in _TEXTS:
        return Columns(kind="generic", label=label)
    return Columns(kind="image-classification" if label else "image-to-image", label=label)


def survey_rows(rows: Iterable[Mapping[str, Any] | None], columns: Columns) -> Labels | None:
    """Return how the labels of rows become numbers; None where no row has any."""
    return survey((line for row in rows if row is not None for line in _lines(row, columns)), None, "auto")


def label_line(row: Mapping[str, Any], columns: Columns) -> ListLine:
    """Return the label of a row, as a line of a list would have it.

    Raises:
        NoLabelError: where it has none.
    """
    return ListLine("", _texts(_parsed(row.get(columns.label))))


def objects_of(
    row: Mapping[str, Any], columns: Columns, labels: Labels, form: str
) -> tuple[list[Any], list[tuple[str, str]]]:
    """Return the objects of a row as a label, and (kind, reason) of the problems of those left out.

    Args:
        row: of the metadata.
        columns: what is where.
        labels: gives the classes their numbers.
        form: ``xywh`` or ``xyxy``.

    Raises:
        NoLabelError: where the row has no boxes, or not as many classes as boxes.
    """
    found, wrong = [], []
    for box, name in boxes_of(row, columns):
        corners = _corners(box, form)
        if corners is None:
            wrong.append(("zero-size-box", f"The box {str(box)[:80]} has no size, or is none."))
            continue
        try:
            number = labels.label(ListLine("", _texts(name)))
        except (KeyError, ValueError, NoLabelError):
            wrong.append(("unknown-class", f"There is no class {str(name)[:80]!r}."))
            continue
        found.append(ImageObject(class_number=number, box=corners))
    return objects_to_json(found), wrong


def boxes_of(row: Mapping[str, Any], columns: Columns) -> list[tuple[Any, Any]]:
    """Return (box, class) of the objects of a row; class 0 where it has no classes.

    Raises:
        NoLabelError: where the row has no boxes, or not as many classes as boxes.
    """
    content = _parsed(row.get(columns.label))
    if isinstance(content, list) and all(isinstance(each, dict) for each in content):
        return [(each.get("bbox"), _class_in(each, 0)) for each in content]
    boxes, classes = content, _class_in(row, None)
    if isinstance(content, dict):
        boxes, classes = content.get("bbox", content.get("bboxes")), _class_in(content, None)
    if not isinstance(boxes, list):
        raise NoLabelError("It has no boxes.")
    if boxes and not isinstance(boxes[0], list):
        boxes = [boxes]
    classes = _parsed(classes)
    classes = [0] * len(boxes) if classes is None else classes if isinstance(classes, list) else [classes]
    if len(classes) != len(boxes):
        raise NoLabelError(f"It has {len(boxes)} boxes and {len(classes)} classes.")
    return list(zip(boxes, classes))


def _lines(row: Mapping[str, Any], columns: Columns) -> Iterator[ListLine]:
    try:
        if columns.kind == "detection":
            for _, name in boxes_of(row, columns):
                yield ListLine("", _texts(name))
        else:
            yield label_line(row, columns)
    except NoLabelError:
        return


def _class_in(values: Mapping[str, Any], default: Any) -> Any:
    return next((values[name] for name in _CLASSES if values.get(name) is not None), default)


def _parsed(value: Any) -> Any:
    """Return a cell; lists and objects that are written as JSON are read."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values or any(each is None or each == "" or isinstance(each, (list, dict)) for each in values):
        raise NoLabelError("It has no label.")
    return tuple(str(each) for each in values)


def _corners(box: Any, form: str) -> tuple[float, float, float, float] | None:
    if not isinstance(box, list) or len(box) != 4 or not all(type(number) in (int, float) for number in box):
        return None
    if not all(abs(number) < 1e9 for number in box):
        return None  # also where it is not a number
    left, top, right, bottom = box
    if form == "xywh":
        right, bottom = left + right, top + bottom
    return (left, top, right, bottom) if right > left and bottom > top and math.isfinite(right + bottom) else None
