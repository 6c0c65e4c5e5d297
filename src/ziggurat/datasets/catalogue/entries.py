"""Catalog entries, one for each sample, and filters that select samples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ziggurat.datasets.samples import Sample
from ziggurat.records.codec import pack, unpack

__all__ = ["COLUMNS", "Entry", "SampleFilter", "entry_of_row", "row_of_entry", "where"]

COLUMNS = (
    "number, split, row, key, parts, content, label, class, sample_group, time, source_bytes, stored_bytes, width, "
    "height, objects, content_hash, picture_hash"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a catalog knows of one sample.

    Args:
        number: in the catalog, from 0.
        split: ``train``, ``val``, ``test``; empty before splits are made.
        row: number in its split; None before splits are made.
        key: its name in the source.
        parts: addresses or content, as in ``Sample``.
        label: in the form that the kind of the dataset says.
        class_number: where the label is one class.
        group: what must not be torn apart.
        time: seconds since 1970.
        source_bytes: size of the first part in the source.
        stored_bytes: size of the record.
        width_px: of the first image as it came.
        height_px: of the first image as it came.
        objects: number of objects in it, where the kind is detection.
        content_hash: first 16 bytes of the SHA-256 of the first part as it came.
        picture_hash: perceptual hash of the first image, 64 bits, as a signed number.
    """

    number: int
    split: str
    row: int | None
    key: str
    parts: tuple[str | bytes, ...]
    label: Any = None
    class_number: int | None = None
    group: str = ""
    time: float | None = None
    source_bytes: int | None = None
    stored_bytes: int | None = None
    width_px: int | None = None
    height_px: int | None = None
    objects: int | None = None
    content_hash: bytes | None = None
    picture_hash: int | None = None

    @classmethod
    def of_sample(cls, number: int, sample: Sample) -> Entry:
        """Return the entry of a sample that was scanned; its label decides class and number of objects."""
        label: Any = sample.label
        is_objects = isinstance(label, list) and all(isinstance(each, dict) for each in label)
        return cls(
            number=number,
            split=sample.split,
            row=None,
            key=sample.key,
            parts=sample.parts,
            label=label,
            class_number=label if type(label) is int else None,
            group=sample.group,
            time=sample.time,
            source_bytes=sample.size_bytes,
            objects=len(label) if is_objects else None,  # pyright: ignore[reportArgumentType]
        )


@dataclass(frozen=True, kw_only=True)
class SampleFilter:
    """Which samples; every condition that is given must hold.

    Args:
        split: of this split.
        class_number: of this class, or with an object of it.
        text: with this in their key, whatever its case.
        problem: with a problem of this kind; empty text for any problem.
        group: of this group.
        min_width_px: at least this wide.
        max_width_px: at most this wide.
        min_height_px: at least this high.
        max_height_px: at most this high.
    """

    split: str | None = None
    class_number: int | None = None
    text: str | None = None
    problem: str | None = None
    group: str | None = None
    min_width_px: int | None = None
    max_width_px: int | None = None
    min_height_px: int | None = None
    max_height_px: int | None = None


def where(chosen: SampleFilter, *, object_classes: bool) -> tuple[str, list[Any]]:
    """Return the SQL condition for a filter, with its values."""
    conditions: list[tuple[str, Any]] = []
    if chosen.class_number is not None:
        by_object = "number IN (SELECT number FROM object_classes WHERE class = ?)"
        conditions.append((by_object if object_classes else "class = ?", chosen.class_number))
    if chosen.problem is not None:
        any_kind = "key IN (SELECT key FROM problems WHERE ? = '')"
        conditions.append((any_kind if not chosen.problem else _OF_KIND, chosen.problem))
    if chosen.text:
        key = "key" if chosen.text.isascii() else "folded(key)"
        conditions.append((f"{key} LIKE ? ESCAPE '\\'", f"%{_escaped(chosen.text.casefold())}%"))
    # SQLite uses the index of samples with a group only where the condition says that there is one.
    group = "sample_group = ? AND sample_group != ''" if chosen.group else "sample_group = ?"
    plain = {
        "split = ?": chosen.split,
        group: chosen.group,
        "width >= ?": chosen.min_width_px,
        "width <= ?": chosen.max_width_px,
        "height >= ?": chosen.min_height_px,
        "height <= ?": chosen.max_height_px,
    }
    conditions += [(condition, value) for condition, value in plain.items() if value is not None]
    text = " AND ".join(condition for condition, _ in conditions) or "1"
    return text, [value for _, value in conditions]


_OF_KIND = "key IN (SELECT key FROM problems WHERE kind = ?)"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def row_of_entry(entry: Entry) -> tuple[Any, ...]:
    """Return the values of ``COLUMNS`` for an entry."""
    parts, content = None, None
    if any(isinstance(part, bytes) for part in entry.parts):
        content = pack(list(entry.parts))
    elif entry.parts != (entry.key,):
        parts = json.dumps(entry.parts, ensure_ascii=False)
    return (
        entry.number, entry.split, entry.row, entry.key, parts, content,
        _label_to_text(entry.label),
        entry.class_number, entry.group, entry.time, entry.source_bytes, entry.stored_bytes, entry.width_px,
        entry.height_px, entry.objects, entry.content_hash, entry.picture_hash,
    )  # fmt: skip


def entry_of_row(row: tuple[Any, ...]) -> Entry:
    """Return the entry of a row with the values of ``COLUMNS``."""
    (number, split, place, key, parts, content, label, class_number, group, time, source_bytes, stored_bytes, width,
     height, objects, content_hash, picture_hash) = row  # fmt: skip
    if content is not None:
        parts_of = tuple(unpack(content))
    else:
        parts_of = (key,) if parts is None else tuple(json.loads(parts))
    return Entry(
        number=number, split=split, row=place, key=key, parts=parts_of,
        label=_label_of_text(label), class_number=class_number, group=group, time=time,
        source_bytes=source_bytes, stored_bytes=stored_bytes, width_px=width, height_px=height, objects=objects,
        content_hash=content_hash, picture_hash=picture_hash,
    )  # fmt: skip


def _label_to_text(label: Any) -> str | None:
    if type(label) is int:  # most are, and this is much faster
        return str(label)
    return None if label is None else json.dumps(label, ensure_ascii=False)


def _label_of_text(text: str | None) -> Any:
    if text is None:
        return None
    return int(text) if text.isdecimal() else json.loads(text)
