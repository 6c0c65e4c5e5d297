"""Drafts of forms: kept for a user and a page, without files and secrets."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from ziggurat.entities import Identity
from ziggurat.web.drafts import drop_draft, load_draft, save_draft


def request_of(studio: Any, name: str = "local") -> Request:
    who = Identity(user=None, role="admin", scope="admin", by=name)
    app = SimpleNamespace(state=SimpleNamespace(studio=studio))
    return Request({"type": "http", "app": app, "state": {"identity": who}})


def test_a_draft_comes_back_as_it_was_saved(studio):
    request = request_of(studio)
    assert load_draft(request, "new-model") is None
    saved = save_draft(request, "new-model", FormData([("name", "one"), ("tag", "a"), ("tag", "b")]))
    assert saved is not None
    assert saved.fields == (("name", "one"), ("tag", "a"), ("tag", "b"))
    assert load_draft(request, "new-model") == saved
    assert saved.form().getlist("tag") == ["a", "b"]
    assert load_draft(request, "new-dataset") is None
    assert load_draft(request_of(studio, "other"), "new-model") is None
    drop_draft(request, "new-model")
    drop_draft(request, "new-model")
    assert load_draft(request, "new-model") is None


def test_files_and_secrets_are_left_out(studio):
    file = UploadFile(BytesIO(b"x"), filename="x.py")
    secrets = [("password", "p"), ("api_token", "t"), ("url", "https://u:p@host/x")]
    form = FormData([("files", file), ("upload", "17-ab"), *secrets, ("source", "https://host/x")])
    draft = save_draft(request_of(studio), "new-dataset", form)
    assert draft is not None
    assert draft.fields == (("upload", "17-ab"), ("source", "https://host/x"))


def test_a_draft_that_is_too_large_is_not_kept(studio):
    assert save_draft(request_of(studio), "new-model", FormData([("text", "x" * (1 << 20))])) is None


def test_what_a_program_saved_as_a_draft_may_be_none(studio):
    for content in ({"a": 1}, 3, [["a"]], [["a", 1]], None):
        studio.saved.put("local", "draft", "new-model", content)
        assert load_draft(request_of(studio), "new-model") is None
