"""The wrappers that decide when, and the callback made of functions."""

import pytest
from engine_fakes import FakeProgram, make_batches, make_trainer

from ziggurat.callbacks import (
    Callback,
    CallbackFactory,
    EnableCallbackIf,
    LogScalars,
    PeriodicCallback,
    PeriodicTrigger,
    ProxyCallback,
)
from ziggurat.errors import ConfigurationError


class Seen(Callback):
    """Remembers the steps at which its hooks were called."""

    def __init__(self):
        self.triggers, self.steps, self.runs, self.epochs = [], [], [], []

    def before_epoch(self):
        self.epochs.append(self.epoch_num)

    def before_run(self):
        self.runs.append(("before", self.global_step))
        return ()

    def after_run(self, values):
        self.runs.append(("after", self.global_step))

    def trigger_step(self):
        self.steps.append(self.global_step)

    def trigger(self):
        self.triggers.append(self.global_step)


class SeenByEpoch(Callback):
    """Overrides ``trigger_epoch`` only."""

    def __init__(self):
        self.triggers = []

    def trigger_epoch(self):
        self.triggers.append(self.global_step)


@pytest.mark.parametrize("kind", [Seen, SeenByEpoch])
@pytest.mark.parametrize("wrapped_twice", [False, True])
@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"every_k_steps": 3}, [3, 6, 9, 12, 15]),
        ({"every_k_epochs": 2}, [8, 16]),
        ({"every_k_epochs": 2, "before_train": True}, [0, 8, 16]),
        ({"every_k_steps": 3, "every_k_epochs": 3}, [3, 6, 9, 12, 15]),
        ({"every_k_steps": 8, "every_k_epochs": 1}, [4, 8, 12, 16]),  # step 8 ends an epoch: once is enough
        ({"before_train": True}, [0]),
    ],
)
def test_periodic_trigger(kind, wrapped_twice, period, expected):
    seen = kind()
    inside = ProxyCallback(seen) if wrapped_twice else seen
    make_trainer(PeriodicTrigger(inside, **period)).train(4)
    assert seen.triggers == expected


def test_periodic_trigger_leaves_the_other_hooks_alone():
    seen = Seen()
    make_trainer(PeriodicTrigger(seen, every_k_epochs=2)).train(2)
    assert seen.steps == [1, 2, 3, 4, 5, 6, 7, 8]
    assert seen.epochs == [1, 2]


def test_periodic_trigger_does_not_fire_again_on_resume():
    first = make_trainer(PeriodicTrigger(Seen(), before_train=True))
    first.train(1)
    seen = Seen()
    second = make_trainer(PeriodicTrigger(seen, before_train=True))
    second.load_state(first.state())
    second.train(2)
    assert seen.triggers == []


def test_a_wrapped_callback_may_ask_its_program_for_names():
    program = FakeProgram()
    program.summary_names = lambda: ["cost"]
    trainer = make_trainer(EnableCallbackIf(LogScalars(), lambda self: True), program=program)
    trainer.train(1)
    assert [step for step, _ in trainer.monitors.get_history("cost")] == [4]


def test_enable_callback_if_asks_before_each_hook():
    seen = Seen()
    make_trainer(EnableCallbackIf(seen, lambda self: self.epoch_num == 2)).train(3)
    assert seen.epochs == [2]
    assert seen.steps == [5, 6, 7, 8]
    assert seen.runs == [
        (when, step) for step in (4, 5, 6, 7) for when, step in (("before", step), ("after", step + 1))
    ]
    assert seen.triggers == [8]


def test_enable_callback_if_keeps_a_run_pair_together():
    class AfterOnly(Callback):
        def __init__(self):
            self.after = []

        def after_run(self, values):
            self.after.append(self.global_step)

    after = AfterOnly()
    make_trainer(EnableCallbackIf(after, lambda self: self.global_step % 2 == 0)).train(1)
    assert after.after == [1, 3]  # enabled before steps 1 and 3, when 0 and 2 were done


def test_periodic_callback_takes_part_in_every_kth_step():
    seen = Seen()
    make_trainer(PeriodicCallback(seen, every_k_steps=3)).train(2)
    assert seen.steps == [3, 6]
    assert seen.runs == [("before", 2), ("after", 3), ("before", 5), ("after", 6)]


def test_periodic_callback_acts_every_kth_epoch_and_last():
    seen = Seen()
    make_trainer(PeriodicCallback(seen, every_k_epochs=2)).train(5)
    assert seen.epochs == [2, 4, 5]
    assert seen.triggers == [8, 16, 20]


def test_callback_factory_calls_functions():
    calls = []
    callback = CallbackFactory(
        setup_graph=lambda self: calls.append("setup"),
        before_train=lambda self: calls.append(f"before step {self.global_step}"),
        trigger=lambda self: calls.append(f"epoch {self.epoch_num}"),
        after_train=lambda self: calls.append("after"),
    )
    make_trainer(callback, batches=make_batches(1)).train(2)
    assert calls == ["setup", "before step 0", "epoch 1", "epoch 2", "after"]
    assert CallbackFactory().hooks() == frozenset()


def test_a_wrapper_keeps_the_state_of_what_is_inside():
    class Counter(Callback):
        count = 0

        def trigger(self):
            self.count += 1

        def state(self):
            return self.count

        def load_state(self, state):
            self.count = state

    first = make_trainer(PeriodicTrigger(Counter(), every_k_steps=1))
    first.train(1)
    counter = Counter()
    second = make_trainer(PeriodicTrigger(counter, every_k_steps=1))
    second.load_state(first.state())
    assert counter.count == 4


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: PeriodicTrigger(Seen()), "PeriodicTrigger must be told when. Give `every_k_steps`, `every_k_epochs`"),
        (lambda: PeriodicCallback(Seen()), "PeriodicCallback must be told when."),
        (
            lambda: PeriodicTrigger(Seen(), every_k_steps=0),
            "`every_k_steps` must be at least 1, or None for never (received: 0).",
        ),
        (
            lambda: PeriodicCallback(Seen(), every_k_epochs=-1),
            "`every_k_epochs` must be above 0, or None for never (received: -1).",
        ),
    ],
)
def test_bad_periods_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)
