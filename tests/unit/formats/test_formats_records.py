"""Flows from LMDB and TFRecord files, and flows saved to and loaded from files."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
import tracemalloc

import lmdb
import numpy as np
import pytest

from ziggurat.dataflow.formats import (
    LMDBData,
    LMDBDataDecoder,
    LMDBDataPoint,
    LMDBSerializer,
    NumpySerializer,
    TFRecordData,
    TFRecordSerializer,
)
from ziggurat.dataflow.sources import DataFromGenerator, DataFromList
from ziggurat.dataflow.stages.batching import BatchData
from ziggurat.errors import DataError, DatapointError, StorageError
from ziggurat.records import create_records

SERIALIZERS = [LMDBSerializer, TFRecordSerializer, NumpySerializer]
POINTS = [[np.full((3, 4), number, np.uint8), number, f"name {number}"] for number in range(20)]


def save_points(serializer, path, points=POINTS):
    assert serializer.save(DataFromList(points, shuffle=False), path) == len(points)
    return path


def numbers(flow):
    return [dp[1] for dp in flow]


def write(path, record_format, keys=True):
    with create_records(path, record_format) as writer:
        for number in range(20):
            writer.append(f"img/{number}.jpg" if keys else None, b"%d" % number)
    return path


def tensorpack_lmdb(path, points):
    """Write what Tensorpack's LMDBSerializer writes."""
    with lmdb.open(str(path), subdir=False, lock=False) as environment, environment.begin(write=True) as transaction:
        keys = [b"%08d" % number for number in range(len(points))]
        for key, point in zip(keys, points, strict=True):
            transaction.put(key, pickle.dumps(point, protocol=-1))
        transaction.put(b"__keys__", pickle.dumps(keys, protocol=-1))
    return path


# ---- LMDB


def test_lmdb_data_yields_key_and_value(tmp_path):
    flow = LMDBData(write(tmp_path / "store", "lmdb"), shuffle=False)
    assert len(flow) == 20
    assert list(flow) == [[b"img/%d.jpg" % number, b"%d" % number] for number in range(20)]


def test_lmdb_data_shuffles_by_default_and_by_seed(tmp_path):
    path = write(tmp_path / "store", "lmdb", keys=False)
    flow = LMDBData(path).seed(1)
    first, second = list(flow), list(flow)
    assert first != second
    assert sorted(first) == sorted(second) == [[b"%08d" % number, b"%d" % number] for number in range(20)]
    again = LMDBData(path).seed(1)
    assert [list(again), list(again)] == [first, second]


def test_lmdb_data_takes_keys_as_a_list_or_a_format(tmp_path):
    path = write(tmp_path / "store", "lmdb", keys=False)
    chosen = LMDBData(path, shuffle=False, keys=["00000003", b"00000001"])
    assert list(chosen) == [[b"00000003", b"3"], [b"00000001", b"1"]]
    assert [dp[1] for dp in LMDBData(path, shuffle=False, keys="{:08d}")] == [b"%d" % number for number in range(20)]
    with pytest.raises(DatapointError, match=r"Datapoint 'nine' cannot be used: .* has no record of that key"):
        list(LMDBData(path, shuffle=False, keys=["nine"]))


def decode_even(key, value):
    return [int(value), key] if int(value) % 2 == 0 else None


def test_a_decoder_maps_and_drops_records(tmp_path):
    flow = LMDBDataDecoder(LMDBData(write(tmp_path / "store", "lmdb"), shuffle=False), decode_even)
    assert list(flow)[:2] == [[0, b"img/0.jpg"], [2, b"img/2.jpg"]]
    assert len(list(flow)) == 10


def test_a_missing_store_is_named(tmp_path):
    for source in (LMDBData, TFRecordData, LMDBDataPoint, LMDBSerializer.load):
        with pytest.raises(DataError, match=r"There is no store at `.*nothing`"):
            source(tmp_path / "nothing")


def test_a_damaged_record_is_skipped_and_counted_when_asked(tmp_path):
    path = write(tmp_path / "store", "lmdb")
    data = path.read_bytes()
    place = data.index(b"0000001313")  # the database's key 00000013, then the value 13
    path.write_bytes(data[: place + 8] + b"xx" + data[place + 10 :])
    with pytest.raises(DatapointError, match=r"Datapoint 'img/13.jpg' cannot be used: its checksum in"):
        list(LMDBData(path))
    flow = LMDBData(path, shuffle=False, on_error="skip")
    assert [int(value) for _key, value in flow] == [number for number in range(20) if number != 13]
    assert [key for key, _reason in flow.policy.counts().first] == ["img/13.jpg"]


