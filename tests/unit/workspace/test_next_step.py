"""Rules for the next step: of each a run of which it speaks, and one of which it must stay silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ziggurat.entities.next_step import NextStep
from ziggurat.workspace.next_step import RULES, ClassRecall, RunFacts, next_step

_RUN = RunFacts(
    job="run",
    dataset="pets",
    metric="accuracy",
    metric_title="accuracy",
    value=0.9,
    measured_on=150,
    baseline=0.103,
    baseline_title="most frequent class",
    classes=10,
    train_samples=750,
    epochs=10,
    curve="validation_accuracy",
    training=[0.5, 0.7, 0.85, 0.88, 0.9, 0.9, 0.9, 0.9],
    validation=[0.5, 0.7, 0.8, 0.85, 0.9, 0.89, 0.9, 0.9],
    checkpoint="step-00000100",
    newest_checkpoint="step-00000200",
    evaluation="test",
    evaluated=150,
    can_augment=True,
)
"""A good run, of which no rule before the last one speaks."""

_RISES = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
_TURNS = [0.5, 0.7, 0.8, 0.78, 0.77, 0.76, 0.76, 0.75]
_LOSSES = [1.0, 0.6, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8]
_LOW = {"value": 0.288, "evaluation": "", "evaluated": 0}
_TREES = {"baseline_title": "gradient boosting", "is_trivial": False}
_RMSE = {"metric": "rmse", "metric_title": "RMSE", "mode": "min", "is_share": False, "measured_on": 100}


def _step(facts: RunFacts) -> NextStep:
    step = next_step(facts)
    assert step is not None
    return step


def _said(**changes: Any) -> str:
    step = next_step(replace(_RUN, **changes))
    return "" if step is None else step.rule


@pytest.mark.parametrize(
    ("rule", "speaks", "silent"),
    [
        ("diverged", {"divergence": "Diverged: NaN.", "is_done": False}, {"divergence": ""}),
        ("baseline", {"value": 0.12}, {"value": 0.19}),
        ("baseline", {"value": 0.80, "baseline": 0.81, **_TREES}, {"value": 0.82, "baseline": 0.81, **_TREES}),
        ("baseline", {**_RMSE, "value": 2.3, "baseline": 2.2}, {**_RMSE, "value": 0.9, "baseline": 2.2}),
        ("from_scratch", {**_LOW, "pretrained_network": "Net"}, {**_LOW, "pretrained_network": ""}),
        (
            "from_scratch",
            {**_LOW, "pretrained_network": "Net"},
            {**_LOW, "pretrained_network": "Net", "is_pretrained": True},
        ),
        ("from_scratch", {**_LOW, "pretrained_network": "Net"}, {"value": 0.9, "pretrained_network": "Net"}),
        ("unpredicted", {"unpredicted": [ClassRecall(name="hat", samples=15)]}, {"unpredicted": []}),
        (
            "unpredicted",
            {"unpredicted": [ClassRecall(name="hat", samples=5)]},
            {"unpredicted": [ClassRecall(name="hat", samples=4)]},
        ),
        (
            "overfitting",
            {"training": [*_RISES, 0.99], "validation": _TURNS},
            {"training": [*_RISES, 0.8], "validation": _TURNS},
        ),
        ("overfitting", {"training": [*_RISES, 0.99], "validation": _TURNS}, {"training": [*_RISES, 0.99]}),
        (
            "overfitting",
            {"training": [*_LOSSES[:3], 0.3], "validation": _LOSSES, "curve_mode": "min", "has_share_curve": False},
            {"training": [*_LOSSES[:3], 0.7], "validation": _LOSSES, "curve_mode": "min", "has_share_curve": False},
        ),
        ("improving", {"validation": _RISES, "training": _RISES}, {"validation": _RISES[:5], "training": _RISES[:5]}),
        ("improving", {"validation": _RISES}, {"validation": [*_RISES, 0.79]}),
        ("labels", {"doubtful": 6}, {"doubtful": 4}),
        ("labels", {"doubtful": 6}, {"doubtful": 6, "evaluated": 1000}),
        ("labels", {"doubtful": 6}, {"doubtful": 6, "value": 0.6}),
        ("low", _LOW, {"value": 0.6}),
        ("low", {"metric": "map", "value": 0.28, "baseline": None}, {"metric": "map", "value": 0.6, "baseline": None}),
        ("good", {}, {"checkpoint": ""}),
        ("good", {}, {"is_done": False}),
        ("good", {"value": 0.82, "baseline": 0.81, **_TREES}, {"value": 0.3}),
        ("good", {**_RMSE, "value": 0.9, "baseline": 2.2}, {**_RMSE, "value": 0.9, "baseline": None}),
    ],
)
def test_a_rule_speaks_and_stays_silent(rule, speaks, silent):
    assert _said(**speaks) == rule
    assert _said(**silent) != rule


@pytest.mark.parametrize("name", [each for each in RULES if each != "good"])
def test_a_good_run_makes_every_earlier_rule_silent(name):
    assert RULES[name](_RUN) is None


@pytest.mark.parametrize("changes", [_LOW, {"value": 0.12}, {**_LOW, "pretrained_network": "Net"}])
def test_a_poor_model_is_never_to_be_published(changes):
    assert _step(replace(_RUN, **changes)).action != "publish"


def test_the_first_rule_that_holds_speaks():
    facts = replace(
        _RUN, value=0.288, validation=_RISES, training=_RISES, pretrained_network="Net", doubtful=9, evaluated=100
    )

    assert _step(facts).rule == "from_scratch", "more epochs from random weights would not bring it near"
    assert _step(replace(facts, pretrained_network="")).rule == "improving"


@pytest.mark.parametrize(
    ("changes", "action", "target", "fields"),
    [
        ({"divergence": "D", "next_rate": "0.01"}, "clone", "run", {"learning_rate": "0.01"}),
        ({"value": 0.1}, "explore", "pets", {}),
        ({"value": 0.1, "dataset": ""}, "clone", "run", {}),
        ({**_LOW, "pretrained_network": "Net"}, "train", "pets", {}),
        (
            {"unpredicted": [ClassRecall(name="hat", samples=15)], "split": "test"},
            "explore",
            "pets",
            {"split": "test", "class_name": "hat"},
        ),
        ({"validation": _RISES}, "train_on", "run", {"checkpoint": "step-00000200"}),
        ({"doubtful": 6}, "explore", "pets", {"prediction": "doubtful", "order": "doubtful"}),
        (_LOW, "evaluate", "run", {}),
        ({"value": 0.288}, "errors", "test", {}),
        ({}, "publish", "run", {"checkpoint": "step-00000100"}),
    ],
)
def test_the_action_leads_to_what_helps(changes, action, target, fields):
    step = _step(replace(_RUN, **changes))

    assert (step.action, step.target, dict(step.fields)) == (action, target, fields)
    assert step.text
    assert step.title


def test_augmentation_is_advised_once():
    overfits = {"training": [*_RISES, 0.99], "validation": _TURNS}

    assert _step(replace(_RUN, **overfits)).title == "Clone with augmentation"
    assert _step(replace(_RUN, **overfits, is_augmented=True)).title == "Clone with a smaller network"
