"""Reader for one Pascal VOC XML file: the image size, and the objects with all their fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ziggurat.datasets.formats.detection.importing import clean_json
from ziggurat.errors import DataError

__all__ = ["VocAnnotation", "VocObject", "read_annotation"]

_LARGEST_BYTES: Final = 16 << 20
_CORNERS: Final = ("xmin", "ymin", "xmax", "ymax")
_OWN_FIELDS: Final = frozenset(("name", "bndbox", "difficult"))
_DEEPEST: Final = 8


@dataclass(frozen=True)
class VocObject:
    """An object as it is written.

    Args:
        name: of its class.
        corners: xmin, ymin, xmax, ymax; None where it has no box of four numbers.
        difficult: whether it does not count in an evaluation.
        details: its other fields, such as ``pose``, ``truncated``, ``occluded`` and ``part``.
    """

    name: str
    corners: tuple[float, float, float, float] | None
    difficult: bool
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VocAnnotation:
    """What an XML file says.

    Args:
        size: (width, height) of the image in pixels; None where it is not said.
        objects: in the order of the file.
    """

    size: tuple[float, float] | None
    objects: list[VocObject]


def read_annotation(path: Path) -> VocAnnotation:
    """Return what an XML file says.

    Raises:
        DataError: where it cannot be read, is no annotation, or has entities, which could grow without end.
    """
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise _unreadable(path, f"it has more than {_LARGEST_BYTES} bytes")
        tree = fromstring(path.read_bytes(), forbid_external=True)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except DefusedXmlException as error:
        raise _unreadable(path, f"it has entities or external parts ({type(error).__name__})") from None
    except (ParseError, ValueError, LookupError) as error:  # the last two: of an unknown encoding
        raise _unreadable(path, str(error)) from None
    if tree.tag != "annotation":
        raise _unreadable(path, f"its outermost element is <{tree.tag[:40]}>, not <annotation>")
    size = _numbers(tree.find("size"), ("width", "height"))
    known = size is not None and min(size) > 0
    return VocAnnotation(
        (size[0], size[1]) if size and known else None, [_object(each) for each in tree.findall("object")]
    )


def _object(element: Element) -> VocObject:
    corners = _numbers(element.find("bndbox"), _CORNERS)
    details: dict[str, Any] = {}
    for child in element:
        if child.tag not in _OWN_FIELDS:
            _add(details, child, 0)
    return VocObject(
        name=clean_json((element.findtext("name") or "").strip()),
        corners=(corners[0], corners[1], corners[2], corners[3]) if corners else None,
        difficult=(element.findtext("difficult") or "").strip().lower() in ("1", "true"),
        details=details,
    )


def _add(fields: dict[str, Any], element: Element, depth: int) -> None:
    """Put an element into a dict; one that stands there already makes a list."""
    value: Any = (element.text or "").strip()
    if len(element) and depth < _DEEPEST:
        value = {}
        for child in element:
            _add(value, child, depth + 1)
    elif value in ("0", "1"):
        value = int(value)
    if element.tag not in fields:
        fields[element.tag] = value
    elif isinstance(fields[element.tag], list):
        fields[element.tag].append(value)
    else:
        fields[element.tag] = [fields[element.tag], value]


def _numbers(element: Element | None, names: tuple[str, ...]) -> list[float] | None:
    if element is None:
        return None
    try:
        return [float((element.findtext(name) or "").strip()) for name in names]
    except ValueError:
        return None


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError("An annotation of VOC is an XML file.", received=f"`{path.name}`: {reason}")
