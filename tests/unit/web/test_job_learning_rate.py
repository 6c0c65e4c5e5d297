"""The learning rate of a running training: set by hand, refused, confirmed, and given back to its schedule."""

from __future__ import annotations

import re

import pytest

from tests.unit.web.html_page import html_of
from tests.unit.web.test_job_page import _text, _words, begun, store
from ziggurat.events import ScalarLogged

__all__ = ["begun", "store"]


def test_the_learning_rate_is_set_and_the_worker_confirms(visit, store, studio, begun):
    job = begun()
    place = f"/jobs/{job.id}/learning-rate"

    assert visit.post(place, data={"value": "0.002"}).status_code == 303

    assert studio.jobs.hyperparameters(job.id) == {"learning_rate": 0.002}
    page = html_of(visit.get(f"/models/{job.id}"))
    assert page.one("#rate-current").text == "0.01"
    assert "0.002" in page.one("[data-rate-set]").text
    assert page.has('[role="status"][data-rate-set="sent"]')
    store.events.take(job.id, 1, 2, [ScalarLogged(time=13.0, tag="learning_rate", value=0.002, step=22, epoch=2)])
    assert "22" in html_of(visit.get(f"/models/{job.id}")).one('[data-rate-set="confirmed"]').text


@pytest.mark.parametrize("value", ["", "fast", "nan", "inf", "-0.1", "0"])
def test_a_learning_rate_that_is_none_is_refused_at_its_field(visit, studio, begun, value):
    job = begun()

    page = visit.post(f"/jobs/{job.id}/learning-rate", data={"value": value})

    assert page.status_code == 422
    assert "is no learning rate: it must be a number above 0" in html_of(page).one("#job-rate-problem .problem").text
    assert not html_of(page).has("#job-said .note"), "it is said once"
    assert studio.jobs.hyperparameters(job.id) == {}


def test_what_is_wrong_with_a_rate_stays_while_steps_go_on(visit, begun):
    job = begun()
    place = f"/jobs/{job.id}/learning-rate"
    headers = {"HX-Request": "true", "HX-Target": "form#rate-form"}

    answer = visit.post(place, data={"value": "-1"}, headers=headers)
    live = visit.part(f"/models/{job.id}", "job-live")
    right = visit.post(place, data={"value": "0.02"}, headers=headers)

    (problem,) = re.findall(
        r'<hx-partial hx-target="#job-rate-problem" hx-swap="innerHTML">(.*?)</hx-partial>', answer.text, re.S
    )
    assert "must be a number above 0" in problem
    assert 'hx-target="#job-rate-problem"' not in live.text
    assert 'hx-target="#job-said"' not in live.text
    assert re.search(r'<hx-partial hx-target="#job-rate-problem" hx-swap="innerHTML">\s*</hx-partial>', right.text)


def test_a_rate_with_a_decimal_comma_asks(visit, studio, begun):
    job = begun()

    page = visit.post(f"/jobs/{job.id}/learning-rate", data={"value": "0,01"})

    assert page.status_code == 422
    assert "Did you mean 0.01?" in page.text
    assert studio.jobs.hyperparameters(job.id) == {}


def test_the_learning_rate_of_a_job_that_waits_is_not_set(visit, train):
    page = visit.post(f"/jobs/{train().id}/learning-rate", data={"value": "0.1"})

    assert page.status_code == 409
    assert "hyperparameters are set while a training runs." in _text(page)


def test_the_button_gives_a_rate_by_hand_back_to_its_schedule(visit, store, studio, begun):
    job = begun()
    place, button = f"/jobs/{job.id}/learning-rate", "#rate-schedule"
    before = html_of(visit.get(f"/models/{job.id}"))
    assert before.has('[data-rate-set="schedule"]')
    assert not before.has(button)
    visit.post(place, data={"value": "0.002"})
    by_hand = html_of(visit.get(f"/models/{job.id}"))
    assert by_hand.one(button)["form"] == by_hand.one(f'form[action="{place}/schedule"]')["id"]
    assert by_hand.one("[data-rate-set]")["data-rate-set"] == "sent"

    assert visit.post(f"{place}/schedule").status_code == 303

    assert studio.jobs.hyperparameters(job.id) == {}
    after = html_of(visit.get(f"/models/{job.id}"))
    assert after.has('[data-rate-set="schedule"]')
    assert not after.has(button)
    noted = studio.people.audit(limit=1).entries[0]
    assert (noted.action, noted.target) == ("job.hyperparameter", job.id)
    assert noted.details == {"name": "learning_rate", "value": None}


def test_a_rate_not_set_by_hand_is_not_given_back(visit, begun):
    job = begun()

    page = visit.post(f"/jobs/{job.id}/learning-rate/schedule")

    assert page.status_code == 409
    text = _text(page)
    assert "was not set by hand, so it does not go back to its schedule" in text
    assert f"learning_rate of {job.id} was not set by hand" in text
    assert "There is nothing to do: it follows it." in text


def test_a_rate_set_by_hand_stays_so_in_a_job_that_was_stopped(visit, store, studio, begun):
    job = begun()
    visit.post(f"/jobs/{job.id}/learning-rate", data={"value": "0.002"})
    assert store.jobs.move(job.id, ("running",), "stopped", ended=14.0)

    page = html_of(visit.get(f"/models/{job.id}"))
    assert page.has('[data-rate-set="kept"]')
    assert not page.has("#rate-schedule")
    refused = visit.post(f"/jobs/{job.id}/learning-rate/schedule")
    assert refused.status_code == 409
    assert "; a hyperparameter goes back to its schedule while a training runs" in _text(refused)
    assert studio.jobs.hyperparameters(job.id) == {"learning_rate": 0.002}


def test_a_rate_far_above_the_present_one_is_confirmed(visit, studio, begun):
    job = begun()
    place = f"/jobs/{job.id}/learning-rate"
    page = visit.post(place, data={"value": "5"})

    assert page.status_code == 422
    assert studio.jobs.hyperparameters(job.id) == {}
    assert "is more than 10 times the present one" in _words(page.text)
    assert "The learning rate 5 is more than 10 times the present one, 0.01" in _words(page.text)
    assert html_of(page).one("#rate-force")["name"] == "force"
    assert visit.post(place, data={"value": "5", "force": "true"}).status_code == 303
    assert studio.jobs.hyperparameters(job.id) == {"learning_rate": 5.0}
    assert visit.post(place, data={"value": "50"}).status_code == 303, "ten times what was set by hand"
