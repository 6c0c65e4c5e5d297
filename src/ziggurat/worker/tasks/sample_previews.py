"""Owns showing some samples of a source: small pictures as they would be stored, texts, and labels in words."""

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
from ziggurat.datasets.catalogue import Catalogue, Entry
from ziggurat.datasets.creation.pictures import Fitting, fit_picture
from ziggurat.datasets.importer import Importer, PartReader
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DatapointError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema
from ziggurat.worker.tasks.deadline import OVER, Deadline

__all__ = ["SamplePreviews"]

_PICTURES: Final = ("image", "image2", "target")
_SIDE_PX: Final = 160
_TEXT_CHARACTERS: Final = 500


@dataclass(frozen=True, kw_only=True)
class SamplePreviews:
    """Shows samples of a source.

    Each is ``key``, ``label`` in words, ``png`` (base64, at most 160 px wide or high; None where there is no picture),
    ``text`` (None where there is none), ``width_px`` and ``height_px`` as they would be stored (None without picture).

    Args:
        importer: of its format.
        source: local folder or file.
        options: of the importer, complete.
        schema: what the samples mean.
        form: how pictures would be stored.
    """

    importer: Importer
    source: Path
    options: Mapping[str, Any]
    schema: Schema
    form: ImageForm

    def read(self, catalogue: Catalogue, count: int, showing: Deadline) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return some samples from all over a catalogue, as many as can be read in time, and those that cannot be."""
        if not len(catalogue) or count < 1:
            return [], []
        numbers = np.unique(np.linspace(0, len(catalogue) - 1, num=min(count, len(catalogue)), dtype=int)).tolist()
        samples: list[dict[str, Any]] = []
        problems: list[Problem] = []
        with self.importer.reader(self.source, self.options) as reader:
            for entry in catalogue.entries(numbers):
                try:
                    shown = showing.call(self._shown, entry, reader)
                except DatapointError as error:
                    problems.append(Problem(key=entry.key, kind="unreadable", reason=error.rule, left_out=True))
                    continue
                if shown is OVER:
                    break
                samples.append(shown)
        return samples, problems

    def _shown(self, entry: Entry, reader: PartReader) -> dict[str, Any]:
        role = self.schema.parts[0]
        address = entry.parts[0]
        part = address if isinstance(address, bytes) else reader.read(address)
        shown: dict[str, Any] = {"png": None, "text": None, "width_px": None, "height_px": None}
        if role in _PICTURES:
            fitting = Fitting(form=replace(self.form, encoding="raw"))
            pixels: Any = fit_picture(part, fitting, entry.key).pixels
            shown |= {"png": _small_png(pixels), "width_px": int(pixels.shape[1]), "height_px": int(pixels.shape[0])}
        elif isinstance(part, np.ndarray):
            shown["text"] = f"array {part.shape} of {part.dtype}"
        else:
            shown["text"] = self._text(part, role)
        return {"key": entry.key, "label": _label(entry.label, self.schema), **shown}

    def _text(self, part: bytes, role: str) -> str:
        text = part.decode("utf-8", "replace")
        columns = self.schema.columns
        if role == "row" and columns:
            text = ", ".join(
                f"{column.name}: {value}" for column, value in zip(columns, json.loads(text), strict=False)
            )
        return text if len(text) <= _TEXT_CHARACTERS else f"{text[: _TEXT_CHARACTERS - 1]}…"


def _small_png(pixels: np.ndarray) -> str:
    height, width = pixels.shape[:2]
    factor = min(1.0, _SIDE_PX / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    small = pixels if factor == 1 else cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return base64.b64encode(encode_image(np.ascontiguousarray(small), "png")).decode()


def _label(label: Any, schema: Schema) -> str:
    """Return a label in words: the name of a class, or how often each class is in the picture."""
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
    return schema.class_names[number] if 0 <= number < len(schema.class_names) else str(number)
