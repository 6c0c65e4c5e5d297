"""Saved items of users: views of a list, presets of a form, and drafts of forms."""

from __future__ import annotations

import builtins
import json
from typing import Any, Final

from ziggurat.entities import SAVED_KINDS, SavedItem
from ziggurat.entities.names import check_name
from ziggurat.errors import MissingEntryError, UnknownNameError, UsageError
from ziggurat.formatting import as_bytes
from ziggurat.store import Store

__all__ = ["MOST_BYTES", "SavedItems"]

MOST_BYTES: Final = 1 << 20
"""Maximum size of the content of an item, as JSON."""


class SavedItems:
    """The saved items of a studio; each belongs to a user, and no other user sees it.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._items = store.saved_items

    def list(self, owner: str, kind: str) -> builtins.list[SavedItem]:
        """Return the items of a user and kind by name.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
        """
        return self._items.all(owner, _known(kind))

    def get(self, owner: str, kind: str, name: str) -> SavedItem | None:
        """Return the item of that name, or None.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
        """
        return self._items.get(owner, _known(kind), name)

    def put(self, owner: str, kind: str, name: str, content: Any) -> SavedItem:
        """Save an item; one of the same owner, kind and name is replaced.

        Args:
            owner: name of the user.
            kind: a name in ``SAVED_KINDS``.
            name: of at most 200 characters.
            content: any JSON value.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
            ConfigurationError: where the name has control characters.
            UsageError: where the name is empty or too long, the content is too large, or there are too many items.
        """
        check_name(name, "The name of a saved item")
        if not name.strip():
            raise UsageError("A saved item must have a name.", received=repr(name), advice="Type a name.")
        size = len(json.dumps(content, separators=(",", ":")))
        if size > MOST_BYTES:
            raise UsageError(
                f"The content of the saved item has {as_bytes(size)}; at most {as_bytes(MOST_BYTES)} are kept."
            )
        return self._items.put(owner, _known(kind), name, content)

    def delete(self, owner: str, kind: str, name: str) -> None:
        """Delete an item.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
            MissingEntryError: where there is no such item.
        """
        if not self._items.delete(owner, _known(kind), name):
            raise MissingEntryError(f"There is no saved {kind} `{name}`.", advice="List the saved items first.")


def _known(kind: str) -> str:
    if kind not in SAVED_KINDS:
        raise UnknownNameError("kind of saved item", kind, SAVED_KINDS)
    return kind
