"""Saving: when, what is kept, what is best; wherever the savers stand in the list."""

import math

import pytest
from engine_fakes import Clock, Memory, PutEachEpoch, make_trainer, train
from test_trainer_checkpoints import files_of_at_most

from ziggurat.callbacks import (
    Callback,
    CallbackFactory,
    CheckpointStore,
    InferenceRunner,
    KeepBest,
    MaxSaver,
    MinSaver,
    ModelSaver,
    PeriodicTrigger,
    ScalarStats,
    bind_folder,
)
from ziggurat.errors import ConfigurationError, StorageError, UsageError
from ziggurat.events import CheckpointRemoved, CheckpointSaved, Message


def steps(folder):
    return [info.step for info in CheckpointStore(folder).list()]


def saved(memory):
    return [(event.step, event.reason) for event in memory.of_type(CheckpointSaved)]


class Tick(Callback):
    """Lets the trainer's clock go on with every step."""

    def __init__(self, clock, tick_s):
        self.clock, self.tick_s = clock, tick_s

    def trigger_step(self):
        self.clock.now += self.tick_s


def test_every_epoch_is_saved(tmp_path):
    memory = train(ModelSaver(tmp_path), epochs=3)
    assert steps(tmp_path) == [4, 8, 12]
    assert saved(memory) == [(4, "epoch"), (8, "epoch"), (12, "epoch")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"every_k_epochs": 2}, [(8, "epoch"), (12, "end")]),
        ({"every_k_epochs": None, "every_k_steps": 5}, [(5, "step"), (10, "step"), (12, "end")]),
        ({"every_k_steps": 2}, [(2, "step"), (4, "epoch"), (6, "step"), (8, "epoch"), (10, "step"), (12, "epoch")]),
        ({"every_k_epochs": None}, [(12, "end")]),
    ],
)
def test_the_periods_and_the_end(tmp_path, options, expected):
    assert saved(train(ModelSaver(tmp_path, **options), epochs=3)) == expected


def test_every_so_many_minutes_by_the_trainers_clock(tmp_path):
    clock = Clock()
    saver = ModelSaver(tmp_path, every_k_epochs=None, every_minutes=2)
    memory = train(Tick(clock, 50), saver, epochs=3, clock=clock)
    assert saved(memory) == [(3, "time"), (6, "time"), (9, "time"), (12, "time"), (12, "end")]


@pytest.mark.parametrize(("save_on_stop", "expected"), [(True, [(2, "stop")]), (False, [])])
def test_a_stop_is_saved(tmp_path, save_on_stop, expected):
    class StopAt(Callback):
        def trigger_step(self):
            if self.global_step == 2:
                self.trainer.request_stop()

    assert saved(train(ModelSaver(tmp_path, save_on_stop=save_on_stop), StopAt())) == expected


def test_a_stop_right_after_a_save_does_not_save_again(tmp_path):
    class StopAfterEpoch(Callback):
        def trigger(self):
            self.trainer.request_stop()

    assert saved(train(ModelSaver(tmp_path), StopAfterEpoch(), epochs=3)) == [(4, "epoch")]


def test_the_newest_are_kept_others_removed_with_an_event(tmp_path):
    memory = train(ModelSaver(tmp_path, max_to_keep=2), epochs=5)
    assert steps(tmp_path) == [16, 20]
    removed = [(event.name, event.reason) for event in memory.of_type(CheckpointRemoved)]
    assert removed == [(f"step-{step:08d}", "max_to_keep=2") for step in (4, 8, 12)]


@pytest.mark.parametrize("max_to_keep", [0, None])
def test_all_are_kept_where_that_is_asked_for(tmp_path, max_to_keep):
    train(ModelSaver(tmp_path, max_to_keep=max_to_keep), epochs=12)
    assert len(steps(tmp_path)) == 12


def test_one_for_each_so_many_hours_is_kept_also_over_a_resume(tmp_path):
    def trainer(clock, *callbacks):
        saver = ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=1)
        return make_trainer(Tick(clock, 300), saver, *callbacks, clock=clock)  # 20 minutes an epoch

    first = trainer(Clock())
    first.train(5)
    assert steps(tmp_path) == [12, 20]
    later = Clock(now=100_000.0)  # a night later: the first of the new day is kept
    second = trainer(later)
    second.load_state(first.state())
    second.train(8)
    assert steps(tmp_path) == [12, 24, 32]


def test_named_checkpoints_are_kept(tmp_path):
    callbacks = [MinSaver("error"), PutEachEpoch("error", [3, 1, 2, 2, 2]), ModelSaver(tmp_path, max_to_keep=1)]
    train(*callbacks, epochs=5)
    assert steps(tmp_path) == [8, 20]
    assert CheckpointStore(tmp_path).names() == {"min-error": "step-00000008"}


def test_an_old_best_one_goes_when_a_better_one_comes(tmp_path):
    train(
        PutEachEpoch("error", [3, 2, 2, 2, 1]),
        ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=None),
        MinSaver("error"),
        epochs=5,
    )
    assert steps(tmp_path) == [20]


