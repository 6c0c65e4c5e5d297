"""Names of jobs in the addresses of pages: one leads to the job, one of several jobs to a list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.web.html_page import html_of
from ziggurat.entities import JobChange
from ziggurat.workspace.studio import Studio


def test_name_of_one_job_leads_to_its_id(visit: Any, train: Callable[..., Any], pets: str) -> None:
    job = train(spec={"name": "two words"})
    for path, target in (
        ("/models/two%20words?tab=log", f"/models/{job.id}?tab=log"),
        ("/jobs/two%20words", f"/jobs/{job.id}"),
        ("/models/two%20words/test", f"/models/{job.id}/test"),
        ("/datasets/pets", f"/datasets/{pets}"),
        ("/datasets/pets/samples/train/0", f"/datasets/{pets}/samples/train/0"),
    ):
        answer = visit.get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, target)
    assert visit.get("/models/pets").status_code == 404  # a dataset is no model
    assert visit.get("/datasets/two%20words").status_code == 404


def test_part_of_a_page_takes_a_name_too(visit: Any, train: Callable[..., Any]) -> None:
    job = train()
    assert job.id in visit.part("/models/tiny", "job-live").text


def test_name_of_several_jobs_leads_to_a_list(visit: Any, train: Callable[..., Any]) -> None:
    jobs = [train(), train()]
    answer = visit.get("/models/tiny")
    assert answer.status_code == 300
    tree = html_of(answer)
    assert tree.one("h1").text == "2 jobs are called tiny"
    assert {each["href"] for each in tree.all("#namesakes a")} == {f"/models/{job.id}" for job in jobs}


def test_forms_and_comparison_take_names(visit: Any, studio: Studio, train: Callable[..., Any], pets: str) -> None:
    first, second = train(spec={"name": "one"}), train(spec={"name": "two"})
    assert f'value="{pets}" selected' in visit.get("/models/new?dataset=pets").text
    assert visit.get("/models/new?clone=one").status_code == 200
    studio.jobs.change(first.id, JobChange(name="renamed"))
    answer = visit.get("/compare?job=renamed&job=two").text
    assert first.id in answer
    assert second.id in answer


def test_digits_routes_take_names(visit: Any, train: Callable[..., Any], pets: str) -> None:
    job = train()
    assert visit.get("/models/tiny.json").json()["id"] == job.id
    assert visit.get("/datasets/pets.json").json()["id"] == pets
    assert visit.get("/jobs/tiny/status", headers={"Accept": "*/*"}).json()["name"] == "tiny"
