"""Fields of a spec that were renamed: the former names are read everywhere, and written nowhere."""

import json

import pytest

from ziggurat.errors import SpecError
from ziggurat.layout import JobFolder
from ziggurat.specs import former_names, load_spec, parse_spec, present_names, spec_from_flags, spec_json

MINIMAL = {"kind": "train", "network": "mlp", "data": "digits"}
FORMER = {**MINIMAL, "accumulate": 4, "average_weights": 0.9, "checkpoints": {"keep_last": 2, "keep_every_hours": 3.0}}
PRESENT = {
    **MINIMAL,
    "gradient_accumulation_steps": 4,
    "ema_decay": 0.9,
    "checkpoints": {"keep_last": 2, "keep_checkpoint_every_n_hours": 3.0},
}
TWICE = (
    "Both `accumulate` and `gradient_accumulation_steps` are given, and `accumulate` is the former name of "
    "`gradient_accumulation_steps`. Leave out `accumulate`."
)


def test_a_spec_with_former_names_is_the_same_spec():
    spec = parse_spec(FORMER)
    assert spec == parse_spec(PRESENT)
    assert (spec.gradient_accumulation_steps, spec.ema_decay) == (4, 0.9)
    assert spec.checkpoints.keep_checkpoint_every_n_hours == 3.0


def test_a_spec_is_written_with_the_present_names():
    text = spec_json(parse_spec(FORMER))
    assert not former_names(json.loads(text))
    assert '"ema_decay": 0.9' in text


def test_a_stored_spec_of_0_1_is_read(tmp_path):
    path = JobFolder(tmp_path).spec
    path.write_text(json.dumps({**FORMER, "version": 1}))
    assert load_spec(path) == parse_spec(PRESENT)


def test_present_names_keep_order_and_content():
    found = present_names(FORMER)
    assert found == PRESENT
    assert list(found) == list(PRESENT)
    assert "accumulate" in FORMER, "what came stays as it was"
    assert present_names(PRESENT) is PRESENT


def test_former_names_tell_what_is_renamed():
    assert former_names({"average_weights": None, "checkpoints": {"keep_every_hours": 1}}) == {
        "average_weights": "ema_decay",
        "checkpoints.keep_every_hours": "checkpoints.keep_checkpoint_every_n_hours",
    }
    assert former_names({"checkpoints": 3}) == former_names({"kind": "dataset", "accumulate": 1}) == {}


@pytest.mark.parametrize("other", [4, 1])
def test_a_spec_with_both_names_is_refused(other):
    with pytest.raises(SpecError) as caught:
        parse_spec({**MINIMAL, "accumulate": 4, "gradient_accumulation_steps": other})
    assert str(caught.value) == TWICE
    assert caught.value.details["field"] == "gradient_accumulation_steps"


def test_a_part_with_both_names_is_refused():
    both = {"keep_every_hours": 1.0, "keep_checkpoint_every_n_hours": 1.0}
    with pytest.raises(SpecError, match=r"`checkpoints\.keep_every_hours` is the former name of `checkpoints\.keep_ch"):
        parse_spec({**MINIMAL, "checkpoints": both})


def test_an_error_names_the_present_field():
    with pytest.raises(SpecError, match=r"^`ema_decay` must be less than 1 \(received: 1"):
        parse_spec({**MINIMAL, "average_weights": 1.0})


def test_flags_and_assignments_take_former_names():
    flags = {"network": "mlp", "data": "digits", "accumulate": "4"}
    assigned = ("average_weights=0.9", "checkpoints.keep_last=2", "checkpoints.keep_every_hours=3")
    assert spec_from_flags(flags, assignments=assigned) == parse_spec(PRESENT)


@pytest.mark.parametrize("base", [FORMER, PRESENT], ids=["former", "present"])
@pytest.mark.parametrize("flag", ["accumulate", "gradient_accumulation_steps"])
def test_a_flag_changes_a_file_under_either_name(base, flag):
    spec = spec_from_flags({flag: "8"}, base=base)
    assert (spec.gradient_accumulation_steps, spec.ema_decay) == (8, 0.9)


def test_flags_with_both_names_are_refused():
    with pytest.raises(SpecError) as caught:
        spec_from_flags({"accumulate": "4"}, assignments=("gradient_accumulation_steps=4",), base=MINIMAL)
    assert str(caught.value) == TWICE
