"""A dataset trains networks, whatever its encoding and its store; each look at its test split leaves a trace."""

import json

import pytest

from tests.old_stores import store_as_0_1_did
from ziggurat.datasets.dataset import OPENINGS_NAME
from ziggurat.events import Message, read_events
from ziggurat.layout import JobFolder

TRAIN = ("train", "--framework", "null", "--network", "mlp", "--epochs", 1, "--batch-size", 6)


@pytest.mark.parametrize(
    "words",
    [
        ("--encoding", "raw", "--size", "8"),
        ("--encoding", "jpeg", "--size", "8x12", "--channels", "1"),
        ("--encoding", "reference"),
        ("--encoding", "original", "--store", "tfrecord"),
    ],
    ids=" ".join,
)
def test_45_every_encoding_and_store_is_made_and_trained_on(ziggurat, pets, tmp_path, words):
    content = ziggurat.create(pets, tmp_path / "set", *words)
    assert content["splits"] == {"train": 18, "val": 6}
    assert len(ziggurat.samples(tmp_path / "set")) == 24
    status = ziggurat.json(*TRAIN, "--data", tmp_path / "set", "--out", tmp_path / "job")
    assert (status["state"], status["global_step"]) == ("done", 3)
    assert "validation_accuracy" in status["scalars"]


@pytest.mark.parametrize("store", ["hdf5", "npz"])
def test_a_store_of_0_1_is_converted_by_its_first_training(ziggurat, pets, tmp_path, store):
    ziggurat.create(pets, tmp_path / "set", "--size", "8")
    store_as_0_1_did(tmp_path / "set", store)
    notices = []
    for job in ("first", "second"):
        status = ziggurat.json(*TRAIN, "--data", tmp_path / "set", "--out", tmp_path / job)
        assert (status["state"], status["global_step"]) == ("done", 3)
        said, _ = read_events(JobFolder(tmp_path / job).events, 0)
        notices.append([event.text for event in said if isinstance(event, Message) and store in event.text])
    old = tmp_path / "set" / f"train.{store}"
    assert notices[0][0] == f"The records of {old}, a store of release 0.1, are read from {old}.lmdb from now on."
    assert [len(each) for each in notices] == [2, 0]
    assert len(ziggurat.samples(tmp_path / "set")) == 24


@pytest.mark.nightly
def test_evaluating_on_the_test_split_is_counted(ziggurat, pets, tmp_path):
    ziggurat.create(pets, tmp_path / "set", "--size", "8", "--test-share", "0.25")
    assert ziggurat(*TRAIN, "--data", tmp_path / "set", "--out", tmp_path / "job") == 0
    assert ziggurat.json("evaluate", tmp_path / "job")["test_openings"] is None
    assert not (tmp_path / "set" / OPENINGS_NAME).exists(), "neither training nor validation looks at the test split"
    counted = [ziggurat.json("evaluate", tmp_path / "job", "--split", "test")["test_openings"] for _ in range(2)]
    assert counted == [1, 2]
    assert ziggurat.json("dataset", "show", tmp_path / "set")["test_openings"] == 2
    assert ziggurat("dataset", "show", tmp_path / "set") == 0
    assert "test       opened 2 times" in ziggurat.said
    first = json.loads((tmp_path / "set" / OPENINGS_NAME).read_text().splitlines()[0])
    assert first["reason"] == f"Evaluation of step-00000002 of the job {tmp_path / 'job'}."


def test_a_network_for_images_does_not_learn_from_rows(ziggurat, tmp_path):
    (tmp_path / "table.csv").write_text("a,b,target\n" + "".join(f"{row},2,{row * 3}.5\n" for row in range(40)))
    ziggurat.create(tmp_path / "table.csv", tmp_path / "set")
    assert ziggurat(*TRAIN, "--data", tmp_path / "set", "--out", tmp_path / "job") == 3
    assert "The network `mlp` must fit the data." in ziggurat.said
    assert ziggurat("dataset", "explore", tmp_path / "set", "--save", tmp_path / "seen") == 4
    assert "Images are shown of datasets with images (received: " in ziggurat.said
    assert not (tmp_path / "seen").exists()
