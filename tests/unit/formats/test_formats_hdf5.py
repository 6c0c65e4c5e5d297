"""Flows from and to HDF5 files with a dataset for each component."""

import json
import pickle

import h5py
import numpy as np
import pytest

from ziggurat.dataflow.formats import HDF5Data, HDF5Serializer
from ziggurat.dataflow.sources import DataFromGenerator, DataFromList
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.errors import DataError, DatapointError, StorageError

IMAGES = np.arange(10 * 4 * 5).reshape(10, 4, 5).astype(np.uint8)
LABELS = np.arange(10)


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["data"] = IMAGES
        file["group/label"] = LABELS
        file["short"] = LABELS[:3]
        file["single"] = 5
    return tmp_path / "data.h5"


def test_rows_of_datasets(path):
    flow = HDF5Data(path, ["data", "group/label"], shuffle=False)
    points = list(flow)
    assert len(flow) == len(points) == 10
    assert all((image == IMAGES[label]).all() for image, label in points)
    assert [label for _image, label in points] == list(range(10))


def test_shuffling_is_the_default_and_follows_the_seed(path):
    flow = HDF5Data(path, ["group/label"]).seed(1)
    first, second = [dp[0] for dp in flow], [dp[0] for dp in flow]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(10))
    assert [dp[0] for dp in HDF5Data(path, ["group/label"]).seed(1)] == first


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_gathered(path, shuffle):
    names = ["data", "group/label"]
    batches = list(BatchData(HDF5Data(path, names, shuffle=shuffle), 4, remainder=True).seed(4))
    assert [len(batch[1]) for batch in batches] == [4, 4, 2]
    labels = np.concatenate([batch[1] for batch in batches])
    assert (np.concatenate([batch[0] for batch in batches]) == IMAGES[labels]).all()
    assert sorted(labels) == list(range(10))
    assert (labels == np.arange(10)).all() == (not shuffle)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["data", "short"], "received: 10 in `data`, 3 in `short`)."),
        (["nothing"], "`nothing` is no dataset of the file"),
        (["single"], "`single` is no dataset of the file"),
        (["group"], "`group` is no dataset of the file"),
        ([], "received: no dataset)."),
    ],
)
def test_wrong_datasets_are_named(path, names, text):
    with pytest.raises(DataError) as caught:
        HDF5Data(path, names)
    assert text in str(caught.value)


def test_bad_files_are_named(tmp_path):
    (tmp_path / "bad.h5").write_bytes(b"no hdf5")
    for name in ("bad.h5", "missing.h5"):
        with pytest.raises(DataError, match=rf"A store of kind HDF5 is read as it was written.*{name}"):
            HDF5Data(tmp_path / name, ["data"])


@pytest.mark.parametrize("position", [0, 3, 9, 10])
def test_it_resumes_exactly(path, position):
    expected = [dp[0] for dp in HDF5Data(path, ["group/label"]).seed(2)]
    flow = HDF5Data(path, ["group/label"]).seed(2)
    begun = iter(flow)
    for _ in range(position):
        next(begun)
    resumed = HDF5Data(path, ["group/label"])
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert [dp[0] for dp in resumed] == expected[position:]


def test_it_crosses_process_borders_and_may_be_closed(path):
    flow = HDF5Data(path, ["group/label"], shuffle=False)
    list(flow)
    assert [dp[0] for dp in pickle.loads(pickle.dumps(flow))] == list(range(10))
    flow.close()
    assert [dp[0] for dp in flow] == list(range(10))


# ---- saving


def test_components_become_datasets(tmp_path):
    points = [[IMAGES[n], n, n / 2, f"ž{n}", b"\x00" * n, n % 2 == 0] for n in range(10)]
    assert HDF5Serializer.save(DataFromList(points, shuffle=False), tmp_path / "a.h5") == 10
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file) == [f"component_{place}" for place in range(6)]
        assert (file["component_0"][:] == IMAGES).all()
        assert file["component_1"].dtype == np.int64
    loaded = list(HDF5Serializer.load(tmp_path / "a.h5", shuffle=False))
    assert [dp[1:] for dp in loaded] == [dp[1:] for dp in points]
    assert all((dp[0] == image).all() for dp, image in zip(loaded, IMAGES, strict=True))


def test_datasets_may_be_named(tmp_path):
    HDF5Serializer.save(DataFromList([(1, 2.0)], shuffle=False), tmp_path / "a.h5", ["x", "deep/y"])
    assert list(HDF5Serializer.load(tmp_path / "a.h5")) == [[1, 2.0]]
    assert list(HDF5Serializer.load(tmp_path / "a.h5", ["deep/y"])) == [[2.0]]


def test_a_file_without_names_of_its_own_needs_them(path):
    with pytest.raises(DataError, match=r"with data, group, short, single\)\. Give"):
        HDF5Serializer.load(path)


def test_many_rows_are_written_in_blocks(tmp_path):
    flow = DataFromGenerator(lambda: ([np.full(100, n, np.int32), "x" * (n % 3)] for n in range(10_000)))
    assert HDF5Serializer.save(flow, tmp_path / "a.h5") == 10_000
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["component_0"][:, 7] == np.arange(10_000)).all()
        assert file["component_1"].asstr()[9998] == "xx"


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([[1], [2, 3]], "Datapoint 1 cannot be used: it is 2 components and no list of 1 components."),
        ([[1], {"a": 2}], "Datapoint 1 cannot be used: it is dict and no list of 1 components."),
        ([[]], "Datapoint 0 cannot be used: it is 0 components and no list of one or more components."),
        ([[np.zeros(3)], [np.zeros(4)]], "component `component_0` is float64 (4,), and that of the first datapoint"),
        ([[1], [1.5]], "component `component_0` is float64 (), and that of the first datapoint int64 ()."),
        ([["a"], [b"b"]], "component `component_0` is bytes, and that of the first datapoint str."),
        ([[None]], "component `component_0` is NoneType of dtype object, which HDF5 has not."),
    ],
)
def test_what_does_not_fit_is_named_and_leaves_no_file(tmp_path, points, text):
    with pytest.raises(DatapointError) as caught:
        HDF5Serializer.save(DataFromList(points, shuffle=False), tmp_path / "a.h5")
    assert text in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_flow_is_refused(tmp_path):
    with pytest.raises(DataError, match="a flow without datapoints"):
        HDF5Serializer.save(DataFromList([]), tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_the_flow_comes_and_nothing_is_overwritten(tmp_path, path):
    def broken():
        yield [1]
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="the camera is gone"):
        HDF5Serializer.save(DataFromGenerator(broken), tmp_path / "a.h5")
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        HDF5Serializer.save(DataFromList([[1]]), path)
    assert [file.name for file in tmp_path.iterdir()] == ["data.h5"]
