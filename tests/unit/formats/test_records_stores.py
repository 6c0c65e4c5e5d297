"""Record stores: what is appended is read back, by number, from any process, or a clear error says why not."""

import gc
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile

import h5py
import lmdb
import numpy as np
import pytest

from ziggurat.errors import DataError, DatapointError, StorageError, UnknownNameError, UsageError
from ziggurat.records import (
    RECORD_FORMATS,
    LMDBReader,
    RecordIndexError,
    TFRecordReader,
    create_records,
    open_records,
)
from ziggurat.records.hdf5_file import NewHDF5File

FORMATS = sorted(RECORD_FORMATS)
VALUES = [b"", b"a", bytes(range(256)) * 40, b"last"]
KEYS = ["img/0.jpg", None, "čtvrtý", "img/0.jpg"]


def write(path, record_format, values=VALUES, keys=None):
    with create_records(path, record_format) as writer:
        for number, value in enumerate(values):
            writer.append(None if keys is None else keys[number], value)
    return path


def run(program, *arguments, **kwargs):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **kwargs)


@pytest.fixture(params=FORMATS)
def record_format(request):
    return request.param


@pytest.fixture
def path(tmp_path, record_format):
    return tmp_path / f"store.{record_format}"


def test_values_and_keys_come_back_in_order(path, record_format):
    write(path, record_format, keys=KEYS)
    with open_records(path) as reader:
        assert type(reader) is RECORD_FORMATS[record_format][1]
        assert len(reader) == 4
        assert [reader.get(number) for number in range(4)] == VALUES
        assert reader.get_many([3, 0, 3]) == [b"last", b"", b"last"]
        assert list(reader.keys) == ["img/0.jpg", "00000001", "čtvrtý", "img/0.jpg"]
        assert reader.keys[-2:] == ["čtvrtý", "img/0.jpg"]
        assert list(reader) == list(zip(reader.keys, VALUES, strict=True))
        reader.verify()


def test_many_records_over_several_batches(path, record_format):
    values = [str(number).encode() * (number % 50) for number in range(12_000)]
    write(path, record_format, values)
    with open_records(path) as reader:
        assert reader.get_many(range(12_000)) == values
        assert reader.key(11_999) == "00011999"


def test_large_records_grow_the_store(path, record_format):
    values = [bytes([number]) * 9_000_000 for number in range(6)]  # an LMDB map starts at 16 MiB
    write(path, record_format, values)
    with open_records(path) as reader:
        assert [reader.get(number) for number in range(6)] == values
    assert path.stat().st_size < 1.01 * 54_000_000


def test_an_empty_store(path, record_format):
    write(path, record_format, [])
    with open_records(path) as reader:
        assert len(reader) == 0
        assert list(reader) == []


def test_numbers_outside_are_refused(path, record_format):
    write(path, record_format)
    with open_records(path) as reader:
        for number in (-1, 4):
            with pytest.raises(RecordIndexError, match=f"There is no record {number} among the 4 of"):
                reader.get(number)
        with pytest.raises(IndexError):
            reader.get_many([0, 9])


def test_values_may_be_any_bytes_and_nothing_else(path, record_format):
    with create_records(path, record_format) as writer:
        assert writer.append(None, bytearray(b"ab")) == 0
        assert writer.append(None, memoryview(b"cd")) == 1
        with pytest.raises(UsageError, match="The value of record 2 is a str, not bytes"):
            writer.append(None, "text")
        assert len(writer) == 2
    with pytest.raises(UsageError, match="takes no more records"):
        writer.append(None, b"late")
    with open_records(path) as reader:
        assert reader.get_many([0, 1]) == [b"ab", b"cd"]


def test_nothing_is_overwritten(path, record_format):
    path.write_bytes(b"precious")
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        create_records(path, record_format)
    assert path.read_bytes() == b"precious"


def test_a_file_that_appears_meanwhile_is_not_overwritten(path, record_format):
    writer = create_records(path, record_format)
    writer.append(None, b"x")
    path.write_bytes(b"precious")
    with pytest.raises(StorageError, match="which exists"):
        writer.finish()
    assert path.read_bytes() == b"precious"
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_a_folder_that_is_missing_is_named(tmp_path, record_format):
    with pytest.raises(StorageError, match=r"the folder `.*nowhere` does not exist"):
        create_records(tmp_path / "nowhere" / "store", record_format)


def test_an_error_in_the_block_leaves_nothing(path, record_format):
    with pytest.raises(RuntimeError, match="stop"), create_records(path, record_format) as writer:
        writer.append(None, b"x" * 100_000)
        raise RuntimeError("stop")
    assert list(path.parent.iterdir()) == []


