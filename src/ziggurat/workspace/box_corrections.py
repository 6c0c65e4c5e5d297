"""Corrections of boxes, image by image: saved as they are made, undone, and made a dataset version of."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions import CorrectObjects, make_version
from ziggurat.datasets.versions.boxes import (
    BoxChanges,
    CorrectedBox,
    box_changes,
    boxes_of,
    check_boxes,
    corrected_label,
)
from ziggurat.datasets.versions.pending_boxes import BoxState, PendingBoxes
from ziggurat.errors import DataError, MissingEntryError, OutdatedError, UsageError
from ziggurat.records.manifest import Manifest
from ziggurat.workspace.datasets import Datasets

__all__ = ["BoxCorrections", "ImageBoxes", "PendingImage", "corrected_version"]


@dataclass(frozen=True, kw_only=True)
class ImageBoxes:
    """The boxes of one image as they stand.

    Args:
        split: that it is in.
        row: its number in the split.
        key: its name in the source.
        size: width and height of the stored image in px; None if unknown.
        class_names: of the dataset, by number.
        label: its objects in the dataset.
        boxes: as they stand.
        state: number, user and time of the newest correction.
        changes: what differs from the dataset.
    """

    split: str
    row: int
    key: str
    size: tuple[int, int] | None
    class_names: tuple[str, ...]
    label: Sequence[Mapping[str, Any]]
    boxes: Sequence[CorrectedBox]
    state: BoxState
    changes: BoxChanges

    def as_json(self) -> dict[str, Any]:
        """Return JSON values.

        Returns:
            ``split``, ``row``, ``key``, ``size`` (width and height in px, or None), ``classes`` (names by number),
            ``version`` (number of the state), ``user``, ``time``, ``applied``, ``can_undo``, ``changes`` and
            ``objects``: ``source``, ``class`` and ``box`` (left, top, right, bottom in px of the stored image) of each,
            and ``crowd``, ``difficult``, ``polygons`` and ``mask`` where they hold, each ``true``.
        """
        size, state = self.size, self.state
        return {
            "split": self.split,
            "row": self.row,
            "key": self.key,
            "size": None if size is None else list(size),
            "classes": list(self.class_names),
            "version": state.version,
            "user": state.user,
            "time": state.time or None,
            "applied": state.applied,
            "can_undo": state.can_undo,
            "changes": str(self.changes),
            "objects": [self._object(each) for each in self.boxes],
        }

    def _object(self, each: CorrectedBox) -> dict[str, Any]:
        before = {} if each.source is None else self.label[each.source]
        notes = {name: True for name in ("crowd", "difficult", "polygons", "mask") if before.get(name)}
        return {"source": each.source, "class": each.class_number, "box": list(each.box), **notes}


@dataclass(frozen=True, kw_only=True)
class PendingImage:
    """An image whose boxes are not those of the dataset any more.

    Args:
        split: that it is in.
        row: its number in the split.
        key: its name in the source.
        version: number of the state.
        user: who made it.
        time: when, in seconds since 1970.
        changes: what differs, such as ``1 added``.
    """

    split: str
    row: int
    key: str
    version: int
    user: str
    time: float
    changes: str


class BoxCorrections:
    """Corrections of boxes in datasets of kind detection.

    A dataset never changes: corrections stand beside it until a version is made of them.

    Args:
        datasets: that are corrected, by name.
        clock: seconds since 1970.
    """

    def __init__(self, datasets: Datasets, clock: Callable[[], float] = time.time) -> None:
        self._datasets = datasets
        self._clock = clock

    def get(self, name: str, sample: str) -> ImageBoxes:
        """Return the boxes of an image as they stand.

        Args:
            name: of the dataset.
            sample: ``SPLIT/ROW``, or the key.

        Raises:
            DataError: where the dataset is of another kind.
            MissingEntryError: where there is no such sample.
        """
        with self._opened(name, sample) as (dataset, entry):
            return _shown(dataset, entry, self._pending(name).state(entry.split, entry.row or 0))

    def save(
        self, name: str, sample: str, objects: Sequence[Mapping[str, Any]], *, version: int, user: str = ""
    ) -> ImageBoxes:
        """Replace the boxes of an image.

        Args:
            name: of the dataset.
            sample: ``SPLIT/ROW``, or the key.
            objects: all of them: ``class`` (number or name), ``box`` (left, top, right, bottom in px of the stored
                image), and ``source``, the place that the object has in the dataset, from 0; without it, it is new. All
                else that the dataset knows of an object with a source stays, see
                ``ziggurat.datasets.versions.boxes.corrected_label``.
            version: number of the state that they were made on.
            user: who made them.

        Raises:
            DataError: where a box is outside of the image or has no area, or the dataset is of another kind.
            MissingEntryError: where there is no such sample.
            OutdatedError: where somebody saved newer boxes; ``details["current"]`` has them, as ``as_json`` gives them.
        """
        with self._opened(name, sample) as (dataset, entry):
            boxes = [_box(place, each, dataset.schema.class_names) for place, each in enumerate(objects)]
            check_boxes(boxes, entry.label, dataset.schema.class_names, dataset.stored_size(entry))
            is_changed = bool(box_changes(boxes, entry.label))
            return self._set(name, dataset, entry, tuple(boxes) if is_changed else None, version, user)

    def discard(self, name: str, sample: str, *, version: int, user: str = "") -> ImageBoxes:
        """Take the boxes of the dataset again; Undo brings the corrections back. Errors are those of ``save``."""
        with self._opened(name, sample) as (dataset, entry):
            return self._set(name, dataset, entry, None, version, user)

    def undo(self, name: str, sample: str, *, version: int, user: str = "") -> ImageBoxes:
        """Bring the boxes back that an image had before the newest change.

        Raises:
            UsageError: where there was no change.
            OutdatedError: as for ``save``.
        """
        with self._opened(name, sample) as (dataset, entry), _offering(dataset, entry, self._pending(name)):
            wanted = self._state(entry, None, user)
            return _shown(dataset, entry, self._pending(name).undo(wanted, on=version))

    def pending(self, name: str, samples: Sequence[str] = ()) -> list[PendingImage]:
        """Return the images whose boxes are not those of the dataset any more, by split and row.

        Args:
            name: of the dataset.
            samples: only these; empty for all.
        """
        with self._datasets.opened(name) as dataset:
            _check_kind(dataset)
            return [_pending_image(dataset, state) for state in self._chosen(name, dataset, samples)]

    def places(self, name: str) -> list[str]:
        """Return the images that are corrected and not a version yet, as ``SPLIT/ROW``."""
        return [f"{state.split}/{state.row}" for state in self._pending(name).changed()]

    def states(self, name: str, samples: Sequence[str] = ()) -> list[BoxState]:
        """Return what a version is made of; arguments are those of ``pending``.

        Raises:
            UsageError: where nothing is corrected.
        """
        with self._datasets.opened(name) as dataset:
            _check_kind(dataset)
            found = self._chosen(name, dataset, samples)
        if not found:
            raise UsageError(
                "A version of corrected boxes needs images with corrected boxes.",
                received="none",
                advice="Correct the boxes of an image first.",
            )
        return found

    def apply(self, name: str, target: Path, *, samples: Sequence[str] = (), new_name: str = "") -> Manifest:
        """Make a version of the corrections; from then on, the images of this dataset are as in the dataset again.

        Args:
            name: of the dataset.
            target: folder to be made.
            samples: only these; empty for all.
            new_name: of the version.

        Raises:
            UsageError: where nothing is corrected.
            StorageError: where something stands at ``target``, or the disk is full or refuses.
        """
        states = self.states(name, samples)
        made = corrected_version(self._datasets.folder(name), states, target, new_name)
        self.note_applied(name, states, made.name)
        return made

    def note_applied(self, name: str, states: Sequence[BoxState], version_name: str) -> None:
        """Note that a version was made of corrections; those that somebody changed meanwhile stay."""
        self._pending(name).note_applied(states, version_name, self._clock())

    # ---- within

    def _pending(self, name: str) -> PendingBoxes:
        return PendingBoxes(self._datasets.folder(name))

    def _state(self, entry: Entry, boxes: tuple[CorrectedBox, ...] | None, user: str) -> BoxState:
        return BoxState(split=entry.split, row=entry.row or 0, boxes=boxes, user=user, time=self._clock())

    def _set(
        self,
        name: str,
        dataset: Dataset,
        entry: Entry,
        boxes: tuple[CorrectedBox, ...] | None,
        version: int,
        user: str,
    ) -> ImageBoxes:
        pending = self._pending(name)
        with _offering(dataset, entry, pending):
            return _shown(dataset, entry, pending.save(self._state(entry, boxes, user), on=version))

    @contextmanager
    def _opened(self, name: str, sample: str) -> Iterator[tuple[Dataset, Entry]]:
        with self._datasets.opened(name) as dataset:
            _check_kind(dataset)
            yield dataset, _entry(dataset, sample)

    def _chosen(self, name: str, dataset: Dataset, samples: Sequence[str]) -> list[BoxState]:
        found = self._pending(name).changed()
        if not samples:
            return found
        wanted = {(entry.split, entry.row) for entry in (_entry(dataset, each) for each in samples)}
        return [state for state in found if (state.split, state.row) in wanted]


def corrected_version(folder: Path, states: Sequence[BoxState], target: Path, name: str = "") -> Manifest:
    """Make a version of corrected boxes.

    Args:
        folder: of the dataset.
        states: of its images.
        target: folder to be made.
        name: of the new version.
    """
    with Dataset(folder) as dataset:
        labels: dict[str, dict[int, list[dict[str, Any]]]] = {}
        changes: dict[str, BoxChanges] = {}
        for state in states:
            label, boxes = dataset.entry(state.split, state.row).label, state.boxes or ()
            labels.setdefault(state.split, {})[state.row] = corrected_label(boxes, label)
            changes[state.split] = changes.get(state.split, BoxChanges()) + box_changes(boxes, label)
        made = [CorrectObjects(split, found, str(changes[split])) for split, found in labels.items()]
        return make_version(dataset, made, target, name=name)


def _check_kind(dataset: Dataset) -> None:
    if dataset.kind != "detection":
        raise DataError(
            f"This is a dataset of kind {dataset.kind}; boxes are corrected in those of kind detection.",
            advice="Labels of other kinds are corrected in the explorer.",
        )


def _entry(dataset: Dataset, sample: str) -> Entry:
    split, _, row = sample.partition("/")
    if split in dataset.splits and row.isascii() and row.isdigit() and len(row) < 10:
        return dataset.entry(split, int(row))
    entry = dataset.catalogue.find(sample)
    if entry is None:
        raise MissingEntryError(
            "A sample is named as SPLIT/ROW or by its key.",
            received=sample[:200],
            advice="The explorer shows the samples with their names.",
        )
    return entry


def _box(place: int, content: Mapping[str, Any], class_names: Sequence[str]) -> CorrectedBox:
    chosen, source, sides = content.get("class"), content.get("source"), content.get("box")
    if isinstance(chosen, str) and chosen in class_names:
        chosen = class_names.index(chosen)
    is_whole = type(chosen) is int and (source is None or type(source) is int)
    is_box = isinstance(sides, Sequence) and len(sides) == 4 and all(type(each) in (int, float) for each in sides)
    if not is_whole or not is_box or not isinstance(sides, Sequence):
        raise DataError(
            f"Object {place} is not a `class` (its number or name), a `box` (left, top, right, bottom) "
            f"and perhaps a `source`: {json.dumps(dict(content), default=str)[:200]}.",
            advice="Send the objects in the form in which they are read.",
            details={"box": place},
        )
    left, top, right, bottom = sides
    return CorrectedBox(source, int(chosen or 0), (left, top, right, bottom))


def _shown(dataset: Dataset, entry: Entry, state: BoxState) -> ImageBoxes:
    boxes = boxes_of(entry.label) if state.boxes is None else state.boxes
    return ImageBoxes(
        split=entry.split,
        row=entry.row or 0,
        key=entry.key,
        size=dataset.stored_size(entry),
        class_names=dataset.schema.class_names,
        label=entry.label,
        boxes=boxes,
        state=state,
        changes=box_changes(boxes, entry.label),
    )


def _pending_image(dataset: Dataset, state: BoxState) -> PendingImage:
    entry = dataset.entry(state.split, state.row)
    return PendingImage(
        split=state.split,
        row=state.row,
        key=entry.key,
        version=state.version,
        user=state.user,
        time=state.time,
        changes=str(box_changes(state.boxes or (), entry.label)),
    )


@contextmanager
def _offering(dataset: Dataset, entry: Entry, pending: PendingBoxes) -> Iterator[None]:
    """Let a refusal of an outdated change carry the boxes as they are now."""
    try:
        yield
    except OutdatedError as error:
        error.details["current"] = _shown(dataset, entry, pending.state(entry.split, entry.row or 0)).as_json()
        raise
