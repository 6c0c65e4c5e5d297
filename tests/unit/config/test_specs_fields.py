"""Every field is declared once, with all that the faces need, and agrees with what the engine takes."""

from dataclasses import MISSING, fields

import pytest

from ziggurat.errors import SpecError
from ziggurat.schedules.registry import SCHEDULES
from ziggurat.specs import TrainSpec, describe_fields, parse_spec

MINIMAL = {"kind": "train", "network": "mlp", "data": "digits"}
DESCRIBED = describe_fields(TrainSpec)


@pytest.mark.parametrize("field", DESCRIBED, ids=lambda field: f"{field.path}-{field.variant}")
def test_a_field_says_all_that_a_face_shows(field):
    assert field.title
    assert field.help.endswith(".")
    assert field.group
    assert not field.path.endswith("_s") or field.unit == "s"
    assert not field.path.endswith("_percent") or field.unit == "%"


def test_every_field_that_a_person_sets_is_described():
    top = [field.path for field in DESCRIBED if field.is_top]
    assert top == [name for name in TrainSpec.model_fields if name not in ("kind", "version")]


def test_bounds_units_and_choices_are_told():
    by_path = {(field.path, field.variant): field for field in DESCRIBED}
    rate = by_path["learning_rate", ""]
    assert (rate.kind, rate.default, rate.minimum, rate.maximum) == ("number", 0.01, 0, None)
    assert by_path["precision", ""].choices == ("float32", "bf16", "fp16")
    assert by_path["schedule", ""].choices[:3] == ("fixed", "step", "multistep")
    assert by_path["schedule.at_percent", "multistep"].default == [50.0, 85.0]
    assert by_path["network", ""].required
    assert by_path["data.source", ""].required
    assert by_path["checkpoints.keep_best.mode", ""].choices == ("auto", "min", "max")
    assert by_path["heartbeat_s", ""].as_dict()["maximum"] == 10


def test_the_json_schema_carries_group_and_unit():
    schema = TrainSpec.model_json_schema()["properties"]
    assert schema["epochs"]["title"] == "Epochs"
    assert schema["epochs"]["group"] == "Duration"
    assert schema["epochs"]["unit"] == "epochs"
    assert schema["epochs"]["minimum"] == 1


@pytest.mark.parametrize("field", [field for field in DESCRIBED if field.short_form], ids=lambda field: field.path)
def test_a_bare_text_stands_for_its_part(field):
    text = {"schedule": "cosine", "optimizer": "adam"}.get(field.path, "some_name")
    first, *rest = field.path.split(".")
    short = {rest[0]: text} if rest else text
    long = (
        {field.short_form: text} if field.tag in ("", field.short_form) else {"source": "zoo", field.short_form: text}
    )
    assert parse_spec({**MINIMAL, first: short}) == parse_spec({**MINIMAL, first: {rest[0]: long} if rest else long})


def test_short_forms_in_lists_and_files():
    spec = parse_spec({**MINIMAL, "network": "nets/mine.py", "callbacks": ["ema", {"name": "other"}]})
    assert spec.network.model_dump() == {"source": "file", "path": "nets/mine.py", "text": None}
    assert [(use.name, use.options) for use in spec.callbacks] == [("ema", {}), ("other", {})]
    spec = parse_spec({**MINIMAL, "schedule": {"policy": "multistep", "at_percent": "30, 60"}})
    assert spec.schedule.at_percent == [30.0, 60.0]


def test_the_policies_are_those_of_the_engine():
    described = next(field for field in DESCRIBED if field.path == "schedule")
    assert set(described.choices) == set(SCHEDULES)
    for policy, schedule in SCHEDULES.items():
        own = {
            field.path.removeprefix("schedule."): field.default
            for field in DESCRIBED
            if field.path.startswith("schedule.") and field.variant == policy and "warm_up" not in field.path
        }
        expected = {
            part.name: None if part.default is MISSING else part.default
            for part in fields(schedule)  # pyright: ignore[reportArgumentType]
        }
        assert {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()} == expected


def test_defaults_are_those_that_digits_users_know():
    spec = parse_spec(MINIMAL)
    assert (spec.epochs, spec.learning_rate) == (30, 0.01)
    assert spec.schedule.model_dump(include={"policy", "step_percent", "gamma"}) == {
        "policy": "step",
        "step_percent": 33.0,
        "gamma": 0.1,
    }
    assert spec.optimizer.model_dump() == {"name": "momentum", "momentum": 0.9, "nesterov": False}
    assert [use.name for use in spec.monitors] == ["events", "tensorboard", "stats", "printer", "progress"]


def test_the_tag_of_a_default_says_all_of_it():
    """What is filled in where only a part of a field is set is no more than the tag."""
    plain = {"kind": "train", "version": 1, "network": "mlp", "data": "digits"}
    whole = parse_spec(plain).model_dump(mode="json")
    for field in describe_fields(TrainSpec):
        if field.is_top and field.kind == "object" and field.default is not None:
            tagged = {**plain, field.path: {field.tag: field.default[field.tag]} if field.tag else {}}
            assert parse_spec(tagged).model_dump(mode="json") == whole, field.path


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"threads": 0}, "`threads` must be at least 1"),
        ({"threads": 257}, "`threads` must be at most 256"),
        ({"threads": 2, "backend_options": {"intra_threads": 1}}, "`threads` must be left out beside `intra_threads`"),
    ],
)
def test_threads_out_of_bounds_or_given_twice_are_refused(fields, rule):
    with pytest.raises(SpecError, match=rule):
        parse_spec({"kind": "train", "version": 1, "network": "mlp", "data": "digits", **fields})
