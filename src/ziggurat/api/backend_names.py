"""Names of backends in requests: a schema with a choice of those that are installed."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from ziggurat.entities.backend_info import backend_infos

__all__ = ["BackendName"]

_NAMES: Final = tuple(backend_infos())


def _known(name: str) -> str:
    if name not in _NAMES:
        raise ValueError(f"Input should be one of: {', '.join(_NAMES)}")
    return name


BackendName = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(_NAMES)})]
"""Name of an installed backend."""
