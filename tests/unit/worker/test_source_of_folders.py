"""A bare folder to train on: the same samples and splits by every road, and for as long as its job lives."""

import shutil

import cv2
import numpy as np
import pytest

from ziggurat.dataflow import RecordData
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.errors import DataError
from ziggurat.layout import JobFolder
from ziggurat.worker.source import open_source

SPLITS_OF_0_1 = {
    "folder": {
        "train": [0, 4, 6, 8, 10, 16, 18, 1, 3, 5, 9, 11, 15, 17, 20],
        "val": [12, 14, 13, 19],
        "test": [2, 7],
    },
    "divided": {"train": [0, 2, 4, 6, 8, 9, 10, 12, 13, 14, 17, 18, 21, 22], "val": [1, 5, 16, 20]},
}
"""Files of each split as release 0.1 divided them with seed 5."""


@pytest.fixture
def folder(tmp_path):
    """Twenty images of two classes, and a third class of one image."""
    for number in range(21):
        write_image(tmp_path / "images" / ("cat", "dog", "one")[number % 2 + number // 20 * 2] / f"{number:02d}.png")
    return tmp_path / "images"


@pytest.fixture
def divided(tmp_path):
    """Images in folders of splits, without one for validation."""
    for number in range(24):
        split = ("training", "Test")[number % 4 == 3]
        write_image(tmp_path / "divided" / split / ("cat", "dog")[number // 12] / f"{number:02d}.png")
    return tmp_path / "divided"


@pytest.fixture
def idx(tmp_path):
    """Idx files of 30 images to train on and 10 to test."""
    folder = tmp_path / "idx"
    folder.mkdir()
    random = np.random.default_rng(5)
    for split, count in (("train", 30), ("t10k", 10)):
        write_idx(folder / f"{split}-images-idx3-ubyte", random.integers(0, 256, (count, 6, 5)).astype(np.uint8))
        write_idx(folder / f"{split}-labels-idx1-ubyte", np.arange(count, dtype=np.uint8) % 3)
    return folder


def write_image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((6, 8, 3), int(path.stem), np.uint8))


def write_idx(path, values):
    header = bytes((0, 0, 8, values.ndim)) + b"".join(size.to_bytes(4) for size in values.shape)
    path.write_bytes(header + values.tobytes())


def splits_of(source):
    """Return split → [(file below the folder, or key; label)]."""
    return {
        split: [("/".join(str(flow.key(row)).split("/")[-2:]), flow.datapoint(row)[1]) for row in range(len(flow))]
        for split, flow in source.splits.items()
    }


def numbers_of(source):
    """Return split → numbers in the names of its files."""
    return {split: [int(key[-6:-4]) for key, _ in rows] for split, rows in splits_of(source).items()}


def created(folder, out, **rule):
    create_dataset(
        CreationRequest(source=str(folder), name="x", rule=SplitRule(**rule), near_duplicates=False, workers=0), out
    )
    found = {}
    for split in ("train", "val", "test"):
        if any(out.glob(f"{split}.*")):
            flow = RecordData(out, split)
            found[split] = [
                ("/".join(flow.key(row).split("/")[-2:]), flow.datapoint(row)[1]) for row in range(len(flow))
            ]
            flow.close()
    return found


@pytest.mark.parametrize("kind", ["folder", "divided", "idx"])
@pytest.mark.parametrize("shares", [{}, {"val": 0.1, "test": 0.3}, {"val": 0.0}], ids=["usual", "both", "none"])
def test_a_folder_has_the_splits_of_its_dataset(kind, shares, tmp_path, request):
    folder = request.getfixturevalue(kind)
    names = {"val": "validation_share", "test": "test_share"}
    options = {names[split]: share for split, share in shares.items()}
    rule = {f"{split}_share": share for split, share in shares.items()}
    dataset = created(folder, tmp_path / "dataset", seed=7, **rule)
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()

    for begun in (None, job, job):
        assert splits_of(open_source(str(folder), options, 7, begun)) == dataset


def test_classes_are_named_and_chosen_as_in_a_dataset(folder):
    source = open_source(str(folder), {}, 0)

    assert list(source.class_names) == ["cat", "dog"]  # a class of one image is left out
    assert (source.size, source.channels, source.in_memory) == ((6, 8), 3, False)


def test_idx_files_are_arrays_in_memory(idx):
    source = open_source(str(idx), {}, 0)

    assert (source.size, source.channels, source.in_memory) == ((6, 5), 1, True)
    assert list(source.class_names)[:3] == ["0", "1", "2"]
    assert source.splits["test"].datapoint(4)[0].shape == (6, 5, 1)


def test_a_job_keeps_its_splits_while_the_folder_changes(folder, tmp_path):
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    began = splits_of(open_source(str(folder), {}, 3, job))
    for number in range(30, 40):
        write_image(folder / "ant" / f"{number}.png")

    assert splits_of(open_source(str(folder), {}, 3, job)) == began
    assert splits_of(open_source(str(folder), {}, 3)) != began


def test_a_kill_in_the_middle_of_an_import_changes_nothing(folder, tmp_path):
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    began = splits_of(open_source(str(folder), {}, 3, job))
    (job.data / "splits.npy").unlink()
    assert splits_of(open_source(str(folder), {}, 3, job)) == began

    shutil.rmtree(job.data)
    job.data.mkdir()
    leftover = job.data / ".scan.sqlite.1.partial"
    leftover.write_bytes(b"half")
    assert splits_of(open_source(str(folder), {}, 3, job)) == began
    assert not leftover.exists()


def test_a_job_of_release_0_1_keeps_its_splits(folder, divided, idx, tmp_path):
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    job.class_names.write_text('["cat", "dog", "one"]')  # a worker of 0.1 wrote it when it began, and no more than that

    whole = open_source(str(folder), {"test_share": 0.1}, 5, job)
    parts = open_source(str(divided), {}, 5, job)
    assert list(whole.class_names) == ["cat", "dog", "one"]
    assert {"folder": numbers_of(whole), "divided": numbers_of(parts)} == SPLITS_OF_0_1
    arrays = open_source(str(idx), {}, 5, job).splits
    assert {split: len(flow) for split, flow in arrays.items()} == {"train": 30, "val": 10, "test": 10}
    assert not job.data.exists()


@pytest.mark.parametrize(
    "options", [{"validation_share": 0.5, "test_share": 0.5}, {"validation_share": -0.1}, {"test_share": 1}]
)
def test_shares_leave_something_for_training(folder, options):
    with pytest.raises(DataError, match="are from 0 to below 1 together"):
        open_source(str(folder), options, 0)


def test_a_folder_of_images_without_classes_is_refused(tmp_path):
    write_image(tmp_path / "flat" / "1.png")
    with pytest.raises(DataError, match="Class folders are at least two folders"):
        open_source(str(tmp_path / "flat"), {}, 0)
