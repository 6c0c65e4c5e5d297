"""Mixup and CutMix in a training: images and labels mixed alike, no label lost, and nothing changed where off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.dataflow.preprocessing import Augmentation
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import ConfigurationError, DataError
from ziggurat.records.schema import Schema
from ziggurat.specs import parse_spec
from ziggurat.tasks import task
from ziggurat.worker.build import _check_mixing, data_of, load_backend, program_request
from ziggurat.worker.context import new_context
from ziggurat.worker.mixing import check_mixing
from ziggurat.worker.pipeline import DataOptions, Pipeline, prepare_data
from ziggurat.worker.source import DataSource

SIDE, COUNT = 12, 20
SHARES = st.sampled_from([0.0, 0.2, 1.0, 5.0])


def source_of(classes: int, kind: str = "image-classification", seed: int = 0) -> DataSource:
    """Return images of one value each, which is the row of the image, and classes."""
    random = np.random.default_rng(seed)
    points = [[np.full((SIDE, SIDE, 1), 10 * row, np.uint8), int(random.integers(classes))] for row in range(COUNT)]
    flow = DataFromList(points, shuffle=False)
    policy = flow.policy = ErrorPolicy("raise")
    names = tuple(f"class {number}" for number in range(classes))
    schema = Schema(kind=kind, class_names=names)
    return DataSource(
        splits={"train": flow}, schema=schema, size=(SIDE, SIDE), channels=1, in_memory=True, policy=policy
    )


def stages_of(source: DataSource, **augmentation: float):
    options = DataOptions(batch_size=5, workers=1, seed=3, augmentation=Augmentation(**augmentation))
    return Pipeline(source, options, new_context(source, options, task("classification"))).training(by_row=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), SHARES, SHARES, st.integers(0, 1000))
def test_no_label_of_a_mixed_batch_is_lost(classes, mixup, cutmix, seed):
    source = source_of(classes, seed=seed)
    stages = stages_of(source, mixup=mixup, cutmix=cutmix)
    with stages.last as flow:
        batches = list(flow)
    assert len(batches) == COUNT // 5
    for number, batch in enumerate(batches):
        points = [source.splits["train"].datapoint(row) for row in stages.order(0)[5 * number : 5 * number + 5]]
        x, y = (np.array(part) for part in zip(*points, strict=True))
        if not mixup and not cutmix:
            np.testing.assert_array_equal(batch[0], x)
            assert len(batch) == 2
            continue
        images, labels, others, share = batch
        assert (share >= 0.5).all()
        assert (share <= 1).all()
        shares = np.zeros((5, classes))
        np.add.at(shares, (np.arange(5), labels), share)
        np.add.at(shares, (np.arange(5), others), 1 - share)
        np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
        # Each sample gives away as much as it gets: the classes of a batch have the weight that they had.
        np.testing.assert_allclose(shares.sum(axis=0), np.bincount(y, minlength=classes), atol=1e-5)
        # So do the pixels of blended images; a pasted rectangle is the same in all of them.
        np.testing.assert_allclose(images.sum(axis=0), x.sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("augmentation", [{"mixup": 1.0}, {"cutmix": 1.0}, {"mixup": 0.5, "cutmix": 0.5}])
def test_pixels_have_the_shares_of_the_labels(augmentation):
    source = source_of(4)
    stages = stages_of(source, **augmentation)
    labels_of = {10 * row: source.splits["train"].datapoint(row)[1] for row in range(COUNT)}
    with stages.last as flow:
        batches = list(flow)
    blends = 0
    for number, (images, labels, others, share) in enumerate(batches):
        order = stages.order(0)[number * 5 : number * 5 + 5]
        own, partners = 10.0 * order, 10.0 * order[stages.mixture(order[0], 0)[0].order]
        for place, image in enumerate(images[..., 0]):
            first, second = own[place], partners[place]
            if first == second:
                assert (image == first).all()
                continue
            is_pasted = set(np.unique(image).tolist()) <= {first, second}
            if is_pasted and np.mean(image == first) < 0.5:  # the larger part comes first
                first, second = second, first
            assert (labels[place], others[place]) == (labels_of[first], labels_of[second])
            if is_pasted:
                assert share[place] == pytest.approx(np.mean(image == first))
            else:
                blends += 1
                np.testing.assert_allclose(image, share[place] * first + (1 - share[place]) * second, rtol=1e-5)
    assert bool(blends) == ("mixup" in augmentation)


def test_a_single_mixed_sample_is_that_of_its_batch():
    """What a preview asks for: the place of a row, without the rows before it."""
    source = source_of(4)
    for augmentation in ({"mixup": 1.0}, {"cutmix": 1.0}):
        stages = stages_of(source, **augmentation)
        with stages.last as flow:
            epochs = [[image for batch in flow for image in batch[0]] for _ in range(2)]
        for epoch in (1, 0):
            for row in (3, 17):
                mixture, partner = stages.mixture(row, epoch)
                own, other = (stages.sample(each, epoch)[0].astype(np.float32) for each in (row, partner))
                place = int(np.flatnonzero(stages.order(epoch) == row)[0])
                np.testing.assert_array_equal(mixture.images(own[None], other[None])[0], epochs[epoch][place])


def test_mixing_goes_on_in_mid_epoch_bit_for_bit():
    whole = stages_of(source_of(4), mixup=0.4, cutmix=1.0).last
    expected = [batch for _ in range(3) for batch in whole]
    assert len({batch[3][0] for batch in expected}) > len(expected) // 2
    first = stages_of(source_of(4), mixup=0.4, cutmix=1.0).last
    begun = iter(first)
    for _ in range(2):
        next(begun)
    state = first.state()
    second = stages_of(source_of(4), mixup=0.4, cutmix=1.0).last
    second.load_state(state)
    found = [*second, *second, *second]
    assert len(found) == 10
    for batch, known in zip(found, expected[2:], strict=True):
        for array, other in zip(batch, known, strict=True):
            np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("segmentation", "segmentation"),
        ("regression", "image-regression"),
        ("multi-label", "image-regression"),
        ("image-to-image", "image-to-image"),
        ("pairs", "image-pairs"),
        ("free", "image-classification"),
        ("classification", "text-classification"),
        ("classification", "table"),
    ],
)
def test_mixing_is_refused_with_the_reason(name, kind):
    reason = task(name).why_not_mixed(Schema(kind=kind, class_names=("a", "b")))
    assert reason.startswith("Mixup and CutMix mix the ")
    assert reason.endswith(".")


def test_data_that_cannot_be_mixed_is_not_prepared():
    source, options = source_of(3), DataOptions(batch_size=5, augmentation=Augmentation(mixup=0.2))
    free = new_context(source, options, task("free"))
    with pytest.raises(DataError, match=r"free.* does not learn one class for each image.*Set both to 0"):
        prepare_data(source, options, free)
    context = new_context(source, options, task("classification"))
    assert prepare_data(source, options, context).mixes_labels
    with pytest.raises(
        DataError, match="`batch_size` is 1: Mixup and CutMix mix the samples of a batch, so it must have two or more"
    ):
        prepare_data(source, replace(options, batch_size=1), context)
    check_mixing(Augmentation(), 1, free)


def test_a_backend_without_mixed_labels_refuses_them():
    content = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "data": "digits"}
    spec = parse_spec({**content, "augmentation": {"mixup": 0.2}})
    request = program_request(spec, data_of(spec))
    with pytest.raises(ConfigurationError, match="The backend `null` cannot train on mixed labels"):
        _check_mixing(request, load_backend("null"))
    with pytest.raises(ConfigurationError, match="`mixup` must be from 0 to 10"):
        Augmentation(mixup=11)
