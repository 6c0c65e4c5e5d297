"""Static files of the pages: compressed at build time, cached for a year by URLs that carry a content hash."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Scope

from ziggurat.server.middleware import CONTENT_POLICY
from ziggurat.server.permissions import OpenFiles
from ziggurat.web.urls import address

__all__ = ["STATIC", "StaticFiles", "is_built", "island_addresses", "static_address"]

STATIC: Final = Path(__file__).parent / "static"
"""Where they are."""

_PACKED: Final = (("br", ".br"), ("gzip", ".gz"))
"""Encodings in which the scripts were built beside themselves, the smallest first, and how their names end."""


class StaticFiles(OpenFiles):
    """Files whose addresses change with their content: a browser keeps them for a year."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return the compressed file if the browser accepts it, with caching headers."""
        response = await self._packed(path, scope) or await super().get_response(path, scope)
        is_named = b"v=" in scope.get("query_string", b"") or path.startswith("vendor/parts/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_named else "no-cache"
        if is_named:  # it is never revalidated
            for name in ("etag", "last-modified", "accept-ranges"):
                del response.headers[name]
        if path.endswith("-worker.js"):  # a worker takes its policy from its own script
            response.headers["Content-Security-Policy"] = CONTENT_POLICY
        return response

    async def _packed(self, path: str, scope: Scope) -> Response | None:
        """Return the file as it was compressed when it was built, where it was and the browser takes it."""
        accepted = Headers(scope=scope).get("accept-encoding", "").lower()
        offered = {
            name.strip() for name, _, weight in (part.partition(";") for part in accepted.split(",")) if not weight
        }
        built = _built_as(path, scope)
        for encoding, ending in _PACKED:
            if encoding in offered and self.lookup_path(built + ending)[1] is not None:
                response = await super().get_response(built + ending, scope)
                media = mimetypes.guess_type(path)[0] or "application/octet-stream"
                response.headers["Content-Type"] = f"{media}; charset=utf-8"
                response.headers["Content-Encoding"] = encoding
                response.headers["Vary"] = "Accept-Encoding"
                return response
        return None


def _built_as(path: str, scope: Scope) -> str:
    """Return what the compressed files of a file are called before their endings: style sheets by their digest."""
    version = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("v", [""])[0]
    is_sheet = path.endswith(".css") and re.fullmatch("[0-9a-f]{12}", version)
    return f"vendor/styles/{version}" if is_sheet else path


def static_address(connection: HTTPConnection, name: str) -> str:
    """Return the address of a static file; it changes when the file does, so that browsers may keep it."""
    path = STATIC / name
    version = _digest(str(path), path.stat().st_mtime_ns) if path.is_file() else "missing"
    return f"{address(connection, '/static/' + name)}?v={version}"


def island_addresses(connection: HTTPConnection, *names: str) -> list[str]:
    """Return the scripts of islands: a page asks for them before its own script runs."""
    path = STATIC / "vendor" / "islands.json"
    found = _islands(str(path), path.stat().st_mtime_ns) if path.is_file() else {}
    return [address(connection, f"/static/vendor/{found[name]}") for name in names if name in found]


def is_built() -> bool:
    """Return whether the scripts of the pages were built; pages work as links and forms without them."""
    return (STATIC / "vendor" / "studio.js").is_file()


@cache
def _digest(path: str, _changed_ns: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


@cache
def _islands(path: str, _changed_ns: int) -> dict[str, str]:
    return json.loads(Path(path).read_text(encoding="utf-8"))
