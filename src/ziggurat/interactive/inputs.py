"""Inputs of predictions in a Python session: images, rows and texts of any common type, checked by what a run takes."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

from ziggurat.errors import DataError, UsageError
from ziggurat.interactive.home import InputKind, ModelInputs

__all__ = ["as_image_bytes", "as_rows", "is_frame", "model_inputs"]

_NOUNS: Final[Mapping[InputKind, str]] = {
    "image": "images: the path of a file, an array (H, W) or (H, W, C) uint8, or an image of Pillow",
    "row": "rows of a table: a dict, a list of dicts, or a DataFrame",
    "text": "texts: a str, or a list of them",
}
_SHOWN: Final = 60
_MISSING: Final = ("NAType", "NaTType")
"""Types of the missing values of pandas."""


def model_inputs(kind: InputKind, given: Any) -> tuple[ModelInputs, bool]:
    """Return inputs as a request takes them, and whether it was a single one.

    Args:
        kind: what the network takes.
        given: an input, or a list of inputs.

    Raises:
        UsageError: if the network takes something else, or nothing is given.
        DataError: if a file cannot be read.
    """
    if kind == "row":
        if isinstance(given, Mapping):
            return ModelInputs(rows=[_plain_row(given)]), True
        if is_frame(given) or (_is_list(given) and all(isinstance(each, Mapping) for each in given)):
            return ModelInputs(rows=_some(as_rows(given))), False
        raise _wrong(kind, given)
    if kind == "text":
        if isinstance(given, str):
            return ModelInputs(texts=[given]), True
        if _is_list(given) and all(isinstance(each, str) for each in given):
            return ModelInputs(texts=_some([str(each) for each in given])), False
        raise _wrong(kind, given)
    is_batch = isinstance(given, np.ndarray) and given.ndim == 4
    if is_batch or (_is_list(given) and not isinstance(given, np.ndarray)):
        files = [_image(each, number) for number, each in enumerate(given, 1)]
        return ModelInputs(images=_some(files)), False
    return ModelInputs(images=[_image(given, 1)]), True


def as_rows(data: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame, or of a sequence of mappings, as plain values; NaN becomes None."""
    rows = data.to_dict("records") if is_frame(data) else data
    return [_plain_row(row) for row in rows]


def is_frame(data: Any) -> bool:
    """Return whether something is a DataFrame of pandas or of a library like it."""
    return hasattr(data, "to_dict") and hasattr(data, "columns")


def as_image_bytes(image: Any) -> bytes:
    """Return an image as a file: an image of Pillow or an array as PNG, a file unchanged.

    Raises:
        DataError: if it is no image, or a file that cannot be read.
    """
    if isinstance(image, (str, Path)):
        path = Path(image).expanduser()
        try:
            return path.read_bytes()
        except OSError as error:
            what = f"`{image}` does not exist" if not path.exists() else f"`{image}` cannot be read: {error.strerror}"
            raise DataError(f"{what}.", advice="Check the path.", details={"file": str(image)}) from None
    return _as_png(image if isinstance(image, Image.Image) else _from_array(np.asarray(image)))


def _from_array(array: np.ndarray) -> Image.Image:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))
    if not is_image or array.size == 0:
        raise DataError(
            f"An array of shape {array.shape} is no image.",
            advice="An image is (H, W), (H, W, 1), (H, W, 3) or (H, W, 4).",
        )
    if array.dtype != np.uint8:
        raise DataError(
            f"An image of {array.dtype} numbers cannot be read: its scale is not known.",
            advice="Convert it to uint8, 0 to 255; of numbers from 0 to 1: (255 * image).round().astype('uint8').",
        )
    return Image.fromarray(array)


def _as_png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    plain = image if image.mode in ("L", "RGB", "RGBA", "P", "1") else image.convert("RGB")
    plain.save(content, "PNG")
    return content.getvalue()


def _image(given: Any, number: int) -> tuple[str, bytes]:
    if isinstance(given, (Mapping, bytes, int, float)) or is_frame(given) or given is None:
        raise _wrong("image", given)
    if isinstance(given, (str, Path)):
        return str(given), as_image_bytes(given)
    return str(getattr(given, "filename", "") or number), as_image_bytes(given)


def _is_list(given: Any) -> bool:
    return isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes))


def _some(inputs: list[Any]) -> list[Any]:
    if not inputs:
        raise UsageError("There is nothing to predict for.", received="an empty list")
    return inputs


def _wrong(kind: InputKind, given: Any) -> UsageError:
    shown = repr(given) if isinstance(given, (str, int, float, bytes)) else ""
    what = f"{type(given).__name__} {shown[:_SHOWN]}".strip()
    return UsageError(f"This run takes {_NOUNS[kind]}.", received=what)


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    is_missing = value is None or type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value))
    if is_missing:
        return None
    return value if isinstance(value, (str, int, float, bool)) else str(value)
