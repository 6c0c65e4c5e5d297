"""Ending early: because it is complete, or because somebody asked for it."""

import threading

import pytest
from engine_fakes import Memory, make_batches, make_trainer

from ziggurat.callbacks import Callback, CallbackFactory, StopTraining

LOOP_HOOKS = ["before_train", "before_epoch", "before_run", "after_run", "trigger_step", "after_epoch", "trigger_epoch"]


class Calls(Callback):
    """Remembers the hooks around an end."""

    def __init__(self):
        self.calls = []

    def trigger_step(self):
        self.calls.append(self.global_step)

    def trigger_epoch(self):
        self.calls.append("trigger_epoch")

    def before_stop(self):
        self.calls.append("before_stop")

    def after_train(self):
        self.calls.append("after_train")


class Stop(Callback):
    """Finds the training complete in one hook, at step 2 or after."""

    def __init__(self, hook):
        self.hook = hook

    def hooks(self):
        return frozenset({self.hook})

    def stop(self):
        if self.global_step >= 2 or self.hook == "before_train":
            raise StopTraining(f"found in {self.hook}")
        return ()

    before_train = before_epoch = before_run = trigger_step = after_epoch = trigger_epoch = stop

    def after_run(self, values):
        self.stop()


@pytest.mark.parametrize("hook", LOOP_HOOKS)
def test_stop_training_completes_within_a_step_and_hooks_run(hook):
    calls = Calls()
    trainer = make_trainer(Stop(hook), calls)
    trainer.train(3)
    assert trainer.outcome == "done"
    assert trainer.finish_reason == f"found in {hook}"
    assert calls.calls[-2:] == ["before_stop", "after_train"]
    expected = {"before_train": 0, "before_epoch": 5, "before_run": 3, "after_run": 2, "trigger_step": 2}
    assert trainer.global_step == expected.get(hook, 4)


def test_a_training_that_was_complete_is_not_resumed():
    first = make_trainer(Stop("trigger_step"))
    first.train(3)
    second = make_trainer(Stop("trigger_step"))
    second.load_state(first.state())
    second.train(3)
    assert second.global_step == 2


def test_another_thread_may_ask_for_a_stop():
    asked = threading.Event()

    class WaitForIt(Callback):
        def trigger_step(self):
            if self.global_step == 3:
                asked.set()
                thread.join()

    trainer = make_trainer(WaitForIt(), calls := Calls())
    thread = threading.Thread(target=lambda: asked.wait() and trainer.request_stop("the other thread"))
    thread.start()
    trainer.train(5)
    assert calls.calls == [1, 2, 3, "before_stop", "after_train"]
    assert (trainer.outcome, trainer.stop_reason) == ("stopped", "the other thread")


def test_the_first_reason_counts():
    trainer = make_trainer()
    trainer.request_stop("the first")
    trainer.request_stop("the second")
    trainer.train(1)
    assert trainer.stop_reason == "the first"
    assert trainer.global_step == 0


def test_a_stop_at_the_last_step_leaves_the_epochs_end():
    class StopAt(Callback):
        def trigger_step(self):
            if self.global_step == 4:
                self.trainer.request_stop()

    first = make_trainer(StopAt(), calls := Calls())
    first.train(2)
    assert calls.calls == [1, 2, 3, 4, "before_stop", "after_train"]
    second = make_trainer(Callback(), calls := Calls())
    second.load_state(first.state())
    second.train(2)
    assert calls.calls == ["trigger_epoch", 5, 6, 7, 8, "trigger_epoch", "after_train"]


def test_what_waits_for_a_boundary_comes_after_every_callback():
    order = []
    early = CallbackFactory(trigger=lambda self: self.trainer.at_boundary(lambda: order.append("at the boundary")))
    late = CallbackFactory(trigger=lambda self: order.append("last callback"))
    make_trainer(early, late, batches=make_batches(1)).train(1)
    assert order == ["last callback", "at the boundary"]


def test_put_reaches_every_monitor_with_step_epoch_and_time():
    memories = [Memory(), Memory()]
    put = CallbackFactory(trigger=lambda self: self.trainer.put("x", self.epoch_num / 2))
    trainer = make_trainer(put, monitors=memories)
    trainer.train(2)
    for memory in memories:
        assert [(s.tag, s.value, s.step, s.epoch, s.time) for s in memory.scalars] == [
            ("x", 0.5, 4, 1, 1000.0),
            ("x", 1.0, 8, 2, 1000.0),
        ]
    assert trainer.monitors.get_latest("x") == 1.0
    assert trainer.monitors.get_history("x") == [(4, 0.5), (8, 1.0)]
