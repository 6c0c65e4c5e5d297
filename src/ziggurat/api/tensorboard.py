"""TensorBoards of jobs and untrained networks: state, start, and a reverse proxy below a URL of the studio."""

from __future__ import annotations

import asyncio
import http.client
import re
import shlex
import ssl
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import httpx
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ziggurat.api.responses import answer
from ziggurat.errors import JobError, NotThereError
from ziggurat.layout import JobFolder
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.errors import HTTPError, NotFoundError, NotReadyError, kind_of_client
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio

__all__ = ["BoardStarts", "graph_router", "proxy_router", "router"]

router = new_router(prefix="/api/v1", tags=["jobs"])


RETRY_AFTER_S: Final = 2
"""After which a page asks again whether its TensorBoard is there."""

_THREADS: Final = 8


class BoardStarts:
    """TensorBoards that are starting; use it in one event loop at a time.

    Args:
        patience_s: how long a request waits; the start goes on without it.
    """

    def __init__(self, *, patience_s: float = 1.0) -> None:
        self._patience_s = patience_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tensorboard")
        self._under_way: dict[str, Future[Any]] = {}

    async def target(self, boards: Any, job_id: str) -> Any:
        """Return where a job's TensorBoard answers; start it where it does not.

        Args:
            boards: of the studio.
            job_id: of a job that is there.

        Raises:
            NotReadyError: where it is still starting.
            MissingDependencyError: where TensorBoard is not installed.
            HTTPError: 503 where it did not start, or there is no room for one more.
        """
        start = self._under_way.get(job_id)
        if start is None:
            start = self._under_way[job_id] = self._threads.submit(boards.proxy_target, job_id)
        await asyncio.wait([asyncio.wrap_future(start)], timeout=self._patience_s)
        if not start.done():
            raise NotReadyError(
                "TensorBoard is still starting.",
                advice="Ask again in some seconds.",
                details={"retry_after_s": RETRY_AFTER_S},
            )
        # The outcome of a start is kept until it is requested, or a start that fails slowly would be repeated forever.
        self._under_way.pop(job_id, None)
        try:
            return start.result()
        except NotThereError:
            raise
        except JobError as error:
            raise HTTPError(error, 503) from error

    def is_under_way(self, job_id: str) -> bool:
        """Return whether one is starting, or has just started without a request since."""
        return job_id in self._under_way


@dataclass(frozen=True, kw_only=True)
class TensorBoardShape:
    """A job's TensorBoard.

    Args:
        address: of its page, from the root of the server.
        state: ``off`` before the first request, and after a quarter of an hour without one.
        idle_s: time since the last request; null if it is off.
        folder: of its event files.
        command: what starts one without the studio.
    """

    address: str
    state: Literal["off", "starting", "ready"]
    idle_s: float | None
    folder: str
    command: str


