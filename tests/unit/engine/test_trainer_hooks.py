"""The loop: order of the hooks, what an error in one of them does, what is fetched."""

import pytest
from engine_fakes import FakeProgram, Memory, make_batches, make_trainer

from ziggurat.callbacks import Callback, Monitor, ProxyCallback, Trainer
from ziggurat.engine.callback import HOOKS
from ziggurat.errors import DataError, UnknownNameError, UsageError


class Recorder(Callback):
    """Writes down every call."""

    def __init__(self, name, calls):
        self.name = name
        self.calls = calls

    def setup_graph(self):
        self.note("setup_graph")

    def before_train(self):
        self.note("before_train")

    def before_epoch(self):
        self.note("before_epoch")

    def before_run(self):
        self.note("before_run")
        return ("cost",)

    def after_run(self, values):
        self.note("after_run")

    def trigger_step(self):
        self.note("trigger_step")

    def after_epoch(self):
        self.note("after_epoch")

    def trigger_epoch(self):
        self.note("trigger_epoch")

    def before_stop(self):
        self.note("before_stop")

    def after_train(self):
        self.note("after_train")

    def declares(self):
        return ("cost",)

    def note(self, hook):
        self.calls.append(f"{self.name}.{hook}")


class RecordingMonitor(Recorder, Monitor):
    """The same as a monitor."""


def test_hooks_come_in_list_order_and_monitors_last():
    calls = []
    trainer = make_trainer(
        Recorder("a", calls), Recorder("b", calls), monitors=[RecordingMonitor("m", calls)], batches=make_batches(2)
    )
    trainer.train(2)

    def each(*hooks):
        return [f"{name}.{hook}" for hook in hooks for name in "abm"]

    step = each("before_run", "after_run", "trigger_step")
    epoch = each("before_epoch") + step + step + each("after_epoch", "trigger_epoch")
    assert calls == each("setup_graph", "before_train") + epoch + epoch + each("after_train")


def test_where_training_stands_in_each_hook():
    seen = []

    class Look(Callback):
        def before_train(self):
            seen.append(("before_train", self.epoch_num, self.global_step, self.local_step))

        def before_epoch(self):
            seen.append(("before_epoch", self.epoch_num, self.global_step, self.local_step))

        def before_run(self):
            seen.append(("before_run", self.epoch_num, self.global_step, self.local_step))
            return ()

        def trigger_step(self):
            seen.append(("trigger_step", self.epoch_num, self.global_step, self.local_step))

        def trigger_epoch(self):
            seen.append(("trigger_epoch", self.epoch_num, self.global_step, self.local_step))

    make_trainer(Look(), batches=make_batches(1), steps_per_epoch=2).train(1)
    assert seen == [
        ("before_train", 0, 0, -1),
        ("before_epoch", 1, 0, -1),
        ("before_run", 1, 0, 0),
        ("trigger_step", 1, 1, 0),
        ("before_run", 1, 1, 1),
        ("trigger_step", 1, 2, 1),
        ("trigger_epoch", 1, 2, 1),
    ]


class Planted(Callback):
    """Raises in one hook."""

    def __init__(self, hook):
        self.hook = hook

    def hooks(self):
        return frozenset({self.hook, "trigger_step"})

    def raise_in(self, hook):
        if hook == self.hook:
            raise ZeroDivisionError("planted")

    def setup_graph(self):
        self.raise_in("setup_graph")

    def before_train(self):
        self.raise_in("before_train")

    def before_epoch(self):
        self.raise_in("before_epoch")

    def before_run(self):
        self.raise_in("before_run")
        return ()

    def after_run(self, values):
        self.raise_in("after_run")

    def trigger_step(self):
        if self.hook == "before_stop":
            self.trainer.request_stop()
        self.raise_in("trigger_step")

    def after_epoch(self):
        self.raise_in("after_epoch")

    def trigger_epoch(self):
        self.raise_in("trigger_epoch")

    def before_stop(self):
        self.raise_in("before_stop")

    def after_train(self):
        self.raise_in("after_train")


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_in_any_hook_ends_training_and_frees_all(hook, wrapped):
    calls = []
    planted = ProxyCallback(Planted(hook)) if wrapped else Planted(hook)
    trainer = make_trainer(Recorder("a", calls), planted, Recorder("b", calls))
    with pytest.raises(ZeroDivisionError, match="planted") as caught:
        trainer.train(2)
    assert [call for call in calls if "after_train" in call] == ["a.after_train", "b.after_train"]
    assert calls[-2:] == ["a.after_train", "b.after_train"]
    assert f"{hook} of callback Planted" in caught.value.__notes__[0]


