"""Saved items and instant checks of code from a program."""

from __future__ import annotations

import pytest

from ziggurat.errors import UsageError


def test_items_are_saved_listed_and_deleted(client):
    saved = client.saved.put("preset", "mine/first", {"page": "new-model", "fields": []})
    assert (saved["kind"], saved["name"]) == ("preset", "mine/first")
    assert [each["name"] for each in client.saved.all("preset")] == ["mine/first"]
    client.saved.delete("preset", "mine/first")
    assert client.saved.all("preset") == []
    with pytest.raises(UsageError, match="no saved preset"):
        client.saved.delete("preset", "mine/first")


def test_mistakes_in_code_are_listed(client):
    (found,) = client.models.check("class UserModel(Tower)\n")
    assert (found["line"], found["level"]) == (1, "error")
    assert client.models.check("x = 1\n", backend="null") == []
