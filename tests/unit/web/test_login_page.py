"""What is shown to people who are not logged in, and to those whose role does not allow a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.web.html_page import html_of

Visits = Callable[[str], Any]


def test_a_wrong_password_is_said_and_the_name_stays(visit: Any, visit_as: Visits) -> None:
    visit_as("trainer")
    answer = visit.post("/login", data={"name": "trainer", "password": "wrong", "next": "/models/new"})
    assert answer.status_code == 401
    page = html_of(answer)
    assert page.one('[role="alert"]').text.startswith("Name or password is wrong.")
    assert page.one('input[name="name"]')["value"] == "trainer"
    assert not page.one('input[name="password"]').attributes.get("value")
    assert page.one('input[name="next"]')["value"] == "/models/new"


@pytest.mark.parametrize(("asked", "led_to"), [("/models/new", "/models/new"), ("https://example.org/", "/")])
def test_the_login_leads_to_a_page_of_the_studio(visit: Any, visit_as: Visits, asked: str, led_to: str) -> None:
    visit_as("trainer")
    answer = visit.post("/login", data={"name": "trainer", "password": "correct horse battery", "next": asked})
    assert (answer.status_code, answer.headers["location"]) == (303, led_to)


def test_a_page_that_a_role_does_not_allow_says_so(visit_as: Visits, train: Callable[..., Any]) -> None:
    job = train()
    viewer = visit_as("viewer")
    answers = [viewer.get(path) for path in ("/models/new", "/datasets/new", "/settings", "/settings/users")]
    answers.append(viewer.post(f"/jobs/{job.id}/change", data={"name": "mine"}))
    for answer in answers:
        assert answer.status_code == 403, answer.url
        page = html_of(answer)
        assert page.one("h1").text == "Not allowed"
        assert "Your role is viewer" in page.one('[role="alert"]').text
    assert "This needs the role trainer" in html_of(answers[-1]).one('[role="alert"]').text


def test_a_viewer_can_send_views_alone(visit_as: Visits, train: Callable[..., Any]) -> None:
    job = train()
    viewer = visit_as("viewer")
    home = html_of(viewer.get("/")).one("main")
    links = {each.text for each in home.all("a")}
    assert not links & {"New dataset", "New model", "Clone"}
    forms = [each["action"] for each in home.all('form[method="post"]')]
    assert forms == ["/views", "/jobs/compare"]
    page = html_of(viewer.get(f"/models/{job.id}")).one("main")
    assert not page.all('form[method="post"]')
    assert not page.has("#job-clone")
    assert not [
        each.text for each in page.all("button") if each.text.startswith(("Delete", "Rename", "Save", "Resume"))
    ]
