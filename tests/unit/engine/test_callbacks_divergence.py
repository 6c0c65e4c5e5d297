"""Noticing that a training diverged: by tables of curves as trainings draw them."""

import math

import pytest
from engine_fakes import FakeProgram, Memory, PutEachEpoch, make_trainer, train

from ziggurat.callbacks import Callback, CheckpointStore, DivergenceWatch, ModelSaver
from ziggurat.errors import ConfigurationError
from ziggurat.events import DivergenceNoticed, Message


class PutEachStep(Callback):
    """Puts one number after each step: the next of a list."""

    def __init__(self, tag, values):
        self.tag = tag
        self.values = values

    def after_run(self, _values):
        self.trainer.put(self.tag, self.values[self.global_step - 1])


class Stops(Callback):
    """Asks for a stop at the end of an epoch."""

    def __init__(self, epoch):
        self.epoch = epoch

    def trigger(self):
        if self.epoch_num == self.epoch:
            self.trainer.request_stop()


class RivalsProgram(FakeProgram):
    """Has losses that work against each other."""

    def has_rival_losses(self):
        return True


def curves(**values):
    return [PutEachEpoch(tag, points) for tag, points in values.items()]


def noticed(memory):
    return [(event.state, event.epoch, event.tag) for event in memory.of_type(DivergenceNoticed)]


def watch(**values):
    """Return what is noticed of a training with these curves, one value an epoch."""
    return noticed(train(*curves(**values), DivergenceWatch(), epochs=len(next(iter(values.values())))))


def shape(*parts):
    """Return the values of parts, each (from, to, epochs), with some noise that is always the same."""
    values = []
    for first, last, count in parts:
        for number in range(count):
            share = number / max(1, count - 1)
            values.append((first + (last - first) * share) * (1 + 0.08 * math.sin(7.3 * len(values))))
    return values


SOUND = {
    "a good run": {
        "cost": shape((2.3, 0.3, 12), (0.3, 0.05, 12)),
        "validation_cost": shape((2.3, 0.6, 24)),
        "validation_accuracy": shape((0.1, 0.9, 24)),
    },
    "a noisy run on little data": {
        "cost": [2.4, 2.1, 2.3, 1.9, 2.2, 1.7, 2.0, 1.6, 1.9, 1.5],
        "validation_cost": [2.6, 2.2, 3.1, 2.0, 2.9, 2.1, 3.3, 2.2, 2.6, 2.1],
        "validation_accuracy": [0.1, 0.2, 0.12, 0.22, 0.14, 0.23, 0.16, 0.21, 0.13, 0.22],
    },
    "a run that learns by heart": {
        "cost": shape((2.3, 0.2, 10), (0.2, 0.001, 40)),
        "validation_cost": shape((2.3, 0.9, 10), (0.9, 14.0, 40)),
        "validation_accuracy": shape((0.1, 0.7, 10), (0.7, 0.66, 40)),
    },
    "a spike while the rate warms up": {
        "cost": [2.3, 30.0, 9.0, 2.0, 1.5, 1.0, 0.8],
        "validation_cost": [2.3, 45.0, 12.5, 2.1, 1.6, 1.2, 1.0],
        "validation_accuracy": [0.1, 0.1, 0.1, 0.3, 0.5, 0.6, 0.7],
    },
    "two spikes that it recovers from": {
        "cost": [2.3, 1.0, 0.5, 25.0, 0.6, 0.4, 40.0, 39.0, 0.5, 0.4],
        "validation_cost": [2.3, 1.1, 0.7, 90.0, 0.8, 0.6, 60.0, 70.0, 0.7, 0.6],
        "validation_accuracy": [0.1, 0.6, 0.7, 0.1, 0.6, 0.7, 0.1, 0.1, 0.7, 0.7],
    },
    "restarts of the rate": {
        "cost": shape((2.3, 0.1, 8), (1.2, 0.1, 8), (1.1, 0.05, 8)),
        "validation_cost": shape((2.3, 0.5, 8), (1.4, 0.5, 8), (1.4, 0.45, 8)),
        "validation_accuracy": shape((0.1, 0.8, 8), (0.5, 0.82, 8), (0.5, 0.84, 8)),
    },
    "a run that goes on from good weights": {
        "cost": shape((0.08, 0.002, 12)),
        "validation_cost": shape((0.06, 0.9, 12)),
        "validation_accuracy": shape((0.97, 0.96, 12)),
    },
    "a run that learns nothing": {
        "cost": shape((2.31, 2.30, 12)),
        "validation_cost": shape((2.31, 2.30, 12)),
        "validation_accuracy": shape((0.1, 0.1, 12)),
    },
    "a small loss that wanders, without a validation": {
        "cost": [1.5, 0.2, 0.01, 0.05, 0.002, 0.04, 0.09, 0.03, 0.06],
    },
    "a loss below zero": {"cost": shape((1.0, -4.0, 10), (-4.0, -3.0, 10))},
}


