"""Responses that a browser saves as a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import StreamingResponse

from ziggurat.workspace.studio.archives import ARCHIVE_FORMATS

__all__ = ["download"]


def download(parts: Iterator[bytes], name: str, archive_format: str) -> Response:
    """Return an archive that is made while it is sent.

    Args:
        parts: of the archive.
        name: what people call what is in it.
        archive_format: a name in ``ARCHIVE_FORMATS``.
    """
    word = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "download"
    whole = quote(f"{name}.{archive_format}".replace("/", "-").encode("utf-8", "replace"))
    shown = f"attachment; filename=\"{word}.{archive_format}\"; filename*=UTF-8''{whole}"
    return StreamingResponse(parts, media_type=ARCHIVE_FORMATS[archive_format], headers={"Content-Disposition": shown})
