"""Answers to requests that cannot be served: status, reason and what to do, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["RequestError"]


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        status: of HTTP.
        message: what is wrong with the request, and what to do.
        headers: of the answer.
        more: further members of the JSON object.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer; ``error`` is the text, as the Open Inference Protocol has it."""
        return {"error": self.message, **self.more}
