"""Values of steps: logged, averaged, processed, dumped, checked."""

import json
import math

import numpy as np
import pytest
from engine_fakes import FakeProgram, make_batches, make_trainer, train

from ziggurat.callbacks import (
    BlackBox,
    CheckNumerics,
    DumpTensors,
    LogScalars,
    MergeAllSummaries,
    ModelSaver,
    MovingAverageSummary,
    PeriodicCallback,
    ProcessTensors,
    SimpleMovingAverage,
    bind_folder,
)
from ziggurat.dataflow.stages.batching import BatchBuffers
from ziggurat.errors import ConfigurationError, NonFiniteError, UsageError


def counting():
    """A program whose cost is the number of the step."""
    return FakeProgram(costs=float)


class Offering(FakeProgram):
    """A program that says what is worth logging."""

    def __init__(self, moving=("cost",)):
        super().__init__(costs=float)
        self.moving = moving

    def summary_names(self):
        return ["cost", "summary"]

    def moving_summary_names(self):
        return self.moving


# ---- logging


def test_a_logging_step_is_known_in_advance():
    program = counting()
    memory = train(LogScalars(["cost"], every_k_steps=3), program=program, epochs=2)
    assert memory.points("cost") == [(3, 3), (4, 4), (6, 6), (8, 8)]
    assert program.fetched == [(), (), ("cost",), ("cost",), (), ("cost",), (), ("cost",)]


def test_only_the_end_of_the_epoch_or_only_steps():
    assert train(LogScalars(["cost"]), program=counting(), epochs=2).points("cost") == [(4, 4), (8, 8)]
    steps_only = LogScalars(["cost"], 3, at_epoch_end=False)
    assert train(steps_only, program=counting(), epochs=2).points("cost") == [(3, 3), (6, 6)]


def test_the_mean_since_the_last_logging():
    memory = train(LogScalars(["cost"], 3, mean=True), program=counting(), epochs=2)
    assert memory.points("cost") == [(3, 2), (4, 4), (6, 5.5), (8, 7.5)]


def test_points_in_an_epoch_stand_evenly_and_the_last_at_end():
    memory = train(LogScalars(["cost"], per_epoch=2, mean=True), program=counting(), epochs=2)
    assert memory.points("cost") == [(2, 1.5), (4, 3.5), (6, 5.5), (8, 7.5)]
    memory = train(LogScalars(["cost"], per_epoch=3), program=counting(), epochs=1)
    assert memory.points("cost") == [(2, 2), (3, 3), (4, 4)]


def test_points_begin_with_the_first_step_and_get_rarer():
    logged = LogScalars(["cost"], mean=True, per_doubling=2)
    memory = train(logged, program=counting(), batches=make_batches(40), epochs=1)

    steps = [step for step, _ in memory.points("cost")]
    assert steps == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40]
    values = dict(memory.points("cost"))
    assert [values[step] for step in (1, 4, 6, 12, 32)] == [1, 4, 5.5, 10.5, 28.5], "means since the point before"
    assert values[40] == 20.5, "the mean of the epoch, as without them"


def test_additional_points_leave_the_others_as_they_were():
    def points(**options):
        logged = LogScalars(["cost"], per_epoch=4, mean=True, **options)
        return train(logged, program=FakeProgram(), batches=make_batches(32), epochs=3).points("cost")

    plain, more = points(), points(per_doubling=4)
    assert len(plain) == 12
    assert [point for point in more if point[0] in dict(plain)] == plain
    assert [step for step, _ in more if step > 64] == [72, 80, 88, 96], "none where the others are as close"


def test_additional_points_of_single_steps():
    memory = train(LogScalars(["cost"], per_doubling=2), program=counting(), batches=make_batches(12), epochs=1)
    assert memory.points("cost") == [(step, step) for step in (1, 2, 3, 4, 6, 8, 12)]


def test_nan_is_kept():
    program = FakeProgram(costs=lambda step: math.nan if step == 2 else 1.0)
    values = train(LogScalars(["cost"], mean=True), program=program, epochs=2).points("cost")
    assert [repr(value) for _, value in values] == ["nan", "1.0"]


def test_hyperparameters_are_those_that_the_logged_step_used():
    class Halve(LogScalars):
        def trigger_step(self):
            rate = self.trainer.program.hyperparameters()["learning_rate"]
            self.trainer.program.set_hyperparameter("learning_rate", rate / 2)

    memory = train(Halve((), 2, hyperparameters=["learning_rate"]))
    assert memory.points("learning_rate") == [(2, 0.25), (4, 0.0625)]


def test_merge_all_summaries_asks_the_program():
    memory = train(MergeAllSummaries(period=3), program=Offering())
    assert memory.points("cost") == [(3, 3), (4, 4)]
    assert memory.summaries == [(3, b"\n\x00"), (4, b"\n\x00")]  # bytes go on as they are


