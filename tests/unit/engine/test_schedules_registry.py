"""Schedules by name, and the preview that equals what a training does."""

import pytest
from engine_fakes import FakeProgram, make_batches, make_trainer

from ziggurat.callbacks import SCHEDULES, LearningRateSchedule, Step, WarmUp, make_schedule, preview
from ziggurat.errors import ConfigurationError, UnknownNameError

NEEDED = {"piecewise": {"points": [(0, 1.0), (100, 0.5)]}}


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_begins_and_ends_at_a_factor_from_0_to_1(name):
    schedule = make_schedule(name, **NEEDED.get(name, {}))
    assert all(0 <= schedule(percent / 100) <= 1 for percent in range(101))


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_preview_equals_the_trainers_rates_at_every_percent(name):
    schedule = make_schedule(name, warm_up_percent=7, **NEEDED.get(name, {}))
    program = FakeProgram()
    # 200 steps: two for each percent
    make_trainer(
        LearningRateSchedule(schedule, base=0.3), program=program, batches=make_batches(50), steps_per_epoch=50
    ).train(4)
    rates = preview(schedule, base=0.3)
    assert len(rates) == 101
    assert [percent for percent, _ in rates] == list(range(101))
    assert [rate for _, rate in rates[:100]] == program.rates_used[::2]


def test_names_and_parameters_make_a_schedule():
    assert make_schedule("step", step_percent=20, gamma=0.5) == Step(20, 0.5)
    assert make_schedule("step", warm_up_percent=5, warm_up_start_factor=0.1) == WarmUp(Step(), 5, 0.1)


def test_an_unknown_name_lists_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        make_schedule("cosin")
    assert str(caught.value).startswith("`cosin` is not a known schedule. Did you mean `cosine`? Known: cosine, exp,")


def test_an_unknown_parameter_lists_the_known():
    with pytest.raises(UnknownNameError) as caught:
        make_schedule("step", gama=1)
    assert "`gama` is not a known parameter of schedule `step`. Did you mean `gamma`?" in str(caught.value)


def test_a_missing_parameter_is_named():
    with pytest.raises(ConfigurationError) as caught:
        make_schedule("piecewise")
    assert "'points'" in str(caught.value)
    assert str(caught.value).endswith("It takes: points.")
