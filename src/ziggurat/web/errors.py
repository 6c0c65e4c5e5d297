"""Error pages, or error fragments where htmx requested a fragment."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ziggurat.web.rendering import is_part, page, part

__all__ = ["error_page"]


def error_page(request: Request, status: int, shape: dict[str, Any]) -> Response:
    """Return an error of the tree as people read it.

    Args:
        request: that it answers.
        status: of HTTP.
        shape: ``rule``, ``received``, ``advice`` and ``details`` of the error.
    """
    if is_part(request):
        return part(request, "parts/error.html", status, error=shape)
    if request.scope.get("state", {}).get("identity") is None:
        return part(request, "error_outside.html", status, error=shape, status=status)
    return page(request, "error.html", status, error=shape, status=status)
