"""Early stopping and stopping by the clock."""

import math

import pytest
from engine_fakes import Clock, PutEachEpoch, make_trainer

from ziggurat.callbacks import CheckpointStore, EarlyStopping, ModelSaver, StopAtTime
from ziggurat.errors import ConfigurationError


def epochs_with(values, **options):
    # in front of what it watches: its place does not matter
    trainer = make_trainer(EarlyStopping("x", **options), PutEachEpoch("x", values))
    trainer.train(len(values))
    return trainer.epoch_num, trainer.finish_reason


@pytest.mark.parametrize(
    ("values", "options", "epochs"),
    [
        ([3, 2, 2, 2, 2], {"patience": 2}, 4),
        ([3, 2, 2, 1, 1], {"patience": 2}, 5),
        ([3, 2.9, 2.8, 2.7], {"patience": 2, "min_delta": 0.5}, 3),
        ([1, 2, 3, 3, 3], {"patience": 2, "mode": "max"}, 5),
        ([5, math.nan, math.nan, 1], {"patience": 2}, 3),
        ([math.nan, math.nan, 1], {"patience": 2}, 2),
        ([math.nan, 2, 1, 0], {"patience": 2}, 4),
    ],
)
def test_it_ends_when_there_was_no_progress_for_so_long(values, options, epochs):
    assert epochs_with(values, **options)[0] == epochs


def test_the_reason_is_a_sentence():
    assert epochs_with([1, 1, 1], patience=2)[1] == "x has not become better than 1 for 2 observations"
    assert epochs_with([math.nan], patience=1)[1] == "x was not a number for 1 observations"


def test_patience_survives_a_resume_and_the_end_is_final(tmp_path):
    def trainer(values):
        return make_trainer(
            ModelSaver(tmp_path), EarlyStopping("x", patience=3), PutEachEpoch("x", values), steps_per_epoch=1
        )

    first = trainer([1, 1, 1])
    first.train(3)
    second = trainer([None, None, None, 1])
    second.load_state(first.state())
    second.train(10)
    assert second.epoch_num == 4
    loaded = CheckpointStore(tmp_path).latest()
    assert loaded is not None
    assert loaded[1].meta["finish_reason"] == "x has not become better than 1 for 3 observations"


def test_the_same_point_is_not_counted_twice():
    class Rare(PutEachEpoch):
        def trigger(self):
            if self.epoch_num % 2:
                self.trainer.put(self.tag, 1.0)

    trainer = make_trainer(EarlyStopping("x", patience=2), Rare("x", []))
    trainer.train(10)
    assert trainer.epoch_num == 5


def test_stop_at_a_time_can_be_resumed():
    clock = Clock(now=100.0, tick=1.0)
    trainer = make_trainer(StopAtTime(at_s=103.0, clock=clock))
    trainer.train(5)
    assert (trainer.global_step, trainer.outcome, trainer.stop_reason) == (3, "stopped", "its time is up")


def test_stop_after_so_many_seconds_of_the_attempt():
    trainer = make_trainer(StopAtTime(after_s=6.0, clock=Clock(tick=1.0)))
    trainer.train(5)
    assert trainer.global_step == 6


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: EarlyStopping("x", patience=0), "`patience` must be at least 1 (received: 0)."),
        (lambda: EarlyStopping("x", min_delta=-1), "`min_delta` must be at least 0 (received: -1)."),
        (lambda: EarlyStopping("x", mode="lowest"), "`mode` must be `min` or `max` (received: lowest)."),
        (lambda: StopAtTime(), "StopAtTime takes either `at_s` or `after_s` (received: neither)."),
        (lambda: StopAtTime(at_s=1, after_s=1), "received: both)."),
    ],
)
def test_bad_arguments_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)


def test_auto_judges_by_the_validation_accuracy():
    accuracies, losses = [0.2, 0.5, 0.4, 0.5, 0.3], [5.0, 4.0, 3.0, 2.0, 1.0]
    trainer = make_trainer(
        EarlyStopping("auto", patience=2),
        PutEachEpoch("validation_cost", losses),
        PutEachEpoch("validation_accuracy", accuracies),
    )
    trainer.train(5)
    assert trainer.epoch_num == 4
    assert trainer.finish_reason == "validation_accuracy has not become better than 0.5 for 2 observations"


def test_auto_without_a_validation_does_nothing():
    trainer = make_trainer(EarlyStopping("auto", patience=1), PutEachEpoch("cost", [1.0, 1.0, 1.0]))
    trainer.train(3)
    assert trainer.epoch_num == 3
    assert trainer.finish_reason is None
