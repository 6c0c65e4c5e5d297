"""Dependencies of every route: the studio, and a user with the required permissions."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request

from ziggurat.entities import Identity
from ziggurat.server.permissions import require
from ziggurat.workspace.accounts import Accounts
from ziggurat.workspace.studio import Studio

__all__ = [
    "AdminUser",
    "ImageViewerUser",
    "StudioDep",
    "TrainerUser",
    "UploadUser",
    "ViewerUser",
    "ViewerWriteUser",
    "accounts_of",
]

_PICTURES_BYTES: Final = 1 << 30
_UPLOAD_BYTES: Final = 256 << 30


def accounts_of(request: Request) -> Accounts:
    """Return the accounts of the studio that serves a request."""
    return request.app.state.studio.people


async def _studio(request: Request) -> Studio:  # a plain function would be run in another thread
    return request.app.state.studio


StudioDep = Annotated[Studio, Depends(_studio)]
"""The studio that the application holds."""

ViewerUser = Annotated[Identity, require("viewer", "read")]
"""A user who may look."""

ViewerWriteUser = Annotated[Identity, require("viewer", "write")]
"""A user who may look, and change what is their own."""

TrainerUser = Annotated[Identity, require("trainer", "write")]
"""A user who may make and change."""

AdminUser = Annotated[Identity, require("admin", "admin")]
"""A user who may do everything."""

ImageViewerUser = Annotated[Identity, require("viewer", "read", limit_bytes=_PICTURES_BYTES)]
"""A user who may look, and sends images."""

UploadUser = Annotated[Identity, require("trainer", "write", limit_bytes=_UPLOAD_BYTES)]
"""A user who may make and change, and sends files."""
