"""Description of a YOLO dataset in its YAML file: class names, and the images of each split."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from ziggurat.datasets.formats.detection.importing import clean_json
from ziggurat.datasets.formats.shared.detection_files import read_class_names, split_of

__all__ = ["YoloDescription", "read_description"]

_LARGEST_BYTES: Final = 1 << 20
_MOST_CLASSES: Final = 100_000
_NAME_FILES: Final = ("classes.txt", "obj.names", "names.txt", "_darknet.labels", "labels.txt")
_SPLIT_KEYS: Final = ("train", "val", "valid", "validation", "test")


@dataclass(frozen=True, kw_only=True)
class YoloDescription:
    """What was found.

    Args:
        file: name of the file that says it; empty where there is none.
        names: by class number.
        base: folder that ``splits`` are relative to, as it is written; empty for that of the file.
        splits: split → folders or lists of images, as they are written.
    """

    file: str = ""
    names: tuple[str, ...] = ()
    base: str = ""
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_description(source: Path, labels: str = "labels") -> YoloDescription:
    """Return what the YAML file of a folder says, or its list of names; nothing where it has neither.

    Args:
        source: the folder.
        labels: name of a folder in it, which may hold the list too.
    """
    for path in sorted(_files(source)):
        if path.suffix.lower() in (".yaml", ".yml"):
            found = _described(path)
            if found is not None:
                return found
    for folder in (source, source / labels, source / "train"):
        for name in _NAME_FILES:
            names = read_class_names(folder / name)
            if names:
                return YoloDescription(file=name, names=tuple(names))
    return YoloDescription()


def _described(path: Path) -> YoloDescription | None:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            return None
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    names = _names(content.get("names"), content.get("nc"))
    splits: dict[str, tuple[str, ...]] = {}
    for key in _SPLIT_KEYS:
        value = content.get(key)
        entries = value if isinstance(value, list) else [value]
        texts = tuple(each for each in entries if isinstance(each, str) and each)
        if texts:
            splits[split_of(key)] = splits.get(split_of(key), ()) + texts
    if not names or not (splits or "nc" in content or path.stem.lower() == "data"):
        return None
    base = content.get("path")
    return YoloDescription(file=path.name, names=names, base=base if isinstance(base, str) else "", splits=splits)


def _names(value: Any, count: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(_name(number, name) for number, name in enumerate(value))
    if isinstance(value, dict) and value and all(type(number) is int and number >= 0 for number in value):
        size = max(value) + 1
        if size > _MOST_CLASSES:
            return ()
        return tuple(_name(number, value.get(number)) for number in range(size))
    if type(count) is int and 0 < count <= _MOST_CLASSES:
        return tuple(_name(number, None) for number in range(count))
    return ()


def _name(number: int, value: Any) -> str:
    """Return the name of a class; lists are no names, and with YAML's references they may be larger than they look."""
    return str(clean_json(value)) if isinstance(value, str | int | float) else f"class {number}"


def _files(source: Path) -> list[Path]:
    found = []
    try:
        with os.scandir(source) as listing:
            for entry in listing:
                if entry.name.lower().endswith((".yaml", ".yml")):
                    found.append(Path(entry.path))
                    if len(found) == 50:
                        break
    except OSError:
        return []
    return found
