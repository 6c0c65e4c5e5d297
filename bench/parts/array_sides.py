"""Loaders of small arrays: 60,000 images of 28x28 with labels, as endless shuffled batches of 128."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.parts.photo_sides import endless

BATCH = 128
COUNT = 60_000


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (COUNT, 28, 28), np.uint8), rng.integers(0, 10, COUNT)


def inverted(point: Any) -> list[Any]:
    """The map of those sides that have one: a cheap function of one sample."""
    return [255 - point[0], point[1]]


def ziggurat(mapped: bool) -> Iterator[Any]:
    """Ours."""
    from ziggurat.dataflow.sources import DataFromArrays
    from ziggurat.dataflow.stages.batching import BatchData
    from ziggurat.dataflow.stages.mapping import MapData

    flow = DataFromArrays(*arrays(), shuffle=True)
    return endless(BatchData(MapData(flow, inverted) if mapped else flow, BATCH))


def tensorpack(mapped: bool) -> Iterator[Any]:
    """Tensorpack."""
    from tensorpack.dataflow import BatchData, DataFromList, MapData

    images, labels = arrays()
    flow = DataFromList([[image, int(label)] for image, label in zip(images, labels)], shuffle=True)
    loader = BatchData(MapData(flow, inverted) if mapped else flow, BATCH)
    loader.reset_state()
    return endless(loader)


def torch(batched_index: bool) -> Iterator[Any]:
    """PyTorch's ``DataLoader``, sample by sample, or with a sampler of whole batches."""
    from torch import from_numpy, set_num_threads
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

    set_num_threads(1)  # as in its own workers; more threads make indexing slower here
    images, labels = arrays()
    dataset = TensorDataset(from_numpy(images), from_numpy(labels))
    if not batched_index:
        return endless(DataLoader(dataset, BATCH, shuffle=True, drop_last=True))
    sampler = BatchSampler(RandomSampler(dataset), BATCH, drop_last=True)
    return endless(DataLoader(dataset, sampler=sampler, batch_size=None))


def tf_data(gather: bool) -> Iterator[Any]:
    """``tf.data``, sample by sample, or gathering whole batches by index."""
    from bench.parts.tensorflow_sides import _tensorflow

    tf = _tensorflow()
    images, labels = arrays()
    if not gather:
        dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(COUNT).repeat()
        return iter(dataset.batch(BATCH, drop_remainder=True).prefetch(2))
    x, y = tf.constant(images), tf.constant(labels)
    numbers = (
        tf.data.Dataset.range(1)
        .repeat()
        .flat_map(lambda _: tf.data.Dataset.from_tensor_slices(tf.random.shuffle(tf.range(COUNT))))
    )
    batches = numbers.batch(BATCH, drop_remainder=True)
    return iter(batches.map(lambda rows: (tf.gather(x, rows), tf.gather(y, rows))).prefetch(2))


def grain() -> Iterator[Any]:
    """Grain."""
    import grain as library

    images, labels = arrays()

    class Source:
        def __len__(self) -> int:
            return COUNT

        def __getitem__(self, index: Any) -> Any:
            return images[index], labels[index]

    flow = library.MapDataset.source(Source()).shuffle(seed=1).repeat(None).batch(BATCH)
    return iter(flow.to_iter_dataset())


def copy() -> Iterator[Any]:
    """The limit: take a batch out of the arrays by index."""
    images, labels = arrays()
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(COUNT)
        for start in range(0, COUNT - BATCH, BATCH):
            rows = order[start : start + BATCH]
            yield images.take(rows, axis=0), labels.take(rows)
