"""Drafts of forms: fields that a user has not submitted yet, saved in the studio for Reload and Back.

A draft belongs to a user and a page. It has no files, but the ids of finished uploads. Passwords, tokens and URLs with
a password are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request

from ziggurat.entities import SavedItem
from ziggurat.errors import MissingEntryError, UsageError
from ziggurat.server.permissions import identity_of
from ziggurat.workspace.studio import Studio

__all__ = ["Draft", "drop_draft", "is_pair", "load_draft", "pairs_of", "save_draft"]

_KIND: Final = "draft"
_SECRET_FIELD: Final = re.compile(r"passw|secret|token|credential|(access|api|private)_?key", re.IGNORECASE)
_SECRET_VALUE: Final = re.compile(r"://[^/\s@]*:[^/\s@]+@")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A form that was not submitted.

    Args:
        fields: names with their values, in the order of the form; a name may come several times.
        saved_at: seconds since 1970.
    """

    fields: tuple[tuple[str, str], ...]
    saved_at: float

    def form(self) -> FormData:
        """Return the fields as a submitted form."""
        return FormData(list(self.fields))


def load_draft(request: Request, page: str) -> Draft | None:
    """Return the draft of the user of a request, or None.

    Args:
        request: of the user.
        page: name of the page, such as ``new-model``.
    """
    item = _studio(request).saved.get(identity_of(request).name, _KIND, page)
    return None if item is None else _draft_of(item)


def save_draft(request: Request, page: str, form: FormData) -> Draft | None:
    """Save a form as the draft of the user of a request; return None if it is too large.

    Args:
        request: of the user.
        page: name of the page, such as ``new-model``.
        form: its present content.
    """
    with suppress(UsageError):
        return _draft_of(_studio(request).saved.put(identity_of(request).name, _KIND, page, pairs_of(form)))
    return None


def drop_draft(request: Request, page: str) -> None:
    """Delete the draft of the user of a request, if there is one."""
    with suppress(MissingEntryError):
        _studio(request).saved.delete(identity_of(request).name, _KIND, page)


def pairs_of(form: FormData) -> list[tuple[str, str]]:
    """Return names and values of a form without files and secrets."""
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    return [pair for pair in pairs if not _SECRET_FIELD.search(pair[0]) and not _SECRET_VALUE.search(pair[1])]


def _draft_of(item: SavedItem) -> Draft | None:
    """Return the draft of an item; None if a client saved something else under that name."""
    content: Any = item.content
    if not isinstance(content, Sequence) or not all(is_pair(each) for each in content):
        return None
    return Draft(fields=tuple((name, value) for name, value in content), saved_at=item.changed)


def is_pair(value: Any) -> bool:
    """Return whether a saved value is a name with its text: a program may have saved anything."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(part, str) for part in value)


def _studio(request: Request) -> Studio:
    return request.app.state.studio
