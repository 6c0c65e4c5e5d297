"""Dependencies of every route: the studio, and a user with the required permissions."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request

from ziggurat.api.guard import needs
from ziggurat.entities import Identity
from ziggurat.workspace.studio import Studio

__all__ = ["Admin", "Held", "Looker", "Trainer", "Uploader", "Viewer"]

_PICTURES_BYTES: Final = 1 << 30
_UPLOAD_BYTES: Final = 256 << 30


def _studio(request: Request) -> Studio:
    return request.app.state.studio


Held = Annotated[Studio, Depends(_studio)]
"""The studio that the application holds."""

Viewer = Annotated[Identity, needs("viewer", "read")]
"""Somebody who may look."""

Trainer = Annotated[Identity, needs("trainer", "write")]
"""Somebody who may make and change."""

Admin = Annotated[Identity, needs("admin", "admin")]
"""Somebody who may do everything."""

Looker = Annotated[Identity, needs("viewer", "read", limit_bytes=_PICTURES_BYTES)]
"""Somebody who may look, and sends pictures."""

Uploader = Annotated[Identity, needs("trainer", "write", limit_bytes=_UPLOAD_BYTES)]
"""Somebody who may make and change, and sends files."""
