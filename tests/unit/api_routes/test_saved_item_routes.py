"""Saved items over REST: every user has their own."""

from __future__ import annotations

import pytest

PLACE = "/api/v1/saved"


def names(answer):
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()]


def test_items_are_saved_listed_and_deleted(ask):
    saved = ask("PUT", f"{PLACE}/view/best/of all", json={"content": {"sort": "-accuracy"}})
    assert saved.status_code == 200
    assert saved.json() | {"changed": 0} == {
        "owner": "local", "kind": "view", "name": "best/of all", "content": {"sort": "-accuracy"}, "changed": 0
    }  # fmt: skip
    assert names(ask("GET", f"{PLACE}/view")) == ["best/of all"]
    assert names(ask("GET", f"{PLACE}/preset")) == []
    assert ask("DELETE", f"{PLACE}/view/best/of all").status_code == 204
    assert ask("DELETE", f"{PLACE}/view/best/of all").status_code == 404
    assert names(ask("GET", f"{PLACE}/view")) == []


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("views/x", 1, "Did you mean `view`"),
        ("view/ ", 1, "must have a name"),
        ("view/a%01b", 1, "control characters"),
        ("preset/large", "x" * (1 << 20), "at most 1"),
    ],
)
def test_items_that_cannot_be(ask, path, content, words):
    answer = ask("PUT", f"{PLACE}/{path}", json={"content": content})
    assert 400 <= answer.status_code < 500
    assert words in answer.text


def test_users_see_their_own_items_only(ask_as):
    viewer, trainer, reader = ask_as("viewer", "write"), ask_as("trainer", "write"), ask_as("viewer", "read")
    assert viewer("PUT", f"{PLACE}/view/mine", json={"content": 1}).status_code == 200
    assert names(viewer("GET", f"{PLACE}/view")) == ["mine"]
    assert names(trainer("GET", f"{PLACE}/view")) == []
    assert trainer("DELETE", f"{PLACE}/view/mine").status_code == 404
    assert reader("PUT", f"{PLACE}/view/mine", json={"content": 1}).status_code == 403
