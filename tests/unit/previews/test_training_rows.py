"""A row that is shown before a training is what the training's own pipeline yields for it, bit for bit."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.errors import DataError
from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of, data_options
from ziggurat.worker.context import new_context
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import open_source

_VARIED = {"flip": "fliplrud", "rotation_deg": 20, "scale": 0.1, "noise": 0.05}
_COLOURS = {"hue": 0.1, "saturation": 0.1, "value": 0.2, "contrast": 0.5}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder with 23 images of two classes, of one size, each unlike the others."""
    source = tmp_path_factory.mktemp("rows") / "pictures"
    random = np.random.default_rng(3)
    for number in range(23):
        path = source / ("cat", "dog")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), random.integers(0, 256, (20, 24, 3), np.uint8))
    return source


@pytest.fixture(scope="module")
def photographs(pictures, tmp_path_factory):
    """The same as JPEG files."""
    source = tmp_path_factory.mktemp("rows") / "photographs"
    for path in pictures.rglob("*.png"):
        target = source / path.parent.name / f"{path.stem}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(target), cv2.imread(str(path)))
    return source


@pytest.fixture(scope="module")
def stored(pictures, tmp_path_factory):
    """The same as a dataset, without validation."""
    folder = tmp_path_factory.mktemp("rows") / "stored"
    rule = SplitRule(method="share", val_share=0, test_share=0)
    create_dataset(CreationRequest(source=str(pictures), name="pictures", rule=rule, workers=0), folder)
    return folder


def spec_of(source, **fields):
    whole = {"kind": "train", "version": 1, "network": "mlp", "data": source, "batch_size": 5, "seed": 11, **fields}
    return parse_spec(whole)


def rows_of(spec):
    source = open_source(spec.data.source, spec.data.options, spec.seed)
    context = new_context(source, data_options(spec), with_mean=False)
    return Pipeline(source, data_options(spec), context).training(by_row=True)


def batches_of(spec, epochs):
    """Return what a training gets: by epoch, one array of all its images, and the labels."""
    with data_of(spec).train as train:
        for _ in range(epochs):
            batches = list(train)
            yield np.concatenate([batch[0] for batch in batches]), np.concatenate([batch[1] for batch in batches])


@pytest.mark.parametrize("kind", ["in memory", "files", "photographs"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"augmentation": {**_VARIED, **_COLOURS}},
        {"preprocessing": {"crop": 12}},
        {
            "augmentation": _VARIED,
            "preprocessing": {"crop": 16, "size": [20, 28], "channels": 1},
            "gradient_accumulation_steps": 2,
        },
        {"augmentation": {"quad_rotation": "rotall"}, "preprocessing": {"size": [22, 22]}},
        {"augmentation": _COLOURS, "shuffle": False},
    ],
    ids=["plain", "varied", "crops", "varied crops", "quarter turns", "in order"],
)
def test_rows_are_those_of_the_pipeline(kind, fields, pictures, photographs, stored):
    own = {"source": str(photographs if kind == "photographs" else pictures), "options": {"validation_share": 0}}
    spec = spec_of(str(stored) if kind == "in memory" else own, **fields)
    rows = rows_of(spec)

    for epoch, (given, _labels) in enumerate(batches_of(spec, 3)):
        used = len(given)
        assert used == 20
        order = rows.order(epoch)
        for place in (0, 1, 7, used - 1):
            seen = rows.seen(int(order[place]), epoch)
            assert seen.dtype == np.uint8
            np.testing.assert_array_equal(seen.astype(np.float32), given[place])
        assert rows.seen(int(order[used]), epoch) is None  # of the last batch, which is not full
    rows.close()


def test_a_mean_is_all_that_is_between_a_row_and_the_batch(stored):
    spec = spec_of(str(stored), augmentation=_VARIED, preprocessing={"mean": "pixel"})
    mean = data_of(spec).context.preprocessing.mean_values
    rows = rows_of(spec)

    (given, _labels) = next(batches_of(spec, 1))

    np.testing.assert_array_equal(rows.seen(int(rows.order(0)[3]), 0).astype(np.float32) - mean, given[3])


def test_quarter_turns_of_no_squares_are_refused_as_in_training(stored):
    spec = spec_of(str(stored), augmentation={"quad_rotation": "rot90"})
    rows = rows_of(spec)

    with pytest.raises(DataError, match="Quarter turns need square images"):
        data_of(spec)
    half = spec_of(str(stored), augmentation={"quad_rotation": "rot180"})
    assert {batch[0].shape for batch in data_of(half).train} == {(5, 20, 24, 3)}
    with pytest.raises(DataError, match="Quarter turns need square images"):
        for row in range(20):
            rows.seen(row, 0)


def test_the_seed_decides(stored):
    one, same, other = (rows_of(spec_of(str(stored), augmentation=_VARIED, seed=seed)) for seed in (1, 1, 2))

    np.testing.assert_array_equal(one.seen(4, 0), same.seen(4, 0))
    assert not np.array_equal(one.order(0), other.order(0))
    assert not np.array_equal(one.order(0), one.order(1))
