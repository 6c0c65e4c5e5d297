"""The trash of a workspace: moved, never copied; whole or not there, whatever kills or other processes do meanwhile."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests.unit.weights.weight_samples import add_entry
from ziggurat.entities.trash import WEIGHTS, Trash
from ziggurat.errors import JobError, MissingEntryError, UsageError
from ziggurat.settings import load_settings
from ziggurat.workspace.workspace import open_folders


@pytest.fixture
def trash(tmp_path):
    return Trash(tmp_path)


def made(root: Path, name: str = "small", content: str = "12345") -> Path:
    folder = root / "weights" / name
    folder.mkdir(parents=True)
    (folder / "weights.json").write_text(content)
    return folder


def thrown(trash: Trash, folder: Path, now: float = 100.0):
    item = trash.discard(folder, "", now, kind=WEIGHTS, name=folder.name)
    assert item is not None
    return item


def test_a_folder_is_moved_and_moved_back(trash, tmp_path):
    folder = made(tmp_path)
    inode = (folder / "weights.json").stat().st_ino
    item = thrown(trash, folder)
    assert not folder.exists()
    assert json.loads(item.path.with_name(f"{item.path.name}.json").read_text()) == {
        "folder": "weights/small",
        "kind": "weights",
        "name": "small",
    }
    assert trash.find(WEIGHTS, "small") == trash.find(WEIGHTS, item.id) == trash.content()[0] == item
    assert trash.size_bytes(item) > 5
    assert trash.restore(item)
    assert (folder / "weights.json").stat().st_ino == inode
    assert os.listdir(trash.folder) == []


def test_a_kill_before_the_move_leaves_a_note_that_goes(trash, tmp_path):
    trash.folder.mkdir()
    (trash.folder / "weights-1.100.json").write_text("{}")
    assert trash.content() == []
    trash.empty(older_than=99.0)
    assert os.listdir(trash.folder) == ["weights-1.100.json"]
    trash.empty(older_than=100.0)
    assert os.listdir(trash.folder) == []


def test_a_kill_after_the_move_back_changes_nothing(trash, tmp_path):
    item = thrown(trash, made(tmp_path))
    assert item.place is not None
    item.path.rename(item.place)
    assert trash.content() == []
    assert not trash.restore(item)
    assert thrown(trash, item.place).id != item.id


def test_half_of_what_was_being_removed_is_never_restored(trash, tmp_path):
    item = thrown(trash, made(tmp_path))
    item.path.rename(trash.folder / f".removed-{item.path.name}-1234")  # and killed
    assert trash.content() == []
    with pytest.raises(MissingEntryError, match=r"no deleted weights `small`\. List what can be restored"):
        trash.find(WEIGHTS, "small")
    trash.empty(older_than=0.0)
    assert [each for each in os.listdir(trash.folder) if not each.endswith(".json")] == []


@pytest.mark.parametrize(
    "text", ["", "{", '{"kind": "weights"}', '{"kind": "weights", "name": "small", "folder": "keys/a"}']
)
def test_a_record_that_is_cut_or_false_restores_nothing(trash, tmp_path, text):
    item = thrown(trash, made(tmp_path))
    item.path.with_name(f"{item.path.name}.json").write_text(text)
    with pytest.raises(MissingEntryError):
        trash.find(WEIGHTS, "small")
    assert trash.empty(older_than=100.0) == [item.id]
    assert os.listdir(trash.folder) == []


def test_something_else_in_its_place_stays(trash, tmp_path):
    item = thrown(trash, made(tmp_path))
    folder = made(tmp_path, content="other")
    with pytest.raises(
        JobError, match=r"Something else lies where the weights small lay \(received: .*small\)\. Move it"
    ):
        trash.restore(item)
    assert (folder / "weights.json").read_text() == "other"
    assert trash.content() == [item]


def test_two_deleted_ones_of_a_name_are_told_apart(trash, tmp_path):
    first, second = (thrown(trash, made(tmp_path, content=text), now) for text, now in (("a", 1.0), ("b", 2.0)))
    with pytest.raises(UsageError, match=rf"that of 2 deleted weights \(received: {first.id}, {second.id}\)"):
        trash.find(WEIGHTS, "small")
    assert trash.restore(trash.find(WEIGHTS, second.id))
    assert (tmp_path / "weights" / "small" / "weights.json").read_text() == "b"
    assert trash.find(WEIGHTS, "small") == first


@pytest.mark.parametrize("attempt", range(20))
def test_of_many_restores_and_removals_at_once_one_wins(tmp_path, attempt):
    item, done = thrown(Trash(tmp_path), made(tmp_path)), []

    def act(name: str) -> None:
        own = Trash(tmp_path)  # as in another process
        if own.restore(item) if name == "restore" else own.remove(item):
            done.append(name)

    threads = [threading.Thread(target=act, args=(name,)) for name in ("restore", "remove") * 3]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(done) == 1
    assert item.place is not None
    assert item.place.exists() == (done == ["restore"])
    assert os.listdir(tmp_path / ".trash") == []


def test_content_without_a_folder_is_kept_and_removed(trash):
    item = trash.keep("view", "Mine", None, 5.0, owner="ann")
    assert trash.find("view", "Mine", owner="ann") == item
    assert item.can_be_restored
    with pytest.raises(MissingEntryError, match="no deleted view `Mine`"):
        trash.find("view", "Mine", owner="bob")
    assert trash.empty(older_than=5.0) == [item.id]
    assert os.listdir(trash.folder) == []


def test_what_is_being_removed_is_in_the_trash_no_more(trash, tmp_path):
    item, listed, is_on = thrown(trash, made(tmp_path)), [], [True]

    def watch(event: str, _arguments: tuple[object, ...]) -> None:
        if is_on and event == "shutil.rmtree":
            listed.append(trash.content())

    sys.addaudithook(watch)
    assert trash.remove(item)
    is_on.clear()
    assert listed == [[]]


def test_weights_on_another_disk_stay_there_and_come_back(tmp_path):
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    with tempfile.TemporaryDirectory(dir=memory) as other:
        (tmp_path / "weights").symlink_to(other)
        add_entry(tmp_path)
        weights = open_folders(load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path), "HOME": str(tmp_path)})).weights
        before = weights.get("small")
        item_id = weights.remove("small")
        assert [name.startswith(f".trash-{item_id}.") for name in os.listdir(other)] == [True]
        assert weights.all() == []
        assert Trash(tmp_path).size_bytes(Trash(tmp_path).content()[0]) == before.size_bytes
        assert weights.restore("small") == before
        weights.remove("small")
        assert weights.remove("small", forever=True) == ""
        assert os.listdir(other) == os.listdir(tmp_path / ".trash") == []
