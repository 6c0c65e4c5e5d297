"""uvicorn server that closes the event streams at shutdown, because they never end by themselves."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

__all__ = ["StudioServer"]


class StudioServer(uvicorn.Server):
    """Ends the event streams first when it ends: uvicorn by itself waits for them until its grace is over."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then what uvicorn ends."""
        app = self.config.app
        if isinstance(app, FastAPI) and hasattr(app.state, "streams"):
            app.state.streams.close()
        await super().shutdown(sockets)
