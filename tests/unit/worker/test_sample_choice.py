"""Which validation samples a job keeps predictions of: the same every time, spread over the classes."""

import numpy as np
import pytest

from tests.task_contexts import of_classes
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.sources import DataFromList
from ziggurat.layout import JobFolder
from ziggurat.records.schema import Schema
from ziggurat.worker.sample_choice import choose_samples, spread_over_classes
from ziggurat.worker.source import DataSource, open_source

SCHEMA = Schema(kind="image-classification", class_names=tuple("0123456789"))


class Points(IndexedFlow):
    """Datapoints of a list, by number."""

    def __init__(self, points):
        super().__init__()
        self._points = points

    def __len__(self):
        return len(self._points)

    def datapoint(self, index):
        return self._points[index]


def test_one_of_each_class_in_turn():
    labels = [0] * 50 + [1] * 3 + [2] * 40
    places = spread_over_classes(labels, 9)
    assert [labels[place] for place in places] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len(set(places)) == 9


@pytest.mark.parametrize(("labels", "expected"), [([], []), ([3], [0]), ([1, 0, 1], [1, 0, 2])])
def test_few_samples_are_all_chosen(labels, expected):
    assert spread_over_classes(labels, 9) == expected


def test_of_many_classes_some_are_shown():
    places = spread_over_classes(list(range(100)), 9)
    assert len(places) == 9
    assert places == sorted(places)
    assert places[-1] > 80


def test_rare_classes_leave_their_places_to_others():
    labels = [0] * 20 + [1]
    assert [labels[place] for place in spread_over_classes(labels, 5)] == [0, 0, 0, 0, 1]


def test_the_batch_is_that_of_the_validation(tmp_path):
    source = open_source("digits", {"size": 8}, 0)
    preprocessing = Preprocessing(size=(8, 8), channels=1)

    first, second = (
        choose_samples(source, of_classes(SCHEMA.class_names, preprocessing)),
        choose_samples(source, of_classes(SCHEMA.class_names, preprocessing)),
    )

    assert first is not None
    assert second is not None
    assert first.samples == second.samples
    assert len({each["label"] for each in first.samples}) == 9
    flow = source.splits["val"]
    for number, each in enumerate(first.samples):
        image, label = flow.datapoint(each["row"])
        np.testing.assert_array_equal(first.batch[0][number], preprocessing.finish(image[None])[0])
        assert first.batch[1][number] == label == each["label"]

    folder = JobFolder(tmp_path)
    first.save_images(folder)
    assert [folder.sample_image(number).is_file() for number in (0, 8, 9)] == [True, True, False]


def test_an_unreadable_image_leaves_its_place_to_another():
    image = np.zeros((8, 8, 1), np.uint8)
    whole = encode_image(image, "png")
    points = [[whole, 0], [whole[:40], 0], [whole, 0], [whole, 1]]
    source = DataSource(splits={"val": Points(points)}, schema=SCHEMA, size=(8, 8), channels=1, in_memory=True)
    chosen = choose_samples(source, of_classes(SCHEMA.class_names), most=3)
    assert chosen is not None
    assert [each["row"] for each in chosen.samples] == [0, 2, 3]
    damaged = DataSource(splits={"val": Points(points[1:2])}, schema=SCHEMA, size=(8, 8), channels=1, in_memory=True)
    assert choose_samples(damaged, of_classes(SCHEMA.class_names)) is None


def test_without_single_samples_there_are_none():
    nothing = DataSource(splits={"train": DataFromList([])}, schema=SCHEMA, size=(8, 8), channels=1, in_memory=True)
    stream = DataSource(splits={"val": DataFromList([])}, schema=SCHEMA, size=(8, 8), channels=1, in_memory=True)
    before = of_classes(SCHEMA.class_names)
    assert choose_samples(nothing, before) is None
    assert choose_samples(stream, before) is None
