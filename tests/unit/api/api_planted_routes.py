"""Routers for tests only: valid ones, and ones that must be refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request, WebSocket
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel

from ziggurat.api import anyone, identity_of, new_router, require
from ziggurat.entities import Identity
from ziggurat.errors import CheckpointError, DataError, JobError, MissingJobError, StorageError
from ziggurat.server.permissions import OpenFiles

good = new_router(prefix="/planted")


class Numbers(BaseModel):
    value: float
    names: list[str] = []


@good.get("/page", dependencies=[require("viewer", "read")], response_class=HTMLResponse)
def page(request: Request) -> HTMLResponse:
    return HTMLResponse(f"<p>{identity_of(request).name}")


@good.post("/numbers")
def numbers(sent: Numbers, identity: Annotated[Identity, require("trainer", "write")]) -> dict[str, str]:
    return {"who": identity.name, "value": str(sent.value)}


@good.put("/upload")
async def upload(request: Request, identity: Annotated[Identity, require("trainer", "write", limit_bytes=1000)]) -> int:
    return sum([len(part) async for part in request.stream()])


@good.get("/fail/{how}", dependencies=[anyone()])
def fail(how: str) -> Response:
    known = {
        "job": JobError("A job must be idle.", received="running"),
        "missing": MissingJobError("There is no such job.", received="x"),
        "gone": CheckpointError("There is no such checkpoint."),
        "data": DataError("The image must be readable."),
        "disk": StorageError("The disk must have room."),
    }
    if how == "header":
        return PlainTextResponse("x", headers={"X-Name": "a\r\nSet-Cookie: b=c"})
    raise known.get(how) or RuntimeError(f"the secret is {how}")


files = new_router()
files.mount("/planted/files", OpenFiles(directory=Path(__file__).parent, check_dir=False))

other_files = new_router()
other_files.mount("/planted/files", StaticFiles(directory=Path(__file__).parent, check_dir=False))

socket = new_router()


@socket.websocket("/planted/socket")
async def socket_route(websocket: WebSocket) -> None:
    await websocket.accept()


silent = new_router(prefix="/planted")


@silent.get("/silent")
def says_nothing() -> str:
    return "open to everybody"


plain = APIRouter(prefix="/planted")


@plain.get("/plain", dependencies=[require("viewer", "read")])
def is_not_guarded() -> str:
    return "the body is read before anybody is asked"


twice = new_router(
    prefix="/planted",
)


@twice.get("/twice", dependencies=[require("viewer", "read")])
def says_two_things(identity: Annotated[Identity, require("admin", "read")]) -> str:
    return identity.name
