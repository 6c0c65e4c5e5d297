"""Instant checks of network code over REST."""

from __future__ import annotations


def test_mistakes_come_with_their_place(ask):
    answer = ask("POST", "/api/v1/networks/check", json={"text": "class UserModel(Tower)\n"})
    (found,) = answer.json()["findings"]
    assert answer.status_code == 200
    assert (found["line"], found["column"], found["level"]) == (1, 23, "error")
    assert found["rule"].startswith("Syntax error")


def test_the_backend_must_be_known_and_the_text_be_there(ask, ask_as):
    assert ask("POST", "/api/v1/networks/check", json={"text": "x", "backend": "kaffe"}).status_code == 422
    assert ask("POST", "/api/v1/networks/check", json={}).status_code == 422
    assert ask_as("viewer", "write")("POST", "/api/v1/networks/check", json={"text": "x"}).status_code == 403
