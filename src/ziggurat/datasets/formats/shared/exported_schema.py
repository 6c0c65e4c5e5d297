"""Schema file that an export writes for the importers of Ziggurat: properties that the format itself cannot hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from ziggurat.errors import DataError
from ziggurat.records.schema import Schema

__all__ = ["SCHEMA_NAME", "completed"]

SCHEMA_NAME: Final = ".ziggurat-schema.json"
"""Name of the file, which holds a schema as JSON."""


def completed(schema: Schema, root: Path) -> Schema:
    """Return a schema with the colors, the class to ignore and the details that an export left beside its files.

    What the source itself says counts more. A file that is damaged, or of another kind of dataset, counts for nothing.

    Args:
        schema: of the source.
        root: folder of the source.
    """
    try:
        own = Schema.from_json(json.loads((root / SCHEMA_NAME).read_text("utf-8")))
    except (OSError, ValueError, TypeError, DataError):
        return schema
    if own.kind != schema.kind:
        return schema
    ignored = own.ignore_class if schema.ignore_class is None else schema.ignore_class
    details = {**own.details, **schema.details}
    return replace(schema, colours=schema.colours or own.colours, ignore_class=ignored, details=details)
