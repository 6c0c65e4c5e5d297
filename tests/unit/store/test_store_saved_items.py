"""Saved items of the store, on SQLite and PostgreSQL."""

from __future__ import annotations

import pytest

from ziggurat.errors import UsageError
from ziggurat.store import Store
from ziggurat.store.saved_items import MOST_ITEMS


def test_items_are_saved_replaced_and_deleted(store: Store) -> None:
    items = store.saved_items
    first = items.put("ann", "view", "Best", {"sort": "-accuracy", "n": 1})
    assert items.get("ann", "view", "Best") == first
    second = items.put("ann", "view", "Best", ["other"])
    items.put("ann", "view", "all", None)
    assert (second.content, second.changed) == (["other"], 1_700_000_000.0)
    assert [item.name for item in items.all("ann", "view")] == ["all", "Best"]
    assert items.delete("ann", "view", "Best")
    assert not items.delete("ann", "view", "Best")
    assert items.get("ann", "view", "Best") is None


def test_owners_and_kinds_are_kept_apart(store: Store) -> None:
    items = store.saved_items
    for owner, kind in (("ann", "view"), ("ann", "preset"), ("bob", "view")):
        items.put(owner, kind, "one", [owner, kind])
    assert [item.content for item in items.all("ann", "view")] == [["ann", "view"]]
    items.delete("ann", "view", "one")
    assert [item.content for item in items.all("bob", "view")] == [["bob", "view"]]


def test_number_of_items_is_limited(sqlite_store: Store) -> None:
    items = sqlite_store.saved_items
    for number in range(MOST_ITEMS):
        items.put("ann", "view", str(number), number)
    items.put("ann", "view", "0", "replaced")
    items.put("ann", "preset", "one more", 1)
    with pytest.raises(UsageError, match=f"at most {MOST_ITEMS} saved items"):
        items.put("ann", "view", "one more", 1)
    with pytest.raises(UsageError, match="at most 200 characters"):
        items.put("ann", "preset", "n" * 201, 1)
