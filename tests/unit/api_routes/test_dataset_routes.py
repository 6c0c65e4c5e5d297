"""Routes of datasets: recognized, made, looked at, checked, changed, and taken away."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np

from ziggurat.dataflow.image_codec import decode_image, encode_image


def test_formats_say_what_they_read(ask):
    names = [each["name"] for each in ask("GET", "/api/v1/dataset-formats").json()]

    assert {"class_folders", "coco", "voc", "yolo", "text_list"} <= set(names)


def test_a_data_set_is_described_and_explored(ask, pets):
    found = ask("GET", f"/api/v1/datasets/{pets}").json()
    assert found["splits"] == {"train": 8, "val": 2}
    assert [each["name"] for each in found["classes"]] == ["cat", "dog"]

    page = ask("GET", f"/api/v1/datasets/{pets}/samples?split=train&class_name=dog&limit=3").json()
    assert (page["total"], len(page["samples"])) == (4, 3)
    assert {each["class_name"] for each in page["samples"]} == {"dog"}


def test_unknown_class_lists_those_that_there_are(ask, pets):
    answer = ask("GET", f"/api/v1/datasets/{pets}/samples?class_name=cow")

    assert answer.status_code == 422
    assert answer.json()["details"]["known"] == ["cat", "dog"]


def test_a_picture_is_small_enough_and_kept_by_the_browser(ask, pets):
    place = f"/api/v1/datasets/{pets}/pictures/train/0"

    whole, small = ask("GET", place), ask("GET", f"{place}?max_side_px=15")
    assert decode_image(whole.content).shape == (20, 30, 3)
    assert decode_image(small.content).shape == (10, 15, 3)
    assert small.headers["etag"] != whole.headers["etag"]

    ask.headers["If-None-Match"] = whole.headers["etag"]
    again = ask("GET", place)
    assert (again.status_code, again.content) == (304, b"")


def test_no_picture_beyond_the_last_row(ask, pets):
    for query in ("part=1", "part=1&original=true"):
        missing = ask("GET", f"/api/v1/datasets/{pets}/pictures/train/0?{query}")
        assert (missing.status_code, "1 part" in missing.json()["received"]) == (404, True)
    answer = ask("GET", f"/api/v1/datasets/{pets}/pictures/train/8")

    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "application/json"


def test_statistics_problems_and_check(ask, pets):
    assert ask("GET", f"/api/v1/datasets/{pets}/statistics").status_code == 200
    assert ask("GET", f"/api/v1/datasets/{pets}/problems?limit=5").json() == []
    report = ask("POST", f"/api/v1/datasets/{pets}/check", json={}).json()
    assert (report["dataset"], report["samples"]) == ("pets", 10)


def test_a_change_makes_a_version_whose_parent_is_known(ask, pets):
    version = ask("POST", f"/api/v1/datasets/{pets}/exclude", json={"samples": ["train/0"], "name": "pets 2"})

    job = version.json()
    assert (version.status_code, job["state"], job["name"], job["parent"]) == (201, "done", "pets 2", pets)
    assert ask("GET", f"/api/v1/datasets/{job['id']}").json()["splits"] == {"train": 7, "val": 2}
    assert len(ask("GET", f"/api/v1/datasets/{job['id']}/versions").json()) == 2


def test_classes_labels_and_merges(ask, pets):
    renamed = ask("POST", f"/api/v1/datasets/{pets}/classes", json={"rename": [["cat", "tom"]]}).json()
    found = ask("GET", f"/api/v1/datasets/{renamed['id']}").json()
    assert [each["name"] for each in found["classes"]] == ["tom", "dog"]

    relabelled = ask("POST", f"/api/v1/datasets/{pets}/relabel", json={"samples": ["val/0"], "label": "dog"})
    assert relabelled.status_code == 201

    merged = ask("POST", "/api/v1/dataset-merges", json={"datasets": [pets, renamed["id"]], "name": "both"}).json()
    assert ask("GET", f"/api/v1/datasets/{merged['id']}").json()["splits"] == {"train": 16, "val": 4}


def test_export_comes_as_an_archive_with_its_report(ask, pets, studio):
    answer = ask("POST", f"/api/v1/datasets/{pets}/export", json={"format": "class_folders"})

    assert answer.headers["content-disposition"].startswith('attachment; filename="pets-class_folders.zip"')
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        assert json.loads(packed.read("info.json"))["counts"] == {"train": 8, "val": 2}
        assert sum(name.endswith(".png") for name in packed.namelist()) == 10
    assert not list((studio.root / "datasets").glob(".outgoing-*"))


def test_an_export_that_fails_leaves_nothing(ask, pets, studio):
    answer = ask("POST", f"/api/v1/datasets/{pets}/export", json={"format": "nothing"})

    assert answer.status_code == 422
    assert not list((studio.root / "datasets").glob(".outgoing-*"))


def test_sources_lie_below_the_roots(ask, tmp_path):
    """Not there, hidden and elsewhere are answered alike, so that nobody can find out what there is."""
    (tmp_path / "there").mkdir()
    for source in (tmp_path / "there", tmp_path / "not", "/etc/passwd", "relative/path"):
        spec = {"source": str(source)}
        answer = ask("POST", "/api/v1/datasets", json={"spec": spec})
        assert answer.status_code == 400, source
        assert answer.json()["rule"].endswith("is in no folder that is allowed in this studio.")
        assert ask("POST", "/api/v1/dataset-guesses", json=spec).status_code == 400


def test_a_data_set_that_is_not_done_is_not_explored(ask, train):
    answer = ask("GET", f"/api/v1/datasets/{train()['id']}/samples")

    assert answer.status_code == 409
    assert "of kind train" in answer.json()["rule"]


def test_an_unclear_format_is_asked_for(ask, studio, tmp_path):
    studio.paths.choose([str(tmp_path)])
    (tmp_path / "loose").mkdir()
    for number in range(3):
        (tmp_path / f"loose/{number}.png").write_bytes(encode_image(np.full((4, 4, 3), number, np.uint8), "png"))
    answer = ask("POST", "/api/v1/datasets", json={"spec": {"source": str(tmp_path / "loose")}})
    assert answer.status_code == 422
    assert answer.json()["details"]["field"] == "format"
    assert [each["format"] for each in answer.json()["details"]["options"]] == ["class_folders"]
    named = {"source": str(tmp_path / "loose"), "format": "class_folders", "options": {"classes": "none"}}
    assert ask("POST", "/api/v1/datasets", json={"spec": named}).status_code == 201
