"""What the Tensorpack tutorial says of data flows, line by line of the checklist."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow import (
    AugmentImageComponent,
    BatchData,
    DataFlow,
    MapData,
    MultiProcessMapData,
    PrefetchDataZMQ,
    RNGDataFlow,
    dataset,
    imgaug,
)

_ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "torch", "keras"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
from ziggurat.dataflow import BatchData, DataFromList, MapData

ds = BatchData(MapData(DataFromList([[k] for k in range(6)], shuffle=False), lambda dp: [dp[0] ** 2]), 3)
ds.reset_state()
print([batch[0].tolist() for batch in ds])
"""


class MyDataFlow(DataFlow):
    """A flow as the tutorial writes one."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get_data(self) -> Any:
        for number in range(self.count):
            yield [np.full((8, 8, 3), number % 256, np.uint8), number % 10]

    def __len__(self) -> int:
        return self.count


class Shuffled(RNGDataFlow):
    """A flow that draws from its own generator."""

    def get_data(self) -> Any:
        order = list(range(5))
        self.rng.shuffle(order)
        for number in order:
            yield [number]


def _alone() -> str:
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_tutorial_05a_data_flows_work_without_a_framework() -> None:
    assert _alone() == "[[0, 1, 4], [9, 16, 25]]"


def test_tutorial_06_a_flow_yields_lists_of_components() -> None:
    points = list(MyDataFlow(3).get_data())
    assert [len(point) for point in points] == [2, 2, 2]
    assert [point[1] for point in MyDataFlow(3)] == [0, 1, 2]


def test_tutorial_07_mnist_in_batches_of_64(tmp_path: Path) -> None:
    images = np.arange(128 * 28 * 28, dtype=np.uint8).reshape(128, 28, 28)
    header = struct.pack(">IIII", 0x803, 128, 28, 28)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + images.tobytes())
    labels = struct.pack(">II", 0x801, 128) + bytes(k % 10 for k in range(128))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    df = BatchData(dataset.Mnist("train", dir=tmp_path), 64)
    df.reset_state()
    shapes = [[component.shape for component in point] for point in df]
    assert shapes == [[(64, 28, 28), (64,)]] * 2


def test_tutorial_08_stages_compose_as_printed() -> None:
    df: Any = MyDataFlow(256)
    df = AugmentImageComponent(df, [imgaug.Resize((225, 225))])
    df = BatchData(df, 128)
    df = PrefetchDataZMQ(df, 3)
    df.reset_state()
    points = list(df)
    assert [point[0].shape for point in points] == [(128, 225, 225, 3)] * 2
    assert sorted(set(points[0][1])) == list(range(10))


def test_tutorial_09_parallel_stages_give_what_serial_ones_give() -> None:
    def flow(workers: int) -> Any:
        source = Shuffled()
        ds = MultiProcessMapData(source, workers, _squared) if workers else MapData(source, _squared)
        return ds.seed(4)

    assert list(flow(2)) == list(flow(0))


def test_tutorial_11_reset_state_comes_first() -> None:
    df = Shuffled()
    df.reset_state()
    assert sorted(dp[0] for dp in df.get_data()) == [0, 1, 2, 3, 4]


def test_tutorial_12_data_flows_feed_any_framework() -> None:
    assert _alone().startswith("[[0")
    (batch,) = BatchData(Shuffled(), 5)
    assert isinstance(batch[0], np.ndarray)


def _squared(point: list[Any]) -> list[Any]:
    return [point[0] ** 2]
