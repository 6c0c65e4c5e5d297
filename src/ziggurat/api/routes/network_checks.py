"""Route for instant checks of a network's code; nothing is executed."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Response
from pydantic import Field

from ziggurat.api.responses import answer
from ziggurat.api.schemas import BackendName, Json, RequestBody
from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.server.dependencies import TrainerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.network_checks import check_network

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["training"])


class _Code(RequestBody):
    text: str = Field(max_length=2_000_000, description="Of a network file.")
    backend: BackendName = DEFAULT_BACKEND


@router.post("/networks/check", response_model=Json)
def check(_who: TrainerUser, body: _Code) -> Response:
    """Return the mistakes in a network's code that are found without running it: ``findings``, by line.

    Each has ``line``, ``column``, ``end_column``, ``level`` (``error`` or ``warning``), ``rule`` and ``advice``.
    """
    return answer({"findings": [asdict(each) for each in check_network(body.text, backend=body.backend)]})
