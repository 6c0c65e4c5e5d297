"""Archives of jobs, which are made while they are sent."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest


def _members(content: bytes, archive_format: str) -> dict[str, bytes]:
    if archive_format == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    with tarfile.open(fileobj=io.BytesIO(content)) as packed:
        return {each.name: packed.extractfile(each).read() for each in packed}  # pyright: ignore


def _checkpoint(job: dict, name: str, content: bytes) -> None:
    folder = Path(job["folder"]) / "checkpoints" / name
    folder.mkdir(parents=True)
    (folder / "arrays.npz").write_bytes(content)


@pytest.mark.parametrize("archive_format", ["tar", "tar.gz", "tar.bz2", "zip"])
def test_digits_92_every_kind_of_archive_has_info_and_files(ask, train, archive_format):
    job = train(spec={"name": "früh/spät"})
    content = bytes(range(256)) * 3000
    _checkpoint(job, "step-00000004", content)

    answer = ask("GET", f"/api/v1/jobs/{job['id']}/download?format={archive_format}")

    found = _members(answer.content, archive_format)
    assert json.loads(found["info.json"])["name"] == "früh/spät"
    assert json.loads(found["spec.json"])["network"]["name"] == "mlp"
    assert found["checkpoints/step-00000004/arrays.npz"] == content
    name = answer.headers["content-disposition"]
    assert name.startswith(f'attachment; filename="fr-h-sp-t.{archive_format}"')


def test_digits_92_unknown_kind_of_archive_is_refused(ask, train):
    answer = ask("GET", f"/api/v1/jobs/{train()['id']}/download?format=rar")

    assert answer.status_code == 422


def test_log_is_the_end_of_the_file(ask, train):
    job = train()
    Path(job["folder"], "log.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")

    found = ask("GET", f"/api/v1/jobs/{job['id']}/log?at_most_bytes=6").json()
    assert found == {"text": "three\n", "start": 8, "end": 14, "size": 14}


def test_a_log_is_read_part_by_part_from_its_end(ask, train):
    job = train()
    lines = [f"line {number}\n" for number in range(1000)]
    Path(job["folder"], "log.txt").write_text("".join(lines), encoding="utf-8")
    texts, before = [], 10**9
    while before:
        part = ask("GET", f"/api/v1/jobs/{job['id']}/log?at_most_bytes=500&before={before}").json()
        assert len(part["text"]) <= 500
        assert part["text"].startswith("line ")  # no line is cut
        texts.insert(0, part["text"])
        before = part["start"]
    assert "".join(texts) == "".join(lines)
