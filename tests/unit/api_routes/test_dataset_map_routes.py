"""Routes of maps: queued with features that fit, and what a finished one tells of samples."""

from __future__ import annotations

import pytest

from tests.unit.map_samples import add_map


@pytest.fixture
def no_tsne(monkeypatch):
    monkeypatch.setattr("ziggurat.workspace.studio.dataset_maps.find_spec", lambda _name: None)


def test_a_map_is_queued_with_own_features_of_small_images(ask, studio, pets):
    made = ask("POST", f"/api/v1/datasets/{pets}/maps", json={"tsne": False, "seed": 3})
    assert made.status_code == 201, made.text
    job = made.json()
    assert (job["kind"], job["state"], job["name"]) == ("embed", "queued", "pets by own features")
    assert {name: job["spec"][name] for name in ("features", "tsne", "seed", "folds", "limit")} == {
        "features": "own", "tsne": False, "seed": 3, "folds": 5, "limit": 50_000
    }  # fmt: skip
    assert [each["id"] for each in ask("GET", f"/api/v1/datasets/{pets}/maps").json()] == [job["id"]]
    assert studio.people.audit_log()[0].action == "dataset.map" if hasattr(studio.people, "audit_log") else True


def test_tsne_without_its_package_names_the_extra(ask, pets, no_tsne):
    refused = ask("POST", f"/api/v1/datasets/{pets}/maps", json={})
    assert "pip install 'ziggurat[maps]'" in refused.json()["advice"]
    assert ask("POST", f"/api/v1/datasets/{pets}/maps", json={"tsne": False}).status_code == 201


def test_features_of_a_model_need_the_model(ask, pets):
    refused = ask("POST", f"/api/v1/datasets/{pets}/maps", json={"features": "model", "tsne": False})
    assert refused.json()["details"]["field"] == "model"
    missing = ask("POST", f"/api/v1/datasets/{pets}/maps", json={"model": "nothing", "tsne": False})
    assert missing.status_code == 404


def test_a_map_of_what_is_no_dataset_is_refused(ask):
    assert ask("POST", "/api/v1/datasets/nothing/maps", json={}).status_code == 404
    assert ask("GET", "/api/v1/datasets/nothing/maps").status_code == 404


def test_similar_samples_come_nearest_first(ask, studio, pets):
    job = add_map(studio, pets)
    found = ask("GET", f"/api/v1/datasets/{pets}/similar?sample=train/0&limit=4").json()
    assert (found["map"], found["features"], found["sample"]) == (job.id, "own pixels", "train/0")
    cosines = [each["similarity"] for each in found["samples"]]
    assert cosines == sorted(cosines, reverse=True)
    assert len(cosines) == 4
    assert {"split", "row", "key", "label", "similarity"} == found["samples"][0].keys()
    by_key = ask("GET", f"/api/v1/datasets/{pets}/similar", params={"sample": "cat/0.png", "limit": 4})
    assert by_key.status_code == 200, by_key.text


def test_similar_samples_need_a_map_and_the_sample(ask, studio, pets):
    nothing = ask("GET", f"/api/v1/datasets/{pets}/similar?sample=train/0")
    assert (nothing.status_code, nothing.json()["rule"].startswith("There is no map ")) == (404, True)
    add_map(studio, pets, limit=4)
    unknown = ask("GET", f"/api/v1/datasets/{pets}/similar?sample=train/99")
    assert unknown.status_code == 404
    left_out = [
        row for row in range(8) if ask("GET", f"/api/v1/datasets/{pets}/similar?sample=train/{row}").status_code == 404
    ]
    assert len(left_out) >= 4
    other = ask("GET", f"/api/v1/datasets/{pets}/similar?sample=train/0&map=other")
    assert other.status_code == 404


def test_findings_say_where_they_come_from(ask, studio, pets):
    add_map(studio, pets)
    labels = ask("GET", f"/api/v1/datasets/{pets}/findings/label-errors").json()
    assert labels["source"] == "own pixels, 5 folds"
    assert labels["total"] >= len(labels["samples"])
    for each in labels["samples"]:
        assert each["predicted"] != each["label"]
        assert each["label_score"] < each["score"]
    near = ask("GET", f"/api/v1/datasets/{pets}/findings/near-duplicates").json()
    assert near["source"] == "own pixels"
    assert ask("GET", f"/api/v1/datasets/{pets}/findings/nothing").status_code == 422
