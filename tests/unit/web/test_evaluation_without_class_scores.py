"""The page and REST of an evaluation whose network gives no class scores: the means, and nothing about classes."""

from typing import Any

import pytest

from tests.unit.web.html_page import html_of
from ziggurat.entities import NewJob
from ziggurat.worker.results import write_results


@pytest.fixture
def evaluation(studio: Any) -> str:
    """Return the id of an evaluation of a siamese network that is done."""
    folder = studio.root / "jobs" / "20260102-000000-0001"
    folder.mkdir(parents=True)
    spec = {"kind": "evaluate", "split": "val", "checkpoint": ""}
    new = NewJob(id=folder.name, kind="evaluate", name="pairs", folder=str(folder), created=1.0, spec=spec)
    summary = {"kind": "evaluate", "split": "val", "data": "/pairs", "classifier": False, "count": 60, "skipped": 0}
    summary |= {"classes": ["different", "same"], "failures": [], "scalars": {"cost": 0.5, "distance": 0.25}}
    summary |= {"step": 120, "epoch": 2, "checkpoint": "step-120", "openings": None}
    write_results(folder / "results", summary)
    return studio.datasets.take_in(new, {}).id


def test_the_page_shows_the_means_alone(visit: Any, evaluation: str) -> None:
    answer = visit.get(f"/evaluations/{evaluation}")
    assert answer.status_code == 200
    shown = html_of(answer).all(".stats dt")
    assert [each.text for each in shown] == ["Loss", "Distance", "Samples"]
    assert html_of(answer).has("#no-samples")
    assert not [word for word in ("Accuracy", "onfusion", "hreshold", "All samples") if word in answer.text]


def test_rest_gives_the_means_and_no_accuracy(visit: Any, evaluation: str) -> None:
    found = visit.get(f"/api/v1/evaluations/{evaluation}").json()
    assert (found["classifier"], found["scalars"]) == (False, {"cost": 0.5, "distance": 0.25})
    assert (found["accuracy"], found["confusion"], found["per_class"]) == (None, [], [])
