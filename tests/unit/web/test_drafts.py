"""Drafts of forms: kept for a user and a page, without files and secrets."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from ziggurat.entities import Identity
from ziggurat.web.drafts import drop_draft, load_draft, save_draft


def request_of(studio: Any, name: str = "local", *, query: str = "", **headers: str) -> Request:
    who = Identity(user=None, role="admin", scope="admin", by=name)
    app = SimpleNamespace(state=SimpleNamespace(studio=studio))
    sent = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    scope = {"type": "http", "app": app, "state": {"identity": who}, "query_string": query.encode(), "headers": sent}
    return Request(scope)


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


def test_two_tabs_do_not_overwrite_each_other(studio):
    first = request_of(studio, hx_current_url="http://here/models/new?draft=aaaa1111")
    second = request_of(studio, referer="http://here/models/new?clone=x&draft=bbbb2222")
    save_draft(first, "new-model", FormData([("epochs", "11")]))
    save_draft(second, "new-model", FormData([("epochs", "22")]))
    save_draft(first, "new-model", FormData([("epochs", "12")]))

    def shown(query: str) -> Any:
        draft = load_draft(request_of(studio, query=query), "new-model")
        return draft and dict(draft.fields)["epochs"]

    assert shown("draft=aaaa1111") == "12"
    assert shown("draft=bbbb2222") == "22"
    assert shown("") == "12", "a page that is opened anew begins with the newest"
    assert shown("draft=cccc3333") is None, "a tab that was reset is empty"
    drop_draft(first, "new-model")
    assert shown("draft=aaaa1111") is None
    assert shown("draft=bbbb2222") == shown("") == "22"
    save_draft(first, "new-model", FormData([("epochs", "13")]))
    drop_draft(request_of(studio), "new-model")
    assert shown("") is shown("draft=bbbb2222") is None, "without a name of a tab, all drafts go"


def test_names_of_tabs_that_are_none_are_one_tab(studio):
    for place in ("http://[", "http://here/?draft=../../x", "http://here/?draft="):
        save_draft(request_of(studio, referer=place), "new-model", FormData([("place", place)]))
    assert [each.name for each in studio.saved.list("local", "draft")] == ["new-model"]


def test_old_drafts_of_closed_tabs_go(studio):
    for number in range(12):
        tab = f"draft=tab{number:04d}"
        save_draft(request_of(studio, query=tab), "new-model", FormData([("number", str(number))]))
    kept = studio.saved.list("local", "draft")
    assert len(kept) == 8
    assert "new-model/tab0011" in {each.name for each in kept}


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
