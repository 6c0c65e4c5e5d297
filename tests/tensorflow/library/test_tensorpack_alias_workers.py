"""Flows of Tensorpack programs go to workers with what a fork would have copied: files, archives and locks."""

import io
import os
import pickle
import threading
import zipfile

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.compat.tensorpack.open_files import made_again_in_workers
from ziggurat.dataflow.parallel.pickling import dump


def sent(value):
    """Return what a worker gets for a value."""
    with made_again_in_workers():
        return pickle.loads(dump(value))


@pytest.fixture
def path(tmp_path):
    (tmp_path / "letters").write_bytes(b"abcdefgh")
    return tmp_path / "letters"


def test_an_open_file_is_opened_again_at_its_position(path):
    with open(path, "rb") as file:
        file.read(3)
        with sent(file) as other:
            assert other.read() == b"defgh"
        assert file.read(1) == b"d"


def test_a_relative_path_of_a_file_becomes_a_whole_one(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with open("letters", "rb") as file, sent(file) as other:
        assert os.path.isabs(other.name)


def test_a_closed_file_is_closed_there_too(path):
    with open(path, "rb") as file:
        pass
    assert sent(file).closed


def test_an_archive_and_its_list_of_members_are_sent(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("one", b"1")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        members = sent([(archive, name) for name in archive.namelist()])
        assert [each.read(name) for each, name in members] == [b"1"]


def test_an_archive_that_is_written_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, pytest.raises(TypeError, match="again in a worker"):
        sent(archive)


def test_a_pipe_is_refused():
    read, write = os.pipe()
    os.close(write)
    with open(read, "rb") as file, pytest.raises(TypeError, match="again in a worker"):
        sent(file)


def test_a_held_lock_is_free_in_the_worker():
    lock = threading.Lock()
    with lock:
        first, second = sent([lock, lock])
    assert first is second
    assert first.acquire(blocking=False)


def test_a_lock_for_one_thread_is_made_again():
    with sent(threading.RLock()) as held:
        assert held


def test_outside_of_programs_files_are_refused(path):
    sent(io.BytesIO())
    with open(path, "rb") as file, pytest.raises(TypeError):
        dump(file)
