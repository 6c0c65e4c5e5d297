"""Content of COCO's JSON files: images and annotations by their ids, and the files that images are in."""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from ziggurat.datasets.formats.coco.files import stream_lists
from ziggurat.datasets.formats.shared.detection_import import whole_number
from ziggurat.datasets.formats.shared.file_finder import FoundFile
from ziggurat.datasets.formats.shared.image_finder import image_finder, split_of_file
from ziggurat.datasets.samples import Problem

__all__ = ["EXACT_BOX", "KEY_FIELD", "WHOLE_IMAGES", "CocoContent", "CocoImages", "flag", "identity_of"]

KEY_FIELD: Final = "ziggurat_key"
"""Field of our own exports: the key of an image that could not lie at its key."""
WHOLE_IMAGES: Final = "labels of whole images"
"""What annotations are that have a category and nothing else."""

_IN_MEMORY_BYTES: Final = 32 << 20  # annotations beyond this wait on disk

EXACT_BOX: Final = "ziggurat_box"
"""Field of our own exports: (left, top, right, bottom), where x + width does not give right in floating point."""


class CocoContent:
    """What one JSON file holds; texts are in a temporary file, in memory is where they begin."""

    def __init__(self, path: Path) -> None:
        self.categories: list[Any] = []
        self.forms: Counter[str] = Counter()
        self._texts: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by close()
        self._ids: dict[Any, int] = {}
        self._seen: dict[int, int] = {}
        self._images = (array("q"), array("q"))
        self._annotations = (array("q"), array("q"))
        self._order: tuple[np.ndarray, np.ndarray] | None = None
        self._unusable = {"images": 0, "annotations": 0}
        self._same_id: list[str] = []
        try:
            for name, text, value in stream_lists(path):
                self._keep(name, text, value)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._images[0])

    def image(self, place: int, *, alone: bool = False) -> tuple[Mapping[str, Any], list[Any]]:
        """Return an entry of ``images`` by its place in the file, and its annotations, unless it is read alone."""
        number, offset = self._images[0][place], self._images[1][place]
        if alone:
            return self._read(offset), []
        if self._order is None:
            numbers, offsets = (np.array(column, np.int64) for column in self._annotations)
            order = np.argsort(numbers, kind="stable")
            self._order = numbers[order], offsets[order]
        start, end = np.searchsorted(self._order[0], [number, number + 1])
        return self._read(offset), [self._read(int(each)) for each in self._order[1][start:end]]

    def problems(self, path: str) -> Iterator[Problem]:
        """Yield what belongs to no image, and what is no box."""
        for number, place in zip(*self._annotations, strict=True):
            if number not in self._seen:
                annotation = self._read(place)
                shown = f"annotation {annotation.get('id')!r:.60} is of image {annotation.get('image_id')!r:.60}"
                why = "the image that they name is not in `images`"
                reason = f"{shown}, which is not in the list."
                lost = int(not flag(annotation.get("iscrowd")))
                yield Problem(key=path, kind="no-picture", reason=reason, objects=lost, why=why)
        for name in self._same_id:
            reason = f"{path} gives it the id of another image: an annotation could mean either of the two."
            yield Problem(key=name, kind="bad-line", reason=reason, left_out=True, why="another image has their id")
        for name, count in self._unusable.items():
            if count:
                reason = f"{count} of its {name} have no id of their own."
                lost = count if name == "annotations" else 0
                yield Problem(key=path, kind="bad-line", reason=reason, objects=lost, why="they have no usable id")
        for form in (each for each in self.forms if each != "boxes"):
            lost = 0 if form == "captions" else self.forms[form]
            reason = f"{self.forms[form]} of its annotations are {form}, and no boxes."
            yield Problem(key=path, kind="no-box", reason=reason, objects=lost, why=f"they are {form}")

    def close(self) -> None:
        """Delete the temporary file."""
        self._texts.close()

    def _keep(self, name: str, text: str, value: Any) -> None:
        if name == "categories":
            self.categories.append(value)
        elif name == "images":
            self._keep_image(text, value)
        elif name == "annotations":
            form = _form(value)
            if form == "segments":
                for segment in value["segments_info"]:
                    if isinstance(segment, dict):
                        inner = {**segment, "image_id": value.get("image_id")}
                        self._keep(name, json.dumps(inner), inner)
                return
            self.forms[form] += 1
            if form == "boxes":
                self._keep_annotation(text, value)

    def _keep_image(self, text: str, value: Any) -> None:
        identity = identity_of(value.get("id")) if isinstance(value, dict) else None
        if identity is None:
            self._unusable["images"] += 1
            return
        number = self._ids.setdefault(identity, len(self._ids))
        if number in self._seen:
            before = self._read(self._images[1][self._seen[number]])
            if before.get("file_name") != value.get("file_name"):
                self._same_id.append(str(value.get("file_name"))[:200].encode("utf-8", "replace").decode())
            return
        self._seen[number] = len(self._images[0])
        self._add(self._images, number, text)

    def _keep_annotation(self, text: str, value: Any) -> None:
        identity = identity_of(value.get("image_id")) if isinstance(value, dict) else None
        if identity is None:
            self._unusable["annotations"] += 1
        else:
            self._add(self._annotations, self._ids.setdefault(identity, len(self._ids)), text)

    def _add(self, columns: tuple[array[int], array[int]], number: int, text: str) -> None:
        columns[0].append(number)
        columns[1].append(self._texts.seek(0, os.SEEK_END))
        self._texts.write(text.replace("\n", " ").replace("\r", " ").encode("utf-8", "replace") + b"\n")

    def _read(self, place: int) -> dict[str, Any]:
        self._texts.seek(place)
        return json.loads(self._texts.readline())


