"""Rows of the samples of a batch: where the loss became NaN, a page shows them."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from ziggurat.engine.feed import BatchCycle
from ziggurat.specs import parse_spec
from ziggurat.worker.batch_facts import BatchFacts
from ziggurat.worker.build import data_of, data_options

CROPS = {"size": [24, 24], "crop": 16}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Twenty-two flat images; each has a gray of its own."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(22):
        path = folder / f"class{number % 2}" / f"{number:02d}.png"
        path.parent.mkdir(exist_ok=True)
        cv2.imwrite(str(path), np.full((40, 32, 3), 10 * number, np.uint8))
    return folder


def spec_of(pictures, **fields):
    data = {"source": str(pictures), "options": {"validation_share": 0, "on_error": "skip"}}
    whole = {"kind": "train", "version": 1, "backend": "torch", "network": "lenet", "data": data, "batch_size": 4}
    return parse_spec({**whole, "preprocessing": {"size": [20, 20]}, **fields})


def rows_of(batch, data):
    """Return the rows that the grays of a batch belong to."""
    split = data.source.splits["train"]
    grays = [10 * int(Path(split.key(row)).stem) for row in range(len(split))]
    return [grays.index(round(float(image.mean()))) for image in batch[0]]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"shuffle": False},
        {"augmentation": {"flip": "fliplr"}, "loading": {"workers": 2, "worker_kind": "threads"}},
        {"preprocessing": CROPS},
        {"gradient_accumulation_steps": 2},
        {"oversample_below": 0.6},
    ],
)
def test_the_rows_of_each_batch_are_known(pictures, fields) -> None:
    spec = spec_of(pictures, **fields)
    data = data_of(spec)
    cycle, rows = BatchCycle(data.train), BatchFacts(data, data_options(spec)).rows
    batches = iter(cycle)
    for _ in range(2 * len(data.train) + 1):  # the third pass, too
        batch = next(batches)
        assert rows(batch, cycle.state()) == rows_of(batch, data)


def test_the_rows_of_a_resumed_training_are_known(pictures) -> None:
    spec = spec_of(pictures)
    with data_of(spec).train as first:
        cycle = BatchCycle(first)
        batches = iter(cycle)
        position = [next(batches) and cycle.state() for _ in range(7)][-1]
    data = data_of(spec)
    again = BatchCycle(data.train)
    again.load_state(position)
    batch = next(iter(again))
    assert BatchFacts(data, data_options(spec)).rows(batch, again.state()) == rows_of(batch, data)


def test_rows_that_are_not_sure_are_not_told(pictures, tmp_path) -> None:
    spec = spec_of(pictures)
    data = data_of(spec)
    cycle, rows = BatchCycle(data.train), BatchFacts(data, data_options(spec)).rows
    batch = next(iter(cycle))
    position = cycle.state()
    assert rows(batch, position)
    facts = BatchFacts(data, data_options(spec))(batch, position)
    assert facts == {"split": "train", "rows": rows(batch, position), "inputs": "image-classification", "classes": 2}
    assert rows(batch, None) is None, "a source of batches without a position"
    assert rows(batch, {**position, "skip": 1}) is None
    assert rows([batch[0][:2], batch[1][:2]], position) is None, "a part of the batch"
    with_errors = {**position["source"], "errors": {"total": 1}}
    assert rows(batch, {**position, "source": with_errors}) is None, "those behind a sample left out have moved up"
    assert BatchFacts(replace(data, source=None), data_options(spec)).rows(batch, position) is None