@router.get("/jobs/{job_id}/tensorboard", response_model=TensorBoardShape)
def look_at_tensorboard(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return where a job's TensorBoard is shown and whether it runs; nothing is started."""
    return answer(_shape(request, studio, job_id))


@router.post("/jobs/{job_id}/tensorboard", response_model=TensorBoardShape)
async def start_tensorboard(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Start a job's TensorBoard where it does not run; ask again while its state is `starting`."""
    await run_in_threadpool(studio.jobs.get, job_id)
    try:
        await request.app.state.board_starts.target(studio.tensorboards, job_id)
    except NotReadyError:
        pass  # the state says it
    return answer(await run_in_threadpool(_shape, request, studio, job_id))


def _shape(request: Request, studio: Studio, job_id: str) -> TensorBoardShape:
    folder = JobFolder(Path(studio.jobs.get(job_id).folder)).tensorboard_root
    found = next((each for each in studio.tensorboards.status() if each.job_id == job_id), None)
    is_ready = found is not None and found.port is not None
    is_starting = found is not None or request.app.state.board_starts.is_under_way(job_id)
    return TensorBoardShape(
        address=f"{quote(request.scope.get('root_path', ''))}/jobs/{quote(job_id, safe='')}/tensorboard/",
        state="ready" if is_ready else "starting" if is_starting else "off",
        idle_s=None if found is None else found.idle_s,
        folder=str(folder),
        command=f"tensorboard --logdir {shlex.quote(str(folder))}",
    )


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


_JOB_PLACE: Final = "/jobs/{job_id}/tensorboard"
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

proxy_router = new_router(tags=["tensorboard"])


@proxy_router.api_route(_JOB_PLACE, methods=["GET", "HEAD"], include_in_schema=False)
def add_job_slash(request: Request, _who: ViewerUser, job_id: str) -> Response:
    """Send a browser to the address with a slash at its end: TensorBoard's own links begin there."""
    return with_slash(request, _job_place(job_id))


@proxy_router.api_route(_JOB_PLACE + "/{path:path}", methods=["GET", "HEAD", "POST"], include_in_schema=False)
async def pass_on_to_job(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, path: str) -> Response:
    """Pass a request on to a job's TensorBoard, which is started where there is none, and its answer back."""
    await run_in_threadpool(studio.jobs.get, job_id)
    return await passed_on(request, studio.tensorboards, job_id, _job_place(job_id), path)


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
            f"TensorBoard does not answer: {str(error) or type(error).__name__}.",
            advice="Ask again in some seconds; it is started anew where it has ended.",
            details={"retry_after_s": RETRY_AFTER_S},
        ) from error


async def _parts(answer: httpx.Response) -> AsyncIterator[bytes]:
    stream: Any = answer.stream
    async for part in stream:  # as it came: it may be compressed, and its length was said
        yield part


def _job_place(job_id: str) -> str:
    return _JOB_PLACE.replace("{job_id}", quote(job_id, safe=""))


def _path(scope: Scope, place: str) -> str:
    return quote(scope.get("root_path", "")) + place


_OPEN: Final = "/models/graphs/{graph}"
_GRAPH_PLACE: Final = _OPEN + "/tensorboard"
_MOST_ASKED: Final = 10
_ANSWER_WITHIN_S: Final = 5.0
_NO_GRAPHS: Final = (b"", b"{}")

graph_router = new_router(tags=["tensorboard"])


@graph_router.get(_OPEN, include_in_schema=False)
async def open_graph(request: Request, studio: StudioDep, _who: ViewerUser, graph: str, asked: int = 0) -> Response:
    """Send a browser to TensorBoard's graph, once TensorBoard has read it: before, its page would say there is none."""
    await run_in_threadpool(studio.graphs.check, graph)
    place = quote(request.scope.get("root_path", "")) + _OPEN.replace("{graph}", graph)
    is_page = kind_of_client(request) == "page"
    try:
        target = await request.app.state.board_starts.target(studio.graphs.tensorboards, graph)
    except NotReadyError:
        if not is_page:
            raise
        return waiting_page()
    if is_page and asked < _MOST_ASKED and not await run_in_threadpool(_has_graph, target):
        return waiting_page(f"{place}?asked={asked + 1}")
    return RedirectResponse(f"{place}/tensorboard/#graphs", 303)


@graph_router.api_route(_GRAPH_PLACE, methods=["GET", "HEAD"], include_in_schema=False)
def add_graph_slash(request: Request, _who: ViewerUser, graph: str) -> Response:
    """Send a browser to the address with a slash at its end: TensorBoard's own links begin there."""
    return with_slash(request, _graph_place(graph))


@graph_router.api_route(_GRAPH_PLACE + "/{path:path}", methods=["GET", "HEAD", "POST"], include_in_schema=False)
async def pass_on_to_graph(request: Request, studio: StudioDep, _who: ViewerUser, graph: str, path: str) -> Response:
    """Pass a request on to the TensorBoard of a graph, which is started where there is none, and its answer back."""
    await run_in_threadpool(studio.graphs.check, graph)
    return await passed_on(request, studio.graphs.tensorboards, graph, _graph_place(graph), path)


def _graph_place(graph: str) -> str:
    return _GRAPH_PLACE.replace("{graph}", quote(graph, safe=""))


def _has_graph(target: Any) -> bool:
    """Return whether a TensorBoard knows of a graph by now."""
    connection = http.client.HTTPConnection(target.host, target.port, timeout=_ANSWER_WITHIN_S)
    try:
        connection.request("GET", f"{target.prefix}/data/plugin/graphs/info")
        answer = connection.getresponse()
        return answer.status == http.client.OK and answer.read(1 << 20).strip() not in _NO_GRAPHS
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
