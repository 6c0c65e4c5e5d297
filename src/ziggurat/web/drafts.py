"""Drafts of forms: fields that a user has not submitted yet, saved in the studio for Reload and Back.

A draft belongs to a user, a page and a tab of a browser, so that two tabs do not overwrite each other's: the script of
the form puts a name for the tab into the address, ``draft=…``. Without the script all tabs have one draft. A page that
is opened without such a name begins with the newest; one with a name that has no draft, as after a reset, is empty. A
draft has no files, but the ids of finished uploads. Passwords, tokens and URLs with a password are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request

from ziggurat.entities import SavedItem
from ziggurat.errors import MissingEntryError, UsageError
from ziggurat.server.permissions import identity_of
from ziggurat.workspace.studio import Studio

__all__ = ["Draft", "drop_draft", "is_pair", "load_draft", "pairs_of", "save_draft", "tab_query"]

_KIND: Final = "draft"
_TAB: Final = re.compile(r"[a-z0-9]{4,40}")
_MOST_TABS: Final = 8
"""Drafts of a user and a page; the oldest goes first."""

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
    """Return the draft of the tab that a request comes from, or None.

    Where the address names no tab and the one before had none, it is the newest of the user.

    Args:
        request: of the user.
        page: name of the page, such as ``new-model``.
    """
    kept = _all(request, page)
    own = next((each for each in kept if each.name == _name(request, page)), None)
    is_named = _TAB.fullmatch(request.query_params.get("draft") or "")
    item = own if own or is_named else max(kept, key=lambda each: each.changed, default=None)
    return None if item is None else _draft_of(item)


def save_draft(request: Request, page: str, form: FormData) -> Draft | None:
    """Save a form as the draft of the tab that a request comes from; return None if it is too large.

    Args:
        request: of the user.
        page: name of the page, such as ``new-model``.
        form: its present content.
    """
    name, kept = _name(request, page), _all(request, page)
    if all(each.name != name for each in kept):
        for old in sorted(kept, key=lambda each: each.changed)[: max(0, len(kept) + 1 - _MOST_TABS)]:
            _delete(request, old.name)
    with suppress(UsageError):
        return _draft_of(_studio(request).saved.put(identity_of(request).name, _KIND, name, pairs_of(form)))
    return None


def drop_draft(request: Request, page: str) -> None:
    """Delete the draft of the tab that a request comes from; where it names no tab, the drafts of all tabs."""
    name = _name(request, page)
    for each in _all(request, page) if name == page else ():
        _delete(request, each.name)
    _delete(request, name)


def tab_query(request: Request) -> dict[str, str]:
    """Return the part of the query that names the tab which a request comes from; empty for one without a name."""
    tab = _tab(request)
    return {"draft": tab} if tab else {}


def _name(request: Request, page: str) -> str:
    """Return the name under which a tab's draft is saved: by the address of the page, not that of a part of it."""
    tab = _tab(request)
    return f"{page}/{tab}" if tab else page


def _tab(request: Request) -> str:
    said = (
        request.query_params.get("draft"),
        *map(_tab_of, (request.headers.get("hx-current-url"), request.headers.get("referer"))),
    )
    return next((each for each in said if each and _TAB.fullmatch(each)), "")


def _tab_of(address: str | None) -> str:
    with suppress(ValueError):  # a browser may send anything
        return parse_qs(urlsplit(address or "").query).get("draft", [""])[0]
    return ""


def _all(request: Request, page: str) -> list[SavedItem]:
    found = _studio(request).saved.list(identity_of(request).name, _KIND)
    return [each for each in found if each.name == page or each.name.startswith(f"{page}/")]


def _delete(request: Request, name: str) -> None:
    with suppress(MissingEntryError):
        _studio(request).saved.delete(identity_of(request).name, _KIND, name)


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