def test_a_program_that_offers_nothing_costs_nothing():
    program = counting()
    trainer = make_trainer(MergeAllSummaries(), MovingAverageSummary(), program=program)
    trainer.train(1)
    assert program.declared == []
    assert set(program.fetched) == {()}


# ---- averages


def test_a_moving_average_is_right_from_the_first_step():
    memory = train(MovingAverageSummary(["cost"], decay=0.5), program=counting(), steps_per_epoch=1, epochs=3)
    values = [value for _, value in memory.points("cost")]
    assert values == pytest.approx([1, (0.25 + 1) / 0.75, (0.125 + 0.5 + 1.5) / 0.875])


@pytest.mark.parametrize(("moving", "decay"), [(["cost"], 0.95), ({"cost": 0.5}, 0.5)])
def test_the_program_may_name_what_is_averaged_and_how(moving, decay):
    memory = train(MovingAverageSummary(), program=Offering(moving))
    weights = [(1 - decay) * decay ** (4 - step) for step in (1, 2, 3, 4)]
    expected = sum(weight * step for weight, step in zip(weights, (1, 2, 3, 4))) / sum(weights)
    assert memory.points("cost") == [(4, pytest.approx(expected))]


def test_a_window_is_put_when_it_is_full():
    memory = train(SimpleMovingAverage(["cost"], 3), program=counting(), epochs=2)
    assert memory.points("cost/SMA") == [(3, 2), (6, 5)]


def test_bad_averages_say_the_rule():
    with pytest.raises(ConfigurationError, match=r"`decay` must be in \[0, 1\) \(received: 1\). 0.95 is usual."):
        MovingAverageSummary(decay=1)
    with pytest.raises(ConfigurationError, match=r"`window_size` must be at least 1 \(received: 0\)."):
        SimpleMovingAverage(["cost"], 0)


# ---- handing on


def test_values_are_handed_to_a_function_in_their_order():
    seen = []
    callback = ProcessTensors(["labels", "cost"], lambda labels, cost: seen.append((labels.tolist(), cost)))
    train(callback, program=counting())
    assert seen == [([0, 1], 1), ([0, 1], 2), ([0, 1], 3), ([0, 1], 4)]


def test_values_are_dumped_without_pickle(tmp_path):
    dump = DumpTensors(["rows", "cost"])
    bind_folder([dump], tmp_path)
    train(PeriodicCallback(dump, every_k_steps=2), program=counting())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["DumpTensor-2.npz", "DumpTensor-4.npz"]
    with np.load(tmp_path / "DumpTensor-4.npz", allow_pickle=False) as content:
        assert {name: content[name].tolist() for name in content.files} == {"rows": [6, 7], "cost": 4}


def test_a_dump_without_a_folder_says_what_to_do():
    with pytest.raises(UsageError, match="DumpTensors needs a folder to write to"):
        train(DumpTensors(["cost"]))


# ---- not finite


class ByName(FakeProgram):
    """A program whose batches are dicts."""

    def step(self, batch, names):
        return super().step([batch["x"], np.zeros(2)], names)


def bad_at(step, value=math.nan, kind=FakeProgram):
    return kind(costs=lambda number: value if number == step else 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.array([1, math.inf])])
def test_a_value_that_is_not_finite_ends_the_training(value, tmp_path):
    trainer = make_trainer(
        ModelSaver(tmp_path, every_k_steps=2),
        CheckNumerics(["cost"], run_step=True),
        program=bad_at(4, value, ByName),
        batches=[{"x": np.zeros(2), "key": np.array(["a.png", "b.png"])}] * 4,
        steps_per_epoch=4,
    )
    with pytest.raises(NonFiniteError) as caught:
        trainer.train(1)
    error = caught.value
    kind = "NaN" if np.isnan(value).any() else "infinite"
    assert error.details == {
        "step": 4,
        "epoch": 1,
        "tag": "cost",
        "non_finite": kind,
        "learning_rate": 0.5,
        "keys": ["a.png", "b.png"],
        "checkpoint": "step-00000002",
    }
    assert str(error) == (
        f"The loss became {kind} at step 4 (epoch 1). Try decreasing the learning rate, "
        "and look at the last batches. The last checkpoint is step-00000002."
    )


def test_by_default_only_the_last_step_of_an_epoch_is_looked_at():
    train(CheckNumerics(["cost"]), program=bad_at(3))
    with pytest.raises(NonFiniteError, match="NaN at step 4"):
        train(CheckNumerics(["cost"]), program=bad_at(4))
    train(CheckNumerics(["cost"], run_as_trigger=False), program=bad_at(4))


@pytest.mark.parametrize(("options", "step"), [({}, 4), ({"run_step": True}, 2), ({"run_as_trigger": False}, None)])
def test_without_names_the_weights_are_looked_at(options, step):
    class Explodes(FakeProgram):
        def step(self, batch, names):
            values = super().step(batch, names)
            if self.steps == 2:
                self.weight = math.inf
            return values

    check = CheckNumerics(**options)
    if step is None:
        train(check, program=Explodes())
    else:
        kind = "infinite" if step == 2 else "NaN"
        with pytest.raises(NonFiniteError, match=f"`weight` became {kind} at step {step}"):
            train(check, program=Explodes())


