"""Shows that the page of the REST API has every operation with who may use it, what it takes and what it returns."""

from __future__ import annotations

from typing import Any

from tests.unit.web.html_page import html_of
from ziggurat.web.pages.rest_api.view import Content, Parameter, groups_of
from ziggurat.workspace.accounts import LOCAL


def test_every_operation_and_schema_is_on_the_page(visit: Any) -> None:
    document = visit.get("/api/v1/openapi.json").json()
    page = html_of(visit.get("/api/v1/docs"))
    shown = [
        f"{each.one('.rest-method').text} {each.one('code').text}"
        for each in page.all(".fold summary")
        if each.has(".rest-method")
    ]
    expected = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    assert sorted(shown) == sorted(expected)
    ids = {each["id"] for each in page.all(".fold-body[id]")}
    assert ids == {f"schema-{name}" for name in document["components"]["schemas"]}
    assert {each["href"][1:] for each in page.all(".rest-list a")} <= ids
    linked = {each["href"][1:] for each in page.all(".rest-groups a")}
    assert linked == {each["id"] for each in page.all(".rest-list h2")}


def test_one_operation_names_what_it_needs_takes_and_returns() -> None:
    operation = {
        "tags": ["people"],
        "summary": "Make",
        "x-needs": {"role": "admin", "scope": "write"},
        "parameters": [
            {"name": "by", "in": "query", "schema": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "é"}}
        ],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
        "responses": {
            "204": {"description": "Nothing."},
            "default": {"content": {"application/json": {"schema": {"items": {"$ref": "#/components/schemas/Error"}}}}},
        },
    }
    (group,) = groups_of({"paths": {"/made": {"post": operation}}})
    (found,) = group.operations
    assert (group.name, found.method, found.path) == ("people", "POST", "/made")
    assert (found.role, found.scope) == ("admin", "write")
    assert found.parameters == [Parameter("by", "query", "string or null", 'Default: `"é"`.')]
    assert found.body == [Content("", "application/json", "New", is_list=False, text="")]
    assert found.responses == [
        Content("204", "", "", is_list=False, text="Nothing."),
        Content("default", "application/json", "Error", is_list=True, text=""),
    ]


def test_the_page_needs_a_login_once_there_are_accounts(visit: Any, studio: Any) -> None:
    assert visit.get("/api/v1/docs").status_code == 200
    studio.people.create_user("ann", "a long password", role="admin", by=LOCAL)
    answer = visit.get("/api/v1/docs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fapi%2Fv1%2Fdocs")