def test_a_closed_flow_may_be_iterated_again(tmp_path):
    for flow in (
        LMDBData(write(tmp_path / "a", "lmdb"), shuffle=False),
        TFRecordData(write(tmp_path / "b", "tfrecord")),
        NumpySerializer.load(save_points(NumpySerializer, tmp_path / "c"), shuffle=False),
    ):
        whole = [dp[0] for dp in flow]
        flow.close()
        assert all(np.array_equal(dp[0], item) for dp, item in zip(flow, whole, strict=True))


def test_stores_of_tensorpack_are_read_only_when_asked(tmp_path):
    path = tensorpack_lmdb(tmp_path / "store", POINTS)
    with pytest.raises(DataError) as caught:
        LMDBSerializer.load(path)
    assert "a pickled value in record '00000000', as Tensorpack writes them" in str(caught.value)
    assert "pass `allow_pickle=True`" in str(caught.value)
    with pytest.raises(DataError, match="PickledDataError"):
        list(LMDBDataPoint(path, shuffle=False))
    for flow in (
        LMDBSerializer.load(path, shuffle=False, allow_pickle=True),
        LMDBDataPoint(path, shuffle=False, allow_pickle=True),
        LMDBDataPoint(LMDBData(path, shuffle=False), allow_pickle=True),
    ):
        points = list(flow)
        assert [dp[1:] for dp in points] == [dp[1:] for dp in POINTS]
        assert (points[3][0] == POINTS[3][0]).all()


def test_npz_files_of_tensorpack_are_read_only_when_asked(tmp_path):
    buffer = np.empty(2, object)
    buffer[:] = [[1, "a"], [2, "b"]]
    np.savez_compressed(tmp_path / "old.npz", buffer=buffer)
    with pytest.raises(DataError, match="pass `allow_pickle=True`"):
        NumpySerializer.load(tmp_path / "old.npz")
    assert list(NumpySerializer.load(tmp_path / "old.npz", shuffle=False, allow_pickle=True)) == [[1, "a"], [2, "b"]]


def test_a_damaged_pickle_is_named(tmp_path):
    path = tensorpack_lmdb(tmp_path / "store", [[1], [2]])
    with lmdb.open(str(path), subdir=False, lock=False) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"00000001", b"\x80\x04broken")
    flow = iter(LMDBSerializer.load(path, shuffle=False, allow_pickle=True))
    assert next(flow) == [1]
    with pytest.raises(DatapointError, match="Datapoint '00000001' cannot be used: its pickle cannot be read"):
        next(flow)


