"""Interrupted at any step and resumed through real checkpoint files = uninterrupted, bit for bit."""

import math

import numpy as np
import pytest
from engine_fakes import FakeProgram, Memory, PutEachEpoch, make_batches, make_trainer

from ziggurat.callbacks import (
    Callback,
    CheckpointStore,
    EarlyStopping,
    HyperParamSetterWithFunc,
    InferenceRunner,
    JSONWriter,
    KeepBest,
    LearningRateSchedule,
    LogScalars,
    MaxSaver,
    MinSaver,
    ModelSaver,
    MovingAverageSummary,
    PeriodicTrigger,
    ScalarStats,
    ScheduledHyperParamSetter,
    SimpleMovingAverage,
    StatMonitorParamSetter,
)
from ziggurat.dataflow.base import DataFlow
from ziggurat.errors import CheckpointError

EPOCHS, STEPS = 5, 3


class Shuffled(DataFlow):
    """Batches in another order in every pass."""

    def __iter__(self):
        batches = make_batches(4)
        for number in np.random.RandomState(self.pass_index).permutation(4):
            yield batches[number]


class StopAt(Callback):
    """Asks for a stop after a number of steps."""

    def __init__(self, step):
        self.step = step

    def trigger_step(self):
        if self.global_step == self.step:
            self.trainer.request_stop()


def job(folder, stop_at=None):
    """Return a trainer with every callback that has a state, and what it puts."""
    memory = Memory()
    callbacks = [
        MinSaver("validation_cost"),  # before the runner, as the tutorial has it
        MaxSaver("validation_cost"),
        KeepBest("cost", n=2),
        InferenceRunner(Shuffled().seed(2), ScalarStats("cost")),
        LogScalars(["cost"], every_k_steps=5, mean=True, hyperparameters=["learning_rate"], per_doubling=4),
        MovingAverageSummary(["cost"]),
        SimpleMovingAverage(["cost"], 4),
        LearningRateSchedule("cosine", 0.5, every="step"),
        ScheduledHyperParamSetter("momentum", [(0, 0.5), (4, 0.9)], interp="linear"),
        HyperParamSetterWithFunc("momentum", lambda epoch, value: value * 0.99),
        StatMonitorParamSetter("momentum", "validation_cost", lambda value: value / 2, 10.0, 2),
        PutEachEpoch("flaky", [3.0, math.nan, 2.0, 2.5, 1.0]),
        MinSaver("flaky"),
        PeriodicTrigger(EarlyStopping("flaky", patience=4), every_k_epochs=1),
        ModelSaver(folder / "checkpoints", max_to_keep=3, every_k_steps=2),
        *([] if stop_at is None else [StopAt(stop_at)]),
    ]
    program = FakeProgram()
    trainer = make_trainer(
        *callbacks,
        program=program,
        batches=Shuffled().seed(1),
        steps_per_epoch=STEPS,
        monitors=[memory, JSONWriter(folder / "stats.json")],
    )
    return trainer, program, memory


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted training."""
    folder = tmp_path_factory.mktemp("whole")
    trainer, program, memory = job(folder)
    trainer.train(EPOCHS)
    return folder, trainer, program, memory


@pytest.mark.parametrize("step", range(1, EPOCHS * STEPS + 1))
def test_interrupted_equals_uninterrupted(whole, tmp_path, step):
    whole_folder, whole_trainer, whole_program, whole_memory = whole
    first, _, memory = job(tmp_path, stop_at=step)
    first.train(EPOCHS)
    assert first.outcome == "stopped"
    second, program, later = job(tmp_path)
    loaded = CheckpointStore(tmp_path / "checkpoints").latest()
    assert loaded is not None
    assert loaded[0].step == step
    second.load_state(loaded[1])
    second.train(EPOCHS)

    assert program.weight == whole_program.weight
    put = [(each.tag, each.step, each.epoch, repr(each.value)) for each in memory.scalars + later.scalars]
    assert put == [(each.tag, each.step, each.epoch, repr(each.value)) for each in whole_memory.scalars]
    expected, state = whole_trainer.state(), second.state()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(state.arrays[name], array)
    del expected.meta["callbacks"]["ModelSaver"]  # the stop has made one checkpoint more
    for name, saved in expected.meta["callbacks"].items():
        assert repr(state.meta["callbacks"][name]) == repr(saved), name  # NaN equals NaN in text
    assert (tmp_path / "stats.json").read_text() == (whole_folder / "stats.json").read_text()
    stores = [CheckpointStore(folder / "checkpoints") for folder in (whole_folder, tmp_path)]
    assert stores[0].names() == stores[1].names()


def test_a_kill_between_saves_loses_only_what_came_later(whole, tmp_path):
    whole_program = whole[2]

    class KilledError(Exception):
        pass

    class KillAt(Callback):
        def after_run(self, values):
            if self.global_step == 8:
                raise KilledError

    first, _, _ = job(tmp_path)
    first.callbacks.append(KillAt())
    with pytest.raises(KilledError):
        first.train(EPOCHS)
    store = CheckpointStore(tmp_path / "checkpoints")
    loaded = store.latest()
    assert loaded is not None
    assert loaded[0].step == 6
    second, program, _ = job(tmp_path)
    second.load_state(loaded[1])
    second.train(EPOCHS)
    assert program.weight == whole_program.weight
    lines = JSONWriter.load_existing_json(tmp_path / "stats.json")
    assert [line["global_step"] for line in lines] == [3, 6, 9, 12, 15]


def test_global_random_numbers_go_on():
    seen = []

    class Draw(Callback):
        def trigger_step(self):
            seen.append(np.random.rand())

    np.random.seed(3)
    make_trainer(Draw()).train(2)
    whole_numbers, seen[:] = list(seen), []
    np.random.seed(3)
    first = make_trainer(Draw(), StopAt(3))
    first.train(2)
    state = first.state()
    np.random.seed(99)
    second = make_trainer(Draw())
    second.load_state(state)
    second.train(2)
    assert seen == whole_numbers


def test_another_epoch_length_in_mid_epoch_is_refused():
    first = make_trainer(StopAt(2))
    first.train(1)
    second = make_trainer(steps_per_epoch=6)
    with pytest.raises(CheckpointError) as caught:
        second.load_state(first.state())
    assert "resumed with the same `steps_per_epoch` (received: 6 instead of 4)." in str(caught.value)


def test_another_epoch_length_at_the_end_of_an_epoch_is_fine():
    first = make_trainer()
    first.train(1)
    second = make_trainer(steps_per_epoch=6)
    second.load_state(first.state())
    second.train(2)
    assert second.global_step == 10


def test_a_plain_list_goes_on_at_its_position():
    program = FakeProgram()
    trainer = make_trainer(StopAt(6), program=program)
    trainer.train(3)
    position = trainer.batches.state()
    trainer.batches.load_state(position)
    assert trainer.batches.state() == position  # also before it is iterated
    batch = next(iter(trainer.batches))
    assert batch[0].tolist() == make_batches()[2][0].tolist()
    assert trainer.batches.state() == {"taken": 3, "source": None}