@pytest.mark.parametrize("order", ["before", "after"])
def test_min_saver_saves_the_right_checkpoint_wherever_it_stands(tmp_path, order):
    error = PutEachEpoch("error", [0.5, 0.3, 0.4])
    best = MinSaver("error")
    saver = ModelSaver(tmp_path)
    memory = train(*([saver, best, error] if order == "before" else [error, best, saver]), epochs=3)
    assert CheckpointStore(tmp_path).names() == {"min-error": "step-00000008"}
    assert memory.of_type(CheckpointSaved)[1].scalars == {"error": 0.3}


def test_min_saver_with_the_tutorials_order_and_a_real_runner(tmp_path):
    validation = [[[2.0, 4.0]]]
    memory = train(
        ModelSaver(tmp_path), MinSaver("validation_cost"), InferenceRunner(validation, ScalarStats("cost")), epochs=3
    )
    values = dict(memory.points("validation_cost"))
    best = min(values, key=lambda step: values[step])
    assert CheckpointStore(tmp_path).names() == {"min-validation_cost": f"step-{best:08d}"}


def test_one_save_serves_all_savers_of_a_moment(tmp_path):
    memory = train(
        PutEachEpoch("error", [1]),
        MinSaver("error"),
        MaxSaver("error"),
        ModelSaver(tmp_path),
        KeepBest("error", filename="low"),
    )
    assert saved(memory) == [(4, "min-error, max-error, epoch, low")]
    assert CheckpointStore(tmp_path).names() == dict.fromkeys(["min-error", "max-error", "low"], "step-00000004")


def test_the_end_of_an_epoch_is_saved_again_after_its_last_step(tmp_path):
    last_step = PeriodicTrigger(ModelSaver(tmp_path), every_k_steps=4)
    memory = train(last_step, PutEachEpoch("error", [1]), MinSaver("error"), ModelSaver(tmp_path))
    assert saved(memory) == [(4, "trigger"), (4, "min-error, epoch")]
    loaded = CheckpointStore(tmp_path).load("min-error")
    assert loaded.meta["in_epoch"] is False
    assert loaded.meta["callbacks"]["MinSaver"] == [[1.0, "step-00000004"]]


def test_only_strictly_better_finite_numbers_of_this_step_count(tmp_path):
    put_now_and_then = CallbackFactory(trigger=lambda self: self.epoch_num == 1 and self.trainer.put("rare", 5.0))
    memory = train(
        PutEachEpoch("flaky", [math.nan, math.inf, 2.0, 2.0, 1.0, math.nan]),
        put_now_and_then,
        MinSaver("flaky", store=tmp_path),
        MinSaver("rare"),
        epochs=6,
    )
    assert saved(memory) == [(4, "min-rare"), (12, "min-flaky"), (20, "min-flaky")]
    assert CheckpointStore(tmp_path).names() == {"min-rare": "step-00000004", "min-flaky": "step-00000020"}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: MaxSaver("x"), {"max-x": 8}),
        (lambda: MinSaver("x", reverse=True), {"max-x": 8}),
        (lambda: MinSaver("x", filename="best"), {"best": 16}),
        (lambda: MaxSaver("x", "top"), {"top": 8}),
        (lambda: KeepBest("x", 3, "max"), {"max-x": 8, "max-x-2": 4, "max-x-3": 12}),
        (lambda: KeepBest("x", 2, filename="low"), {"low": 16, "low-2": 12}),
    ],
)
def test_names_and_ranks(tmp_path, make, expected):
    train(ModelSaver(tmp_path), PutEachEpoch("x", [4, 5, 3, 1]), make(), epochs=4)
    assert CheckpointStore(tmp_path).names() == {name: f"step-{step:08d}" for name, step in expected.items()}


def test_the_best_value_survives_a_resume(tmp_path):
    first = make_trainer(PutEachEpoch("x", [1.0, 2.0]), MinSaver("x"), ModelSaver(tmp_path))
    first.train(2)
    loaded = CheckpointStore(tmp_path).latest()
    assert loaded is not None
    second = make_trainer(PutEachEpoch("x", [0, 0, 1.5, 0.5]), MinSaver("x"), ModelSaver(tmp_path))
    second.load_state(loaded[1])
    second.train(3)
    assert CheckpointStore(tmp_path).names() == {"min-x": "step-00000004"}
    second.train(4)
    assert CheckpointStore(tmp_path).names() == {"min-x": "step-00000016"}


def test_a_name_that_a_kill_prevented_is_given_at_the_next_start(tmp_path):
    first = make_trainer(PutEachEpoch("x", [1.0]), MinSaver("x"), ModelSaver(tmp_path))
    first.train(1)
    (tmp_path / "names.json").unlink()
    second = make_trainer(MinSaver("x"), ModelSaver(tmp_path))
    second.load_state(first.state())
    second.train(1)
    assert CheckpointStore(tmp_path).names() == {"min-x": "step-00000004"}


def test_a_tag_that_nobody_puts_is_said_once(tmp_path):
    memory = train(PutEachEpoch("val-error", [1, 1]), MinSaver("val_error", store=tmp_path), epochs=2)
    assert [event.text for event in memory.of_type(Message)] == [
        "No scalar `val_error` was put so far. Did you mean `val-error`? Known: val-error."
    ]


