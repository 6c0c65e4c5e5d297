"""Names of the classes of masks by value, as the files of several tools have them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.shared.text_files import lines_of, names_in
from ziggurat.datasets.formats.tfrecord.records import label_map
from ziggurat.errors import DataError

__all__ = ["KNOWN_NAMES", "NAME_FILES", "names_by_value"]

NAME_FILES: Final = (
    "classes.txt", "class_names.txt", "labels.txt", "classes.json", "labels.json", "label_map.pbtxt", "labelmap.pbtxt",
)  # fmt: skip
"""Files that have the names of classes, in the order in which they are looked for."""

_LABEL_IDS: Final = (
    "unlabeled", "ego vehicle", "rectification border", "out of roi", "static", "dynamic", "ground", "road", "sidewalk",
    "parking", "rail track", "building", "wall", "fence", "guard rail", "bridge", "tunnel", "pole", "polegroup",
    "traffic light", "traffic sign", "vegetation", "terrain", "sky", "person", "rider", "car", "truck", "bus",
    "caravan", "trailer", "train", "motorcycle", "bicycle",
)  # fmt: skip
_TRAIN_IDS: Final = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)

KNOWN_NAMES: Final = {"_labelIds": _LABEL_IDS, "_labelTrainIds": tuple(_LABEL_IDS[number] for number in _TRAIN_IDS)}
"""What names of masks end in → names of the classes: those of Cityscapes."""

_NUMBERED: Final = re.compile(r"(\d{1,5})(?:\s*[:=,;]\s*|\s+)(\S.*)")
_VALUES: Final = ("value", "id", "trainId", "index")


def names_by_value(path: Path) -> dict[int, str]:
    """Return value → name of each class of a file.

    It is a list of names, one a line (class i is line i); lines ``7: road``; a label map (``.pbtxt``); or JSON:
    ``["sky", "road"]``, ``{"7": "road"}``, ``{"road": 7}``, or ``[{"id": 7, "name": "road"}]``.

    Raises:
        DataError: where it cannot be read, or a value or name is there twice.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _checked(_of_json(path), path)
    if suffix == ".pbtxt":
        return _checked(list(label_map("\n".join(line.text for line in lines_of(path))).items()), path)
    lines = [line.text.strip() for line in lines_of(path)]
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    if lines and all(numbered):
        return _checked([(int(found[1]), found[2].strip()) for found in numbered if found], path)
    return dict(enumerate(names_in(path)))


def _of_json(path: Path) -> list[tuple[int, str]]:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
        if isinstance(content, Mapping) and isinstance(content.get("labels", content.get("classes")), list | dict):
            content = content.get("labels", content.get("classes"))
        if isinstance(content, Mapping):
            return [_pair(*pair) for pair in content.items()]
        return [_of_item(number, each) for number, each in enumerate(content)]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            "A JSON file of classes is a list of names, or an object of values and names.",
            received=f"`{path}`: {error}",
            advice='Write it as in: {"0": "sky", "7": "road"}.',
        ) from None


def _pair(key: str, value: Any) -> tuple[int, str]:
    return (value, key) if type(value) is int else (int(key), str(value["name"] if isinstance(value, dict) else value))


def _of_item(number: int, item: Any) -> tuple[int, str]:
    if not isinstance(item, Mapping):
        return number, str(item)
    return next((int(item[name]) for name in _VALUES if name in item), number), str(item["name"])


def _checked(pairs: list[tuple[int, str]], path: Path) -> dict[int, str]:
    found = dict(pairs)
    if len(found) < len(pairs) or len(set(found.values())) < len(found):
        raise DataError(
            "Each class has one value and a name of its own.",
            received=f"`{path}`, where one comes twice",
            advice="Correct the file.",
        )
    return {value: found[value] for value in sorted(found) if 0 <= value < 1 << 16}