# ---- saving and loading


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_datapoints_come_back_as_they_were(tmp_path, serializer):
    flow = serializer.load(save_points(serializer, tmp_path / "store"), shuffle=False)
    points = list(flow)
    assert len(flow) == len(points) == 20
    assert all(type(dp) is list and dp[0].dtype == np.uint8 for dp in points)
    assert all((dp[0] == number).all() and dp[1] == number for number, dp in enumerate(points))
    points[0][0][:] = 99  # may be written to


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_any_plain_datapoint_may_be_saved(tmp_path, serializer):
    points = [{"image": b"jpeg", "boxes": [(1, 2.5), None]}, (1, "a"), [np.float32(2), True], 7, "text", []]
    path = save_points(serializer, tmp_path / "store", points)
    assert list(serializer.load(path, shuffle=False)) == points


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_what_cannot_be_saved_is_named_and_leaves_no_file(tmp_path, serializer):
    with pytest.raises(DatapointError, match=r"Datapoint 1 cannot be used: it cannot be saved.*`builtins.set`"):
        serializer.save(DataFromList([[1], [{2}]], shuffle=False), tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_an_error_in_the_flow_comes_through_and_leaves_no_file(tmp_path, serializer):
    def broken():
        yield [1]
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="the camera is gone"):
        serializer.save(DataFromGenerator(broken), tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_nothing_is_overwritten(tmp_path, serializer):
    path = save_points(serializer, tmp_path / "store")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        serializer.save(DataFromList(POINTS), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("serializer", SERIALIZERS)
def test_an_empty_flow_makes_an_empty_file(tmp_path, serializer):
    assert list(serializer.load(save_points(serializer, tmp_path / "store", []))) == []


def test_records_that_no_serializer_wrote_are_named(tmp_path):
    write(tmp_path / "store", "lmdb")
    with pytest.raises(DatapointError, match=r"Datapoint 'img/0.jpg' cannot be used: it is no saved datapoint"):
        LMDBSerializer.load(tmp_path / "store")


def test_a_wrong_size_of_a_tfrecord_file_is_refused(tmp_path):
    path = save_points(TFRecordSerializer, tmp_path / "store")
    assert len(TFRecordSerializer.load(path, 20)) == 20
    with pytest.raises(DataError, match=r"`size` is 19, and `.*store` has 20 datapoints"):
        TFRecordSerializer.load(path, 19)


def test_tfrecord_data_yields_bytes(tmp_path):
    flow = TFRecordData(write(tmp_path / "store", "tfrecord"))
    assert list(flow) == [[b"%d" % number] for number in range(20)]


# ---- order, resume, processes


def sources(tmp_path):
    write(tmp_path / "a", "lmdb")
    write(tmp_path / "b", "tfrecord")
    for name, serializer in zip("cde", SERIALIZERS, strict=True):
        save_points(serializer, tmp_path / name)
    return {
        "LMDBData": lambda: LMDBData(tmp_path / "a"),
        "LMDBData in order": lambda: LMDBData(tmp_path / "a", shuffle=False),
        "LMDBDataDecoder": lambda: LMDBDataDecoder(LMDBData(tmp_path / "a"), decode_even),
        "TFRecordData": lambda: TFRecordData(tmp_path / "b", shuffle=True),
        "LMDBSerializer": lambda: LMDBSerializer.load(tmp_path / "c"),
        "LMDBDataPoint": lambda: LMDBDataPoint(tmp_path / "c"),
        "TFRecordSerializer": lambda: TFRecordSerializer.load(tmp_path / "d", shuffle=True),
        "NumpySerializer": lambda: NumpySerializer.load(tmp_path / "e"),
    }


NAMES = [
    *("LMDBData", "LMDBData in order", "LMDBDataDecoder", "TFRecordData"),
    *("LMDBSerializer", "LMDBDataPoint", "TFRecordSerializer", "NumpySerializer"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_source_resumes_exactly(tmp_path, name):
    make = sources(tmp_path)[name]
    whole = make().seed(7)
    list(whole)
    expected = [repr(dp) for dp in whole]
    for position in (0, 1, len(expected) // 2, len(expected) - 1, len(expected)):
        flow = make().seed(7)
        list(flow)
        begun = iter(flow)
        for _ in range(position):
            next(begun)
        resumed = make()
        resumed.load_state(json.loads(json.dumps(flow.state())))
        assert [repr(dp) for dp in resumed] == expected[position:]


@pytest.mark.parametrize("name", NAMES)
def test_every_source_crosses_process_borders(tmp_path, name):
    make = sources(tmp_path)[name]
    flow = make().seed(7)
    moved = pickle.loads(pickle.dumps(flow))
    assert [repr(dp) for dp in moved] == [repr(dp) for dp in make().seed(7)]


def test_a_flow_goes_on_in_a_forked_process(tmp_path):
    for flow in (make() for make in sources(tmp_path).values()):
        expected = [repr(dp) for dp in flow.seed(3)]
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                same = [repr(dp) for dp in flow] != [] and sorted(repr(dp) for dp in flow) == sorted(expected)
                os.write(sending, b"yes" if same else b"no")
            finally:
                os._exit(0)
        os.close(sending)
        os.waitpid(child, 0)
        with os.fdopen(receiving, "rb") as pipe:
            assert pipe.read() == b"yes"
        assert sorted(repr(dp) for dp in flow) == sorted(expected)


def test_batches_of_saved_datapoints(tmp_path):
    flow = LMDBSerializer.load(save_points(LMDBSerializer, tmp_path / "store"), shuffle=False)
    batches = list(BatchData(flow, 8, remainder=True))
    assert [batch[0].shape for batch in batches] == [(8, 3, 4), (8, 3, 4), (4, 3, 4)]
    assert batches[2][1].tolist() == [16, 17, 18, 19]


def test_an_open_store_costs_the_same_memory_at_any_size(tmp_path):
    LMDBSerializer.save(DataFromGenerator(lambda: ([number] for number in range(50_000))), tmp_path / "store")
    tracemalloc.start()
    try:
        flow = LMDBSerializer.load(tmp_path / "store", shuffle=False)
        iterator = iter(flow)
        for _ in range(1500):
            next(iterator)
        _now, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 2_000_000  # most of it: the 50,000 numbers of the order


def test_a_full_disk_is_a_storage_error(tmp_path):
    program = """
        import resource, signal, sys
        from ziggurat.dataflow.formats import HDF5Serializer, LMDBSerializer
        from ziggurat.dataflow.sources import DataFromGenerator
        from ziggurat.errors import StorageError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        for serializer in (LMDBSerializer, HDF5Serializer):
            try:
                serializer.save(DataFromGenerator(lambda: ([bytes(50_000)] for _ in range(1000))), sys.argv[1])
            except StorageError as error:
                print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("free space") == 2, done.stdout
    assert list(tmp_path.iterdir()) == []
