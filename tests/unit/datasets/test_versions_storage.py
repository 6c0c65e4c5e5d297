"""A version is there whole or not at all, whatever happens to the disk, to the process, or in another window."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from small_datasets_for_versions import (
    animals,
    content,
    datasets_are_closed,  # noqa: F401
    opened,
    picture,
    png,
    refer_to,
    write_dataset,
)

from tests.waiting import PROCESS_S, wait_until
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions import Exclude, Relabel, append, make_version
from ziggurat.errors import DataError, DatapointError, StorageError

PROGRAM = """
import resource, signal, sys
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions import Exclude, make_version
from ziggurat.errors import StorageError

parent, folder, limit_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
if limit_bytes:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
number = 0
with Dataset(parent) as dataset:
    while True:
        try:
            make_version(dataset, Exclude("train", [number % 5]), f"{folder}/v{number}")
        except StorageError as error:
            sys.exit(str(error))
        number += 1
"""


def program(*arguments):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, text=True)


def test_a_full_disk_leaves_nothing_behind_and_the_parent_whole(tmp_path):
    parent = write_dataset(tmp_path / "a", {"train": animals(6)})
    (tmp_path / "made").mkdir()
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    done = program(tmp_path / "a", tmp_path / "made", 20_000)
    assert "Free space or permit writing" in done.communicate(timeout=60)[1]
    assert list((tmp_path / "made").iterdir()) == []
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before
    assert len(content(parent)["train"]) == 6


def test_a_killed_process_leaves_nothing_that_looks_finished(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(6)})
    folder = tmp_path / "made"
    folder.mkdir()
    for wanted in ("v1", "v2", "v4"):
        done = program(tmp_path / "a", folder, 0)
        wait_until(lambda: (folder / wanted).exists() or done.poll() is not None, PROCESS_S, every_s=0.005)  # noqa: B023
        done.send_signal(signal.SIGKILL)
        done.communicate()
        for path in folder.iterdir():
            if path.name.startswith("."):
                assert path.name.startswith(".v")
                assert ".partial-" in path.name
            else:
                assert len(content(opened(path))["train"]) == 5
                path.rename(tmp_path / f"kept-{wanted}-{path.name}")
    with pytest.raises(DataError, match="holds no finished dataset"):
        Dataset(folder)


def test_two_people_make_versions_at_once(tmp_path):
    """Both succeed in different folders; in the same folder exactly one does, and the other is told."""
    write_dataset(tmp_path / "a", {"train": animals(6)})
    failures = []

    def make(row, folder):
        try:
            with Dataset(tmp_path / "a") as mine:
                make_version(mine, Exclude("train", [row]), folder)
        except StorageError as error:
            failures.append(str(error))

    for folders, refused in ((["b", "c"], 0), (["d", "d"], 1)):
        threads = [threading.Thread(target=make, args=(row, tmp_path / name)) for row, name in enumerate(folders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(failures) == refused
    assert content(opened(tmp_path / "b"))["train"][0][0] == "01.png"
    assert content(opened(tmp_path / "c"))["train"][0][0] == "00.png"
    assert len(content(opened(tmp_path / "d"))["train"]) == 5
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_another_file_system_gets_copies(tmp_path):
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    parent = write_dataset(tmp_path / "a", {"train": animals(3)})
    folder = other / f"ziggurat-test-{os.getpid()}"
    try:
        make_version(parent, Relabel("train", [0], 2), folder)
        assert content(opened(folder))["train"] == [("00.png", 2), ("01.png", 1), ("02.png", 2)]
        assert not (folder / "train.lmdb").samefile(tmp_path / "a" / "train.lmdb")
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_a_parent_with_a_missing_file_is_refused(tmp_path):
    parent = write_dataset(tmp_path / "a", {"train": animals(3), "val": animals(1, first=3)})
    parent.close()
    (tmp_path / "a" / "val.lmdb").unlink()
    with pytest.raises(DataError, match=r"val\.lmdb` is not there"):
        make_version(parent, [], tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_catalogue_of_other_samples_is_refused(tmp_path):
    write_dataset(tmp_path / "a", {"train": animals(3)})
    write_dataset(tmp_path / "b", {"train": animals(2)}).close()
    (tmp_path / "b" / "index.sqlite").replace(tmp_path / "a" / "index.sqlite")
    with pytest.raises(DataError, match="has 2 of 3 samples"):
        make_version(opened(tmp_path / "a"), [], tmp_path / "c")


def test_pictures_that_are_referenced_stay_where_they_are(tmp_path):
    root = tmp_path / "photos"
    samples = [(f"{n}.png", (refer_to(root, f"{n}.png", png(picture(n))),), n % 3) for n in range(3)]
    parent = write_dataset(tmp_path / "a", {"train": samples}, root=str(root))
    make_version(parent, Exclude("train", [0]), tmp_path / "b")
    made = opened(tmp_path / "b")
    np.testing.assert_array_equal(made.picture("train", 0), picture(1))
    (root / "1.png").unlink()
    with pytest.raises(DatapointError, match="the dataset refers to"):
        made.sample("train", 0)


def test_references_below_different_folders_are_not_joined(tmp_path):
    parents = []
    for name in ("a", "b"):
        root = tmp_path / f"{name}-photos"
        sample = (f"{name}.png", (refer_to(root, "x.png", png(picture(ord(name)))),), 0)
        parents.append(write_dataset(tmp_path / name, {"train": [sample]}, root=str(root)))
    with pytest.raises(DataError, match=r"below one folder.*Create one of them anew with the images in its records"):
        append(*parents, tmp_path / "c")
    plain = write_dataset(tmp_path / "plain", {"train": animals(1)})
    append(parents[0], plain, tmp_path / "d")
    made = opened(tmp_path / "d")
    np.testing.assert_array_equal(made.picture("train", 0), picture(ord("a")))
    np.testing.assert_array_equal(made.picture("train", 1), picture(0))
