"""Conversion of the studio's values to JSON responses and downloads."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from fastapi import Response

__all__ = ["answer", "job_values", "plain"]


def plain(value: Any) -> Any:
    """Return JSON values: dataclasses and mappings as objects, NaN and infinities as the texts that events have,
    bytes in base64.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else _not_finite(value)
    if value is None or isinstance(value, str | int):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    parts: Any = value
    return [plain(part) for part in parts]


def answer(value: Any, status: int = 200) -> Response:
    """Return a value as JSON."""
    text = _text(value)
    # Lone surrogates come from file names that are no UTF-8; JSON may write them as escapes.
    content = text.encode("utf-8", "surrogatepass") if text.isascii() else _encoded(text)
    return Response(content, status, media_type="application/json")


def job_values(job: Any) -> dict[str, Any]:
    """Return what ``info.json`` of an archive says of a job."""
    names = ("id", "name", "kind", "state", "framework", "network", "epoch", "global_step", "created", "notes", "tags")
    return plain({name: getattr(job, name) for name in (*names, "scalars", "spec")})


def _text(value: Any) -> str:
    """Return the JSON text of ``plain(value)``, without making all of its values first where that is not needed."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError):  # numbers that JSON has not inside of lists and mappings, or keys that are no texts
        return _ENCODER.encode(plain(value))


def _outer(value: Any) -> Any:
    """Return a value that JSON has not as one whose parts the encoder goes through itself."""
    names = _names(type(value))
    if names is None:
        if isinstance(value, Mapping):
            return {str(name): part for name, part in value.items()}
        return plain(value)
    parts = [(name, getattr(value, name)) for name in names]
    return {name: plain(part) if type(part) is float else part for name, part in parts}


@functools.lru_cache(maxsize=256)
def _names(kind: type) -> tuple[str, ...] | None:
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_outer)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), separators=(",", ":")).encode()
