"""The schedules of today: cosine, one cycle, line, points, warm-up."""

import math

import pytest

from ziggurat.callbacks import Cosine, Fixed, Linear, OneCycle, Piecewise, Polynomial, WarmUp
from ziggurat.errors import ConfigurationError


def test_cosine_is_half_a_cosine():
    schedule = Cosine(final_factor=0.1)
    for percent in range(0, 101, 10):
        assert schedule(percent / 100) == pytest.approx(0.1 + 0.45 * (1 + math.cos(math.pi * percent / 100)))


def test_cosine_restarts_at_the_full_rate():
    schedule = Cosine(cycles=2)
    assert [schedule(progress) for progress in (0, 0.25, 0.5, 0.75, 1)] == pytest.approx([1, 0.5, 1, 0.5, 0])


def test_cycles_may_grow():
    schedule = Cosine(cycles=2, cycle_growth=3)  # a quarter and three quarters
    assert [schedule(progress) for progress in (0.125, 0.25, 0.625, 1)] == pytest.approx([0.5, 1, 0.5, 0])


def test_one_cycle_goes_up_and_down():
    schedule = OneCycle(peak_percent=30, start_factor=0.1, final_factor=0.01)
    factors = [schedule(progress) for progress in (0, 0.15, 0.3, 0.65, 1)]
    assert factors == pytest.approx([0.1, 0.55, 1, 0.505, 0.01])


def test_linear_is_a_line():
    assert [Linear(final_factor=0.5)(progress) for progress in (0, 0.5, 1)] == [1, 0.75, 0.5]


def test_piecewise_joins_points_and_stays_outside():
    schedule = Piecewise([(10, 0.0), (20, 1.0), (60, 0.5)])
    assert [schedule(percent / 100) for percent in (0, 10, 15, 20, 40, 60, 100)] == [0, 0, 0.5, 1, 0.75, 0.5, 0.5]


def test_warm_up_leads_in_a_line_to_any_schedule():
    plain, warm = Polynomial(power=1), WarmUp(Polynomial(power=1), warm_up_percent=20, start_factor=0.5)
    assert warm(0) == pytest.approx(0.4)  # half of what the schedule has at 20 %
    assert warm(0.1) == pytest.approx(0.6)
    assert [warm(progress) for progress in (0.2, 0.5, 1)] == [plain(progress) for progress in (0.2, 0.5, 1)]


def test_no_warm_up_changes_nothing():
    assert WarmUp(Fixed(), warm_up_percent=0)(0) == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Cosine(final_factor=2), "`final_factor` is 2; it must be in [0, 1]."),
        (lambda: Cosine(cycles=0), "`cycles` is 0; it must be at least 1."),
        (lambda: Cosine(cycle_growth=0), "`cycle_growth` is 0; it must be above 0."),
        (lambda: OneCycle(peak_percent=100), "`peak_percent` is 100; it must be in (0, 100)."),
        (lambda: OneCycle(start_factor=-1), "`start_factor` is -1; it must be in [0, 1]."),
        (lambda: Linear(final_factor=-1), "`final_factor` is -1; it must be in [0, 1]."),
        (lambda: Piecewise([]), "`points` is []; it must be (percent, factor) pairs with rising percentages"),
        (lambda: Piecewise([(50, 1), (50, 0)]), "`points` is [(50, 1), (50, 0)]; it must be"),
        (lambda: WarmUp(Fixed(), warm_up_percent=101), "`warm_up_percent` is 101; it must be in [0, 100]."),
    ],
)
def test_bad_parameters_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)
