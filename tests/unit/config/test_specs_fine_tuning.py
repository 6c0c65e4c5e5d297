"""Fine-tuning in specs: its bounds, and specs without it as they were before the field existed."""

import json

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import TrainSpec, parse_spec, spec_from_flags, spec_json

MINIMAL = {"kind": "train", "version": 1, "network": "mlp", "data": "digits"}


def spec_with(**fine_tuning: object) -> TrainSpec:
    spec = parse_spec({**MINIMAL, "pretrained": "job", "fine_tuning": fine_tuning})
    assert isinstance(spec, TrainSpec)
    return spec


def test_a_spec_without_fine_tuning_does_not_name_it():
    spec = parse_spec(MINIMAL)
    assert "fine_tuning" not in spec_json(spec)
    assert "fine_tuning" not in spec.model_dump(mode="json")
    later = ("fine_tuning", "threads", "nodes", "gpus_per_node")
    assert [*json.loads(spec_json(spec))] == [name for name in TrainSpec.model_fields if name not in later]
    assert parse_spec({**MINIMAL, "fine_tuning": None}) == spec


def test_fine_tuning_is_written_and_read_back():
    spec = spec_with(frozen_epochs=2, layer_decay=0.7)
    content = json.loads(spec_json(spec))
    assert content["fine_tuning"] == {"frozen_epochs": 2, "backbone_rate": 1.0, "layer_decay": 0.7}
    assert parse_spec(content) == spec


@pytest.mark.parametrize(
    ("field", "value"),
    [("frozen_epochs", -1), ("backbone_rate", 0.0), ("backbone_rate", 1.1), ("layer_decay", 0.0), ("layer_decay", 2.0)],
)
def test_values_out_of_bounds_are_refused_at_their_field(field, value):
    with pytest.raises(SpecError, match=f"`fine_tuning.{field}` must be"):
        spec_with(**{field: value})


def test_parts_are_set_by_flags():
    spec = spec_from_flags(
        {"network": "mlp", "data": "digits", "pretrained": "job"},
        assignments=["fine_tuning.frozen_epochs=2", "fine_tuning.backbone_rate=0.1"],
    )
    assert spec.fine_tuning is not None
    assert (spec.fine_tuning.frozen_epochs, spec.fine_tuning.backbone_rate) == (2, 0.1)
