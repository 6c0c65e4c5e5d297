"""The tutorials' reader of MNIST over idx files of this machine."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.mnist import read_data_sets
from ziggurat.errors import DataError, UsageError

IMAGES = np.random.RandomState(0).randint(0, 256, (30, 28, 28)).astype(np.uint8)
LABELS = (np.arange(30) % 10).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty images to learn from, two files in gzip, and ten to test with."""
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(IMAGES[:20])))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS[:20])))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(IMAGES[20:]))
    (tmp_path / "t10k-labels.idx1-ubyte").write_bytes(idx(LABELS[20:]))
    return tmp_path


def test_splits_and_their_values(folder: Path) -> None:
    mnist = read_data_sets(folder, one_hot=True, validation_size=5)
    assert (mnist.train.num_examples, mnist.validation.num_examples, mnist.test.num_examples) == (15, 5, 10)
    np.testing.assert_allclose(mnist.validation.images, IMAGES[:5].reshape(5, 784) / 255, rtol=1e-6)
    assert mnist.train.images.dtype == np.float32
    assert mnist.train.labels.tolist() == np.eye(10)[LABELS[5:20]].tolist()


def test_bytes_in_their_shape(folder: Path) -> None:
    test = read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0).test
    assert test.images.dtype == np.uint8
    np.testing.assert_array_equal(test.images[..., 0], IMAGES[20:])
    np.testing.assert_array_equal(test.labels, LABELS[20:])


def test_batches_cover_an_epoch_and_go_on(folder: Path) -> None:
    train = read_data_sets(folder, validation_size=0, seed=3).train
    given = np.concatenate([train.next_batch(8)[1] for _ in range(5)])
    assert sorted(given[:20]) == sorted(LABELS[:20])
    assert sorted(given[20:]) == sorted(LABELS[:20])
    assert given[:20].tolist() != given[20:].tolist()
    assert train.epochs_completed == 1
    again = read_data_sets(folder, validation_size=0, seed=3).train
    assert np.concatenate([again.next_batch(8)[1] for _ in range(5)]).tolist() == given.tolist()


def test_batches_without_an_order_of_their_own(folder: Path) -> None:
    train = read_data_sets(folder, validation_size=0).train
    assert train.next_batch(12, shuffle=False)[1].tolist() == LABELS[:12].tolist()
    assert train.next_batch(12, shuffle=False)[1].tolist() == [*LABELS[12:20], *LABELS[:4]]


def test_made_up_batches_need_no_files() -> None:
    images, labels = read_data_sets("nowhere", fake_data=True, one_hot=True).train.next_batch(2)
    assert np.shape(images) == (2, 784)
    assert np.sum(labels) == 2


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no `train-images-idx3-ubyte.gz`.*nothing is downloaded"):
        read_data_sets(tmp_path)


def test_more_validation_than_there_is(folder: Path) -> None:
    with pytest.raises(UsageError, match="is 5000, not 0 to 20"):
        read_data_sets(folder)


def test_a_batch_larger_than_the_split(folder: Path) -> None:
    with pytest.raises(UsageError, match="and the split has"):
        read_data_sets(folder, validation_size=0).test.next_batch(11)
