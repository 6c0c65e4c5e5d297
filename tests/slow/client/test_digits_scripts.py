"""What a script that was written for DIGITS asks of a trained model, over HTTP; numbers are DIGITS's behaviors."""

from __future__ import annotations

import httpx
import pytest

_CLASSIFICATION = "/models/images/classification"


@pytest.fixture
def http(address):
    with httpx.Client(base_url=address, timeout=60) as opened:
        yield opened


def _listed(pets, studio, count=6):
    """Return names of images below the folder of uploads, and that folder."""
    folder = next(path for path in (studio.root / "uploads").rglob("content") if (path / "cat").is_dir())
    return folder, [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.png"))][:count]


def test_3_52_53_the_model_is_done_with_a_snapshot_of_each_epoch(http, done):
    found = http.get(f"/models/{done[1]}.json").json()

    assert (found["status"], found["dataset_id"], found["snapshots"]) == ("Done", done[0], [1, 2])


def test_83_an_upload_and_a_path_give_the_same_best_first(http, done, pets, studio):
    folder, (name, *_) = _listed(pets, studio)

    by_path = http.post(
        f"{_CLASSIFICATION}/classify_one.json",
        data={"job_id": done[1], "image_path": f"{folder}/{name}", "snapshot_epoch": "2"},
    ).json()["predictions"]
    by_file = http.post(
        f"{_CLASSIFICATION}/classify_one.json?job_id={done[1]}",
        files={"image_file": (folder / name).read_bytes()},
        data={"snapshot_epoch": "2"},
    ).json()["predictions"]

    assert by_path == by_file
    assert {label for label, _ in by_path} == {"cat", "dog"}
    assert [share for _, share in by_path] == sorted((share for _, share in by_path), reverse=True)
    assert sum(share for _, share in by_path) == pytest.approx(100, abs=0.02)


def test_84_85_one_entry_for_each_picture_of_a_list(http, done, pets, studio):
    folder, names = _listed(pets, studio)
    lines = "\n".join([f"{name} 99" for name in names] + ["not/there.png 1", ""])

    found = http.post(
        f"{_CLASSIFICATION}/classify_many.json",
        data={"job_id": done[1], "image_folder": str(folder)},
        files={"image_list": lines.encode()},
    ).json()["classifications"]

    assert list(found) == names
    assert all(len(each) == 2 for each in found.values())


def test_87_the_best_of_each_class(http, done, pets, studio):
    folder, names = _listed(pets, studio)
    data = {"job_id": done[1], "image_folder": str(folder), "top_n": "2"}

    found = http.post(f"{_CLASSIFICATION}/top_n.json", data=data, files={"image_list": "\n".join(names).encode()})

    assert {label: len(each) for label, each in found.json()["top_n"].items()} == {"cat": 2, "dog": 2}


def test_89_numbers_of_one_and_of_many(http, done, pets, studio):
    folder, names = _listed(pets, studio, 2)
    place = "/models/images/generic"

    one = http.post(f"{place}/infer_one.json", data={"job_id": done[1], "image_path": f"{folder}/{names[0]}"})
    many = http.post(
        f"{place}/infer_many.json",
        data={"job_id": done[1], "image_folder": str(folder)},
        files={"image_list": "\n".join(names).encode()},
    )

    assert sum(one.json()["outputs"]["softmax"]) == pytest.approx(1)
    assert list(many.json()["outputs"]) == names
    assert many.json()["outputs"][names[0]]["softmax"] == pytest.approx(one.json()["outputs"]["softmax"], abs=1e-5)


def test_92_the_snapshot_of_an_epoch(http, done):
    whole = http.get(f"/models/{done[1]}/download.tar")
    one = http.get(f"/models/{done[1]}/download.tar?epoch=1")

    assert whole.status_code == one.status_code == 200
    assert len(one.content) < len(whole.content)