def test_the_black_box_keeps_the_last_batches_and_describes(tmp_path):
    box = BlackBox(["cost", "rows"], last_n=2, describe=lambda batch, at: {"rows": [*map(int, batch[0]), at["taken"]]})
    bind_folder([box], tmp_path)
    with pytest.raises(NonFiniteError) as caught:
        train(box, program=bad_at(3))
    assert caught.value.details["black_box"] == str(tmp_path / "black_box")
    folder = tmp_path / "black_box"
    assert sorted(path.name for path in folder.iterdir()) == [
        "black_box.json",
        "step-00000002.npz",
        "step-00000003.npz",
    ]
    with np.load(folder / "step-00000003.npz", allow_pickle=False) as content:
        values = {name: content[name].tolist() for name in content.files}
    assert repr(values.pop("value/cost")) == "nan"
    assert values == {"batch/0": [4, 5], "batch/1": [0, 1], "value/rows": [4, 5]}
    found = json.loads((folder / "black_box.json").read_text())
    labels = {"shape": [2], "dtype": "int64", "finite": True, "least": 0, "largest": 1}
    assert [each.pop("arrays")["batch/1"] for each in found["steps"]] == [labels, labels]
    assert found == {
        "step": 3,
        "tag": "cost",
        "hyperparameters": {"learning_rate": 0.5, "momentum": 0.0},
        "steps": [
            {"file": "step-00000002.npz", "step": 2, "epoch": 1, "keys": [], "values": {"cost": 1.0}},
            {"file": "step-00000003.npz", "step": 3, "epoch": 1, "keys": [], "values": {"cost": "NaN"}},
        ],
        "batch": {"rows": [4, 5, 3]},
    }


def test_the_black_box_says_where_a_batch_is_not_finite(tmp_path):
    numbers = np.array([1.5, np.nan, -2.0, np.inf], np.float32)
    with pytest.raises(NonFiniteError):
        train(BlackBox(["cost"], tmp_path), program=bad_at(1, kind=ByName), batches=[{"x": numbers, "y": np.zeros(0)}])
    (step,) = json.loads((tmp_path / "black_box.json").read_text())["steps"]
    assert step["arrays"] == {
        "batch/x": {"shape": [4], "dtype": "float32", "finite": False, "least": -2.0, "largest": 1.5},
        "batch/y": {"shape": [0], "dtype": "float64", "finite": True},
    }


def test_the_black_box_holds_batches_of_reused_memory(tmp_path):
    class Ring:
        """Gives every batch in the same memory."""

        def __iter__(self):
            memory = np.zeros((1, 2))
            for batch in make_batches():
                memory[0] = batch[0]
                yield [memory[0], batch[1]]

    with pytest.raises(NonFiniteError):
        train(BlackBox(["cost"], tmp_path), program=bad_at(4), batches=Ring(), steps_per_epoch=4)
    rows = [np.load(tmp_path / f"step-{step:08d}.npz")["batch/0"].tolist() for step in (1, 2, 3, 4)]
    assert rows == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_the_black_box_holds_batches_of_a_pool(tmp_path):
    class Pool:
        """Gives batches in memory that is used again when nothing refers to it."""

        def __iter__(self):
            buffers = BatchBuffers((2,), keep=1, dtype=np.float64)
            for batch in make_batches():
                row = buffers.take()
                row[:] = batch[0]
                yield [row, batch[1]]

    with pytest.raises(NonFiniteError):
        train(BlackBox(["cost"], tmp_path), program=bad_at(4), batches=Pool(), steps_per_epoch=4)
    rows = [np.load(tmp_path / f"step-{step:08d}.npz")["batch/0"].tolist() for step in (1, 2, 3, 4)]
    assert rows == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_the_black_box_takes_batches_of_any_shape(tmp_path):
    batches = [
        {"x": np.zeros(2), "names": ["a", "bc"], "ragged": [[1], [2, 3]], "keys": ["k1", "k2"], "deep": {"y": 1}}
    ]
    with pytest.raises(NonFiniteError) as caught:
        train(BlackBox(["cost"], tmp_path), program=bad_at(1, kind=ByName), batches=batches)
    assert caught.value.details["keys"] == ["k1", "k2"]
    with np.load(tmp_path / "step-00000001.npz", allow_pickle=False) as content:
        assert content["batch/names"].tolist() == ["a", "bc"]
        assert str(content["batch/ragged"]) == "[[1], [2, 3]]"
        assert content["batch/deep/y"] == 1


def test_a_black_box_that_is_not_needed_writes_nothing(tmp_path):
    train(BlackBox(["cost"], tmp_path / "box"), program=counting())
    assert not (tmp_path / "box").exists()
    with pytest.raises(ConfigurationError, match=r"`last_n` must be at least 1 \(received: 0\)."):
        BlackBox(["cost"], last_n=0)
