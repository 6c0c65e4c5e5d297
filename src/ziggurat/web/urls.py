"""URLs of the pages: below the studio's prefix, with their query."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import HTTPConnection

__all__ = ["KIND_PAGES", "LIST_PAGES", "NEW_PAGES", "address", "changed_query", "page_of"]

NEW_PAGES: Final = {"dataset": "/datasets", "train": "/models", "program": "/programs"}
"""Kind of a job → path above the ``new`` of its form."""

KIND_PAGES: Final = {"dataset": "datasets", "train": "models", "evaluate": "evaluations", "infer": "evaluations"}
"""Kind of a job → folder of its page."""

LIST_PAGES: Final = {
    "dataset": "/datasets",
    "evaluate": "/evaluations",
    "infer": "/evaluations",
    "weights": "/pretrained",
    "upload": "/uploads",
    "preset": "/models/new",
}
"""Kind of a job, or of something else that can be deleted → page that lists it; the first page for others."""


def address(connection: HTTPConnection, path: str, query: Mapping[str, Any] | None = None) -> str:
    """Return the address of a path of the studio, such as ``/datasets/new``, as a browser must ask for it.

    Args:
        connection: that is answered; it knows the prefix.
        path: from the studio's own root, with a slash before it.
        query: values; those that are None or empty are left out, lists become several.
    """
    root = _quoted(connection.scope.get("root_path", ""))
    given = {name: value for name, value in (query or {}).items() if value is not None and value != "" and value != []}
    return f"{root}{_quoted(path)}" + (f"?{urlencode(given, doseq=True)}" if given else "")


@lru_cache(maxsize=4096)  # a page has hundreds of addresses, most of them again on the next one
def _quoted(path: str) -> str:
    return quote(path, safe="/:")


def changed_query(connection: HTTPConnection, **changes: Any) -> str:
    """Return the address of the page that is shown, with other values in its query; None takes one away."""
    found: dict[str, Any] = {}
    for name, value in connection.query_params.multi_items():
        found.setdefault(name, []).append(value)
    path = connection.url.path.removeprefix(connection.scope.get("root_path", ""))
    return address(connection, path, {**found, **changes})


def page_of(connection: HTTPConnection, job_id: str, kind: str) -> str:
    """Return the address of a job's page."""
    return address(connection, f"/{KIND_PAGES.get(kind, 'jobs')}/{job_id}")
