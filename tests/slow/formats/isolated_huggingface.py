"""Flows and Hugging Face's ``datasets``; run by ``test_adapters_huggingface.py`` in a process of its own."""

import json

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Features, Image, Value
from PIL import Image as PillowImage

from ziggurat.dataflow.adapters import from_huggingface, to_huggingface
from ziggurat.dataflow.sources import DataFromArrays, DataFromGenerator, DataFromList
from ziggurat.errors import DatapointError, UsageError


def table():
    return Dataset.from_dict({"x": list(range(6)), "name": [f"n{number}" for number in range(6)]})


def test_a_table_becomes_a_flow():
    flow = from_huggingface(table())
    assert len(flow) == 6
    assert list(flow)[:2] == [{"x": 0, "name": "n0"}, {"x": 1, "name": "n1"}]
    assert list(from_huggingface(table(), ["name", "x"]))[5] == ["n5", 5]
    shuffled = [dp[0] for dp in from_huggingface(table(), ["x"], shuffle=True).seed(2)]
    assert sorted(shuffled) == list(range(6))
    assert shuffled == [dp[0] for dp in from_huggingface(table(), ["x"], shuffle=True).seed(2)]


def test_images_become_arrays():
    colour = PillowImage.fromarray(np.full((3, 4, 3), (9, 8, 7), np.uint8))
    grey = PillowImage.fromarray(np.full((3, 4), 5, np.uint8))
    features = Features({"image": Image(), "label": Value("int64")})
    data = Dataset.from_dict({"image": [colour, grey], "label": [1, 2]}, features=features)
    (first, _one), (second, _two) = from_huggingface(data, ["image", "label"])
    assert (first == np.array([9, 8, 7], np.uint8)).all()
    assert first.shape == (3, 4, 3)
    assert second.shape == (3, 4, 1)


def test_wrong_uses_are_named():
    with pytest.raises(UsageError, match="There is no column label; the columns are x, name"):
        from_huggingface(table(), ["label"])
    with pytest.raises(
        UsageError, match=r'several splits, train, test, and a flow is made of one. Write `dataset\["train"\]`'
    ):
        from_huggingface(DatasetDict({"train": table(), "test": table()}))
    with pytest.raises(UsageError, match="The IterableDataset cannot be shuffled"):
        from_huggingface(table().to_iterable_dataset(), shuffle=True)


@pytest.mark.parametrize("stream", [False, True])
def test_flows_resume_exactly(stream):
    data = table().to_iterable_dataset() if stream else table()
    flow = from_huggingface(data, ["x"])
    items = iter(flow)
    next(items)
    next(items)
    resumed = from_huggingface(data, ["x"])
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert [dp[0] for dp in resumed] == [2, 3, 4, 5]


def test_a_flow_becomes_a_stream():
    stream = to_huggingface(DataFromList([[1, "a"], [2, "b"]], shuffle=False), ["x", "name"])
    assert list(stream) == [{"x": 1, "name": "a"}, {"x": 2, "name": "b"}]
    assert list(to_huggingface(DataFromList([{"x": 1}], shuffle=False))) == [{"x": 1}]
    shuffled = to_huggingface(DataFromArrays(np.arange(10)).seed(1), ["x"])
    first, second = [[int(row["x"]) for row in shuffled] for _ in range(2)]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(10))


def test_errors_reach_the_consumer_with_type_and_message():
    with pytest.raises(DatapointError, match="it has 2 components, for the columns"):
        list(to_huggingface(DataFromList([[1, 2]]), ["x"]))

    def broken():
        yield [1]
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        list(to_huggingface(DataFromGenerator(broken), ["x"]))
