"""Objects in WebDataset shards: their classes and boxes, checked and in the frame of the image as it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.detection_import import BoxRule, plain_number, whole_number
from ziggurat.datasets.formats.shared.frames import Frame, FrameRule
from ziggurat.datasets.formats.shared.numbered_classes import MOST_CLASSES
from ziggurat.datasets.formats.webdataset.shards import Member, ShardSample, label_of, own_json, read_member
from ziggurat.datasets.image_size import StoredSize, stored_size
from ziggurat.datasets.samples import Problem
from ziggurat.records.objects import ImageObject
from ziggurat.records.schema import KINDS

__all__ = ["ShardObjects"]

_HEAD_BYTES: Final = 1 << 16  # of an image, for its size


class ShardObjects:
    """Reads the objects of samples: a list in the member ``json``, each with a class and a box in pixels.

    Args:
        root: folder of the shards.
        names: of the classes; a class may be its name or its number.
        options: of the importer.
    """

    def __init__(self, root: Path, names: Sequence[str], options: Mapping[str, Any]) -> None:
        self._root = root
        self._names = names
        self._rule = BoxRule(options["zero_size_boxes"])
        self._frames = FrameRule(options)

    def label(
        self, key: str, path: str, sample: ShardSample, image: Member
    ) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return the label of a sample, and what is wrong with it.

        Raises:
            DataError: where it has no list of objects.
        """
        content = own_json(sample)
        written = label_of("detection", sample, {})
        width, height = plain_number(content.get("width")), plain_number(content.get("height"))
        said = (width, height) if width and height and min(width, height) > 0 else None

        def size() -> StoredSize:
            head = read_member(self._root / path, image.offset, min(image.size_bytes, _HEAD_BYTES))
            try:
                return stored_size(head)
            except ValueError:
                return stored_size(read_member(self._root / path, image.offset, image.size_bytes))

        # Our own exports name the kind, and their objects are those of the image as it is shown.
        is_own = content.get("kind") in KINDS
        frame = self._frames.of(key, size, said, labelled=bool(written) and not is_own)
        objects, problems = [], list(frame.problems)
        for number, each in enumerate(written, 1):
            found, listed = self._object(key, each, f"object {number}", frame)
            problems += listed
            objects += [found] if found else []
        return objects, problems

    def _object(self, key: str, each: Any, where: str, frame: Frame) -> tuple[dict[str, Any] | None, list[Problem]]:
        written = each if isinstance(each, dict) else {}
        number = self._number(written.get("class"))
        name = self._names[number] if number is not None and 0 <= number < len(self._names) else ""
        lost = int(not written.get("crowd") and number != -1)
        if number is None:
            reason = f"{where}: {written.get('class')!r:.60} is no class."
            return None, [Problem(key=key, kind="unknown-class", reason=reason, objects=lost)]
        sides = written.get("box")
        numbers = [plain_number(side) for side in sides] if isinstance(sides, list) else []
        if len(numbers) != 4 or None in numbers:
            reason = f"{where} has no box of four numbers."
            return None, [Problem(key=key, kind="bad-box", reason=reason, objects=lost, class_name=name)]
        box = [side for side in numbers if side is not None]
        ordered, problems = self._rule.check(key, box, where, frame.size, class_name=name, counts=bool(lost))
        if ordered is None:
            return None, problems
        moved = {**written, "class": number, "box": list(ordered)}
        return (frame.moved(ImageObject.from_json(moved)).as_json() if frame.moves else moved), problems

    def _number(self, value: Any) -> int | None:
        """Return the number of a class that is written as its number or its name; -1 for none; None for others."""
        if isinstance(value, str) and value in self._names:
            return self._names.index(value)
        number = whole_number(value)
        return None if number is None or not -1 <= number <= MOST_CLASSES else number
