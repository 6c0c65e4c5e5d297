"""Saved items of users: views of a list, presets of a form, and drafts of forms."""

from __future__ import annotations

import builtins
import json
import threading
from collections.abc import Callable
from typing import Any, Final

from ziggurat.entities import SAVED_KINDS, SavedItem
from ziggurat.entities.names import check_name
from ziggurat.entities.trash import SAVED, Trash
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
        trash: where views and presets go; drafts are deleted at once.
        clock: seconds since 1970.
    """

    def __init__(self, store: Store, trash: Trash, clock: Callable[[], float]) -> None:
        self._items = store.saved_items
        self._trash = trash
        self._clock = clock
        self._restoring = threading.Lock()

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

    def delete(self, owner: str, kind: str, name: str, *, forever: bool = False) -> str:
        """Delete an item; return the id by which it can be restored, which is empty where it cannot.

        Args:
            owner: name of the user.
            kind: a name in ``SAVED_KINDS``; drafts cannot be restored.
            name: of the item; with ``forever`` also the id or name of a deleted one.
            forever: whether it cannot be restored.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
            MissingEntryError: where there is no such item.
            UsageError: where several deleted items have the name.
            StorageError: where the trash cannot be written; then nothing is deleted.
        """
        item, deleted_id = self._items.get(owner, _known(kind), name), ""
        if item is None and forever and kind in SAVED:
            self._trash.remove(self._trash.find(kind, name, owner=owner))
            return ""
        if item is not None and not forever and kind in SAVED:
            # First: after a kill in between, it is there twice, and restoring it changes nothing.
            deleted_id = self._trash.keep(kind, name, item.content, self._clock(), owner=owner).id
        if not self._items.delete(owner, kind, name):
            raise MissingEntryError(f"There is no saved {kind} `{name}`.", advice="List the saved items first.")
        return deleted_id

    def restore(self, owner: str, kind: str, text: str) -> SavedItem:
        """Put a deleted item back, and return it.

        Args:
            owner: name of the user.
            kind: a name in ``SAVED_KINDS``.
            text: its id or, where no other deleted item of the kind has it, its name.

        Raises:
            UnknownNameError: where the kind is none of ``SAVED_KINDS``.
            MissingEntryError: where it is not deleted, or is removed from the disk.
            UsageError: where another item has its name now, several deleted ones have the name, or the user has too
                many items.
        """
        with self._restoring:
            deleted = self._trash.find(_known(kind), text, owner=owner)
            other = self._items.get(owner, kind, deleted.name)
            if other is not None and other.content != deleted.content:
                raise UsageError(
                    f"There is another saved {kind} of the name `{deleted.name}` now.",
                    advice=f"Delete that one, or save it under another name first; then restore {deleted.id}.",
                    details={"id": deleted.id, "name": deleted.name},
                )
            item = other or self._items.put(owner, kind, deleted.name, deleted.content)
            self._trash.remove(deleted)
            return item


def _known(kind: str) -> str:
    if kind not in SAVED_KINDS:
        raise UnknownNameError("kind of saved item", kind, SAVED_KINDS)
    return kind
