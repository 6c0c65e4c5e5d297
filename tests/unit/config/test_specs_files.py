"""Specs on disk: canonical text, whole files, and errors that name the file."""

import json

import pytest

from ziggurat.errors import SpecError, StorageError
from ziggurat.specs import load_spec, parse_spec, read_content, save_spec, spec_json

CONTENT = {
    "kind": "train",
    "version": 1,
    "network": "mlp",
    "data": "digits",
    "backend_options": {"b": 1, "a": {"d": 2, "c": 3}},
}


def test_a_spec_that_is_saved_and_loaded_is_the_same(tmp_path):
    spec = parse_spec(CONTENT)
    save_spec(spec, tmp_path / "spec.json")
    assert load_spec(tmp_path / "spec.json") == spec
    assert [path.name for path in tmp_path.iterdir()] == ["spec.json"]


def test_the_text_holds_every_field_and_is_always_the_same():
    other = {"data": {"options": {}, "source": "digits"}, "backend_options": {"a": {"c": 3, "d": 2}, "b": 1}}
    text = spec_json(parse_spec(CONTENT))
    assert text == spec_json(parse_spec({**CONTENT, **other}))
    assert text.startswith('{\n  "kind": "train",\n  "version": 1,\n')
    assert text.endswith("}\n")
    assert list(json.loads(text)["backend_options"]) == ["a", "b"]
    assert json.loads(text)["checkpoints"]["keep_last"] == 5


def test_saving_replaces_the_file_or_leaves_it(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text("before")
    save_spec(parse_spec(CONTENT), path)
    assert read_content(path)["network"] == {"source": "zoo", "name": "mlp"}
    with pytest.raises(StorageError, match="The spec must be written to"):
        save_spec(parse_spec(CONTENT), tmp_path / "nowhere" / "spec.json")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, r"cannot be read: No such file or directory\."),
        ("{", "is not JSON: Expecting property name"),
        ("[]", "holds a list, not a JSON object"),
    ],
)
def test_a_file_that_is_no_spec_is_named(tmp_path, text, error):
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SpecError, match=rf"mine\.json {error}"):
        load_spec(path)


def test_a_spec_does_not_change():
    spec = parse_spec(CONTENT)
    with pytest.raises(ValueError, match="frozen"):
        spec.epochs = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_stored_spec_keeps_a_rate_that_is_refused_now(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text('{"kind": "train", "version": 1, "network": "lenet", "data": "digits", "learning_rate": 0}')
    spec = load_spec(path)
    assert spec.learning_rate == 0
    with pytest.raises(SpecError, match="`learning_rate` must be more than 0"):
        parse_spec(spec.model_dump(mode="json"))
