"""``spec`` shows, checks and upgrades spec files, and lists the fields."""

import json

from ziggurat.specs import TrainSpec, describe_fields, parse_spec, spec_json


def test_show_prints_every_field(ziggurat, job):
    answer = ziggurat("spec", "show", job / "spec.json")
    expected = parse_spec(json.loads((job / "spec.json").read_text()))
    assert answer.out == spec_json(expected)
    assert ziggurat("spec", "show", job).out == answer.out, "a job folder will do"
    assert ziggurat("spec", "show", job, "--json").out == answer.out


def test_validate_says_yes_or_why_not(ziggurat, job):
    assert ziggurat("spec", "validate", job).out == f"{job}: valid\n"
    assert ziggurat("spec", "validate", job, "--json").content == {"valid": True, "kind": "train", "version": 1}
    (job / "spec.json").write_text('{"kind": "train", "network": "mlp", "data": "digits", "epochs": 0}')
    answer = ziggurat("spec", "validate", job, "--json")
    assert answer.code == 3
    assert answer.content["details"]["field"] == "epochs"
    assert answer.content["details"]["source"] == str(job / "spec.json")


def test_schema_lists_every_field_or_gives_the_json_schema(ziggurat):
    lines = ziggurat("spec", "schema").out.splitlines()
    assert lines[0].split() == ["field", "for", "kind", "default", "help"]
    assert [line.split()[0] for line in lines[1:]] == [field.path for field in describe_fields(TrainSpec)]
    schema = ziggurat("spec", "schema", "--json").content
    assert set(schema["required"]) == {"network", "data"}
    assert schema["properties"]["learning_rate"]["group"] == "Learning rate"


def test_upgrade_prints_or_writes_todays_version(ziggurat, job):
    before = (job / "spec.json").read_text()
    printed = ziggurat("spec", "upgrade", job)
    assert printed.out == ziggurat("spec", "show", job).out
    assert (job / "spec.json").read_text() == before
    answer = ziggurat("spec", "upgrade", job, "--write", "--json")
    assert answer.content == {"file": str(job / "spec.json"), "from": 1, "to": 1}
    assert (job / "spec.json").read_text() == printed.out
