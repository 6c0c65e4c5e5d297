"""A wrong spec is answered by field, rule, what came, and what to do."""

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import parse_spec

MINIMAL = {"kind": "train", "network": "mlp", "data": "digits"}

WRONG = {
    "below a bound": (
        {"epochs": 0},
        "`epochs` must be at least 1 (received: 0). Epochs: Passes over the training split; typical: 10 to 100.",
    ),
    "epochs without end": (
        {"epochs": 10**12},
        "`epochs` must be at most 1,000,000 (received: 1000000000000). Epochs: ",
    ),
    "steps without end": (
        {"steps_per_epoch": 10**12},
        "`steps_per_epoch` must be at most 1,000,000,000 (received: 1000000000000). Steps per epoch: ",
    ),
    "above a bound": ({"heartbeat_s": 11}, "`heartbeat_s` must be at most 10 (received: 11). Heartbeat: "),
    "a decay that forgets nothing": (
        {"ema_decay": 1},
        "`ema_decay` must be less than 1 (received: 1). Weight averaging (EMA): ",
    ),
    "a decay that keeps nothing": ({"ema_decay": 0}, "`ema_decay` must be more than 0 (received: 0). "),
    "another type": ({"epochs": "5"}, '`epochs` must be a whole number (received: "5"). '),
    "true is no number": ({"epochs": True}, "`epochs` must be a whole number (received: true). "),
    "not finite": ({"learning_rate": float("nan")}, "`learning_rate` must be a finite number (received: NaN). "),
    "a rate of nothing": ({"learning_rate": 0}, "`learning_rate` must be more than 0 (received: 0). "),
    "points that learn nothing": (
        {"schedule": {"policy": "piecewise", "points": [[0, 0], [100, 0]]}},
        "`schedule.points` must have a factor above 0, or nothing is learned (received: [[0, 0], [100, 0]]). ",
    ),
    "a size that is none": (
        {"preprocessing": {"size": "axb"}},
        '`preprocessing.size` must be a height and a width, as in 28 or 240x320 (received: "axb"). ',
    ),
    "a mistyped field": ({"epochz": 1}, "`epochz` is not a field of this spec. Did you mean `epochs`?"),
    "a field like no other": (
        {"qqqqq": 1},
        "`qqqqq` is not a field of this spec. Leave it out; `ziggurat spec schema` lists the fields.",
    ),
    "a mistyped field of a part": (
        {"schedule": {"policy": "step", "gama": 0.5}},
        "`schedule.gama` is not a field of this spec. Did you mean `gamma`?",
    ),
    "a field of another policy": (
        {"schedule": {"policy": "fixed", "gamma": 0.5}},
        "`schedule.gamma` is not a field of this spec. Leave it out",
    ),
    "a mistyped policy": (
        {"schedule": "stp"},
        "`schedule.policy` must be one of `fixed`, `step`, `multistep`, `exp`, `inv`, `poly`, `sigmoid`, `cosine`, "
        '`one_cycle`, `linear`, `piecewise` (received: "stp"). Did you mean `step`?',
    ),
    "no policy": ({"schedule": {"gamma": 0.5}}, "`schedule` must say its `policy`. Schedule: "),
    "a wrong number in a part": (
        {"schedule": {"policy": "step", "gamma": -1}},
        "`schedule.gamma` must be more than 0 (received: -1). Gamma: Factor of the rate at each drop;",
    ),
    "a wrong number in a list": (
        {"schedule": {"policy": "multistep", "at_percent": [50, 120]}},
        "`schedule.at_percent.1` must be at most 100 (received: 120). Points: ",
    ),
    "points that fall": (
        {"schedule": {"policy": "piecewise", "points": [[50, 1], [0, 2]]}},
        "`schedule.points` must have rising percentages up to 100 (received: [[50, 1], [0, 2]]). ",
    ),
    "a part with the name of its variant": (
        {"optimizer": {"name": "momentum", "momentum": 0.5, "nesterov": 3}},
        "`optimizer.nesterov` must be true or false (received: 3). ",
    ),
    "a mistyped part beside such a part": (
        {"optimizer": {"name": "momentum", "momentum": 0.5, "nestrov": True}},
        "`optimizer.nestrov` is not a field of this spec. Did you mean `nesterov`?",
    ),
    "a choice": (
        {"precision": "flaot32"},
        '`precision` must be `float32`, `bf16` or `fp16` (received: "flaot32"). Did you mean `float32`?',
    ),
    "a missing part": ({"data": {}}, "`data.source` must be given. Source: "),
    "a missing field": ({"network": None}, "`network` must be an object of names and values (received: null). "),
    "towers that do not divide": (
        {"devices": ["cpu:0", "cpu:1", "cpu:2", "cpu:3"], "batch_size": 30},
        "`batch_size` must be divisible by the 4 towers (received: 30). Use 28 or 32.",
    ),
    "a mistyped field in a list": (
        {"monitors": ["events", {"nam": "x"}]},
        "`monitors.1.nam` is not a field of this spec. Did you mean `name`?",
    ),
    "an infinite option": (
        {"callbacks": [{"name": "x", "options": {"a": float("inf")}}]},
        "`callbacks.0.options.a` must be a finite number (received: Infinity).",
    ),
    "several at once": ({"seed": -1, "epochs": 0}, "Also wrong: `epochs`."),
}


@pytest.mark.parametrize(("change", "text"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_field_is_explained(change, text):
    with pytest.raises(SpecError) as caught:
        parse_spec({**MINIMAL, **change})
    assert text in str(caught.value)


def test_the_error_carries_every_problem_for_programs():
    with pytest.raises(SpecError) as caught:
        parse_spec({**MINIMAL, "seed": -1, "data": {}}, source="job/spec.json")
    details = caught.value.as_dict()["details"]
    assert details["source"] == "job/spec.json"
    assert details["field"] == "seed"
    assert [problem["field"] for problem in details["problems"]] == ["seed", "data.source"]
    assert caught.value.exit_code == 3


def test_a_required_field_that_is_missing():
    with pytest.raises(SpecError, match=r"^`network` must be given\. Network: Name of a standard network"):
        parse_spec({"kind": "train", "data": "digits"})


def test_what_is_no_object_at_all():
    with pytest.raises(SpecError, match=r"^The spec is a list, not a JSON object\."):
        parse_spec([])
