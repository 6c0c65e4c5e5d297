"""Uploads: files that become the source of a dataset."""

from __future__ import annotations

import io
import zipfile

import cv2
import numpy as np

_PICTURE = cv2.imencode(".png", np.zeros((8, 8, 3), np.uint8))[1].tobytes()


def test_files_of_one_upload_become_a_data_set(ask):
    first = ask("POST", "/api/v1/uploads?name=cat/1.png", content=_PICTURE).json()
    for name in ("cat/2.png", "dog/1.png", "dog/2.png"):
        last = ask("POST", f"/api/v1/uploads?name={name}&id={first['id']}", content=_PICTURE).json()

    assert (last["id"], last["files"], last["size_bytes"]) == (first["id"], 4, 4 * len(_PICTURE))
    guess = ask("POST", "/api/v1/dataset-guesses", json={"source": last["source"]}).json()[0]
    assert guess["format"] == "class_folders"
    job = ask("POST", "/api/v1/datasets", json={"spec": {"source": last["source"], "name": "pets"}})
    assert (job.status_code, job.json()["state"], job.json()["name"]) == (201, "queued", "pets")


def test_an_archive_alone_is_the_source_itself(ask):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("cat/1.png", _PICTURE)

    found = ask("POST", "/api/v1/uploads?name=pets.zip", content=file.getvalue()).json()

    assert found["source"].endswith("/content/pets.zip")


def test_digits_94_no_name_leads_out_of_the_upload(ask, studio):
    for name in ("../x.png", "/etc/x", "a/../../x", "C:x"):
        answer = ask("POST", "/api/v1/uploads", params={"name": name}, content=b"x")
        assert answer.status_code == 422, name
    assert not list(studio.root.rglob("x*"))


def test_an_upload_is_looked_at_and_removed(ask):
    place = f"/api/v1/uploads/{ask('POST', '/api/v1/uploads?name=a.txt', content=b'12345').json()['id']}"

    assert ask("GET", place).json()["size_bytes"] == 5
    assert ask("DELETE", place).status_code == 204
    assert ask("GET", place).status_code == 404


def test_ids_of_uploads_are_no_paths(ask):
    for name in ("..", "1-2", "%2e%2e"):
        assert ask("DELETE", f"/api/v1/uploads/{name}").status_code in (404, 405)


def test_many_small_files_come_in_one_request(ask):
    first = ask("POST", "/api/v1/uploads?name=cat/1.png", content=_PICTURE).json()
    parts = [("files", (f"dog/{number}.png", _PICTURE)) for number in range(120)]

    found = ask("POST", f"/api/v1/uploads/files?id={first['id']}", files=parts)

    assert found.status_code == 201, found.text
    assert (found.json()["id"], found.json()["files"]) == (first["id"], 121)
    guess = ask("POST", "/api/v1/dataset-guesses", json={"source": found.json()["source"]}).json()[0]
    assert (guess["format"], guess["kind"]) == ("class_folders", "image-classification")


def test_digits_94_no_name_of_many_leads_out_of_the_upload(ask, studio):
    parts = [("files", ("good.png", _PICTURE)), ("files", ("../x.png", b"x"))]
    answer = ask("POST", "/api/v1/uploads/files", files=parts)
    assert answer.status_code == 422
    assert not list(studio.root.rglob("x.png"))


def test_files_of_no_upload_are_refused(ask):
    answer = ask("POST", "/api/v1/uploads/files?id=1234567890-0123456789abcdef", files=[("files", ("a.png", b"x"))])
    assert (answer.status_code, answer.json()["rule"].startswith("There is no upload")) == (404, True)


def test_a_name_that_no_disk_takes_is_refused_as_a_name(ask):
    answer = ask("POST", "/api/v1/uploads", params={"name": f"cat/{'ä' * 150}.png"}, content=b"x")
    assert answer.status_code == 422
    assert answer.json()["rule"].endswith("has 304 bytes; 255 is the most.")


def test_what_a_kill_left_of_an_upload_is_removed(ask, studio):
    whole = ask("POST", "/api/v1/uploads?name=a.txt", content=b"12345").json()
    folder = studio.root / "uploads"
    (folder / whole["id"] / "0011223344556677.partial").write_bytes(b"half")
    alone = folder / "1700000000-0123456789abcdef"
    alone.mkdir()
    (alone / "8899aabbccddeeff.partial").write_bytes(b"half")

    assert studio.uploads.remove_partial() == 2

    assert [path.name for path in folder.iterdir()] == [whole["id"]]
    assert ask("GET", f"/api/v1/uploads/{whole['id']}").json()["size_bytes"] == 5
