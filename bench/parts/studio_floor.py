"""Baseline server of the studio benchmark: an application with one route, which returns the bytes it was given."""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI, Request, Response

__all__ = ["create_floor"]


def create_floor() -> FastAPI:
    """Return the application: what is put to a path is what the path answers, by a function in a thread as ours are."""
    app, bodies = FastAPI(openapi_url=None), {}

    @app.put("/{name}")
    async def keep(name: str, request: Request) -> Response:
        bodies[name] = await request.body()
        return Response(status_code=204)

    @app.get("/{name}")
    def give(name: str) -> Response:
        return Response(bodies[name], media_type="application/json")

    return app


def main() -> None:
    """Serve on a free port of this machine, which is printed first, until the standard input ends."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # before the address is said: who asks early waits
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(create_floor(), log_config=None)).run(sockets=[listener])


if __name__ == "__main__":
    sys.exit(main())
