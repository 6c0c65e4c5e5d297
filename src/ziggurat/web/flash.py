"""Messages that the next page shows once: what a form did, and what it did not do and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ziggurat.web.caches import BoundedCache, of_application
from ziggurat.web.rendering import see_other

__all__ = ["Outcome", "Refused", "flash_messages", "see_deleted"]

_MOST_KEPT: Final = 100


@dataclass(frozen=True)
class Refused:
    """A job that it was not done with.

    Args:
        job_id: of the job.
        name: of the job; its id where it is gone.
        why: rule and advice.
    """

    job_id: str
    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is said after something was done.

    Args:
        text: one sentence on what was done; empty for nothing.
        refused: jobs that it was not done with, the first few.
        refused_total: how many there are.
        error: what went wrong altogether, as JSON values; None for nothing.
    """

    text: str = ""
    refused: Sequence[Refused] = ()
    refused_total: int = 0
    error: Mapping[str, Any] | None = None


def flash_messages(request: Request) -> BoundedCache[Outcome]:
    """Return the outcomes of forms that the next page shows once."""
    return of_application(request, "flash_messages", lambda: BoundedCache(_MOST_KEPT))


def see_deleted(request: Request, path: str, name: str) -> Response:
    """Send the browser to a list after something was deleted; the list says so once.

    Args:
        request: of the deletion.
        path: of the list, such as ``/datasets``.
        name: of what was deleted.
    """
    return see_other(request, path, {"said": flash_messages(request).add(Outcome(text=f"{name} was deleted."))})
