"""The filter of jobs is defined once: the shell, the REST API and the home page know the same fields of it."""

from __future__ import annotations

from dataclasses import fields

from starlette.datastructures import QueryParams

from ziggurat.api.schemas import BulkBody
from ziggurat.cli.job import job
from ziggurat.entities import JOB_KINDS, JOB_STATES, JobFilter
from ziggurat.web.pages.home.query import HomeQuery, query_of
from ziggurat.workspace.job_query import JobQuery

FIELDS = set(JobQuery.model_fields)


def test_shell_and_home_page_have_every_field_of_the_query():
    options = {option.name for option in job.commands["list"].params}
    typed = {"text": "q", "where": "q"}  # the page has one box for both
    address = {typed.get(name, "states" if name == "state" else name) for name in FIELDS}
    assert options >= FIELDS - {"offset"}
    assert next(each.opts for each in job.commands["list"].params if each.name == "where") == ["--where", "--filter"]
    assert {each.name for each in fields(HomeQuery)} >= address


def test_query_becomes_a_filter_of_all_its_fields():
    query = JobQuery.model_validate(
        {
            "offset": 5, "limit": 7, "kind": JOB_KINDS, "state": JOB_STATES, "project": "", "text": "a", "tag": "b",
            "group": "c", "owner": "d", "where": ["x > 1 and y = no", "z != 2"], "sort": "name",
        }
    )  # fmt: skip
    chosen = query.chosen(group_by="project")
    assert chosen == JobFilter(
        kinds=JOB_KINDS, states=JOB_STATES, project="", text="a", tag="b", group="c", owner="d", group_by="project",
        conditions=(("x", ">", 1), ("y", "=", "no"), ("z", "!=", 2)), sort="name", descending=False, offset=5, limit=7,
    )  # fmt: skip
    of_pages = ("words", "listing")
    assert all(getattr(chosen, each.name) != each.default for each in fields(JobFilter) if each.name not in of_pages)


def test_home_page_and_rest_make_the_same_filter():
    address = "kind=all&state=done&project=pets&tag=b&group=c&owner=d&where=x+%3E+1&sort=name&offset=50&limit=50"
    body = {"state": ["done"], "project": "pets", "tag": "b", "group": "c", "owner": "d",
            "where": ["x > 1"], "sort": "name", "offset": 50, "limit": 50}  # fmt: skip
    asked = BulkBody.model_validate({"action": "stop", "filter": body}).filter
    assert asked is not None
    assert query_of(QueryParams(address)).chosen() == asked.chosen()
