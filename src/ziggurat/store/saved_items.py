"""Repository of saved items: views, presets and drafts of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Row

from ziggurat.entities import SavedItem
from ziggurat.errors import UsageError
from ziggurat.store.database import Database
from ziggurat.store.tables import saved_items, short_text

__all__ = ["SavedItemRepository"]

MOST_ITEMS: Final = 200
"""Items of one owner and kind."""

_NAME: Final = "The name of a saved item"


class SavedItemRepository:
    """The saved items; every method is one transaction.

    Args:
        database: where they are.
        clock: returns seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def all(self, owner: str, kind: str) -> list[SavedItem]:
        """Return the items of an owner and kind by name."""
        return list(self._database.until_changed(("saved_items", owner, kind), lambda: self._all(owner, kind)))

    def _all(self, owner: str, kind: str) -> list[SavedItem]:
        with self._database.read() as connection:
            rows = connection.execute(sa.select(saved_items).where(*_chosen(owner, kind))).all()
        return sorted(map(_item_of, rows), key=lambda item: (item.name.casefold(), item.name))

    def get(self, owner: str, kind: str, name: str) -> SavedItem | None:
        """Return the item of that name, or None."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(saved_items).where(*_chosen(owner, kind, name))).one_or_none()
        return None if row is None else _item_of(row)

    def put(self, owner: str, kind: str, name: str, content: Any) -> SavedItem:
        """Save an item; one of the same owner, kind and name is replaced.

        Raises:
            UsageError: where the name is too long, or the owner has too many items of the kind.
        """
        values = {"content": content, "changed": self._clock()}
        whole = {"owner": owner, "kind": kind, "name": short_text(name, _NAME), **values}
        with self._database.write() as connection:
            changed = connection.execute(sa.update(saved_items).where(*_chosen(owner, kind, name)).values(values))
            if not changed.rowcount:
                count = sa.select(sa.func.count()).select_from(saved_items).where(*_chosen(owner, kind))
                if connection.execute(count).scalar_one() >= MOST_ITEMS:
                    raise UsageError(
                        f"A user may keep at most {MOST_ITEMS} saved items of a kind.",
                        received=f"one more {kind}",
                        advice="Delete one that is no longer needed.",
                    )
                connection.execute(sa.insert(saved_items).values(whole))
            return _item_of(connection.execute(sa.select(saved_items).where(*_chosen(owner, kind, name))).one())

    def delete(self, owner: str, kind: str, name: str) -> bool:
        """Delete an item; return whether there was one."""
        with self._database.write() as connection:
            return connection.execute(sa.delete(saved_items).where(*_chosen(owner, kind, name))).rowcount > 0


def _chosen(owner: str, kind: str, *names: str) -> list[ColumnElement[bool]]:
    conditions = [saved_items.c.owner == owner, saved_items.c.kind == kind]
    return conditions + [saved_items.c.name == name for name in names]


def _item_of(row: Row[Any]) -> SavedItem:
    return SavedItem(owner=row.owner, kind=row.kind, name=row.name, content=row.content, changed=row.changed)
