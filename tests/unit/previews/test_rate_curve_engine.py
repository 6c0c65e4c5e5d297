"""The curve before a training is what a training logs: for every policy, with and without a warm-up."""

from __future__ import annotations

import pytest

from ziggurat.errors import SpecError, UsageError
from ziggurat.events import effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.schedules.registry import SCHEDULES
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec
from ziggurat.worker.build import build_job
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.workspace.previews import rate_curve

_EPOCHS, _STEPS = 3, 64

_SCHEDULES = {
    "fixed": {},
    "step": {"step_percent": 20, "gamma": 0.5},
    "multistep": {"at_percent": [29, 66.6]},
    "exp": {"gamma": 0.97},
    "inv": {"power": 0.75},
    "poly": {"power": 2},
    "sigmoid": {"step_percent": 40},
    "cosine": {"cycles": 2, "cycle_growth": 2},
    "one_cycle": {"peak_percent": 40},
    "linear": {"final_factor": 0.1},
    "piecewise": {"points": [[0, 0.1], [10, 1], [100, 0]]},
}


def content(policy, **schedule):
    return {
        "kind": "train",
        "version": 1,
        "network": "mlp",
        "data": {"source": "digits", "options": {"size": 8}},
        "batch_size": 4,
        "epochs": _EPOCHS,
        "steps_per_epoch": _STEPS,
        "learning_rate": 0.03,
        "schedule": {"policy": policy, **schedule},
        "validation": {"every_epochs": 0},
        "checkpoints": {"every_epochs": 0},
        "monitors": ["events"],
    }


def logged_rates(spec, folder):
    """Return step → rate that a training of the NumPy backend logged."""
    built = build_job(parse_spec(spec), JobFolder(folder), StepClock(), Settings())
    built.trainer.train(_EPOCHS)
    built.trainer.program.close()
    scalars = effective_scalars(read_events(JobFolder(folder).events)[0])
    return {scalar.step: scalar.value for scalar in scalars if scalar.tag == "learning_rate"}


def test_every_policy_is_tried():
    assert set(_SCHEDULES) == set(SCHEDULES)


@pytest.mark.parametrize("warm_up", [0, 12.5])
@pytest.mark.parametrize("policy", _SCHEDULES)
def test_the_curve_is_what_a_training_logs(policy, warm_up, tmp_path):
    spec = content(policy, **_SCHEDULES[policy], warm_up_percent=warm_up)

    curve = rate_curve(spec, points=_EPOCHS * _STEPS)
    logged = logged_rates(spec, tmp_path)

    assert len(curve["rates"]) == _EPOCHS * _STEPS
    assert {epoch * _STEPS for epoch in range(1, _EPOCHS + 1)} | {1} <= set(logged)
    # A step is logged after it was made: number 1 is the first, with the rate of the place 0.
    assert {step: curve["rates"][step - 1] for step in logged} == pytest.approx(logged, rel=1e-6)
    assert curve["epochs"][_STEPS] == pytest.approx(1)


def test_few_points_are_training_steps_from_first_to_last():
    whole = rate_curve(content("cosine"), points=_EPOCHS * _STEPS)

    few = rate_curve(content("cosine"), points=7)

    assert len(few["rates"]) == 7
    assert (few["rates"][0], few["rates"][-1]) == (whole["rates"][0], whole["rates"][-1])
    assert set(zip(few["epochs"], few["rates"])) <= set(zip(whole["epochs"], whole["rates"]))


def test_a_draft_without_network_and_data_has_a_curve():
    curve = rate_curve({"learning_rate": 0.5, "epochs": 10, "schedule": "linear", "network": ""}, points=3)

    assert curve == {
        "epochs": [0, 5, 10],
        "rates": [0.5, 0.25, 0],
        "sentence": "With the policy `linear` the rate begins at 0.5 and ends at 0.",
    }


def test_the_sentence_tells_a_warm_up_and_a_rate_that_stays():
    warm = rate_curve({"schedule": {"policy": "fixed", "warm_up_percent": 10}, "epochs": 20})["sentence"]
    still = rate_curve({"schedule": "fixed"})["sentence"]

    assert warm == (
        "With the policy `fixed` the rate begins at 0 and ends at 0.01; it climbs to 0.01 in the first 10 % (2 epochs)."
    )
    assert still == "With the policy `fixed` the rate stays at 0.01 from the first step to the last."


def test_what_is_wrong_is_named():
    with pytest.raises(SpecError) as wrong:
        rate_curve({"schedule": {"policy": "step", "gamma": -1}})
    assert wrong.value.details["field"] == "schedule.gamma"
    with pytest.raises(UsageError, match="A curve of 1 points is asked for; it has from 2 to 10000"):
        rate_curve({}, points=1)
    with pytest.raises(SpecError, match="kind train"):
        rate_curve({"kind": "dataset", "source": "x", "network": "mlp"})
