"""A learning rate set by hand, and given back to its schedule, in real workers that are killed and resumed."""

import pytest
from worker_jobs import STEPS, curves_of, differences, end_of, events_of, outcome_of

from ziggurat.events import HyperparameterChanged
from ziggurat.layout import JobFolder

EPOCHS = 6
HAND = 0.0625
SET, LET_GO = 8, 20
"""Steps after which the file is written; the worker reads it after the next one, for those that follow."""


@pytest.fixture
def new_training(new_job):
    """Make a job of six epochs whose rate may be set by hand in the second and let go of in the fourth."""

    def make(schedule, is_set=True):
        steps = {"from_step": SET, "to_step": LET_GO} if is_set else {"from_step": -1, "to_step": -1}
        hand = {"name": "test_hand", "options": {"rate": HAND, **steps}}
        return new_job(schedule=schedule, epochs=EPOCHS, callbacks=["test_strike", hand])

    return make


def rates_of(folder):
    """Return step → learning rate, of the last step of each epoch."""
    return {step: value for step, _, value in curves_of(folder)["learning_rate"] if step % STEPS == 0}


@pytest.mark.parametrize("schedule", ["cosine", "fixed"])
def test_the_curve_shows_the_value_by_hand_then_the_schedule(workers, new_training, schedule):
    plain, job = new_training(schedule, is_set=False), new_training(schedule)
    assert workers.execute(plain) == workers.execute(job) == 0
    expected = rates_of(plain)
    assert list(expected) == [STEPS * epoch for epoch in range(1, EPOCHS + 1)]
    assert HAND not in expected.values()
    assert rates_of(job) == expected | {2 * STEPS: HAND, 3 * STEPS: HAND}
    told = [(e.step, e.source) for e in events_of(job, HyperparameterChanged) if SET < e.step < 4 * STEPS]
    assert told == [(SET + 1, "person"), (LET_GO + 1, "schedule")]


@pytest.mark.parametrize("schedule", ["cosine", "fixed"])
def test_killed_while_either_holds_it_goes_on_exactly(workers, new_training, schedule):
    whole, job = new_training(schedule), new_training(schedule)
    assert workers.execute(whole) == 0
    for step in (SET + 2, 3 * STEPS, LET_GO + 1, LET_GO + 2, LET_GO + 5):
        assert workers.execute(job, f"kill:{step}") == -9
    assert workers.execute(job) == 0
    assert end_of(job).outcome == "done"
    assert rates_of(job) == rates_of(whole)


@pytest.mark.parametrize("step", [SET + 6, LET_GO + 6])  # the newest checkpoint is of a step after the change
@pytest.mark.parametrize(("how", "code"), [("kill", -9), ("term", 75)])
def test_interrupted_once_everything_is_equal_bit_for_bit(workers, new_training, how, code, step):
    whole, job = new_training("cosine"), new_training("cosine")
    assert workers.execute(whole) == 0
    assert workers.execute(job, f"{how}:{step}") == code
    assert workers.execute(job) == 0
    assert differences(outcome_of(job), outcome_of(whole)) == []


@pytest.mark.parametrize("schedule", ["cosine", "fixed"])
def test_released_after_the_checkpoint_and_killed_it_holds(workers, new_training, schedule):
    plain, job = new_training(schedule, is_set=False), new_training(schedule)
    assert workers.execute(plain) == 0
    assert workers.execute(job, f"kill:{SET + 6}") == -9  # the newest checkpoint has the rate by hand
    JobFolder(job).hyperparameters.write_text("")
    assert workers.execute(job) == 0
    expected = rates_of(plain)
    assert rates_of(job) == expected | {2 * STEPS: HAND}
