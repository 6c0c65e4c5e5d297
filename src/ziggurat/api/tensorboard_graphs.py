"""URLs for graphs of untrained networks: the redirect to a graph, and the proxy to its TensorBoard."""

from __future__ import annotations

import http.client
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ziggurat.api.tensorboard_proxy import passed_on, waiting_page, with_slash
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.errors import kind_of_client
from ziggurat.server.http_errors import NotReadyError
from ziggurat.server.permissions import new_router

__all__ = ["router"]

_OPEN: Final = "/models/graphs/{graph}"
_PLACE: Final = _OPEN + "/tensorboard"
_MOST_ASKED: Final = 10
_ANSWER_WITHIN_S: Final = 5.0
_NO_GRAPHS: Final = (b"", b"{}")

router = new_router(tags=["tensorboard"])


@router.get(_OPEN, include_in_schema=False)
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


@router.api_route(_PLACE, methods=["GET", "HEAD"], include_in_schema=False)
def add_slash(request: Request, _who: ViewerUser, graph: str) -> Response:
    """Send a browser to the address with a slash at its end: TensorBoard's own links begin there."""
    return with_slash(request, _place(graph))


@router.api_route(_PLACE + "/{path:path}", methods=["GET", "HEAD", "POST"], include_in_schema=False)
async def pass_on(request: Request, studio: StudioDep, _who: ViewerUser, graph: str, path: str) -> Response:
    """Pass a request on to the TensorBoard of a graph, which is started where there is none, and its answer back."""
    await run_in_threadpool(studio.graphs.check, graph)
    return await passed_on(request, studio.graphs.tensorboards, graph, _place(graph), path)


def _place(graph: str) -> str:
    return _PLACE.replace("{graph}", quote(graph, safe=""))


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
