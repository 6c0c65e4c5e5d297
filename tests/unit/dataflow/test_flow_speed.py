"""Looking at a pipeline: measured numbers, and what is printed about datapoints of any type."""

import io

import numpy as np
import pytest

from ziggurat.dataflow import BatchData, DataFromList, MapData, PrintData, TestDataSpeed
from ziggurat.errors import DataError, UsageError


def images(count=10):
    return DataFromList([[np.zeros((2, 3), np.uint8), b"ab", {"n": [1, np.int64(2)]}] for _ in range(count)])


def test_the_speed_comes_as_numbers_and_as_a_line():
    output = io.StringIO()
    speed = TestDataSpeed(MapData(images(), lambda dp: dp), size=25, warmup=5, output=output).start()
    assert speed.datapoints == 25
    assert speed.array_bytes == 25 * (6 + 2 + 8)
    assert speed.per_s == pytest.approx(25 / speed.duration_s)
    assert [(stage.stage, stage.datapoints) for stage in speed.stages] == [("MapData", 25), ("DataFromList", 25)]
    assert speed.slowest in speed.stages
    assert output.getvalue().startswith("25 datapoints in ")
    assert f"{speed.slowest.stage} took" in output.getvalue()


def test_iterating_measures_first_and_then_yields_everything(capsys):
    flow = TestDataSpeed(DataFromList([[n] for n in range(5)], shuffle=False), size=12)
    assert list(flow) == [[n] for n in range(5)]
    assert capsys.readouterr().out.count("12 datapoints") == 1
    list(flow)
    assert not capsys.readouterr().out
    assert len(flow) == 5


def test_measuring_nothing_is_an_error():
    with pytest.raises(DataError, match=r"The flow has no datapoints to measure"):
        TestDataSpeed(DataFromList([])).start()
    with pytest.raises(UsageError, match=r"`size` is 1 or more, `warmup` 0 or more \(received: 0 and 0"):
        TestDataSpeed(images(), size=0)


def test_the_first_datapoints_are_printed():
    output = io.StringIO()
    flow = PrintData(BatchData(images(4), 2), num=1, name="train", output=output)
    assert len(list(flow)) == len(flow) == 2
    list(flow)
    assert output.getvalue() == (
        "train: datapoint 0: list of 3\n"
        "  0: uint8 of shape (2, 2, 3), from 0 to 0\n"
        "  1: object of shape (2,)\n"
        "  2: dict of 1\n"
        "    'n': int64 of shape (2, 2), from 1 to 2\n"
    )


@pytest.mark.parametrize(
    ("point", "lines"),
    [
        ([np.float32(1.5), True, None], ["0: float32 of shape (), 1.5", "1: bool, True", "2: NoneType, None"]),
        ([np.array([1, np.nan, np.inf])], ["0: float64 of shape (3,), from nan to nan, 2 not finite"]),
        ([np.zeros(0), np.array(["a"])], ["0: float64 of shape (0,)", "1: <U1 of shape (1,)"]),
        ([b"x" * 50], ["0: bytes of 50, " + repr(b"x" * 40) + "…"]),
        ([[1, 2, 3, 4, 5]], ["0: list of 5", "  0: int, 1", "  1: int, 2", "  2: int, 3", "  … 2 more"]),
        ({"a": "text", "b": 2**70}, ["'a': str, 'text'", f"'b': int, {2**70}"]),
        (7, []),
    ],
)
def test_any_type_is_described(point, lines):
    text = PrintData(DataFromList([])).describe(point)
    assert text.splitlines()[1:] == [f"  {line}" for line in lines]


def test_it_goes_only_so_deep():
    text = PrintData(DataFromList([]), max_depth=2).describe([[[[1]]]])
    assert text == "Datapoint 0: list of 1\n  0: list of 1\n    0: list of 1\n"


def test_measuring_a_seeded_flow_leaves_its_seed() -> None:
    expected = list(DataFromList(list(range(20))).seed(7))
    flow = DataFromList(list(range(20))).seed(7)
    TestDataSpeed(flow, 10, output=io.StringIO()).start()
    assert list(flow) == expected
