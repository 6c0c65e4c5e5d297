"""Request bodies with a size limit, and strict JSON that every parser reads the same way."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from ziggurat.server.http_errors import HTTPError, TooLargeError

__all__ = ["JSON_LIMIT_BYTES", "GuardedRequest", "check_announced"]

JSON_LIMIT_BYTES: Final = 10_000_000
"""How much a request may send where its route names no other limit."""

_MAY_OVERFLOW = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{200}")
"""Without one of these, no number reaches 1e308; the parser makes infinity of those that go beyond."""


class GuardedRequest(Request):
    """A request whose body has a limit and whose JSON is strict.

    Args:
        scope: of ASGI.
        receive: of ASGI.
        limit_bytes: of the body; more raises ``HTTPError`` (413) from whatever reads it.
    """

    def __init__(self, scope: Scope, receive: Receive, *, limit_bytes: int) -> None:
        super().__init__(scope, _limited(receive, limit_bytes))

    async def json(self) -> Any:
        """Return the body as JSON values.

        Raises:
            json.JSONDecodeError: where it is none, or has NaN, infinities, numbers out of range, text that is no
                Unicode, or more levels than anybody needs (about 200).
        """
        body = await self.body()
        try:
            values = from_json(body, allow_inf_nan=False, cache_strings=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        if _MAY_OVERFLOW.search(body) and not _is_finite(values):
            raise json.JSONDecodeError("number out of range", "", 0)
        return values


def check_announced(headers: Headers, limit_bytes: int) -> None:
    """Raise where a body says of itself that it is too large, before anything of it is read.

    Raises:
        HTTPError: 413.
    """
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > limit_bytes):
        raise _too_large(limit_bytes)


def _limited(receive: Receive, limit_bytes: int) -> Receive:
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > limit_bytes:
                raise _too_large(limit_bytes)
        return message

    return counted


def _is_finite(values: Any) -> bool:
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return False
    return True


def _too_large(limit_bytes: int) -> HTTPError:
    error = TooLargeError(
        f"A request must have at most {limit_bytes:,} bytes here.",
        advice="Send less; large files go where files are uploaded.",
        details={"limit_bytes": limit_bytes},
    )
    # The rest of the body is never read, so the connection cannot be used for another request.
    return HTTPError(error, headers={"Connection": "close"})
