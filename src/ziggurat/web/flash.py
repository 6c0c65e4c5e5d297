"""Messages that the next page shows once: result of a form, and refused jobs with the reasons."""

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
    """A job for which an action was refused.

    Args:
        job_id: of the job; empty for something without a page.
        name: of the job; its id if it was deleted.
        why: rule and advice of the error.
    """

    job_id: str
    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a form.

    Args:
        text: one sentence about the result; empty for none.
        deleted: ids of what can be restored, for a button *Undo*.
        refused: the first few jobs for which the action was refused.
        refused_total: number of all of them.
        error: error of the whole form as JSON values; None for none.
    """

    text: str = ""
    deleted: Sequence[str] = ()
    refused: Sequence[Refused] = ()
    refused_total: int = 0
    error: Mapping[str, Any] | None = None


def flash_messages(request: Request) -> BoundedCache[Outcome]:
    """Return the cache of results that the next page shows once."""
    return of_application(request, "flash_messages", lambda: BoundedCache(_MOST_KEPT))


def see_deleted(request: Request, path: str, name: str, item_id: str) -> Response:
    """Redirect to a list after a deletion; the list shows a message once, with a button that takes it back if it can.

    Args:
        request: of the deletion.
        path: of the list, such as ``/datasets``.
        name: of what was deleted.
        item_id: by which the trash has it; empty if it cannot be restored.
    """
    is_kept = item_id and request.app.state.studio.settings.trash_days
    outcome = Outcome(text=f"{name} was deleted.", deleted=(item_id,) if is_kept else ())
    return see_other(request, path, {"said": flash_messages(request).add(outcome)})
