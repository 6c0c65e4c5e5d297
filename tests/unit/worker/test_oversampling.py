"""Rare classes that are seen more often: how often each sample is due, and what an epoch then holds."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.worker.test_mixing import source_of
from ziggurat.dataflow import DataFromArrays
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject, objects_to_json
from ziggurat.records.schema import Schema
from ziggurat.specs import parse_spec
from ziggurat.tasks import TaskContext, task
from ziggurat.tasks.classification import CLASSIFICATION
from ziggurat.tasks.detection import DETECTION
from ziggurat.tasks.multi_label import MULTI_LABEL
from ziggurat.worker.build import data_of
from ziggurat.worker.context import new_context
from ziggurat.worker.oversampling import check_oversampling, repeat_factors
from ziggurat.worker.pipeline import DataOptions, Pipeline

RARE = (0,) * 90 + (1,) * 9 + (2,)


def test_factors_are_those_of_the_paper() -> None:
    factors = repeat_factors([(each,) for each in RARE], 0.25)
    assert factors[0] == 1.0
    assert factors[90] == pytest.approx((0.25 / 0.09) ** 0.5)
    assert factors[99] == pytest.approx(5.0)
    mixed = repeat_factors([{0}, {0, 1}, set(), {0}], 0.5)
    assert mixed.tolist() == pytest.approx([1.0, 2**0.5, 1.0, 1.0])
    assert repeat_factors([(0,), (1,)], 0.5).tolist() == [1.0, 1.0]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.floats(0.01, 1), st.integers(0, 99), st.booleans())
def test_a_pass_has_each_as_often_as_it_is_due(classes, share, seed, shuffle) -> None:
    flow = DataFromArrays(np.arange(len(classes)), shuffle=shuffle).seed(seed)
    flow.repeats = repeat_factors([(each,) for each in classes], share)
    expected = flow.repeats * len(classes) / flow.repeats.sum()
    for _ in range(2):
        found = [int(point[0]) for point in flow]
        assert len(found) == len(classes)
        counts = Counter(found)
        for number, due in enumerate(expected):
            assert np.floor(due - 1e-9) <= counts[number] <= np.ceil(due + 1e-9)
        if not shuffle:
            assert found == sorted(found)


def test_a_pass_goes_on_exactly_and_the_next_one_differs() -> None:
    def flow():
        made = DataFromArrays(np.arange(100), shuffle=True).seed(5)
        made.repeats = repeat_factors([(each,) for each in RARE], 0.4)
        return made

    whole, items = [int(point[0]) for point in flow()], []
    first = flow()
    for point in first:
        items.append(int(point[0]))
        if len(items) == 40:
            break
    second = flow()
    second.load_state(first.state())
    assert items + [int(point[0]) for point in second] == whole
    assert [int(point[0]) for point in second] != whole


def test_an_epoch_of_a_job_has_more_of_what_is_rare() -> None:
    source = source_of(3)
    options = DataOptions(batch_size=5, workers=1, seed=3)
    context = new_context(source, options, task("classification"))
    labels = Counter(source.splits["train"].datapoint(row)[1] for row in range(20))
    rarest = min(labels, key=lambda each: labels[each])
    seen = Counter()
    with Pipeline(source, replace(options, oversample_below=0.9), context).training().last as flow:
        for _ in range(20):
            batches = list(flow)
            assert len(batches) == 4
            seen.update(int(each) for batch in batches for each in batch[1])
    assert seen[rarest] / 400 > labels[rarest] / 20
    stages = Pipeline(source, replace(options, oversample_below=0.9), context).training(by_row=True)
    absent = [(row, epoch) for epoch in range(10) for row in range(20) if row not in stages.order(epoch)]
    assert absent, "samples of other classes make room"
    assert stages.sample(*absent[0]) is None
    stages.close()


def test_classes_are_those_of_the_task() -> None:
    boxes = [ImageObject(class_number=2, box=(0, 0, 5, 5)), ImageObject(class_number=1, box=(0, 0, 5, 5), crowd=True)]
    assert DETECTION.classes_of(objects_to_json(boxes)) == {2}
    assert DETECTION.classes_of([]) == set()
    assert CLASSIFICATION.classes_of(3) == (3,)
    assert MULTI_LABEL.classes_of([0, 1, 1]) == [1, 2]
    assert MULTI_LABEL.classes_of(None) == []


def test_tasks_without_classes_refuse() -> None:
    context = TaskContext(task("segmentation"), Schema(kind="segmentation", class_names=("road",)), None, {})
    check_oversampling(0.0, context)
    with pytest.raises(DataError, match="samples have no classes"):
        check_oversampling(0.1, context)


def test_a_spec_with_it_trains_on_more_of_a_rare_digit() -> None:
    spec = {
        "kind": "train",
        "version": 1,
        "backend": "null",
        "network": "linear",
        "data": {"source": "digits"},
        "batch_size": 10,
    }
    plain, often = (data_of(parse_spec({**spec, "oversample_below": share})) for share in (0.0, 0.101))
    orders = [np.concatenate([batch[1] for batch in data.train]) for data in (plain, often)]
    assert len(orders[0]) == len(orders[1])
    assert np.bincount(orders[1]).min() >= np.bincount(orders[0]).min()
    plain.train.close()
    often.train.close()