def test_a_killed_writer_leaves_nothing_that_looks_like_a_store(path, record_format):
    program = """
        import sys
        from ziggurat.records import create_records
        with create_records(sys.argv[1], sys.argv[2]) as writer:
            for number in range(10**9):
                writer.append(None, bytes(20_000))
                if number == 6000:
                    print("under way", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path), record_format]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"under way\n"
        process.send_signal(signal.SIGKILL)
    left = [file.name for file in path.parent.iterdir()]
    assert not path.exists()
    assert all(name.startswith(f".{path.name}.") and name.endswith(".partial") for name in left)
    with pytest.raises(DataError, match="There is no store at"):
        open_records(path)
    write(path, record_format)  # the left-over does not disturb
    with open_records(path) as reader:
        assert len(reader) == 4


def test_a_full_disk_is_a_storage_error_and_leaves_nothing(path, record_format):
    program = """
        import resource, signal, sys
        from ziggurat.errors import StorageError
        from ziggurat.records import create_records
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        try:
            with create_records(sys.argv[1], sys.argv[2]) as writer:
                for _ in range(1000):
                    writer.append(None, bytes(50_000))
        except StorageError as error:
            print(error)
    """
    done = run(program, path, record_format)
    assert done.returncode == 0, done.stderr
    assert "free space" in done.stdout
    assert path.name in done.stdout
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_takes_no_files_is_a_storage_error(record_format):
    with pytest.raises(StorageError, match=r"Writing .*needs .*`/proc/store`"):
        create_records("/proc/store", record_format)


def test_every_cut_is_noticed(path, record_format):
    write(path, record_format, [bytes(range(256)) * 100] * 40)
    data = path.read_bytes()
    for tenth in range(10):
        cut = path.with_name(f"cut{tenth}.{record_format}")
        cut.write_bytes(data[: len(data) * tenth // 10])
        if record_format == "tfrecord":  # its side file tells a cut between two records
            shutil.copy(f"{path}.index", f"{cut}.index")
        with pytest.raises(DataError), RECORD_FORMATS[record_format][1](cut) as reader:
            reader.verify()


def test_a_changed_byte_is_noticed_and_names_the_record(path, record_format):
    write(path, record_format, [b"\x01" * 5000, b"\x02" * 5000], keys=["one.jpg", "two.jpg"])
    data = bytearray(path.read_bytes())
    data[data.index(b"\x02" * 100) + 50] ^= 1
    path.write_bytes(data)
    with open_records(path) as reader:
        assert reader.get(0) == b"\x01" * 5000
        with pytest.raises(DatapointError, match=r"Datapoint 'two.jpg' cannot be used: its checksum in .* is wrong"):
            reader.get(1)
        with pytest.raises(DatapointError):
            reader.verify()


@pytest.mark.parametrize("content", [b"", b"x", b"garbage " * 1000], ids=["empty", "one byte", "garbage"])
def test_what_is_no_store_is_a_data_error(tmp_path, record_format, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    if (record_format, content) == ("tfrecord", b""):
        assert len(TFRecordReader(path)) == 0  # an empty file is an empty TFRecord file
        return
    with pytest.raises(DataError, match=r"A store of kind .* is read as it was written"):
        RECORD_FORMATS[record_format][1](path)


def test_the_format_must_be_known(tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean `lmdb`"):
        create_records(tmp_path / "x", "lmbd")


# ---- processes and threads


def _sum_in_child(reader, queue):
    queue.put(sum(len(value) for _key, value in reader))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_reader_works_in_other_processes(path, record_format, method):
    write(path, record_format)
    context = multiprocessing.get_context(method)
    with open_records(path) as reader:
        reader.get(1)
        queue = context.Queue()
        processes = [context.Process(target=_sum_in_child, args=(reader, queue)) for _ in range(2)]
        for process in processes:
            process.start()
        assert [queue.get(timeout=60) for _ in processes] == [10_245, 10_245]
        for process in processes:
            process.join()
        assert reader.get(3) == b"last"


def test_a_reader_serves_several_threads(path, record_format):
    values = [str(number).encode() * 20 for number in range(300)]
    write(path, record_format, values)
    wrong = []
    with open_records(path) as reader:

        def read(start):
            for number in range(start, 300, 4):
                if reader.get(number) != values[number]:
                    wrong.append(number)

        threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_two_readers_of_one_store_do_not_disturb_each_other(path, record_format):
    write(path, record_format)
    first, second = open_records(path), open_records(path)
    first.close()
    assert second.get(3) == b"last"
    third = pickle.loads(pickle.dumps(second))
    second.close()
    assert third.get(0) == b""
    third.close()


def test_a_store_may_be_deleted_and_rewritten_while_open(path, record_format):
    write(path, record_format)
    old = open_records(path)
    for file in path.parent.iterdir():
        file.unlink()
    write(path, record_format, [b"new"])
    with open_records(path) as new:
        assert new.get(0) == b"new"
    if record_format != "hdf5":  # HDF5 tells files apart by name and number, which the system may give again
        assert old.get(3) == b"last"
    old.close()


# ---- other programs


def test_numpy_opens_an_npz_store(tmp_path):
    write(tmp_path / "store.npz", "npz", [b"\x01\x02", b"\x03"])
    with np.load(tmp_path / "store.npz") as arrays:
        assert arrays.files == ["values_00000", "index"]
        assert arrays["values_00000"].tolist() == [1, 2, 3]


def test_a_compressed_npz_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "store.npz", index=np.zeros(5, np.uint8))
    with pytest.raises(DataError, match="compressed, which leaves no random access"):
        open_records(tmp_path / "store.npz")


def test_an_npz_of_other_programs_is_refused(tmp_path):
    np.savez(tmp_path / "store.npz", index=np.zeros(5, np.uint8))
    with pytest.raises(DataError, match="index of"):
        open_records(tmp_path / "store.npz")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(DataError, match=r"no item named 'index\.npy'"):
        open_records(tmp_path / "other.npz")


def test_an_hdf5_file_of_other_programs_is_refused(tmp_path):
    with h5py.File(tmp_path / "store.h5", "w") as file:
        file["data"] = np.zeros(3)
    with pytest.raises(DataError, match="HDF5Data reads other HDF5 files"):
        open_records(tmp_path / "store.h5")


def test_an_hdf5_file_that_cannot_be_made_has_nothing_to_close(tmp_path, monkeypatch):
    (tmp_path / "store.h5").touch()
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)  # from Python 3.13 on, it hears of a failing close
    with pytest.raises(FileExistsError):
        NewHDF5File(tmp_path / "store.h5")
    gc.collect()
    assert told == []


def test_a_tfrecord_file_without_index_is_scanned(tmp_path):
    path = write(tmp_path / "store.tfrecord", "tfrecord", keys=KEYS)
    (tmp_path / "store.tfrecord.index").unlink()
    with open_records(path) as reader:
        assert list(reader) == [("00000000", b""), ("00000001", b"a"), ("00000002", VALUES[2]), ("00000003", b"last")]


def test_an_index_of_another_tfrecord_file_is_refused(tmp_path):
    path = write(tmp_path / "store.tfrecord", "tfrecord")
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(DataError, match=r"its index `.*store.tfrecord.index` is for \d+"):
        open_records(path)


def test_a_compressed_tfrecord_file_is_refused(tmp_path):
    (tmp_path / "store").write_bytes(b"\x1f\x8b\x08\x00" + bytes(40))
    with pytest.raises(DataError, match="decompress it first"):
        open_records(tmp_path / "store")


def test_the_framing_is_tensorflows(tmp_path):
    path = write(tmp_path / "store.tfrecord", "tfrecord", [b"abc"])
    # Written by tf.io.TFRecordWriter for the record b"abc".
    assert path.read_bytes().hex() == "0300000000000000" + "b099490e" + "616263" + "6e57f121"


def test_tensorpack_reads_an_lmdb_store(tmp_path):
    write(tmp_path / "store.lmdb", "lmdb", keys=KEYS)
    store = str(tmp_path / "store.lmdb")
    with lmdb.open(store, subdir=False, readonly=True, lock=False) as environment, environment.begin() as transaction:
        found = dict(transaction.cursor())
    assert pickle.loads(found.pop(b"__keys__")) == [b"00000000", b"00000001", b"00000002", b"00000003"]
    assert found == {b"%08d" % number: value for number, value in enumerate(VALUES)}


def foreign_lmdb(path, records):
    with lmdb.open(str(path), subdir=False, lock=False) as environment, environment.begin(write=True) as transaction:
        for key, value in records.items():
            transaction.put(key, value)
    return path


def test_an_lmdb_store_of_tensorpack_is_read(tmp_path):
    keys = [b"00000000", b"00000001"]
    path = foreign_lmdb(
        tmp_path / "store", {b"00000000": b"x", b"00000001": b"y", b"__keys__": pickle.dumps(keys, protocol=-1)}
    )
    with open_records(path) as reader:
        assert list(reader) == [("00000000", b"x"), ("00000001", b"y")]


def test_any_lmdb_store_is_read_in_the_order_of_its_keys(tmp_path):
    path = foreign_lmdb(tmp_path / "store", {b"b.jpg": b"2", b"a.jpg": b"1", b"\xff": b"3"})
    with LMDBReader(path) as reader:
        assert list(reader) == [("a.jpg", b"1"), ("b.jpg", b"2"), ("\udcff", b"3")]
        assert reader.database_key(2) == b"\xff"
    with LMDBReader(path, keys=[b"b.jpg", b"c.jpg"]) as reader:
        assert reader.get(0) == b"2"
        with pytest.raises(DatapointError, match="has no record of that key"):
            reader.get(1)


def test_an_lmdb_folder_is_read(tmp_path):
    with lmdb.open(str(tmp_path / "store")) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"k", b"v")
    with open_records(tmp_path / "store") as reader:
        assert list(reader) == [("k", b"v")]


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("harm",))


def test_a_harmful_list_of_keys_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = foreign_lmdb(tmp_path / "store", {b"__keys__": pickle.dumps([Harmful()], protocol=-1)})
    with pytest.raises(DataError, match=r"one that names `posix.mkdir`"):
        open_records(path)
    assert not (tmp_path / "harm").exists()
