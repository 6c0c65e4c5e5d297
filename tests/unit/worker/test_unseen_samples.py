"""Samples that no epoch has, because the order is kept: which they are is said."""

import numpy as np
import pytest

from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of
from ziggurat.worker.unseen_samples import unseen_samples

_SPEC = {"kind": "train", "version": 1, "backend": "null", "network": "linear", "data": {"source": "digits"}}
_COUNT = 1252


def warned(**fields):
    spec = parse_spec({**_SPEC, "epochs": 2, "shuffle": False, **fields})
    data = data_of(spec)
    assert data.sizes["train"] == _COUNT
    seen = np.concatenate([batch[1] for _ in range(2) for batch in data.train])
    data.train.close()
    return unseen_samples(spec, data), len(seen) // 2


def test_samples_that_are_never_seen_are_named():
    said, seen = warned(batch_size=625)

    assert seen == _COUNT - 2
    assert said == (
        "The last 2 samples of 1,252 are never trained on: 1250, 1251. `shuffle` is off, and a batch of 625 that is "
        "not full is left out: set `shuffle`, or a batch size that divides the number of samples."
    )


def test_many_samples_are_named_by_their_ends():
    said, _ = warned(batch_size=100, gradient_accumulation_steps=4)

    assert said.startswith("The last 52 samples of 1,252 are never trained on: 1200 to 1251. `shuffle` is off, and a")
    assert "a batch of 400" in said


def test_one_sample_and_few_steps_are_said():
    assert warned(batch_size=1251)[0].startswith("The last sample of 1,252 is never trained on: 1251. ")
    assert "The last 538 samples" in warned(batch_size=7, steps_per_epoch=51)[0]
    assert "and the training has only 102 steps" in warned(batch_size=7, steps_per_epoch=51)[0]


@pytest.mark.parametrize("fields", [{"batch_size": 626}, {"batch_size": 625, "shuffle": True}])
def test_nothing_is_said_if_every_sample_is_seen(fields):
    assert warned(**fields)[0] == ""