def test_an_error_while_freeing_does_not_hide_the_first_one():
    class Both(Callback):
        def trigger_step(self):
            raise ValueError("first")

        def after_train(self):
            raise OSError("second")

    with pytest.raises(ValueError, match="first") as caught:
        make_trainer(Both()).train(1)
    assert caught.value.__notes__ == [
        "Raised by trigger_step of callback Both, epoch 1, step 1.",
        "Then after_train of callback Both raised OSError('second').",
    ]


def test_an_error_of_data_or_program_ends_the_training():
    class Broken:
        def __iter__(self):
            yield make_batches(1)[0]
            raise RuntimeError("the disk is gone")

    calls = []
    with pytest.raises(RuntimeError, match="the disk is gone"):
        make_trainer(Recorder("a", calls), batches=Broken(), steps_per_epoch=3).train(1)
    assert calls[-1] == "a.after_train"


def test_tensorpacks_hook_names_work():
    calls = []

    class Old(Callback):
        def _setup_graph(self):
            calls.append("setup_graph")

        def _before_train(self):
            calls.append("before_train")

        def _trigger_step(self):
            calls.append("trigger_step")

        def _trigger(self):
            calls.append(f"trigger {self.epoch_num}")

        def _after_train(self):
            calls.append("after_train")

    make_trainer(Old(), batches=make_batches(2)).train(1)
    assert calls == ["setup_graph", "before_train", "trigger_step", "trigger_step", "trigger 1", "after_train"]


def test_what_nobody_overrides_is_not_called():
    class Quiet(Callback):
        def trigger(self):
            pass

    assert Quiet().hooks() == {"trigger_epoch"}
    assert Callback().hooks() == frozenset()
    assert Memory().hooks() == frozenset()


def test_values_are_declared_once_and_fetched_when_asked_for():
    class Ask(Callback):
        def __init__(self, name, k):
            self.wanted, self.k, self.seen = name, k, []

        def declares(self):
            return (self.wanted,)

        def before_run(self):
            return (self.wanted,) if self.global_step % self.k == 0 else ()

        def after_run(self, values):
            self.seen.append(sorted(values))

    program, cost, rows = FakeProgram(), Ask("cost", 2), Ask("rows", 3)
    make_trainer(cost, rows, program=program).train(1)
    assert program.declared == ["cost", "rows"]
    assert program.fetched == [("cost", "rows"), (), ("cost",), ("rows",)]
    assert cost.seen == rows.seen == [["cost", "rows"], [], ["cost"], ["rows"]]


def test_a_wrong_name_is_an_error_before_the_first_step():
    class Ask(Callback):
        def declares(self):
            return ("cots",)

    program = FakeProgram()
    with pytest.raises(UnknownNameError, match=r"`cots` is not a known value of this program. Did you mean `cost`?"):
        make_trainer(Ask(), program=program).train(1)
    assert program.steps == 0


def test_callbacks_of_one_class_get_names_of_their_own():
    trainer = make_trainer(Callback(), Callback(), ProxyCallback(Callback()))
    trainer.setup()
    assert [callback.name for callback in trainer.callbacks] == ["Callback", "Callback-2", "Callback-3"]


def test_the_length_of_an_epoch_is_given_or_known():
    assert make_trainer().steps_per_epoch == 4
    with pytest.raises(UsageError, match="`steps_per_epoch` must be given where the batches have no length"):
        Trainer(FakeProgram(), iter([]))
    with pytest.raises(UsageError, match=r"`steps_per_epoch` must be at least 1 \(received: 0"):
        Trainer(FakeProgram(), [])


def test_batches_that_come_only_once_are_an_error():
    batches = iter(make_batches(2))
    with pytest.raises(DataError, match=r"at least one batch in every pass \(received: none"):
        make_trainer(batches=batches, steps_per_epoch=4).train(1)


def test_a_pass_need_not_be_an_epoch():
    program = FakeProgram()
    trainer = make_trainer(program=program, batches=make_batches(3), steps_per_epoch=5)
    trainer.train(2)
    assert (program.steps, trainer.global_step, trainer.epoch_num) == (10, 10, 2)
    assert trainer.batches.state()["taken"] == 1  # of the fourth pass


def test_training_goes_on_where_it_ended():
    program = FakeProgram()
    trainer = make_trainer(program=program)
    trainer.train(1)
    trainer.train(3)
    assert (program.steps, trainer.epoch_num) == (12, 3)
