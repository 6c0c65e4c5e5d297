"""MixUp and CutMix."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.imgaug.mixing import CutMix, MixUp, cut_mix, mix_up, soft_labels
from ziggurat.errors import DatapointError, UsageError


class Batches(DataFlow):
    """Batches of four plain images, whose value and class are their number."""

    def __init__(self, batches=3, dtype=np.uint8):
        self.batches = batches
        self.dtype = dtype

    def __len__(self):
        return self.batches

    def iterate(self):
        for _ in range(self.resume_index, self.batches):
            numbers = np.arange(4)
            yield [np.tile((numbers * 40).astype(self.dtype)[:, None, None, None], (1, 6, 8, 3)), numbers]


def test_mix_up_of_two():
    images = np.array([[10.0, 20.0], [30.0, 40.0]], np.float32)
    mixed, labels = mix_up(images, np.eye(2, dtype=np.float32), 0.75, np.array([1, 0]))
    assert mixed.tolist() == [[15, 25], [25, 35]]
    assert labels.tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_cut_mix_of_two():
    images = np.stack([np.zeros((4, 5), np.uint8), np.ones((4, 5), np.uint8)])
    mixed, labels = cut_mix(images, np.eye(2, dtype=np.float32), (1, 2, 3, 5), np.array([1, 0]))
    assert mixed[0].sum() == 6
    assert mixed[0, 1:3, 2:5].all()
    assert labels[0].tolist() == pytest.approx([0.7, 0.3])
    assert images.sum() == 20


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("stage", [MixUp, CutMix])
def test_labels_are_mixed_as_the_images_are(stage, dtype):
    for images, labels in stage(Batches(dtype=dtype), num_classes=4).seed(3):
        assert images.dtype == dtype
        assert labels.dtype == np.float32
        assert labels.sum(axis=1) == pytest.approx(1)
        seen = images.astype(float).mean(axis=(1, 2, 3))
        assert seen == pytest.approx(labels @ (np.arange(4) * 40), abs=0.6 if dtype == np.uint8 else 1e-3)


@pytest.mark.parametrize("stage", [MixUp, CutMix])
def test_a_seed_decides_everything_and_passes_differ(stage):
    def passes(seed):
        flow = stage(Batches(), num_classes=4).seed(seed)
        return [[images.tobytes() for images, _labels in flow] for _ in range(2)]

    assert passes(1) == passes(1)
    assert passes(1) != passes(2)
    first, second = passes(1)
    assert first != second


@pytest.mark.parametrize("stage", [MixUp, CutMix])
def test_resume_in_mid_pass(stage):
    flow = stage(Batches(5), num_classes=4).seed(3)
    whole = [images.tobytes() for images, _labels in flow]
    other = stage(Batches(5), num_classes=4).seed(3)
    iterator = iter(other)
    start = [next(iterator)[0].tobytes() for _ in range(2)]
    resumed = stage(Batches(5), num_classes=4)
    resumed.load_state(other.state())
    assert start + [images.tobytes() for images, _labels in resumed] == whole


def test_without_mixing_only_the_labels_change_their_form():
    (images, labels), *_ = MixUp(Batches(), num_classes=5, prob=0)
    assert np.array_equal(images, next(iter(Batches()))[0])
    assert labels.tolist() == np.eye(5)[:4].tolist()


def test_soft_labels_are_taken_as_they_are():
    labels = np.array([[0.5, 0.5]])
    assert soft_labels(labels, 1, None).tolist() == labels.tolist()
    assert soft_labels(np.array([1, 0]), 2, 3).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_batches_may_be_dicts():
    class Named(DataFlow):
        def iterate(self):
            for images, labels in Batches():
                yield {"x": images, "y": labels}

    batch = next(iter(CutMix(Named(), num_classes=4, image_index="x", label_index="y")))
    assert batch["y"].shape == (4, 4)


def test_errors():
    with pytest.raises(DatapointError, match=r"numbers \(N,\) below `num_classes` \(received: int64 \(4,\) for 4 im"):
        next(iter(MixUp(Batches())))
    with pytest.raises(DatapointError, match=r"num_classes=3\). Give `num_classes`, and check `label_index`"):
        next(iter(MixUp(Batches(), num_classes=3)))
    with pytest.raises(DatapointError, match=r"A batch that is mixed has images \(N, H, W, C\) .* \(received: int64 "):
        next(iter(MixUp(Batches(), num_classes=4, image_index=1, label_index=0)))
    with pytest.raises(UsageError, match=r"`alpha` is above 0, and finite \(received: 0"):
        MixUp(Batches(), 0)
