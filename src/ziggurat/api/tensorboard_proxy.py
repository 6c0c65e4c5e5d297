"""Reverse proxy to the TensorBoards: each has a URL of the studio and listens on loopback."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ziggurat.api.tensorboard_starts import RETRY_AFTER_S
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.errors import kind_of_client
from ziggurat.server.http_errors import NotFoundError, NotReadyError
from ziggurat.server.permissions import new_router

__all__ = ["passed_on", "router", "waiting_page", "with_slash"]


_PAGE: Final = (
    "default-src 'self'; script-src {place} 'unsafe-eval'{hashes}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src {place}; worker-src {place}; frame-src {place}; "
    "object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-scripts allow-same-origin allow-downloads"
)
_OTHER: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
_HASH: Final = re.compile(r"'sha(?:256|384|512)-[A-Za-z0-9+/_-]+={0,2}'")


def protecting_headers(answer: Mapping[str, str], host: str, path: str) -> dict[str, str]:
    """Return the headers that go with an answer of a TensorBoard.

    Args:
        answer: headers of TensorBoard; names in small letters.
        host: that the browser asked for, with its port.
        path: below which this TensorBoard stands, without a slash at its end.
    """
    if not answer.get("content-type", "").lower().startswith("text/html"):
        return {"Content-Security-Policy": _OTHER}
    # A policy has no way to write addresses of IPv6.
    place = f"{host}{path}/" if _PLAIN_HOST.fullmatch(host) else "'self'"
    hashes = "".join(f" {each}" for each in _HASH.findall(answer.get("content-security-policy", "")))
    return {
        "Content-Security-Policy": _PAGE.format(place=place, hashes=hashes),
        "X-Frame-Options": "SAMEORIGIN",
    }


_PLACE: Final = "/jobs/{job_id}/tensorboard"
_TIMES: Final = {"connect": 5.0, "read": 60.0, "write": 60.0, "pool": 5.0}
_ASKED: Final = (
    "accept", "accept-encoding", "accept-language", "content-length", "content-type", "if-modified-since",
    "if-none-match", "if-range", "range", "x-tensorboard-feature-flags",
)  # fmt: skip
"""What is passed on of a request; cookies and tokens are the studio's own, and the rest is between two programs."""

_ANSWERED: Final = (
    "accept-ranges", "cache-control", "content-disposition", "content-encoding", "content-length", "content-range",
    "content-type", "etag", "expires", "last-modified", "vary",
)  # fmt: skip
"""What is passed on of an answer: no cookies, and nothing that another header of ours says."""

_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used; without it, every request would read the certificates of the world."""

_QUERY: Final = "!$%&'()*+,/:;=?@[]~"
_WAITING: Final = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}{target}">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>TensorBoard is starting</title></head>'
    '<body><main><h1>TensorBoard is starting</h1><p role="status">This page loads again by itself.</p></main></body>'
    "</html>"
)

router = new_router(tags=["tensorboard"])


@router.api_route(_PLACE, methods=["GET", "HEAD"], include_in_schema=False)
def add_slash(request: Request, _who: ViewerUser, job_id: str) -> Response:
    """Send a browser to the address with a slash at its end: TensorBoard's own links begin there."""
    return with_slash(request, _place(job_id))


@router.api_route(_PLACE + "/{path:path}", methods=["GET", "HEAD", "POST"], include_in_schema=False)
async def pass_on(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, path: str) -> Response:
    """Pass a request on to a job's TensorBoard, which is started where there is none, and its answer back."""
    await run_in_threadpool(studio.jobs.get, job_id)
    return await passed_on(request, studio.tensorboards, job_id, _place(job_id), path)


def with_slash(request: Request, place: str) -> Response:
    """Return the way to the same address with a slash at its end.

    Args:
        request: that is answered.
        place: where the TensorBoard stands, from the studio's own address on.
    """
    query = request.url.query
    return RedirectResponse(_path(request.scope, place) + "/" + (f"?{query}" if query else ""), 308)


async def passed_on(request: Request, boards: Any, name: str, place: str, path: str) -> Response:
    """Pass a request on to a TensorBoard, which is started where there is none, and its answer back.

    Args:
        request: that is passed on.
        boards: those that it is one of.
        name: by which they know it.
        place: where it stands, from the studio's own address on.
        path: below that.
    """
    if any(part in (".", "..") for part in path.split("/")):
        raise NotFoundError("There is nothing at this address.", received=repr(path[:200]))
    try:
        target = await request.app.state.board_starts.target(boards, name)
        answer = await _asked(request, target, path)
    except NotReadyError:
        if request.method != "GET" or kind_of_client(request) != "page":
            raise
        return waiting_page()
    given = {name.lower(): value for name, value in answer.headers.items()}
    headers = {name: given[name] for name in _ANSWERED if name in given}
    headers |= protecting_headers(given, request.headers.get("host", ""), _path(request.scope, place))
    return _Passed(answer, headers)


def waiting_page(address: str = "") -> Response:
    """Return a page that loads again by itself, or goes on to another address of the studio (quoted, from its root)."""
    text = _WAITING.format(seconds=RETRY_AFTER_S, target=f"; url={address}" if address else "")
    return HTMLResponse(text, 503, headers={"Retry-After": str(RETRY_AFTER_S)})


class _Passed(StreamingResponse):
    """An answer that goes on as it comes; the connection to TensorBoard ends with it, however that is."""

    def __init__(self, answer: httpx.Response, headers: Mapping[str, str]) -> None:
        super().__init__(_parts(answer), answer.status_code, headers)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._answer.aclose()


async def _asked(request: Request, target: Any, path: str) -> httpx.Response:
    """Return the beginning of the answer; its body was not read yet."""
    query = quote(request.scope["query_string"], safe=_QUERY)
    place = quote(f"{target.prefix}/{path}") + (f"?{query}" if query else "")
    sent = httpx.Request(
        request.method,
        httpx.URL(scheme="http", host=target.host, port=target.port, raw_path=place.encode()),
        headers=[(name, request.headers[name]) for name in _ASKED if name in request.headers],
        content=request.stream() if request.method == "POST" else None,
        extensions={"timeout": _TIMES},
    )
    transport = httpx.AsyncHTTPTransport(verify=_NO_TLS, limits=httpx.Limits(max_keepalive_connections=0))
    try:
        return await transport.handle_async_request(sent)
    except httpx.HTTPError as error:
        raise NotReadyError(
            "TensorBoard must answer.",
            received=str(error) or type(error).__name__,
            advice="Ask again in some seconds; it is started anew where it has ended.",
            details={"retry_after_s": RETRY_AFTER_S},
        ) from error


async def _parts(answer: httpx.Response) -> AsyncIterator[bytes]:
    stream: Any = answer.stream
    async for part in stream:  # as it came: it may be compressed, and its length was said
        yield part


def _place(job_id: str) -> str:
    return _PLACE.replace("{job_id}", quote(job_id, safe=""))


def _path(scope: Scope, place: str) -> str:
    return quote(scope.get("root_path", "")) + place
