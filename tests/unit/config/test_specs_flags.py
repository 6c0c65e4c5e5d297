"""Text from a command line becomes a spec: flags for fields, PATH=VALUE for their parts."""

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import TrainSpec, parse_spec, spec_from_flags

MINIMAL = {"network": "mlp", "data": "digits"}


def test_flags_give_values_of_the_fields_types():
    spec = spec_from_flags(
        {
            **MINIMAL,
            "epochs": "5",
            "learning_rate": "0.05",
            "name": "5",
            "monitors": "events, stats",
            "on_stop": "leave",
        }
    )
    assert (spec.epochs, spec.learning_rate, spec.name, spec.on_stop) == (5, 0.05, "5", "leave")
    assert [use.name for use in spec.monitors] == ["events", "stats"]


def test_flags_take_json_for_compound_fields():
    spec = spec_from_flags(
        {
            **MINIMAL,
            "schedule": '{"policy": "exp", "gamma": 0.9}',
            "callbacks": '[{"name": "ema", "options": {"decay": 0.9}}]',
            "early_stopping": "validation_error",
            "steps_per_epoch": "null",
            "devices": "cpu:0,cpu:1",
        }
    )
    assert spec.schedule.model_dump(include={"policy", "gamma"}) == {"policy": "exp", "gamma": 0.9}
    assert spec.callbacks[0].options == {"decay": 0.9}
    assert spec.early_stopping is not None
    assert spec.early_stopping.tag == "validation_error"
    assert spec.steps_per_epoch is None
    assert spec.devices == ["cpu:0", "cpu:1"]


def test_assignments_reach_parts_and_keep_the_rest():
    spec = spec_from_flags(
        {**MINIMAL, "optimizer": "adam"},
        assignments=[
            "schedule.gamma=0.5",
            "optimizer.beta_1=0.8",
            "checkpoints.keep_best.tag=validation_error",
            "checkpoints.keep_best.mode=max",
            "backend_options.hidden=16",
            "data.options.size=8",
            "epochs=3",
        ],
    )
    assert spec.schedule.model_dump(include={"policy", "step_percent", "gamma"}) == {
        "policy": "step",
        "step_percent": 33.0,
        "gamma": 0.5,
    }
    assert spec.optimizer.model_dump() == {"name": "adam", "beta_1": 0.8, "beta_2": 0.999, "epsilon": 1e-8}
    assert spec.checkpoints.keep_last == 5
    assert spec.checkpoints.keep_best is not None
    assert (spec.checkpoints.keep_best.tag, spec.checkpoints.keep_best.mode) == ("validation_error", "max")
    assert spec.backend_options == {"hidden": 16}
    assert spec.data.options == {"size": 8}
    assert spec.epochs == 3


def test_flags_change_a_base_and_leave_it_alone():
    base = {"kind": "train", "network": "mlp", "data": "digits", "schedule": {"policy": "exp"}, "epochs": 9}
    spec = spec_from_flags({"batch_size": "8"}, assignments=["schedule.gamma=0.5"], base=base)
    expected = parse_spec({**base, "batch_size": 8, "schedule": {"policy": "exp", "gamma": 0.5}})
    assert spec == expected
    assert base["schedule"] == {"policy": "exp"}


@pytest.mark.parametrize(
    ("flags", "assignments", "text"),
    [
        ({}, ["gamma"], "`--set` got"),
        ({}, ["=3"], "`--set` got"),
        ({}, ["epochz=3"], "`epochz` is not a field of this spec. Did you mean `epochs`?"),
        ({}, ["epochs.x=3"], '`epochs` must be a whole number (received: {"x": 3}).'),
        (
            {"learning_rate": "0,01"},
            [],
            '`learning_rate` must be a number (received: "0,01"). Did you mean 0.01? Write decimals with a point',
        ),
        ({}, ["schedule.gamma=0,5"], '`schedule.gamma` must be a number (received: "0,5"). Did you mean 0.5?'),
        ({"epochs": "1,000"}, [], '`epochs` must be a whole number (received: "1,000"). Did you mean 1000?'),
        ({"class_weights": "1, 2,5"}, [], '`class_weights` must be a list (received: "1, 2,5"). Did you mean 1, 2.5?'),
        ({"epochs": "five"}, [], '`epochs` must be a whole number (received: "five").'),
        (
            {},
            ["checkpoints.keep_lst=3"],
            "`checkpoints.keep_lst` is not a field of this spec. Did you mean `keep_last`",
        ),
    ],
)
def test_wrong_flags_are_explained(flags, assignments, text):
    with pytest.raises(SpecError) as caught:
        spec_from_flags({**MINIMAL, **flags}, assignments=assignments)
    assert str(caught.value).startswith(text)


def test_gpus_have_one_name() -> None:
    named = parse_spec({"kind": "train", "network": "lenet", "data": "digits", "devices": ["cuda:0", "gpu:1"]})
    assert isinstance(named, TrainSpec)
    assert named.devices == ["gpu:0", "gpu:1"]


@pytest.mark.parametrize(("text", "rate"), [(".01", 0.01), ("0.01", 0.01), (".5e-2", 0.005)])
def test_a_number_may_begin_with_its_point(text, rate):
    spec = spec_from_flags({"network": "lenet", "data": "digits", "learning_rate": text})
    assert spec.learning_rate == rate
