"""Checkpoints on disk: whole or not there, whatever happened in between."""

import json
import resource
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from ziggurat.callbacks import CheckpointStore, RunState
from ziggurat.errors import CheckpointError, StorageError
from ziggurat.layout import CheckpointFiles


def state(step, size=3):
    return RunState({"global_step": step, "note": "é"}, {"layer/W": np.arange(size) + step, "file": np.float32(step)})


@pytest.fixture
def store(tmp_path):
    return CheckpointStore(tmp_path / "checkpoints")


@contextmanager
def files_of_at_most(size_bytes):
    """Let every write behind ``size_bytes`` fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_saved_comes_back(store):
    info = store.save(state(42))
    assert (info.name, info.step, info.path.name) == ("step-00000042", 42, "step-00000042")
    assert info.size_bytes == sum(path.stat().st_size for path in info.path.iterdir())
    back = store.load("step-00000042")
    assert back.meta == {"global_step": 42, "note": "é"}
    assert {name: array.tolist() for name, array in back.arrays.items()} == {"layer/W": [42, 43, 44], "file": 42.0}
    assert back.arrays["layer/W"].dtype == np.arange(1).dtype


def test_checkpoints_are_listed_by_step(store):
    assert store.list() == []
    for step in (9, 100, 20):
        store.save(state(step))
    assert [info.step for info in store.list()] == [9, 20, 100]
    assert [info.step for info in CheckpointStore(store.folder, writable=False).list()] == [9, 20, 100]


def test_a_checkpoint_of_the_same_step_is_replaced(store):
    store.save(state(1))
    store.save(state(1, size=5))
    assert len(store.list()) == 1
    assert store.load("step-00000001").arrays["layer/W"].shape == (5,)
    assert sorted(path.name for path in store.folder.iterdir()) == ["step-00000001"]


def test_the_newest_comes_first(store):
    assert store.latest() is None
    store.save(state(1))
    store.save(state(2))
    latest = store.latest()
    assert latest is not None
    assert (latest[0].step, latest[1].meta["global_step"], latest[2]) == (2, 2, [])


def damage_bit(files):
    content = bytearray(files.arrays.read_bytes())
    content[len(content) // 2] ^= 1
    files.arrays.write_bytes(content)


def truncate(files):
    files.arrays.write_bytes(files.arrays.read_bytes()[:50])


def remove_arrays(files):
    files.arrays.unlink()


def damage_state(files):
    files.state.write_text("{")


@pytest.mark.parametrize("harm", [damage_bit, truncate, remove_arrays, damage_state])
def test_a_damaged_checkpoint_is_an_error_with_the_one_before(store, harm):
    store.save(state(1))
    store.save(state(2))
    harm(CheckpointFiles(store.folder / "step-00000002"))
    with pytest.raises(CheckpointError, match=r"step-00000002 is damaged: .*Resume from an older one"):
        store.load("step-00000002")
    latest = store.latest()
    assert latest is not None
    assert latest[0].step == 1
    assert ["step-00000002 is damaged" in str(problem) for problem in latest[2]] == [True]


def test_where_none_can_be_loaded_the_newest_error_is_raised(store):
    store.save(state(1))
    truncate(CheckpointFiles(store.folder / "step-00000001"))
    with pytest.raises(CheckpointError, match=r"is damaged: the checksum of arrays.npz is another"):
        store.latest()


def test_a_newer_format_is_told_apart_from_damage(store):
    store.save(state(1))
    files = CheckpointFiles(store.folder / "step-00000001")
    files.state.write_text(json.dumps({**json.loads(files.state.read_text()), "format": 2}))
    with pytest.raises(CheckpointError) as caught:
        store.load("step-00000001")
    assert str(caught.value).startswith(
        f"The checkpoint {store.folder / 'step-00000001'} has the format 2; this release reads 1 and older."
    )
    assert str(caught.value).endswith("Use a newer release of Ziggurat.")


def test_a_missing_checkpoint_lists_those_that_are_there(store):
    with pytest.raises(CheckpointError, match=r"There is no checkpoint `best` in .*\. There are: none\."):
        store.load("best")
    store.save(state(1))
    store.give_name("best", "step-00000001")
    with pytest.raises(CheckpointError, match=r"There are: step-00000001, best\."):
        store.load("bets")


def test_names_point_at_checkpoints(store):
    assert store.names() == {}
    store.save(state(1))
    store.save(state(2))
    store.give_name("best", "step-00000001")
    store.give_name("min-cost", "step-00000001")
    store.give_name("best", "step-00000002")
    assert store.names() == {"best": "step-00000002", "min-cost": "step-00000001"}
    assert store.load("best").meta["global_step"] == 2


def test_checkpoints_are_removed_whole(store):
    for step in (1, 2, 3):
        store.save(state(step))
    store.remove("step-00000002")
    store.remove("step-00000002")
    assert [info.step for info in store.list()] == [1, 3]
    assert store.remove_after(1) == ["step-00000003"]
    assert sorted(path.name for path in store.folder.iterdir()) == ["step-00000001"]


def test_opening_removes_what_a_killed_writer_had_half_written(store):
    store.save(state(1))
    half = store.folder / ".tmp-step-00000002"
    shutil.copytree(store.folder / "step-00000001", half)
    (store.folder / ".tmp-names.json").write_text("{")
    assert [info.step for info in CheckpointStore(store.folder, writable=False).list()] == [1]
    assert half.exists()  # a reader changes nothing
    assert [info.step for info in CheckpointStore(store.folder).list()] == [1]
    assert sorted(path.name for path in store.folder.iterdir()) == ["step-00000001"]


@pytest.mark.parametrize("heir_came", [False, True])
def test_opening_mends_a_replacement_that_was_cut_off(store, heir_came):
    store.save(state(1))
    old = store.folder / ".old-step-00000001"
    if heir_came:
        shutil.copytree(store.folder / "step-00000001", old)
    else:
        (store.folder / "step-00000001").rename(old)
    opened = CheckpointStore(store.folder)
    assert opened.load("step-00000001").meta["global_step"] == 1
    assert not old.exists()


def test_a_full_disk_is_an_error_with_a_whole_last_checkpoint(store):
    store.save(state(1))
    with files_of_at_most(4096), pytest.raises(StorageError) as caught:
        store.save(state(2, size=100_000))
    assert "A checkpoint must be written to" in str(caught.value)
    assert "received: File too large (errno 27))." in str(caught.value)
    assert "the last checkpoint is whole" in str(caught.value)
    assert sorted(path.name for path in store.folder.iterdir()) == ["step-00000001"]
    assert store.load("step-00000001").meta["global_step"] == 1


def test_objects_are_never_written_or_read_as_pickles(store):
    with pytest.raises(CheckpointError, match="state hold numbers or text"):
        store.save(RunState({"global_step": 1}, {"x": np.array([{}], dtype=object)}))
