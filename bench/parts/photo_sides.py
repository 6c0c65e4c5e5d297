"""Loaders of photographs: endless batches of 64 uint8 crops of 224 px, in a new order each pass.

All do the same work: a box of 8 to 100 % of the area with an aspect ratio of 3:4 to 4:3, bilinear resize, random
mirror. Each library is used as its documentation recommends, with two workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.parts.crop import crop_opencv, crop_pil

BATCH = 64
WORKERS = 2


def listed(folder: str) -> list[tuple[str, int]]:
    """Return paths and labels."""
    return [(str(path), int(path.parent.name[-1])) for path in sorted(Path(folder).rglob("*.jpg"))]


def endless(loader: Any) -> Iterator[Any]:
    """Yield the batches of one pass after the other."""
    while True:
        yield from loader


def ziggurat(folder: str, engine: str = "auto") -> Iterator[Any]:
    """Ours, from files."""
    from ziggurat.dataflow.fast import JpegCropBatches
    from ziggurat.dataflow.images import ImageFolder

    flow = ImageFolder(folder, shuffle=True, content="path")
    return endless(_ours(JpegCropBatches, flow, engine))


def scaled_crops(folder: str, size: int, crop: int) -> Iterator[Any]:
    """Ours, with the crops that a job makes: at a random place of the scaled image."""
    from ziggurat.dataflow.fast import JpegCropBatches, ScaledRandomCrop
    from ziggurat.dataflow.images import ImageFolder

    flow = ImageFolder(folder, shuffle=True, content="path")
    policy = ScaledRandomCrop((size, size), (crop, crop), flip=True)
    return endless(JpegCropBatches(flow, BATCH, policy, num_thread=WORKERS))


def ziggurat_store(path: str, engine: str = "auto") -> Iterator[Any]:
    """Ours, from an LMDB store of JPEG files, tiled or not."""
    from ziggurat.dataflow.fast import JpegCropBatches
    from ziggurat.dataflow.formats.serializers import LMDBSerializer

    return endless(_ours(JpegCropBatches, LMDBSerializer.load(path, shuffle=True), engine))


def ziggurat_pixels(path: str) -> Iterator[Any]:
    """Ours, from a file of pixels."""
    from ziggurat.dataflow.fast import JpegCropBatches, PixelFlow

    return endless(_ours(JpegCropBatches, PixelFlow(path, shuffle=True), "auto"))


def _ours(stage: Any, flow: Any, engine: Any) -> Any:
    from ziggurat.errors import DataError

    try:
        return stage(flow, BATCH, num_thread=WORKERS, engine=engine)
    except DataError as error:
        raise NotImplementedError(error.received) from error


def tensorpack_runner(folder: str) -> Iterator[Any]:
    """Tensorpack's ``MultiProcessRunnerZMQ``: each worker loads and crops."""
    from tensorpack.dataflow import BatchData, DataFromList, MapData, MultiProcessRunnerZMQ

    flow = MapData(DataFromList(listed(folder), shuffle=True), _cropped_file)
    return _tensorpack(BatchData(MultiProcessRunnerZMQ(flow, WORKERS), BATCH))


def tensorpack_map(folder: str) -> Iterator[Any]:
    """Tensorpack's ``MultiProcessMapDataZMQ``: the consumer lists, workers load and crop."""
    from tensorpack.dataflow import BatchData, DataFromList, MultiProcessMapDataZMQ

    flow = DataFromList(listed(folder), shuffle=True)
    return _tensorpack(BatchData(MultiProcessMapDataZMQ(flow, WORKERS, _cropped_file, buffer_size=256), BATCH))


def tensorpack_lmdb(path: str) -> Iterator[Any]:
    """Tensorpack's LMDB reader and ``MultiProcessMapDataZMQ``."""
    from tensorpack.dataflow import BatchData, LMDBSerializer, MultiProcessMapDataZMQ

    flow = LMDBSerializer.load(path, shuffle=True)
    return _tensorpack(BatchData(MultiProcessMapDataZMQ(flow, WORKERS, _cropped_bytes, buffer_size=256), BATCH))


def _tensorpack(flow: Any) -> Iterator[Any]:
    flow.reset_state()
    return endless(flow)


def _cropped_file(point: Any) -> list[Any]:
    return [crop_opencv(np.fromfile(point[0], np.uint8)), point[1]]


def _cropped_bytes(point: Any) -> list[Any]:
    return [crop_opencv(np.frombuffer(point[0], np.uint8)), point[1]]


def torch_files(folder: str, decoder: str) -> Iterator[Any]:
    """PyTorch's ``DataLoader`` over files."""
    return endless(_torch_loader(_Files(folder, decoder)))


def torch_lmdb(path: str, decoder: str) -> Iterator[Any]:
    """PyTorch's ``DataLoader`` over an LMDB store."""
    return endless(_torch_loader(_Records(path, decoder)))


def _torch_loader(dataset: Any) -> Any:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, BATCH, shuffle=True, num_workers=WORKERS, drop_last=True, persistent_workers=True)


class _Files:
    """A map-style dataset of files."""

    def __init__(self, folder: str, decoder: str = "opencv") -> None:
        self.items = listed(folder)
        self.crop = {"opencv": crop_opencv, "pil": crop_pil}[decoder]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> tuple[np.ndarray, int]:
        path, label = self.items[index]
        return self.crop(np.fromfile(path, np.uint8)), label


class _Records:
    """A map-style dataset of an LMDB store that our serializer wrote."""

    def __init__(self, path: str, decoder: str = "opencv") -> None:
        self.path = path
        self.crop = {"opencv": crop_opencv, "pil": crop_pil}[decoder]
        self.flow: Any = None
        self.count = len(self._opened())
        self.flow = None

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> tuple[np.ndarray, int]:
        data, label = self._opened().datapoint(index)
        return self.crop(np.frombuffer(data, np.uint8)), label

    def _opened(self) -> Any:
        from ziggurat.dataflow.formats.serializers import LMDBSerializer

        if self.flow is None:
            self.flow = LMDBSerializer.load(self.path)
        return self.flow


def grain_files(folder: str, workers: str) -> Iterator[Any]:
    """Grain over files."""
    return _grain(_Files(folder), workers)


def grain_lmdb(path: str, workers: str) -> Iterator[Any]:
    """Grain over an LMDB store."""
    return _grain(_Records(path), workers)


def _grain(source: Any, workers: str) -> Iterator[Any]:
    """By ``workers``: "processes" or "threads"."""
    import grain

    flow = grain.MapDataset.source(source).shuffle(seed=1).repeat(None).batch(BATCH)
    threads = WORKERS if workers == "threads" else 1
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=2)  # the default is 500, here of batches
    loader = flow.to_iter_dataset(read_options=options)
    if workers == "processes":
        loader = loader.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))
    return iter(loader)
