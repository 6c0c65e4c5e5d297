"""Routes for corrected boxes: read, saved, refused, undone, made a version of, and proposed by an evaluation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.unit.studio_samples import add_objects
from ziggurat.entities import NewJob
from ziggurat.layout import JobFolder
from ziggurat.worker.results import write_results


@pytest.fixture
def place(studio, tmp_path):
    """Return the address of the boxes of a dataset with one image of 40 x 20 px and one box in it."""
    return f"/api/v1/datasets/{add_objects(studio, tmp_path / 'one')}/boxes"


def box(*sides, **more):
    return {"class": 0, "box": list(sides), **more}


def test_boxes_are_read_with_their_number(ask, place):
    answer = ask("GET", f"{place}/train/0")

    found = answer.json()
    assert (answer.headers["etag"], found["version"], found["size"], found["classes"]) == (
        '"0"',
        0,
        [40, 20],
        ["thing"],
    )
    assert found["objects"] == [{"source": 0, "class": 0, "box": [6.0, 4.0, 20.0, 12.0]}]
    assert ask("GET", f"{place}/train/1").status_code == 404


def test_boxes_are_saved_undone_and_discarded(ask, place):
    saved = ask("PUT", f"{place}/train/0", json={"version": 0, "objects": [box(1, 1, 9, 9), box(2, 2, 5, 5)]})
    assert (saved.status_code, saved.json()["version"], saved.headers["etag"]) == (200, 1, '"1"')
    assert saved.json()["changes"] == "2 added, 1 deleted"
    assert [each["changes"] for each in ask("GET", place).json()] == ["2 added, 1 deleted"]

    undone = ask("POST", f"{place}/train/0/undo", json={"version": 1}).json()
    assert (undone["version"], len(undone["objects"]), undone["changes"]) == (2, 1, "")
    ask("PUT", f"{place}/train/0", json={"version": 2, "objects": []})
    assert ask("DELETE", f"{place}/train/0?version=3").json()["changes"] == ""


def test_an_outdated_save_gets_the_newer_boxes(ask, place):
    ask("PUT", f"{place}/train/0", json={"version": 0, "objects": [box(1, 1, 9, 9)]})

    refused = ask("PUT", f"{place}/train/0", json={"version": 0, "objects": []})

    found = refused.json()
    assert (refused.status_code, found["error"]) == (409, "outdated")
    assert found["details"]["current"]["objects"] == [{"source": None, **box(1, 1, 9, 9)}]
    assert "Load the newer boxes" in found["advice"]


def test_if_match_is_held_against_the_version(ask, place):
    ask.headers["If-Match"] = '"1"'

    answer = ask("PUT", f"{place}/train/0", json={"version": 0, "objects": []})

    assert (answer.status_code, "name the same state" in answer.json()["rule"]) == (400, True)


def test_an_impossible_box_is_refused_by_name(ask, place):
    refused = ask("PUT", f"{place}/train/0", json={"version": 0, "objects": [box(1, 1, 50, 9)]}).json()

    assert (refused["rule"], refused["details"]["box"]) == ("A box lies within its image.", 0)
    assert {"received", "advice"} <= set(refused)


def test_corrections_become_a_version(ask, place, studio):
    ask("PUT", f"{place}/train/0", json={"version": 0, "objects": [box(6, 4, 20, 12, source=0), box(2, 2, 5, 5)]})

    made = ask("POST", f"{place}/versions", json={"name": "better"})

    job = made.json()
    assert (made.status_code, job["name"], job["state"]) == (201, "better", "done")
    found = ask("GET", f"/api/v1/datasets/{job['id']}/samples").json()["samples"][0]
    assert [each["box"] for each in found["label"]] == [[6.0, 4.0, 20.0, 12.0], [2, 2, 5, 5]]
    assert found["label"][0]["details"] == {"id": 1}
    notes = ask("GET", f"/api/v1/datasets/{job['id']}/versions").json()
    assert notes[0]["changes"] == ["Corrected the boxes of 1 sample of train: 1 added."]
    assert ask("GET", place).json() == []
    assert ask("POST", f"{place}/versions", json={}).status_code == 400
    assert studio.people.audit(limit=1).entries[0].action == "dataset.boxes"


def test_simultaneous_requests_make_one_version(ask, place):
    ask("PUT", f"{place}/train/0", json={"version": 0, "objects": [box(2, 2, 5, 5)]})

    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(lambda _: ask("POST", f"{place}/versions", json={}).status_code, range(6)))

    assert sorted(codes) == [201, 400, 400, 400, 400, 400]


def test_viewers_read_boxes_and_change_none(ask_as, place):
    viewer = ask_as("viewer", "write")

    assert viewer("GET", f"{place}/train/0").status_code == 200
    assert viewer("PUT", f"{place}/train/0", json={"version": 0, "objects": []}).status_code == 403
    assert viewer("POST", f"{place}/versions", json={}).status_code == 403


def test_the_one_who_saved_is_named(ask_as, place):
    ask_as("trainer", "write")("PUT", f"{place}/train/0", json={"version": 0, "objects": []})

    assert ask_as("admin", "write")("GET", f"{place}/train/0").json()["user"] == "trainer-write"


# ---- proposals


@pytest.fixture
def evaluated(studio, place):
    """Return the id of an evaluation of a detection model on the dataset, as the worker leaves it."""
    dataset = place.split("/")[4]
    parent = _job(studio, "20260102-000000-0001", "train", {"data": {"source": ""}}, parent=dataset, needs=(dataset,))
    job = _job(studio, "20260102-000000-0002", "evaluate", {"split": "train"}, parent=parent, needs=(parent,))
    detections = np.zeros((1, 100, 6), np.float32)
    detections[0, 0] = (2, 2, 12, 10, 0.9, 0)
    detections[0, 1] = (30, 8, 90, 60, 0.4, 0)
    summary = {
        "split": "train",
        "count": 1,
        "classifier": False,
        "task": "detection",
        "classes": ["thing"],
        "data": str(studio.root / "datasets" / dataset),
    }
    arrays = {
        "rows": np.zeros(1, np.int32),
        "key_offsets": np.array([0, 8]),
        "detections": detections,
        "size": np.array([[40, 80]], np.float32),
    }
    folder = JobFolder(studio.root / "jobs" / job)
    write_results(folder.results, summary, arrays, b"one.png\n")
    return job


def _job(studio, job_id, kind, spec, *, parent, needs):
    folder = studio.root / "jobs" / job_id
    folder.mkdir(parents=True)
    new = NewJob(
        id=job_id, kind=kind, name=kind, folder=str(folder), spec=spec, parent=parent, depends_on=needs, created=2.0
    )
    studio.datasets.take_in(new, {})
    return job_id


def test_an_evaluation_proposes_its_boxes(ask, place, evaluated):
    found = ask("GET", f"{place}/train/0/proposals").json()

    assert found["sources"] == [{"id": f"evaluation/{evaluated}", "title": "train, evaluation on train"}]
    assert found["proposals"] == [  # the model saw an image of twice the size
        {"class": 0, "box": [1.0, 1.0, 6.0, 5.0], "score": pytest.approx(0.9)},
        {"class": 0, "box": [15.0, 4.0, 40.0, 20.0], "score": pytest.approx(0.4)},
    ]


def test_an_unknown_source_lists_those_there_are(ask, place, evaluated):
    answer = ask("GET", f"{place}/train/0/proposals?source=model/none")

    assert answer.json()["details"]["known"] == [f"evaluation/{evaluated}"]


def test_without_a_model_nothing_is_proposed(ask, place):
    answer = ask("GET", f"{place}/train/0/proposals")

    assert (answer.status_code, "Train one first" in answer.json()["advice"]) == (409, True)
