"""Loaders of photographs made with ``tf.data``, which decodes and crops in one operation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from bench.parts.photo_sides import BATCH, WORKERS, listed

SIZE = 224


def tf_files(folder: str) -> Iterator[Any]:
    """``tf.data`` over files."""
    tf = _tensorflow()
    paths, labels = zip(*listed(folder))
    files = tf.data.Dataset.from_tensor_slices((list(paths), list(labels))).shuffle(len(paths)).repeat()
    return _batches(tf, files, lambda path, label: (_crop(tf, tf.io.read_file(path)), label))


def tf_records(path: str) -> Iterator[Any]:
    """``tf.data`` over a TFRecord file of examples, its own kind of store."""
    tf = _tensorflow()
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def load(example: Any) -> Any:
        parsed = tf.io.parse_single_example(example, features)
        return _crop(tf, parsed["image"]), parsed["label"]

    return _batches(tf, tf.data.TFRecordDataset(path).repeat().shuffle(256), load)


def write_records(folder: str, path: str) -> None:
    """Write the files as a TFRecord file of examples."""
    tf = _tensorflow()
    with tf.io.TFRecordWriter(path) as writer:
        for file, label in listed(folder):
            with open(file, "rb") as opened:
                data = tf.train.Feature(bytes_list=tf.train.BytesList(value=[opened.read()]))
            number = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
            features = tf.train.Features(feature={"image": data, "label": number})
            writer.write(tf.train.Example(features=features).SerializeToString())


def _batches(tf: Any, dataset: Any, load: Any) -> Iterator[Any]:
    options = tf.data.Options()
    options.threading.private_threadpool_size = WORKERS
    dataset = dataset.map(load, num_parallel_calls=WORKERS).batch(BATCH, drop_remainder=True).prefetch(2)
    return iter(dataset.with_options(options))


def _crop(tf: Any, data: Any) -> Any:
    start, size, _ = tf.image.sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(data),
        tf.zeros([1, 0, 4]),
        min_object_covered=0.0,
        aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0),
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.stack([start[0], start[1], size[0], size[1]])
    image = tf.image.resize(tf.io.decode_and_crop_jpeg(data, window, channels=3), [SIZE, SIZE])
    return tf.image.random_flip_left_right(tf.cast(image + 0.5, tf.uint8))


def _tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import tensorflow as tf

    return tf
