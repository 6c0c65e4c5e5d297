"""Meaning of the members of a WebDataset sample: the parts of the record, and the label."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.webdataset.shards import Member, ShardSample
from ziggurat.errors import DataError
from ziggurat.records.schema import KINDS

__all__ = ["Meaning", "kind_of", "label_of", "meaning_of", "own_json", "parts_of", "unread_labels"]

_IMAGES: Final = frozenset(suffix[1:] for suffix in IMAGE_SUFFIXES)
_MASKS: Final = ("mask", "seg", "segmentation", "annotation")
_TEXTS: Final = ("txt", "text")
_LABEL_KEYS: Final = ("label", "cls", "class")

Meaning = dict[str, str]
"""Part of a record → ending of the member that holds it."""


def meaning_of(sample: ShardSample) -> Meaning:
    """Return which members of a sample are parts of a record."""
    found: Meaning = {}
    for ending in sample.members:
        before, _, last = ending.rpartition(".")
        if last in _IMAGES:
            found.setdefault("mask" if before in _MASKS else before or "image", ending)
        elif ending in _TEXTS:
            found["text"] = ending
    return found


def kind_of(sample: ShardSample) -> str | None:
    """Return the kind of dataset that a sample belongs to; None for none that is known."""
    parts = meaning_of(sample)
    if "image" not in parts:
        return "text-classification" if "text" in parts and "cls" in sample.members else None
    own = own_json(sample)
    if own.get("kind") in KINDS:
        return own["kind"]
    for part, kind in (("mask", "segmentation"), ("target", "image-to-image"), ("image2", "image-pairs")):
        if part in parts:
            return kind
    label = _label_in(own)
    if isinstance(label, list):
        return "detection" if any(isinstance(each, dict) for each in label) else "image-regression"
    return "image-classification" if "cls" in sample.members or label is not None else "image-to-image"


def unread_labels(kind: str, sample: ShardSample) -> list[str]:
    """Return the members of a sample that nothing is read of, where it would get no label for that reason."""
    if kind != "image-to-image" or "target" in meaning_of(sample):
        return []
    return [ending for ending in sample.members if ending != meaning_of(sample)["image"]]


def parts_of(kind: str, sample: ShardSample) -> list[Member] | None:
    """Return the parts of a record, in the order of its kind; None where the first is missing.

    Of ``image-to-image`` the second part may be missing.
    """
    parts = meaning_of(sample)
    found = [sample.members[parts[name]] for name in KINDS[kind] if name in parts]
    return found if len(found) == len(KINDS[kind]) or (kind == "image-to-image" and "image" in parts) else None


def label_of(kind: str, sample: ShardSample, names: Mapping[str, int]) -> Any:
    """Return the label of a sample, in the form of its kind.

    Args:
        kind: of the dataset.
        sample: with its members.
        names: name of a class → its number, where the source has names.

    Raises:
        DataError: where it has none, or one that is not valid.
    """
    if kind in ("segmentation", "image-to-image"):
        return None
    label = _label_in(own_json(sample))
    if label is None and "cls" in sample.members:
        label = (sample.members["cls"].content or b"").decode("utf-8", "replace").strip()
    if kind in ("image-classification", "text-classification", "image-pairs"):
        return _class_number(label, names)
    is_right = _is_object if kind == "detection" else _is_number
    if not isinstance(label, list) or not all(is_right(each) for each in label):
        raise DataError(f"The label of a sample for {kind} is a list.", received=repr(label)[:200])
    return label


def own_json(sample: ShardSample) -> dict[str, Any]:
    """Return the member ``json`` of a sample; empty where it has none.

    Raises:
        DataError: where it is no JSON object.
    """
    member = sample.members.get("json")
    if member is None:
        return {}
    try:
        content = json.loads(member.content or b"")
    except (ValueError, RecursionError) as error:
        raise DataError("A member `json` of a sample is a JSON object.", received=str(error)) from None
    return content if isinstance(content, dict) else {"label": content}


def _label_in(content: Mapping[str, Any]) -> Any:
    return next((content[key] for key in _LABEL_KEYS if content.get(key) is not None), None)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_object(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("class")) is not int or not isinstance(value.get("box"), list):
        return False
    return len(value["box"]) == 4 and all(_is_number(each) for each in value["box"])


def _class_number(label: Any, names: Mapping[str, int]) -> int:
    if isinstance(label, str):
        if label in names:
            return names[label]
        if label.isdecimal():
            label = int(label)
    if type(label) is not int or label < 0:
        raise DataError(
            "The class of a sample is a number from 0, or a name that is listed in `classes.txt`.",
            received=repr(label)[:200],
        )
    return label
