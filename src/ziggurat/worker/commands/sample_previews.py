"""Sample previews of a source: small images as they would be stored, with boxes, masks, texts, and labels."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.datasets.creation.images import FittedPicture, Fitting, fit_mask, fit_objects, fit_picture
from ziggurat.datasets.importer import Importer, PartReader
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DatapointError, ZigguratError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema
from ziggurat.worker.commands.deadline import OVER, Deadline

__all__ = ["SamplePreviews"]

_PICTURES: Final = ("image", "image2", "target")
_SIDE_PX: Final = 160
_TEXT_CHARACTERS: Final = 500
_OBJECTS: Final = 200


@dataclass(frozen=True, kw_only=True)
class SamplePreviews:
    """Shows samples of a source.

    Each is ``key``, ``label`` in words, ``png`` (base64, at most 160 px wide or high; None where there is no image),
    ``text`` (None where there is none), ``width_px`` and ``height_px`` as they would be stored (None without image).
    ``objects`` (None where the kind has none): the first 200 as ``ziggurat.records.objects`` writes them, in pixels of
    the stored image, each with the ``name`` of its class; ``more_objects``: how many come after those. ``mask_png``
    (None where there is none, or where it cannot be read): base64, as large as ``png``, one channel of class numbers.

    Args:
        importer: of its format.
        source: local folder or file.
        options: of the importer, complete.
        schema: what the samples mean.
        form: how images would be stored.
    """

    importer: Importer
    source: Path
    options: Mapping[str, Any]
    schema: Schema
    form: ImageForm

    def read(self, catalogue: Catalogue, count: int, showing: Deadline) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return some samples from all over a catalog, as many as can be read in time, and what cannot be read."""
        if not len(catalogue) or count < 1:
            return [], []
        numbers = np.unique(np.linspace(0, len(catalogue) - 1, num=min(count, len(catalogue)), dtype=int)).tolist()
        samples: list[dict[str, Any]] = []
        problems: list[Problem] = []
        with self.importer.reader(self.source, self.options) as reader:
            for entry in catalogue.entries(numbers):
                try:
                    found = showing.call(self._shown, entry, reader)
                except DatapointError as error:
                    problems.append(_unreadable(entry, error.rule))
                    continue
                if found is OVER:
                    break
                samples.append(found[0])
                problems += found[1]
        return samples, problems

    def _shown(self, entry: Entry, reader: PartReader) -> tuple[dict[str, Any], list[Problem]]:
        """Return a sample as it is shown, and what in it cannot be read although its image can."""
        problems: list[Problem] = []
        role = self.schema.parts[0]
        address = entry.parts[0]
        part = address if isinstance(address, bytes) else reader.read(address)
        shown: dict[str, Any] = dict.fromkeys(("png", "text", "width_px", "height_px", "objects", "mask_png"))
        shown["more_objects"] = 0
        if role in _PICTURES:
            fitting = Fitting(form=replace(self.form, encoding="raw"))
            fitted = fit_picture(part, fitting, entry.key)
            pixels: Any = fitted.pixels
            shown |= {"png": _small_png(pixels), "width_px": int(pixels.shape[1]), "height_px": int(pixels.shape[0])}
            shown |= self._objects(entry.label, fitted)
            shown["mask_png"] = self._mask_png(entry, reader, fitted, fitting, problems)
        elif isinstance(part, np.ndarray):
            shown["text"] = f"array {part.shape} of {part.dtype}"
        else:
            shown["text"] = self._text(part, role)
        return {"key": entry.key, "label": _label(entry.label, self.schema), **shown}, problems

    def _objects(self, label: Any, fitted: FittedPicture) -> dict[str, Any]:
        if self.schema.kind != "detection" or not isinstance(label, list) or fitted.pixels is None:
            return {}
        found: list[Any] = label[:_OBJECTS]
        if fitted.transform is not None:
            size = (fitted.pixels.shape[0], fitted.pixels.shape[1])
            found, _ = fit_objects(found, fitted.transform, size, fitted.source_size)
        named = [{**each, "name": _class_name(each["class"], self.schema)} for each in found]
        return {"objects": named, "more_objects": max(0, len(label) - _OBJECTS)}

    def _mask_png(
        self, entry: Entry, reader: PartReader, fitted: FittedPicture, fitting: Fitting, problems: list[Problem]
    ) -> str | None:
        number = self.schema.parts.index("mask") if "mask" in self.schema.parts else len(entry.parts)
        if number >= len(entry.parts):
            return None
        address = entry.parts[number]
        try:
            part = address if isinstance(address, bytes) else reader.read(address)
            mask = fit_mask(part, fitted, fitting, entry.key, self.schema.ignore_class or 0)
        except DatapointError as error:  # the sample cannot come then; its image is shown all the same
            problems.append(_unreadable(entry, error.rule))
            return None
        except (ZigguratError, OSError, ValueError, KeyError) as error:
            reason = f"Its mask cannot be read ({type(error).__name__}: {error})."
            problems.append(_unreadable(entry, reason))
            return None
        problems += self._strange_values(entry, mask)
        done, content = cv2.imencode(".png", _smaller(mask, cv2.INTER_NEAREST))
        assert done
        return base64.b64encode(content.tobytes()).decode()

    def _strange_values(self, entry: Entry, mask: np.ndarray) -> list[Problem]:
        """Return a problem where a mask has values that no class has; without names, each is a class."""
        values = np.unique(mask)
        strange = values[(values >= len(self.schema.class_names)) & (values != self.schema.ignore_class)]
        if not self.schema.class_names or not len(strange):
            return []
        reason = f"Its mask has values that no class has: {', '.join(map(str, strange[:10].tolist()))}."
        return [Problem(key=entry.key, kind="unknown-mask-value", reason=reason)]

    def _text(self, part: bytes, role: str) -> str:
        text = part.decode("utf-8", "replace")
        columns = self.schema.columns
        if role == "row" and columns:
            text = ", ".join(
                f"{column.name}: {value}" for column, value in zip(columns, json.loads(text), strict=False)
            )
        return text if len(text) <= _TEXT_CHARACTERS else f"{text[: _TEXT_CHARACTERS - 1]}…"


def _unreadable(entry: Entry, reason: str) -> Problem:
    return Problem(key=entry.key, kind="unreadable", reason=reason, left_out=True)


def _small_png(pixels: np.ndarray) -> str:
    return base64.b64encode(encode_image(np.ascontiguousarray(_smaller(pixels, cv2.INTER_AREA)), "png")).decode()


def _smaller(pixels: np.ndarray, interpolation: int) -> np.ndarray:
    height, width = pixels.shape[:2]
    factor = min(1.0, _SIDE_PX / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return pixels if factor == 1 else cv2.resize(pixels, size, interpolation=interpolation)


def _label(label: Any, schema: Schema) -> str:
    """Return a label in words: the name of a class, or how often each class is in the image."""
    if label is None:
        return ""
    if isinstance(label, list) and label and all(isinstance(each, dict) and "class" in each for each in label):
        found = Counter(_class_name(each["class"], schema) for each in label)
        return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in found.items())
    if isinstance(label, list):
        return ", ".join(f"{each:g}" if isinstance(each, int | float) else str(each) for each in label)
    if schema.kind == "image-pairs":
        return "same" if label else "not the same"
    return _class_name(label, schema) if isinstance(label, int) else f"{label:g}"


def _class_name(number: int, schema: Schema) -> str:
    if number < 0:
        return "ignored"
    return schema.class_names[number] if number < len(schema.class_names) else str(number)
