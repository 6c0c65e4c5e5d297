"""The host of trainings: what it may add, when it is called, and that nothing is called without one."""

import numpy as np
import pytest

from ziggurat.backends.null import NullProgram
from ziggurat.callbacks import Callback, Monitor, Trainer
from ziggurat.engine.host import hosting, training_host

BATCHES = [[np.eye(2, dtype=np.float32), np.arange(2)]] * 3


class Noting(Callback):
    def __init__(self, name, notes):
        self.name = name
        self.notes = notes

    def before_train(self):
        self.notes.append(f"{self.name} before_train")

    def after_train(self):
        self.notes.append(f"{self.name} after_train")


class NotingMonitor(Monitor):
    def __init__(self, notes):
        self.notes = notes

    def process_scalar(self, scalar):
        self.notes.append(f"{scalar.tag} {scalar.value:g}")


class Host:
    def __init__(self, state=None):
        self.notes = []
        self.state = state

    def attach(self, trainer):
        self.notes.append("attach")
        first, last = Noting("first", self.notes), Noting("last", self.notes)
        trainer.add(first=[first], last=[last], monitors=[NotingMonitor(self.notes)])

    def begin(self, trainer):
        self.notes.append("begin")
        if self.state is not None:
            trainer.load_state(self.state)
        trainer.put("begun", trainer.global_step)

    def end(self, trainer):
        self.notes.append(f"end {trainer.global_step}")


def new_trainer(*callbacks):
    return Trainer(NullProgram(2, 2), BATCHES, callbacks=callbacks)


def test_a_host_takes_part_in_its_order():
    host = Host()
    with hosting(host):
        assert training_host() is host
        new_trainer(Noting("own", host.notes)).train(1)
    assert training_host() is None
    names = ("first", "own", "last")
    assert host.notes == [
        *("attach", "begin", "begun 0"),
        *(f"{name} before_train" for name in names),
        *(f"{name} after_train" for name in names),
        "end 3",
    ]


def test_a_host_takes_a_state_back():
    before = new_trainer()
    before.train(1)
    host = Host(before.state())
    with hosting(host):
        trainer = new_trainer()
        trainer.train(2)
    assert "begun 3" in host.notes
    assert trainer.global_step == 6


def test_a_trainer_is_attached_once():
    host = Host()
    with hosting(host):
        trainer = new_trainer()
        trainer.setup()
        trainer.train(1)
        trainer.train(2)
    assert [note for note in host.notes if note in ("attach", "begin")] == ["attach", "begin", "begin"]


def test_a_failed_training_has_no_end_of_the_host():
    class Failing(Callback):
        def trigger_step(self):
            raise ValueError("no")

    host = Host()
    with hosting(host), pytest.raises(ValueError, match="no"):
        new_trainer(Failing()).train(1)
    assert not any(note.startswith("end") for note in host.notes)


def test_without_a_host_nothing_is_added():
    trainer = new_trainer()
    trainer.train(1)
    assert trainer.callbacks == []