class CocoImages:
    """The files that the entries of all JSON files mean; their paths are held in memory.

    Args:
        root: of the source.
        files: the JSON files below it.
        contents: of each.
        folder: where the images are, below the root; empty to look in likely folders.

    Attributes:
        found: the file of each entry of each JSON file; None where there is none.
        others: number of a JSON file and place of an entry → later entries that mean the same file.
    """

    def __init__(self, root: Path, files: Sequence[str], contents: Sequence[CocoContent], folder: str) -> None:
        self.contents = contents
        self.finders = [image_finder(root, path, split_of_file(path), folder) for path in files]
        self.found: list[list[FoundFile | None]] = []
        entries: dict[str, list[tuple[int, int]]] = {}
        for number, (content, finder) in enumerate(zip(contents, self.finders, strict=True)):
            self.found.append([])
            for place in range(len(content)):
                image, _ = content.image(place, alone=True)
                file = finder.find(image.get("file_name"))
                self.found[-1].append(file)
                if file is not None:
                    key = image[KEY_FIELD] if isinstance(image.get(KEY_FIELD), str) else file.path
                    entries.setdefault(key, []).append((number, place))
        self.others: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for group in entries.values():
            good = group if len(group) == 1 else self._same_image(group)
            if good:
                self.others[good[0]] = good[1:]

    def missing(self, number: int, name: Any) -> str:
        """Return why an entry has no file."""
        several = self.finders[number].several(name)
        return f"it could be any of {several}" if several else "it is not there"

    def _same_image(self, group: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the entries that surely mean one file; several ends of paths that lead to it mean several files."""
        by_end = [each for each in group if self._rule(each) == "ending"]
        exact = [each for each in group if each not in by_end]
        names = {self.contents[number].image(place, alone=True)[0].get("file_name") for number, place in by_end}
        if len(names) > 1 or (exact and by_end):
            for number, place in by_end:
                self.found[number][place] = None
            return exact
        return group

    def _rule(self, entry: tuple[int, int]) -> str:
        file = self.found[entry[0]][entry[1]]
        return "" if file is None else file.rule


def identity_of(value: Any) -> int | str | None:
    """Return an id as it can be compared: 1, 1.0 and ``"1"`` are the same; None where it is none."""
    number = whole_number(value)
    return number if number is not None else value if isinstance(value, str) else None


def _form(value: Any) -> str:
    """Return what an annotation is, as a message calls it; anything unusual is taken for a box."""
    if not isinstance(value, dict):
        return "boxes"
    if isinstance(value.get("segments_info"), list):
        return "segments"
    if any(value.get(name) for name in ("bbox", "segmentation", EXACT_BOX)):
        return "boxes"
    if "caption" in value:
        return "captions"
    if "keypoints" in value:
        return "key points without boxes"
    return WHOLE_IMAGES if "category_id" in value and "bbox" not in value else "boxes"


def flag(value: Any) -> bool:
    """Return a truth value, also of a text such as ``"0"``."""
    return value.strip().lower() not in ("", "0", "false", "0.0") if isinstance(value, str) else bool(value)