@pytest.mark.parametrize("case", SOUND)
def test_divergence_is_not_seen_in_sound_runs(case):
    assert watch(**SOUND[case]) == []


DIVERGED = {
    "a rate that was set far too high by hand": (
        {
            "cost": shape((2.3, 2.0, 8), (2.6, 2.4, 17)),
            "validation_cost": [2.30, 2.2, 2.1, 2.1, 2.0, 2.0, 2.0, 1.98, *shape((948.0, 300.0, 17))],
            "validation_accuracy": shape((0.1, 0.23, 8), (0.13, 0.12, 17)),
        },
        ("diverged", 9, "validation_cost"),
    ),
    "a run that is back at chance": (
        {
            "cost": shape((2.2, 0.2, 10)) + [2.303] * 8,
            "validation_cost": shape((2.2, 0.4, 10)) + [2.303] * 8,
            "validation_accuracy": shape((0.2, 0.9, 10)) + [0.1] * 8,
        },
        ("diverged", 11, "validation_cost"),
    ),
    "a rare class, so that chance looks good": (
        {
            "cost": shape((0.7, 0.3, 6), (5000.0, 9000.0, 6)),
            "validation_cost": shape((0.7, 0.3, 6), (5000.0, 9000.0, 6)),
            "validation_accuracy": [0.9] * 6 + [0.9] * 6,
        },
        ("diverged", 7, "validation_cost"),
    ),
    "no validation": ({"cost": shape((2.3, 0.5, 6), (80.0, 200.0, 6))}, ("diverged", 7, "cost")),
    "a loss that is no number": (
        {"cost": [1.0, 0.9, 0.8], "validation_cost": [1.0, 0.9, math.inf]},
        ("diverged", 3, "validation_cost"),
    ),
}


@pytest.mark.parametrize("case", DIVERGED)
def test_divergence_is_noticed_at_the_epoch_it_began(case):
    values, expected = DIVERGED[case]
    assert watch(**values) == [expected]


def test_divergence_is_said_with_its_value_and_the_best_before():
    loss = [2.0, 1.5, 1.21, 948.0, 900.0, 800.0, 700.0]
    memory = train(*curves(validation_cost=loss), DivergenceWatch(), epochs=7)

    (event,) = memory.of_type(DivergenceNoticed)
    assert (event.value, event.step, event.best, event.best_epoch, event.noticed_step) == (948.0, 16, 1.21, 3, 24)
    (said,) = memory.of_type(Message)
    assert (said.level, said.text) == (
        "warning",
        "Diverged: the validation loss rose to 948 at epoch 4 (best 1.21 at epoch 3), learning rate 0.5.",
    )