def test_a_full_disk_ends_training_with_a_whole_checkpoint(tmp_path):
    class Grow(Callback):
        def state(self):
            return "x" * (100_000 if self.epoch_num == 2 else 10)

    memory = Memory()
    trainer = make_trainer(Grow(), ModelSaver(tmp_path), monitors=[memory])
    with files_of_at_most(50_000), pytest.raises(StorageError, match="A checkpoint must be written to"):
        trainer.train(3)
    assert steps(tmp_path) == [4]
    assert CheckpointStore(tmp_path).load("step-00000004").meta["global_step"] == 4


def test_a_saver_without_a_place_says_what_to_do():
    with pytest.raises(UsageError) as caught:
        make_trainer(ModelSaver()).train(1)
    assert str(caught.value).startswith("ModelSaver needs a folder to write to. Give it one, or all callbacks")
    assert "`bind_folder(callbacks, folder)`" in str(caught.value)


def test_place_gives_every_callback_its_place_in_the_job(tmp_path):
    callbacks = [PeriodicTrigger(ModelSaver(), every_k_epochs=1), PutEachEpoch("x", [1.0]), MinSaver("x")]
    bind_folder(callbacks, tmp_path)
    train(*callbacks)
    assert steps(tmp_path / "checkpoints") == [4]


def test_numbers_are_flushed_before_a_checkpoint_is_written(tmp_path):
    class Flushed(Memory):
        def flush(self):
            self.seen = (len(self.scalars), steps(tmp_path))

    monitor = Flushed()
    train(PutEachEpoch("x", [1.0]), ModelSaver(tmp_path), monitors=[monitor])
    assert monitor.seen == (1, [])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: KeepBest("x", n=0), "`n` must be at least 1 (received: 0)."),
        (lambda: KeepBest("x", mode="best"), "`mode` must be `min` or `max` (received: best)."),
        (lambda: ModelSaver(max_to_keep=-1), "`max_to_keep` is -1, below 0."),
        (lambda: ModelSaver(every_minutes=-1), "`every_minutes` is -1, below 0."),
        (lambda: ModelSaver(every_k_steps=0), "`every_k_steps` must be at least 1"),
    ],
)
def test_bad_arguments_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)


# ---- the best by the primary metric


def test_keep_best_auto_keeps_the_best_accuracy(tmp_path):
    accuracy = PutEachEpoch("validation_accuracy", [0.1, 0.4, 0.4, 0.3, 0.2])
    cost = PutEachEpoch("validation_cost", [5, 4, 3, 2, 1])
    train(KeepBest("auto"), accuracy, cost, ModelSaver(tmp_path, max_to_keep=2), epochs=5)

    assert steps(tmp_path) == [8, 16, 20], "the earlier one of equals stays beside the newest"
    assert CheckpointStore(tmp_path).names() == {"best": "step-00000008"}


def test_keep_best_auto_goes_by_loss_without_accuracy(tmp_path):
    train(
        KeepBest("auto"),
        PutEachEpoch("validation_cost", [3, 1, 2]),
        ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=None),
        epochs=3,
    )

    assert CheckpointStore(tmp_path).names() == {"best": "step-00000008"}


def test_keep_best_auto_without_validation_keeps_the_newest(tmp_path):
    memory = train(
        KeepBest("auto"),
        PutEachEpoch("cost", [1, 2, 3]),
        ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=None),
        epochs=3,
    )

    assert steps(tmp_path) == [12]
    assert memory.of_type(Message) == []


def test_keep_best_auto_judges_within_epochs_too(tmp_path):
    class Put(Callback):
        def trigger_step(self):
            if self.global_step % 2 == 0:
                self.trainer.put("validation_cost", abs(self.global_step - 6))

    saver = ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=None)
    memory = train(KeepBest("auto", every_k_epochs=0.5), Put(), saver, epochs=3)

    assert steps(tmp_path) == [6, 12]
    assert (6, "best") in saved(memory)


def test_keep_best_auto_never_counts_an_old_measurement(tmp_path):
    class PutTwice(Callback):
        def trigger(self):
            if self.epoch_num % 2 == 0:
                self.trainer.put("validation_cost", self.epoch_num)

    train(KeepBest("auto"), PutTwice(), ModelSaver(tmp_path), epochs=5)

    assert CheckpointStore(tmp_path).names() == {"best": "step-00000008"}


def test_keep_best_auto_knows_its_best_after_a_resume(tmp_path):
    def trainer(values):
        saver = ModelSaver(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=None)
        return make_trainer(KeepBest("auto"), PutEachEpoch("validation_cost", values), saver)

    trainer([3, 1, 2]).train(3)
    resumed = trainer([3, 1, 2, 1.5, 2])
    resumed.load_state(CheckpointStore(tmp_path).load("step-00000012"))
    resumed.train(5)

    assert steps(tmp_path) == [8, 20]
    assert CheckpointStore(tmp_path).names() == {"best": "step-00000008"}
