"""``ziggurat trash`` and ``ziggurat restore``: each kind is restored and removed by its own route."""

from __future__ import annotations

from typing import Any

import pytest
from studio_stand_in import studio_stand_in

TRASH = [
    {"id": item_id, "kind": kind, "name": name, "deleted": 1.0, "size_bytes": 5}
    for item_id, kind, name in (
        ("20260101-000000-aaaaaaaa", "dataset", "pets"),
        ("20260101-000000-bbbbbbbb", "evaluate", "val"),
        ("weights-1", "weights", "small"),
        ("1700000000-aaaaaaaaaaaaaaaa", "upload", "pets"),
        ("view-1", "view", "Mine"),
        ("preset-1", "preset", "Mine too"),
    )
]


def answer(method: str, path: str) -> tuple[int, Any]:
    if path == "/trash":
        return 200, TRASH if method == "GET" else [each["id"] for each in TRASH]
    return 200, {"id": "x", "state": "stopped"}


def test_the_trash_is_listed_with_sizes(ziggurat: Any) -> None:
    with studio_stand_in(answer) as (address, _):
        lines = ziggurat("--server", address, "trash", "list").out.splitlines()
        jobs = ziggurat("--server", address, "job", "trash", "--json").content
    assert lines[0].split() == ["id", "kind", "name", "size", "deleted"]
    assert lines[-4].split()[:4] == ["weights-1", "weights", "small", "5"]
    assert [each["kind"] for each in jobs] == ["dataset", "evaluate"]


def test_each_kind_is_restored_by_its_own_route(ziggurat: Any) -> None:
    words = ("val", "small", "1700000000-aaaaaaaaaaaaaaaa", "Mine", "preset-1")
    with studio_stand_in(answer) as (address, asked):
        done = ziggurat("--server", address, "restore", *words)
    assert done.code == 0, done.out
    assert [path for _, path, _ in asked[1:]] == [
        "/trash/20260101-000000-bbbbbbbb/restore",
        "/weights/weights-1/restore",
        "/uploads/1700000000-aaaaaaaaaaaaaaaa/restore",
        "/saved/view/view-1/restore",
        "/saved/preset/preset-1/restore",
    ]
    assert done.out.splitlines()[1] == "small is back."


def test_a_name_of_several_or_none_is_told(ziggurat: Any) -> None:
    with studio_stand_in(answer) as (address, asked):
        done = ziggurat("--server", address, "restore", "pets", "gone", "small")
    assert done.code == 10
    several, none, small = done.out.splitlines()
    assert "2 deleted items are called `pets` (received: 20260101-000000-aaaaaaaa (dataset), " in several
    assert none.startswith("gone: `gone` is not in the trash.")
    assert small == "small is back."
    assert len(asked) == 2


def test_the_trash_is_emptied_by_its_routes(ziggurat: Any) -> None:
    with studio_stand_in(answer) as (address, asked):
        done = ziggurat("--server", address, "trash", "delete", *(each["id"] for each in TRASH))
        emptied = ziggurat("--server", address, "trash", "empty")
    assert done.code == 0, done.out
    assert emptied.out == "6 items removed from the disk.\n"
    assert [path.partition("?")[0] for method, path, _ in asked if method == "DELETE"][:-1] == [
        "/jobs/20260101-000000-aaaaaaaa",
        "/jobs/20260101-000000-bbbbbbbb",
        "/weights/weights-1",
        "/uploads/1700000000-aaaaaaaaaaaaaaaa",
        "/saved/view/view-1",
        "/saved/preset/preset-1",
    ]
    assert all("forever=true" in path for method, path, _ in asked[:-1] if method == "DELETE")
    assert asked[-1][:2] == ("DELETE", "/trash")


def test_uploads_are_listed_and_deleted(ziggurat: Any) -> None:
    upload = {"id": "1700000000-aaaaaaaaaaaaaaaa", "name": "pets", "source": "/x", "files": 2, "size_bytes": 5}
    with studio_stand_in(lambda method, _path: (200, [upload] if method == "GET" else None)) as (address, asked):
        lines = ziggurat("--server", address, "uploads", "list").out.splitlines()
        deleted = ziggurat("--server", address, "uploads", "delete", upload["id"])
        gone = ziggurat("--server", address, "uploads", "delete", upload["id"], "--forever")
    assert lines[-1].split() == [upload["id"], "pets", "2", "5", "bytes"]
    assert deleted.out.endswith(f"Bring it back with: ziggurat restore {upload['id']}\n")
    assert gone.out == f"{upload['id']} was removed.\n"
    assert [path.partition("=")[2] for _, path, _ in asked[1:]] == ["false", "true"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("restore v", "plain,val\nplain,view-1"),
        ("trash delete M", "plain,Mine"),
        ("uploads delete 1", "plain,1700000000-bbbbbbbbbbbbbbbb"),
    ],
)
def test_items_of_the_trash_and_uploads_are_completed(
    ziggurat: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: str, found: str
) -> None:
    uploads = [{"id": "1700000000-bbbbbbbbbbbbbbbb", "name": "pets.zip"}]
    monkeypatch.setenv("_ZIGGURAT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"ziggurat {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with studio_stand_in(lambda method, path: (200, uploads) if path == "/uploads" else answer(method, path)) as (
        address,
        _,
    ):
        monkeypatch.setenv("ZIGGURAT_SERVER", address)
        with pytest.raises(SystemExit):
            ziggurat()
    assert capfd.readouterr().out.strip() == found


def test_the_trash_of_jobs_alone_is_not_listed(ziggurat: Any) -> None:
    assert not any(line.split()[:1] == ["trash"] for line in ziggurat("job", "--help").out.splitlines())
    assert any(line.split()[:1] == ["trash"] for line in ziggurat("--help").out.splitlines())
