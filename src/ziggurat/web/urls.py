"""URLs of the pages: below the studio's prefix, with their query; static files carry a content hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import HTTPConnection

__all__ = ["address", "changed_query", "is_built", "island_addresses", "page_of", "static_address"]

_STATIC: Final = Path(__file__).parent / "static"
_KIND_PAGES: Final = {"dataset": "datasets", "train": "models", "evaluate": "evaluations", "infer": "evaluations"}


def address(connection: HTTPConnection, path: str, query: Mapping[str, Any] | None = None) -> str:
    """Return the address of a path of the studio, such as ``/datasets/new``, as a browser must ask for it.

    Args:
        connection: that is answered; it knows the prefix.
        path: from the studio's own root, with a slash before it.
        query: values; those that are None or empty are left out, lists become several.
    """
    root = quote(connection.scope.get("root_path", ""))
    given = {name: value for name, value in (query or {}).items() if value is not None and value != "" and value != []}
    return f"{root}{quote(path, safe='/:')}" + (f"?{urlencode(given, doseq=True)}" if given else "")


def changed_query(connection: HTTPConnection, **changes: Any) -> str:
    """Return the address of the page that is shown, with other values in its query; None takes one away."""
    found: dict[str, Any] = {}
    for name, value in connection.query_params.multi_items():
        found.setdefault(name, []).append(value)
    path = connection.url.path.removeprefix(connection.scope.get("root_path", ""))
    return address(connection, path, {**found, **changes})


def page_of(connection: HTTPConnection, job_id: str, kind: str) -> str:
    """Return the address of a job's page."""
    return address(connection, f"/{_KIND_PAGES.get(kind, 'jobs')}/{job_id}")


def static_address(connection: HTTPConnection, name: str) -> str:
    """Return the address of a static file; it changes when the file does, so that browsers may keep it."""
    path = _STATIC / name
    version = _digest(str(path), path.stat().st_mtime_ns) if path.is_file() else "missing"
    return f"{address(connection, '/static/' + name)}?v={version}"


def island_addresses(connection: HTTPConnection, *names: str) -> list[str]:
    """Return the scripts of islands: a page asks for them before its own script runs."""
    path = _STATIC / "vendor" / "islands.json"
    found = _islands(str(path), path.stat().st_mtime_ns) if path.is_file() else {}
    return [address(connection, f"/static/vendor/{found[name]}") for name in names if name in found]


def is_built() -> bool:
    """Return whether the scripts of the pages were built; pages work as links and forms without them."""
    return (_STATIC / "vendor" / "studio.js").is_file()


@cache
def _digest(path: str, _changed_ns: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


@cache
def _islands(path: str, _changed_ns: int) -> dict[str, str]:
    return json.loads(Path(path).read_text(encoding="utf-8"))
