"""The seven policies of DIGITS: formulas, places of change, and the rounding decision."""

import math

import pytest

from ziggurat.callbacks import Exponential, Fixed, Inverse, MultiStep, Polynomial, Sigmoid, Step, preview
from ziggurat.errors import ConfigurationError


def test_fixed_stays():
    assert {Fixed()(percent / 100) for percent in range(101)} == {1.0}


def test_step_falls_at_every_third_of_the_training():
    rates = dict(preview(Step(step_percent=33, gamma=0.1), base=0.01))
    for percent, rate in rates.items():
        expected = 0.01 if percent < 33 else 1e-3 if percent < 66 else 1e-4 if percent < 99 else 1e-5
        assert rate == pytest.approx(expected)


def test_a_change_takes_effect_with_the_first_step_reaching_it():
    # 33 % of 10 steps is 3.3 steps: DIGITS rounded to 3, here the fourth step is the last at the old rate.
    factors = [Step(step_percent=33, gamma=0.1)(step / 10) for step in range(10)]
    assert factors == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01])


@pytest.mark.parametrize("percent", range(1, 101))
def test_a_whole_percentage_is_reached_at_its_own_step(percent):
    schedule = Step(step_percent=percent, gamma=0.5)
    for steps in (100, 1000):
        step = percent * steps // 100
        assert schedule((step - 1) / steps) == 1.0
        assert schedule(step / steps) == 0.5


@pytest.mark.parametrize(
    "schedule",
    [Fixed(), Step(33), Step(1, 0.5), Step(100), MultiStep([50, 85]), MultiStep([0, 0.1, 29, 99.9])],
    ids=str,
)
@pytest.mark.parametrize("steps", [1, 3, 100, 997, 20_000])
def test_a_factor_holds_until_the_progress_it_names(schedule, steps):
    same_until, factor = 0, 0.0
    asked = 0
    for step in range(steps):
        if step >= same_until:
            same_until = int(schedule.constant_until(step / steps) * steps)
            factor, asked = schedule(step / steps), asked + 1
        assert schedule(step / steps) == factor
    assert asked <= 210


def test_multistep_counts_the_points_passed():
    schedule = MultiStep(at_percent=[50, 85], gamma=0.5)
    assert [schedule(percent / 100) for percent in (0, 49, 50, 84, 85, 100)] == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert MultiStep(at_percent=[0])(0.0) == 0.5


def test_few_steps_do_not_turn_a_policy_into_another():
    # With one step and two points, DIGITS silently used another policy.
    assert MultiStep(at_percent=[50, 85], gamma=0.5)(0.0) == 1.0


def test_exp_inv_poly_and_sigmoid_are_their_formulas():
    for percent in (0, 10, 50, 99, 100):
        progress = percent / 100
        assert Exponential(gamma=0.95)(progress) == pytest.approx(0.95**percent)
        assert Inverse(gamma=0.1, power=0.5)(progress) == pytest.approx((1 + 0.1 * percent) ** -0.5)
        assert Polynomial(power=3)(progress) == pytest.approx((1 - progress) ** 3)
        assert Sigmoid(step_percent=50, gamma=0.1)(progress) == pytest.approx(1 / (1 + math.exp(0.1 * (percent - 50))))


def test_a_steep_sigmoid_ends_at_zero():
    assert Sigmoid(step_percent=0, gamma=1e9)(1.0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Step(step_percent=0), "`step_percent` is 0; it must be in (0, 100]."),
        (lambda: Step(gamma=-1), "`gamma` is -1; it must be above 0."),
        (lambda: MultiStep(at_percent=[]), "`at_percent` is []; it must be at least one number, each in [0, 100]."),
        (lambda: MultiStep(at_percent=[101]), "`at_percent` is [101]; it must be"),
        (lambda: Exponential(gamma=1.5), "`gamma` is 1.5; it must be in (0, 1]."),
        (lambda: Inverse(power=0), "`power` is 0; it must be above 0."),
        (lambda: Polynomial(power=math.nan), "`power` is nan; it must be above 0."),
        (lambda: Sigmoid(step_percent=120), "`step_percent` is 120; it must be in [0, 100]."),
    ],
)
def test_bad_parameters_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)
    assert "Set `" in str(caught.value)
