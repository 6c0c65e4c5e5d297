"""Objects in TFRecord files: features of TensorFlow's object detection become boxes in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ziggurat.datasets.formats.shared.detection_import import BoxRule, lost_objects, plain_number, whole_number
from ziggurat.datasets.formats.shared.frames import FrameRule
from ziggurat.datasets.formats.tfrecord.records import BOX_FEATURES, ClassNumbers, Feature
from ziggurat.datasets.image_size import stored_size
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject, objects_to_json

__all__ = ["DetectionRecords"]


class DetectionRecords:
    """Reads the objects of records.

    Args:
        classes: of the source.
        options: of the importer.
    """

    def __init__(self, classes: ClassNumbers, options: Mapping[str, Any]) -> None:
        self._classes = classes
        self._rule = BoxRule(options["zero_size_boxes"])
        # Boxes are shares of width and height, so that they follow an image of another size.
        self._frames = FrameRule({**options, "scale_boxes": True})

    def label(
        self, key: str, features: Mapping[str, Feature], split: str
    ) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return the label of a record, and what is wrong with it.

        Args:
            key: of the sample.
            features: of its record.
            split: of the sample.

        Raises:
            DataError: where the image has no size.
        """
        columns = [[plain_number(value) for value in _texts(features.get(name, []))] for name in BOX_FEATURES]
        numbers = [*_texts(features.get("image/object/class/label", []))]
        texts = [str(text) for text in _texts(features.get("image/object/class/text", []))]
        count = len(columns[0])
        lengths = [*map(len, columns), len(numbers or texts)]
        if set(lengths) != {count}:
            reason = f"Each object has four sides and a class, and its features have lengths {lengths}."
            why = "their record has not as many sides or classes as objects"
            return [], list(lost_objects(key, "bad-box", reason, [""] * max(lengths), why=why, split=split))
        return self._objects(key, features, columns, [*zip(numbers or [None] * count, texts or [""] * count)])

    def _objects(
        self,
        key: str,
        features: Mapping[str, Feature],
        columns: Sequence[Sequence[float | None]],
        classes: Sequence[tuple[Any, str]],
    ) -> tuple[list[dict[str, Any]], list[Problem]]:
        content = features["image/encoded"][0] if features.get("image/encoded") else b""
        said = tuple(next(iter(features.get(f"image/{side}", [])), None) for side in ("width", "height"))
        is_said = all(isinstance(each, int | float) and each > 0 for each in said)
        frame = self._frames.of(
            key,
            lambda: stored_size(content if isinstance(content, bytes) else b""),
            (float(said[0] or 0), float(said[1] or 0)) if is_said else None,
            labelled=bool(classes),
        )
        if classes and frame.size is None:
            raise DataError("An image has no header that says how large it is.")
        width, height = frame.size or (1, 1)
        objects: list[ImageObject] = []
        problems = list(frame.problems)
        marks = zip(
            _flags(features, "difficult", len(classes)), _flags(features, "is_crowd", len(classes)), strict=True
        )
        for at, ((number, text), (difficult, crowd)) in enumerate(zip(classes, marks, strict=True)):
            where = f"object {at + 1}"
            try:
                class_number = self._classes.number(whole_number(number), text)
            except DataError as error:
                reason = f"{where}: {error}"
                problems.append(Problem(key=key, kind="unknown-class", reason=reason, objects=int(not crowd)))
                continue
            sides = [column[at] for column in columns]
            box = [
                float("nan") if side is None else side * by for side, by in zip(sides, (width, height) * 2, strict=True)
            ]
            name = self._classes.name(class_number)
            ordered, listed = self._rule.check(key, box, where, frame.size, class_name=name, counts=not crowd)
            problems += listed
            if ordered is not None:
                each = ImageObject(class_number=class_number, box=ordered, difficult=difficult, crowd=crowd)
                objects.append(frame.moved(each))
        return objects_to_json(objects), problems


def _texts(values: Feature) -> Iterator[Any]:
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)


def _flags(features: Mapping[str, Feature], name: str, count: int) -> list[bool]:
    values = [bool(value) for value in features.get(f"image/object/{name}", [])]
    return values if len(values) == count else [False] * count
