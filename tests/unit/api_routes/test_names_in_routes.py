"""Names of jobs stand wherever an id may: in paths, queries and bodies of every route of the API."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from tests.unit.api_routes.conftest import Browser
from ziggurat.api.app import create_app
from ziggurat.server.job_names import PATH_FIELDS, job_fields
from ziggurat.server.permissions import requirements

OTHER_PATH_FIELDS = {
    "class_index", "extension", "kind", "name", "number", "row", "split", "ticket", "token_id", "upload_id", "which",
}  # fmt: skip
"""Fields of paths that name no job."""

WORDS = {"dataset", "datasets", "model", "job", "jobs", "ids", "evaluation", "map", "parent", "before", "other"}
"""Names of fields that hold ids of jobs, if they are texts."""

NO_JOBS = {("GET /datasets/{job_id}/boxes/{split}/{row}/proposals", "source"), ("POST /uploads", "id")}
"""Routes and fields with ids of other things."""


def api_routes():
    app = create_app(SimpleNamespace(people=None, notices=None))
    for route, _ in requirements(app.router.routes):
        if route.path.startswith("/api/v1/"):
            for method in route.methods - {"HEAD"}:
                yield f"{method} {route.path.removeprefix('/api/v1')}", route


ROUTES = dict(api_routes())


def texts_of(route):
    """Yield the place of each text in query and body: parameter, field (empty if it is no model), description."""
    for given in (*route.dependant.query_params, *route.dependant.body_params):
        annotation = given.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, field in annotation.model_fields.items():
                yield given.name, name, field
        else:
            yield given.name, "", given.field_info


def is_reference(name, field):
    is_text = "str" in str(field.annotation)
    return is_text and (name in WORDS or re.match(r"Ids?\b", field.description or "") is not None)


def test_every_path_field_is_a_job_or_known_to_be_none():
    found = {field.name for route in ROUTES.values() for field in route.dependant.path_params}
    assert found - OTHER_PATH_FIELDS == set(PATH_FIELDS)


def test_every_field_that_holds_an_id_takes_a_name():
    checked = set()
    for address, route in ROUTES.items():
        marked = job_fields(route.dependant)
        for parameter, field, info in texts_of(route):
            name = field or parameter
            if is_reference(name, info) and (address, name) not in NO_JOBS:
                marker = marked.get(parameter, {})
                assert marker if not field else field in marker, f"{address}: `{name}` takes no name of a job"
                checked.add(name)
    assert checked >= WORDS - {"jobs", "other"}


def test_names_stand_in_a_query_and_a_body(ask, train):
    ids = [train(spec={"name": name, "batch_size": size})["id"] for name, size in (("My run", 4), ("42", 8))]
    compared = ask("GET", "/api/v1/compare?job=My run&job=42").json()
    assert [each["id"] for each in compared["jobs"]] == ids
    queue = ask("POST", "/api/v1/jobs/42/reorder", json={"before": "My run"}).json()["jobs"]
    assert [each["id"] for each in queue] == ids[::-1]
    done = ask("POST", "/api/v1/jobs/actions", json={"action": "stop", "ids": ["My run", ids[1]]}).json()["results"]
    assert [(each["id"], each["done"]) for each in done] == [(each, True) for each in ids]
    clone = train(parent="My run")
    assert clone["parent"] == ids[0]


def test_names_stand_behind_a_prefix(studio, train):
    job = train(spec={"name": "My run"})
    ask = Browser(create_app(studio, prefix="/lab"))
    assert ask("GET", "/lab/api/v1/jobs/My run").json()["id"] == job["id"]


def test_names_of_datasets_stand_where_they_are_used(ask, studio, pets):
    name = studio.jobs.get(pets).name
    for path in ("recipe", "networks"):
        by_name, by_id = (ask("GET", f"/api/v1/datasets/{each}/{path}") for each in (name, pets))
        assert (by_name.status_code, by_name.json()) == (200, by_id.json())
    merged = ask("POST", "/api/v1/dataset-merges", json={"datasets": [name, name]})
    assert merged.status_code == 201, merged.text
    assert ask("GET", "/api/v1/datasets/digits/recipe").json()["network"]


def test_an_ambiguous_name_in_a_body_lists_its_jobs(ask, train):
    ids = {train(spec={"name": "twin"})["id"] for _ in range(2)}
    answer = ask("POST", "/api/v1/jobs/actions", json={"action": "stop", "ids": ["twin"]})
    assert answer.status_code == 400
    assert set(answer.json()["details"]["ids"]) == ids


def test_an_id_goes_before_an_equal_name(ask, train):
    first = train(spec={"name": "first"})["id"]
    train(spec={"name": first})
    assert ask("GET", f"/api/v1/compare?job={first}").json()["jobs"][0]["name"] == "first"


@pytest.mark.parametrize("path", ["/jobs/frist", "/compare?job=frist"])
def test_a_mistyped_name_is_suggested(ask, train, path):
    job = train(spec={"name": "first"})["id"]
    answer = ask("GET", f"/api/v1{path}")
    assert answer.status_code == 404
    assert answer.json()["advice"] == f"Did you mean `{job}` (first)?"
    assert answer.json()["details"]["nearest"] == [job]


def test_a_deleted_job_is_restored_by_its_name(ask, train):
    gone = train(spec={"name": "twin"})["id"]
    ask("DELETE", f"/api/v1/jobs/{gone}", params={"force": True})
    train(spec={"name": "twin"})
    assert ask("POST", "/api/v1/trash/twin/restore").json()["id"] == gone
