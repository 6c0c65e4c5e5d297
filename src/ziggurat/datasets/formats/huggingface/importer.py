"""Folders of images with a table beside them: metadata of Hugging Face's image folders, CSV files of Kaggle."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

from ziggurat.datasets.formats.huggingface.rows import (
    Columns,
    NoLabelError,
    RowObjects,
    columns_of,
    count_of_boxes,
    label_line,
    survey_rows,
)
from ziggurat.datasets.formats.shared.detection_import import ZERO_SIZE_OPTION
from ziggurat.datasets.formats.shared.folder_walk import FoundImage, ImageWalk
from ziggurat.datasets.formats.shared.frames import FRAME_OPTIONS
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import (
    OTHER_LABEL,
    Labels,
    SeenKeys,
    encoding_of,
    encoding_problems,
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
from ziggurat.records.schema import Schema

__all__ = ["HuggingFaceFolder"]

_HEAD: Final = 50
NO_LABEL: Final = "none"
_LABELLED: Final = ("image-classification", "image-regression")


class HuggingFaceFolder(Importer):
    """Images with a metadata.csv, .jsonl or .parquet, whose column ``file_name`` names them, or with another CSV."""

    name: ClassVar[str] = "huggingface_folder"
    markers: ClassVar[tuple[str, ...]] = (".csv", ".jsonl", ".parquet")
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
        ZERO_SIZE_OPTION,
        *FRAME_OPTIONS,
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
        self._objects: RowObjects | None = None
        self._repeated = frozenset[str]()
        self._held: dict[str, Sample] = {}
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
                raise DataError(f"No row of `{first.path}` has a label.", advice="Set the option `label`.")
            if first.has_several:
                self._labels = replace(self._labels, names=first.labels)
        if self._columns.kind == "detection" and self._labels is not None:
            self._objects = RowObjects(self._root, self._columns, self._labels, self._options)
            self._repeated = self._names_of_several_rows()
        for file in self._files:
            place = os.path.relpath(file.path, self._root)
            for number, row in table_rows(file):
                yield from self._row(file, f"{place}:{number}", row)
        yield from self._held.values()
        yield from self._unlisted()

    @property
    def schema(self) -> Schema:
        kind = _kind(self._columns, self._labels)
        names = self._labels.names if self._labels is not None else ()
        parts = {"generic": ("image", "text"), "image-to-image": ("image", "target")[: 1 + bool(self._columns.second)]}
        return Schema(
            kind=kind, parts=parts.get(kind, ()), class_names=names, details={"label_column": self._columns.label}
        )

    def _names_of_several_rows(self) -> frozenset[str]:
        """Return the names of images that several rows have objects of; only their objects are held in memory."""
        seen, found = SeenKeys(), set[str]()
        for file in self._files:
            for _, row in table_rows(file):
                name = "" if row is None else str(row.get(FILE_COLUMN))
                if not seen.is_new(f"{file.folder}\n{name}"):
                    found.add(name)
        return frozenset(found)

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
                f"`{path}` has no column `{wanted if row and FILE_COLUMN in row else FILE_COLUMN}`; it has "
                f"{', '.join(map(str, row)) if row else 'no row'}."
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
            yield replace(found, split=file.split, objects=count_of_boxes(row, self._columns))
            return
        told = str([row.get(name) for name in (self._columns.label, self._columns.second) if name])
        is_new = self._labeled.is_new(f"{found.path}\n{told}")
        is_second = not self._seen.is_new(found.path)
        if is_second and not (is_new and found.path in self._held):
            reason = f"`{found.path}` has a row already; the first one counts."
            lost = replace(lost, objects=count_of_boxes(row, self._columns) if is_new else 0)
            yield (
                replace(lost, kind="duplicate-key", reason=reason)
                if not is_new
                else replace(lost, kind="other-label", reason=reason, why=OTHER_LABEL)
            )
            return
        self._used += not is_second
        split = file.split or SPLIT_NAMES.get(str(row.get("split", "")).lower(), "")
        split = split or (split_of(found.path) if "/" in found.path else "")
        try:
            yield from self._sample(file, place, row, found, split)
        except NoLabelError as error:
            kind = "unknown-class" if error.class_name else "no-label"
            lost = replace(lost, left_out=not is_second, objects=error.objects)
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
            label, problems = self._label(found.path, row)
            yield from problems
        sample = Sample(key=found.path, parts=tuple(parts), label=label, split=split, size_bytes=found.size_bytes)
        if str(row.get(FILE_COLUMN)) not in self._repeated:
            yield sample
            return
        before = self._held.get(found.path)
        self._held[found.path] = sample if before is None else replace(before, label=[*before.label, *sample.label])

    def _label(self, path: str, row: Mapping[str, Any]) -> tuple[Any, list[Problem]]:
        assert self._labels is not None
        if self._objects is not None:
            return self._objects.label(path, row)
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
