"""Bodies of requests: read within limits, and taken apart into images, rows or texts."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

from starlette.datastructures import Headers, UploadFile
from starlette.requests import ClientDisconnect, Request

from ziggurat.serving.request_error import RequestError

__all__ = ["BodyBudget", "PredictRequest", "json_object", "predict_request"]

MOST_SAMPLES: Final = 1000
"""Images, rows or texts of one request."""

_MOST_FIELDS: Final = 20
_MOST_TOP: Final = 1000


class PredictRequest(NamedTuple):
    """What people ask.

    Args:
        kind: ``image``, ``rows`` or ``texts``.
        samples: name and content of each: bytes of an image file, a row, or a text.
        top: how many classes are named.
    """

    kind: str
    samples: list[tuple[str, Any]]
    top: int


class BodyBudget:
    """Bytes of the bodies that are in memory at the same time.

    Args:
        most_body: of one body.
        most_bytes: of all.
    """

    def __init__(self, most_body: int, most_bytes: int) -> None:
        self._most_body = most_body
        self._most_bytes = max(most_bytes, most_body)
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """Return the body of a request; call ``release`` with its length when it is answered.

        Raises:
            RequestError: 413 if it is too large, before it is read if its length is told; 429 if others fill the
                memory; 400 if its end never comes.
        """
        told = request.headers.get("content-length", "")
        expected = int(told) if told.isdecimal() else 0
        if expected > self._most_body:
            raise self._too_large()
        if self._held and self._held + expected > self._most_bytes:
            raise RequestError(429, "Too many bodies are being read. Try again.", headers={"Retry-After": "1"})
        self._held += expected
        size = 0
        try:
            parts: list[bytes] = []
            async for part in request.stream():
                size += len(part)
                if size > self._most_body:
                    raise self._too_large()
                parts.append(part)
                if size > expected:  # a chunked body grows while it comes
                    self._held += size - expected
                    expected = size
        except ClientDisconnect:
            self._held -= expected
            raise RequestError(400, "The body did not arrive completely.") from None
        except BaseException:
            self._held -= expected
            raise
        self._held -= expected - size
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self, size: int) -> None:
        """Give the bytes of a body back."""
        self._held -= size

    def _too_large(self) -> RequestError:
        limit = f"{self._most_body / (1 << 20):g} MiB"
        # The rest of the body is not read, so the connection cannot be used again.
        return RequestError(413, f"The body is larger than {limit}.", headers={"Connection": "close"})


async def predict_request(headers: Headers, body: bytes, kind: str, wanted: str) -> PredictRequest:
    """Return what a body asks of a model.

    Args:
        headers: of the request.
        body: all of it.
        kind: what the model takes: ``image``, ``table`` or ``text``.
        wanted: the same in words.

    Raises:
        RequestError: 415 if it is of a type that the model does not take, 422 if it is not sound.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "image" and media_type == "multipart/form-data":
        return await _form(headers, body)
    if kind == "image" and (media_type.startswith("image/") or media_type == "application/octet-stream"):
        return _checked(PredictRequest("image", [("image", body)], 5))
    if kind == "text" and media_type == "text/plain":
        return _checked(PredictRequest("texts", _numbered([_decoded(body)]), 5))
    if kind != "image" and media_type == "application/json":
        return _values(body, "rows" if kind == "table" else "texts")
    shown = f"of the type {media_type[:80]}" if media_type else "without a Content-Type"
    raise RequestError(415, f"The body is {shown}; send {wanted}.")


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        RequestError: 422 if it is none.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(422, f"The body is no JSON: {str(error)[:200]}.") from None
    if not isinstance(content, dict):
        raise RequestError(422, "The body must be a JSON object.")
    return content


async def _form(headers: Headers, body: bytes) -> PredictRequest:
    from starlette.formparsers import MultiPartParser

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        form = await MultiPartParser(
            headers, stream(), max_files=MOST_SAMPLES, max_fields=_MOST_FIELDS, max_part_size=1 << 16
        ).parse()
    except Exception as error:  # a parser of what strangers send has many ways to give up
        raise RequestError(422, f"The form cannot be read: {str(error)[:200]}.") from None
    try:
        samples: list[tuple[str, Any]] = []
        top = "5"
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                samples.append((value.filename or f"image {len(samples) + 1}", value.file.read()))
            elif name == "top":
                top = value
            else:
                raise RequestError(422, f"The form has no field `{name[:40]}`; send image files, and `top`.")
    finally:
        await form.close()
    return _checked(PredictRequest("image", samples, _top(int(top) if top.isdecimal() and len(top) < 10 else top)))


def _values(body: bytes, name: str) -> PredictRequest:
    content = json_object(body)
    unknown = set(content) - {name, "top"}
    if unknown:
        raise RequestError(422, f"The body has no member `{min(unknown)[:40]}`; send `{name}`, and `top`.")
    values = content.get(name)
    if not isinstance(values, list):
        raise RequestError(422, f"`{name}` must be a list.")
    return _checked(PredictRequest(name, _numbered(values), _top(content.get("top", 5))))


def _numbered(values: list[Any]) -> list[tuple[str, Any]]:
    return [(str(number), value) for number, value in enumerate(values, 1)]


def _checked(asked: PredictRequest) -> PredictRequest:
    if not 1 <= len(asked.samples) <= MOST_SAMPLES:
        raise RequestError(422, f"Send 1 to {MOST_SAMPLES} samples; the request has {len(asked.samples)}.")
    return asked


def _top(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_TOP:
        raise RequestError(422, f"`top` must be a whole number from 1 to {_MOST_TOP}.")
    return value


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(422, "The text must be UTF-8.") from None
