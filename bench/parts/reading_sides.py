"""Readers of records in random order: each yields after every 256 records, endlessly.

All read one record after the other in one thread, from the page cache, and decode images to (H, W, 3) uint8.
"""

from __future__ import annotations

import importlib
import io
import os
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

__all__ = ["TAKE", "files", "lmdb_gets", "make_copies", "memory", "record_data", "tf_data", "webdataset_shards"]

TAKE = 256
_BUFFER = 1000
_SHARD = 512
_TRAIN = "train.lmdb"


def record_data(folder: str, decoded: bool) -> Iterator[None]:
    """Ours: any record by its number, checked by its checksum."""
    from ziggurat.dataflow.record_data import RecordData

    flow = RecordData(Path(folder, "set"), "train", shuffle=True, content="image" if decoded else "bytes")
    flow.reset_state()
    yield from _taken(point for _ in iter(int, 1) for point in flow)


def lmdb_gets(folder: str, decoded: bool) -> Iterator[None]:
    """The bare limit of LMDB: the value of a random key, copied out of the map, and the image in it."""
    import lmdb

    environment = lmdb.open(str(Path(folder, "plain.lmdb")), subdir=False, readonly=True, lock=False)
    count = environment.stat()["entries"]

    def values() -> Iterator[Any]:
        for number in _random_numbers(count):
            with environment.begin() as transaction:
                yield _pixels(transaction.get(b"%08d" % number) or b"", decoded)

    yield from _taken(values())


def webdataset_shards(folder: str, decoded: bool) -> Iterator[None]:
    """WebDataset: tar files one after the other, in a shuffle buffer of 1000 records."""
    webdataset: Any = importlib.import_module("webdataset")
    shards = sorted(str(path) for path in Path(folder, "shards").glob("*.tar"))
    records = webdataset.WebDataset(shards, shardshuffle=len(shards), empty_check=False).shuffle(_BUFFER)
    pairs = records.to_tuple("jpg", "cls").map(lambda pair: (_pixels(pair[0], decoded), int(pair[1])))
    yield from _taken(pair for _ in iter(int, 1) for pair in pairs)


def tf_data(folder: str, decoded: bool) -> Iterator[None]:
    """``tf.data``: one TFRecord file in a shuffle buffer of 1000 examples, in batches, one thread."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def load(example: Any) -> Any:
        parsed = tf.io.parse_single_example(example, features)
        image = tf.io.decode_jpeg(parsed["image"], channels=3) if decoded else parsed["image"]
        return image, parsed["label"]

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    records = tf.data.TFRecordDataset(str(Path(folder, "tf.records"))).repeat().shuffle(_BUFFER)
    for _ in iter(records.map(load).batch(TAKE).with_options(options)):
        yield


def files(folder: str, decoded: bool) -> Iterator[None]:
    """Files of a folder in random order."""
    paths = sorted(str(path) for path in Path(folder, "files").iterdir())

    def contents() -> Iterator[Any]:
        for number in _random_numbers(len(paths)):
            with open(paths[number], "rb") as file:
                yield _pixels(file.read(), decoded)

    yield from _taken(contents())


def memory(folder: str, decoded: bool) -> Iterator[None]:
    """Bytes that lie in memory: nothing but the decoder."""
    held = [path.read_bytes() for path in sorted(Path(folder, "files").iterdir())]
    yield from _taken(_pixels(held[number], decoded) for number in _random_numbers(len(held)))


def make_copies(folder: Path) -> None:
    """Write the training images of the dataset in ``folder/set`` in the other forms, once."""
    done = folder / "done"
    if done.exists():
        return
    from ziggurat.records.split_reader import SplitReader

    with SplitReader(folder / "set", "train") as reader:
        pairs = [(parts[0], label) for _key, parts, label in map(reader.sample, range(len(reader)))]
    for write in (_write_files, _write_lmdb, _write_shards, _write_tf):
        write(folder, pairs)
    done.touch()


# ---- helpers


def _taken(values: Iterator[Any]) -> Iterator[None]:
    cv2.setNumThreads(1)
    while True:
        for _ in range(TAKE):
            next(values)
        yield


def _random_numbers(count: int) -> Iterator[int]:
    order, source = list(range(count)), random.Random(0)
    while True:
        source.shuffle(order)
        yield from order


def _pixels(data: bytes, decoded: bool) -> Any:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB) if decoded else data


_Pairs = list[tuple[Any, int]]


def _write_files(folder: Path, pairs: _Pairs) -> None:
    (folder / "files").mkdir(exist_ok=True)
    for number, (data, _label) in enumerate(pairs):
        (folder / "files" / f"{number:08d}.jpg").write_bytes(data)


def _write_lmdb(folder: Path, pairs: _Pairs) -> None:
    import lmdb

    path = folder / "plain.lmdb"
    path.unlink(missing_ok=True)
    environment = lmdb.open(str(path), subdir=False, lock=False, map_size=1 << 32)
    with environment, environment.begin(write=True) as transaction:
        for number, (data, _label) in enumerate(pairs):
            transaction.put(b"%08d" % number, data, append=True)


def _write_shards(folder: Path, pairs: _Pairs) -> None:
    (folder / "shards").mkdir(exist_ok=True)
    for first in range(0, len(pairs), _SHARD):
        with tarfile.open(folder / "shards" / f"{first:06d}.tar", "w") as tar:
            for number, (data, label) in enumerate(pairs[first : first + _SHARD], first):
                for name, content in ((f"{number:08d}.jpg", data), (f"{number:08d}.cls", str(label).encode())):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def _write_tf(folder: Path, pairs: _Pairs) -> None:
    try:
        import tensorflow as tf
    except ModuleNotFoundError:
        return
    make: Callable[..., Any] = tf.train.Feature
    with tf.io.TFRecordWriter(str(folder / "tf.records")) as writer:
        for data, label in pairs:
            image = make(bytes_list=tf.train.BytesList(value=[data]))
            number = make(int64_list=tf.train.Int64List(value=[label]))
            features = tf.train.Features(feature={"image": image, "label": number})
            writer.write(tf.train.Example(features=features).SerializeToString())