ENDS = {
    "one epoch": ([1.1, 3e9, 8e30, 8e30], "Diverged: the loss rose to 8e30 at epoch 1, learning rate 0.5."),
    "an explosion before the first mean": ([2.3, *[9e5] * 15], "Diverged: the loss rose to 900,000 at epoch 1"),
    "the last epoch": ([1.0] * 8 + [101.0] * 3 + [1001.0], "Diverged: the loss rose to 1,001 at epoch 3"),
    "a first loss near 0": ([0.001] * 4 + [101.0] * 4, "Diverged: the loss rose to 101 at epoch 2"),
}


@pytest.mark.parametrize("case", ENDS)
def test_divergence_is_judged_at_the_end_of_a_run(case):
    values, text = ENDS[case]
    memory = train(PutEachStep("cost", values), DivergenceWatch(), epochs=len(values) // 4)

    assert [event.state for event in memory.of_type(DivergenceNoticed)] == ["diverged"]
    assert memory.of_type(Message)[0].text.startswith(text.partition(" (")[0])


@pytest.mark.parametrize("values", [[1.0] * 4 + [999.0] * 4, [0.001] * 4 + [99.0] * 4])
def test_divergence_at_the_end_needs_a_thousand_times_the_first(values):
    assert noticed(train(PutEachStep("cost", values), DivergenceWatch(), epochs=2)) == []


def test_divergence_is_said_with_the_rate_of_its_step():
    scheduled = [PutEachEpoch("cost", [1.0, 5e5]), PutEachEpoch("learning_rate", [9.0, 8.0])]
    memory = train(*scheduled, DivergenceWatch(), epochs=2)

    (event,) = memory.of_type(DivergenceNoticed)
    assert event.learning_rate == 8.0, "the program has the rate of the next step already"


def test_divergence_is_left_open_by_a_stop():
    memory = Memory()
    trainer = make_trainer(PutEachEpoch("cost", [1.0, 5000.0]), DivergenceWatch(), Stops(2), monitors=[memory])
    trainer.train(9)

    assert trainer.outcome == "stopped"
    assert noticed(memory) == [], "the run may go on"


def test_divergence_of_rival_losses_is_no_growth():
    grown = {"cost": [1.0, *[1e9] * 5], "validation_cost": [1.0, *[1e9] * 5]}
    lost = {"cost": [1.0, 2.0, math.nan]}

    for values, expected in ((grown, []), (lost, [("diverged", 3, "cost")])):
        program = RivalsProgram()
        memory = train(*curves(**values), DivergenceWatch(), program=program, epochs=len(values["cost"]))
        assert noticed(memory) == expected


def test_divergence_that_ends_is_recovered():
    loss = [2.0, 1.5, *[90.0] * 4, *[1.4] * 4]
    assert watch(validation_cost=loss, cost=loss) == [
        ("diverged", 3, "validation_cost"),
        ("recovered", 3, "validation_cost"),
    ]


def test_divergence_watch_goes_on_where_it_was(tmp_path):
    loss = [2.0, 1.5, 90.0, 95.0, 99.0, 80.0]

    def trainer(memory=()):
        return make_trainer(*curves(validation_cost=loss), DivergenceWatch(), ModelSaver(tmp_path), monitors=memory)

    trainer().train(4)
    watching = DivergenceWatch()
    resumed = make_trainer(*curves(validation_cost=loss), watching, ModelSaver(tmp_path))
    resumed.load_state(CheckpointStore(tmp_path).load("step-00000016"))
    resumed.train(6)

    assert watching.divergence is not None
    assert (watching.divergence.epoch, watching.divergence.best) == (3, 1.5)


def test_divergence_watch_fetches_nothing():
    trainer = make_trainer(DivergenceWatch(), *curves(validation_cost=[1.0, 2.0]))
    trainer.train(2)

    assert trainer.program.declared == []
    assert set(trainer.program.fetched) == {()}


def test_divergence_watch_needs_a_patience():
    with pytest.raises(ConfigurationError, match="`patience` must be at least 1"):
        DivergenceWatch(patience=0)
