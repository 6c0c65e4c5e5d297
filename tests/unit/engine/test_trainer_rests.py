"""Callbacks that rest: which steps they are called for, and that a mean loses none."""

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from engine_fakes import FakeProgram, make_batches, train

from tests.waiting import take_time
from ziggurat.callbacks import Callback, EstimatedTimeLeft, LogScalars, ProgressBar
from ziggurat.events import Progress


class Recording(FakeProgram):
    """Keeps the costs of its steps until they are taken."""

    def record(self, names: Sequence[str], watched: Sequence[str]) -> Sequence[str]:
        self.costs_kept: list[float] = []
        return [name for name in names if name == "cost"]

    def step(self, batch, names):
        values = super().step(batch, [*names, "cost"])
        self.costs_kept.append(values["cost"])
        return values

    def recorded(self) -> Mapping[str, np.ndarray]:
        kept, self.costs_kept = self.costs_kept, []
        return {"cost": np.array(kept)}


class Counted(Callback):
    """Rests for some steps after each call, and notes the steps that it is called for."""

    def __init__(self, calls: list[tuple[str, str, int]], name: str, steps: float, seconds: float = math.inf) -> None:
        self.calls, self.name, self.steps, self.seconds = calls, name, steps, seconds

    def after_run(self, values):
        self.calls.append((self.name, "after_run", self.global_step))

    def trigger_step(self):
        self.calls.append((self.name, "trigger_step", self.global_step))
        if self.steps:
            self.rests_until = (self.global_step + self.steps, time.perf_counter() + self.seconds)


def test_one_that_rests_is_called_in_its_place_when_it_is_time():
    calls: list[tuple[str, str, int]] = []
    train(Counted(calls, "a", 3), Counted(calls, "b", 0), Counted(calls, "c", 2), batches=make_batches(4), epochs=2)
    seen = [each for each in calls if each[0] == "b"]
    assert [step for _, hook, step in seen if hook == "after_run"] == list(range(1, 9))
    assert [name for name, hook, step in calls if (hook, step) == ("after_run", 1)] == ["a", "b", "c"]
    for name, k in (("a", 3), ("c", 2)):
        steps = [step for who, hook, step in calls if (who, hook) == (name, "trigger_step")]
        assert max(np.diff(steps)) <= k
        assert len(steps) < 8


def test_seconds_end_a_rest():
    calls: list[tuple[str, str, int]] = []
    train(Counted(calls, "a", math.inf, 0.0), Counted(calls, "b", math.inf), epochs=2)
    assert len([each for each in calls if each[0] == "a"]) == 16
    calls.clear()
    train(Counted(calls, "b", math.inf), epochs=2)
    assert [step for _, hook, step in calls if hook == "after_run"] == [1, 5]  # the first of each epoch


@pytest.mark.parametrize("steps", [1, 7, 12])
@pytest.mark.parametrize("options", [{}, {"every_k_steps": 5}, {"per_epoch": 3}, {"per_doubling": 2, "per_epoch": 2}])
def test_means_are_those_of_a_callback_that_never_rests(steps, options):
    class Restless(LogScalars):
        @property
        def rests_until(self):
            return (0.0, 0.0)

        @rests_until.setter
        def rests_until(self, value):
            pass

    class Noted(LogScalars):
        calls = 0

        def after_run(self, values):
            type(self).calls += 1
            super().after_run(values)

    def points(kind):
        logged = kind(["cost"], mean=True, **options)
        return train(logged, program=Recording(), batches=make_batches(steps), epochs=4).points("cost")

    assert points(Noted) == points(Restless)
    assert Noted.calls < 4 * steps or steps == 1 or options.get("per_epoch", 1) * 4 >= steps


def test_default_clocks_let_the_progress_rest():
    class Noted(EstimatedTimeLeft):
        calls = 0

        def trigger_step(self):
            type(self).calls += 1
            super().trigger_step()

    class Bar(ProgressBar):
        calls = 0

        def trigger_step(self):
            type(self).calls += 1
            super().trigger_step()

    class Slow(FakeProgram):
        def step(self, batch, names):
            take_time(0.01)
            return super().step(batch, names)

    memory = train(Noted(every_s=0.05), Bar(mode="lines", every_s=0.05), program=Slow(), batches=make_batches(30))
    assert 2 < len(memory.of_type(Progress)) < 12
    assert 2 < Noted.calls < 15
    assert 2 < Bar.calls < 15
